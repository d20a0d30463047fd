"use strict";
// Names come from experiment files: they reach the page through textContent, and plotly through plain().
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#222222", "#e69f00", "#56b4e9", "#8a6d00"];
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash"];
  const at = (id) => document.getElementById(id);
  const colour = (agent) => colours[agent % colours.length];
  const dash = (agent) => dashes[Math.floor(agent / colours.length) % dashes.length];
  // plotly reads a few tags and entities in its texts
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, n = 60) => plain(text.length > n ? text.slice(0, n - 1) + "…" : text);

  function make(tag, text, kind) {
    const found = document.createElement(tag);
    if (text !== undefined && text !== null) found.textContent = text;
    if (kind) found.className = kind;
    return found;
  }
  function option(select, value, text) {
    const found = make("option", text);
    found.value = value;
    select.append(found);
  }
  function number(x) {
    if (x === null || x === undefined) return "";
    const size = Math.abs(x);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? x.toExponential(2) : String(Number(x.toPrecision(4)));
  }
  const spread = (i) => (i === null ? "" : i[1] === null ? number(i[0]) : `${number(i[0])} [${number(i[1])}, ${number(i[2])}]`);

  // ---------------------------------------------------------------- state and controls
  const shown = new Set();
  const panelPicker = at("environment"), metricPicker = at("metric"), bandPicker = at("band");
  data.panels.forEach((p, i) => option(panelPicker, i, `${p.name}, T = ${p.episodes}`));
  data.metrics.forEach((m) => option(metricPicker, m[0], m[1]));
  const panel = () => Number(panelPicker.value);

  function agentsOf(p) {
    return [...new Set(data.cells.filter((c) => c.panel === p).map((c) => c.agent))];
  }
  data.panels.forEach((_, p) => agentsOf(p).slice(0, 8).forEach((a) => shown.add(a)));

  function drawAgents() {
    const box = at("agents");
    box.replaceChildren();
    for (const agent of agentsOf(panel())) {
      const label = make("label");
      const tick = make("input");
      tick.type = "checkbox";
      tick.checked = shown.has(agent);
      tick.dataset.agent = agent;
      tick.addEventListener("change", () => {
        if (tick.checked) shown.add(agent);
        else shown.delete(agent);
        drawPlots();
      });
      const swatch = make("span", null, "swatch");
      swatch.style.background = colour(agent);
      label.append(tick, swatch, make("span", data.agents[agent]));
      box.append(label);
    }
  }
  function tickAll(on) {
    for (const agent of agentsOf(panel())) {
      if (on) shown.add(agent);
      else shown.delete(agent);
    }
    drawAgents();
    drawPlots();
  }

  // ---------------------------------------------------------------- plots
  const look = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  const layout = (x, y, more) => ({
    margin: { l: 70, r: 20, t: 30, b: 50 },
    hovermode: "closest",
    showlegend: true,
    legend: { orientation: "h", y: -0.2 },
    font: { family: "system-ui, sans-serif", size: 13 },
    xaxis: { title: { text: x } },
    yaxis: { title: { text: y } },
    ...more,
  });

  function drawCurves() {
    const metric = metricPicker.value, kind = bandPicker.value;
    const traces = [];
    for (const cell of data.cells) {
      const curve = cell.curves[metric];
      if (cell.panel !== panel() || !shown.has(cell.agent) || !curve) continue;
      const name = short(data.agents[cell.agent]);
      const band = kind === "none" ? null : curve[kind];
      if (band) {
        traces.push({
          x: cell.x.concat(cell.x.slice().reverse()), y: band[1].concat(band[0].slice().reverse()),
          fill: "toself", fillcolor: colour(cell.agent) + "28", line: { width: 0 }, mode: "lines",
          hoverinfo: "skip", showlegend: false, legendgroup: String(cell.agent),
        });
      }
      traces.push({
        x: cell.x, y: curve.mean, mode: "lines", name, legendgroup: String(cell.agent),
        line: { color: colour(cell.agent), dash: dash(cell.agent), width: 2 },
        hovertemplate: "episode %{x}<br>%{y:.5g}", meta: "mean",
      });
    }
    const log = at("log").checked ? "log" : "linear";
    const title = data.metrics.find((m) => m[0] === metric)[1];
    const found = layout("episode", title, {});
    found.xaxis.type = log;
    found.yaxis.type = log;
    Plotly.react("curves", traces, found, look);
  }

  function drawScaling() {
    const family = data.panels[panel()].family;
    const traces = [];
    for (const line of data.scaling) {
      if (line.family !== family || !shown.has(line.agent)) continue;
      const slope = line.slope ? `, slope ${spread(line.slope)}` : "";
      const known = line.low.every((x) => x !== null);
      traces.push({
        x: line.horizons, y: line.mean, mode: "lines+markers", name: short(data.agents[line.agent], 40) + slope,
        line: { color: colour(line.agent), dash: dash(line.agent) },
        error_y: known ? { type: "data", symmetric: false, array: line.high.map((x, i) => x - line.mean[i]),
          arrayminus: line.low.map((x, i) => line.mean[i] - x) } : undefined,
        hovertemplate: "H = %{x}<br>%{y:.5g}",
      });
    }
    at("scaling").hidden = traces.length === 0;
    at("no-scaling").hidden = traces.length > 0;
    if (traces.length === 0) return;
    const found = layout("horizon H", "cumulative regret after the last episode", {});
    found.xaxis.type = "log";
    found.yaxis.type = "log";
    found.xaxis.tickvals = [...new Set(traces.flatMap((t) => t.x))];
    Plotly.react("scaling", traces, found, look);
  }

  function drawPairs() {
    const here = data.pairs.filter((p) => p.panel === panel() && shown.has(p.first) && shown.has(p.second));
    at("no-pairs").hidden = here.length > 0;
    at("pairs").hidden = here.length === 0;
    fill(at("pairs-table"), [
      ["first", "text"], ["second", "text"], ["first − second", "number"], ["P(first is better)", "number"], ["seeds", "number"],
    ], here.map((p) => ({
      cells: [data.agents[p.first], data.agents[p.second], spread(p.difference), spread(p.improvement), p.seeds],
      keys: [data.agents[p.first], data.agents[p.second], p.difference[0], p.improvement[0], p.seeds],
    })));
    if (here.length === 0) return;
    const drawn = here.slice(0, 40);
    const trace = {
      x: drawn.map((p) => p.difference[0]), y: drawn.map((_, i) => i), mode: "markers", type: "scatter",
      marker: { color: drawn.map((p) => (p.difference[1] > 0 || p.difference[2] < 0 ? "#0072b2" : "#999999")), size: 9 },
      error_x: { type: "data", symmetric: false, array: drawn.map((p) => p.difference[2] - p.difference[0]),
        arrayminus: drawn.map((p) => p.difference[0] - p.difference[1]), color: "#555555" },
      hovertemplate: "%{x:.5g}<extra></extra>",
    };
    const names = drawn.map((p) => `${short(data.agents[p.first], 28)} − ${short(data.agents[p.second], 28)}`);
    Plotly.react("pairs", [trace], layout("difference of regret, seed by seed", "", {
      showlegend: false,
      margin: { l: 60, r: 20, t: 20, b: 50 },
      height: 120 + 28 * drawn.length,
      yaxis: { tickvals: drawn.map((_, i) => i), ticktext: names, autorange: "reversed", automargin: true, zeroline: false, showgrid: false },
      shapes: [{ type: "line", x0: 0, x1: 0, y0: 0, y1: 1, yref: "paper", line: { color: "#999999", width: 1 } }],
    }), look);
  }

  // ---------------------------------------------------------------- tables
  const LIMIT = 500;
  function fill(table, columns, rows, sorted) {
    const [by, up] = sorted || [null, true];
    const order = rows.slice();
    if (by !== null) {
      const empty = (x) => x === null || x === undefined || x === "";
      order.sort((a, b) => {
        const [x, y] = [a.keys[by], b.keys[by]];
        if (empty(x) || empty(y)) return empty(x) - empty(y); // what is missing comes last, either way
        const sign = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return up ? sign : -sign;
      });
    }
    const head = make("tr");
    columns.forEach(([title], i) => {
      const cell = make("th"), button = make("button", title + (by === i ? (up ? " ▲" : " ▼") : ""));
      button.type = "button";
      button.addEventListener("click", () => fill(table, columns, rows, [i, by === i ? !up : true]));
      cell.setAttribute("aria-sort", by === i ? (up ? "ascending" : "descending") : "none");
      cell.append(button);
      head.append(cell);
    });
    const body = make("tbody");
    for (const row of order.slice(0, LIMIT)) {
      const line = make("tr", null, row.bad ? "bad" : "");
      row.cells.forEach((x, i) => line.append(make("td", typeof x === "number" ? number(x) : x, columns[i][1])));
      body.append(line);
    }
    if (order.length > LIMIT) {
      const line = make("tr"), cell = make("td", `${order.length - LIMIT} more lines: narrow the filter`, "note");
      cell.colSpan = columns.length;
      line.append(cell);
      body.append(line);
    }
    const top = make("thead");
    top.append(head);
    table.replaceChildren(top, body);
  }

  function matching() {
    const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = at("only-panel").checked;
    return data.cells.filter((c) => {
      if (only && c.panel !== panel()) return false;
      const text = `${data.panels[c.panel].name} ${data.agents[c.agent]}`.toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }
  function drawTables() {
    const found = matching();
    const base = (c) => [data.panels[c.panel].name, data.agents[c.agent]];
    fill(at("table"), [
      ["environment", "text"], ["agent", "text"], ["T", "number"], ["H", "number"], ["seeds", "number"], ["regret", "number"],
      ["interquartile mean", "number"], ["realised regret", "number"], ["σ̄", "number"],
    ], found.map((c) => {
      const p = data.panels[c.panel], plainNumbers = [p.episodes, p.horizon, c.seeds];
      return {
        cells: [...base(c), ...plainNumbers, spread(c.regret), spread(c.iqm), spread(c.realised), c.audit.sigma_bar],
        keys: [...base(c), ...plainNumbers, c.regret[0], c.iqm[0], c.realised[0], c.audit.sigma_bar],
      };
    }));
    fill(at("audit"), [
      ["environment", "text"], ["agent", "text"], ["episodes covered", "number"], ["runs always covered", "number"], ["promised", "number"],
      ["episodes optimistic", "number"], ["least optimism", "number"], ["largest inner gap", "number"],
    ], found.filter((c) => c.audit.covered !== null || c.audit.optimistic !== null).map((c) => {
      const a = c.audit, always = a.always_covered;
      return {
        cells: [...base(c), a.covered, spread(always), a.promised, a.optimistic, a.least_optimism, a.inner_gap],
        keys: [...base(c), a.covered, always && always[0], a.promised, a.optimistic, a.least_optimism, a.inner_gap],
        bad: Boolean(always && a.promised !== null && always[2] < a.promised),
      };
    }));
  }

  function drawPlots() {
    drawCurves();
    drawScaling();
    drawPairs();
  }
  function drawAll() {
    drawAgents();
    drawPlots();
    drawTables();
  }
  panelPicker.addEventListener("change", drawAll);
  for (const id of ["metric", "band", "log"]) at(id).addEventListener("change", drawCurves);
  at("all").addEventListener("click", () => tickAll(true));
  at("none").addEventListener("click", () => tickAll(false));
  at("filter").addEventListener("input", drawTables);
  at("only-panel").addEventListener("change", drawTables);
  drawAll();
  document.body.dataset.ready = "yes";
})();
