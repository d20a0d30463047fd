"use strict";
// Names come from experiment files: they reach the page through textContent, and plotly through plain().
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = data.colours;
  const dashes = ["solid", "dash", "dot", "dashdot", "longdashdot"].slice(0, data.dashes);
  const symbols = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];
  const at = (id) => document.getElementById(id);
  const colour = (agent) => colours[agent % colours.length];
  const dash = (agent) => dashes[agent % dashes.length];
  const symbol = (agent) => symbols[agent % symbols.length];
  // plotly reads a few tags and entities in its texts, and mathematics between dollars
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
  const narrow = () => window.innerWidth < 700;
  const short = (agent) => plain((narrow() ? data.tiny : data.short)[agent]);

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
  // a note in the place of a plot, or the plot
  function say(plot, note, text) {
    at(plot).hidden = Boolean(text);
    at(note).hidden = !text;
    at(note).textContent = text;
  }

  // ---------------------------------------------------------------- state and controls
  const shown = new Set();
  const panelPicker = at("environment"), metricPicker = at("metric"), bandPicker = at("band"), axisPicker = at("axis");
  data.panels.forEach((p, i) => option(panelPicker, i, `${p.short}, T = ${p.episodes}`));
  data.metrics.forEach((m) => option(metricPicker, m[0], m[1]));
  data.axes.forEach((a) => option(axisPicker, a[0], a[1]));
  const panel = () => Number(panelPicker.value);

  function agentsOf(p) {
    return [...new Set(data.cells.filter((c) => c.panel === p).map((c) => c.agent))];
  }
  // controls do not learn: they are shown where they are ticked, or where there is nothing else
  const idle = new Set(data.with_controls ? [] : data.controls);
  data.panels.forEach((_, p) => {
    const learners = agentsOf(p).filter((a) => !idle.has(a));
    (learners.length > 0 ? learners : agentsOf(p)).slice(0, 8).forEach((a) => shown.add(a));
  });
  const ticked = () => agentsOf(panel()).filter((a) => shown.has(a));

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
    margin: { l: narrow() ? 50 : 70, r: 20, t: 30, b: 50 },
    hovermode: "closest",
    showlegend: true,
    legend: { orientation: "h", y: -0.25, font: { size: narrow() ? 10 : 12 } },
    font: { family: "system-ui, sans-serif", size: narrow() ? 11 : 13 },
    xaxis: { title: { text: x }, automargin: true },
    yaxis: { title: { text: y }, automargin: true },
    ...more,
  });

  function drawCurves() {
    const metric = metricPicker.value, kind = bandPicker.value;
    const here = data.cells.filter((c) => c.panel === panel() && shown.has(c.agent) && c.curves[metric]);
    // only exact regret is never negative
    at("log").disabled = metric !== "regret";
    at("log-note").hidden = metric === "regret";
    const log = at("log").checked && metric === "regret";
    const positive = here.flatMap((c) => c.curves[metric].mean).filter((y) => y > 0);
    const floor = log && positive.length ? Math.min(...positive) / 10 : -Infinity; // a band that reaches 0 ends there
    const traces = [];
    for (const cell of here) {
      const curve = cell.curves[metric];
      const band = kind === "none" ? null : curve[kind];
      const alone = cell.x.length === 1;
      if (band && !alone && !(log && Math.max(...band[1]) <= 0)) {
        const low = band[0].map((y) => Math.max(y, floor)), high = band[1].map((y) => Math.max(y, floor));
        traces.push({
          x: cell.x.concat(cell.x.slice().reverse()), y: high.concat(low.reverse()),
          fill: "toself", fillcolor: colour(cell.agent) + "28", line: { width: 0 }, mode: "lines",
          hoverinfo: "skip", showlegend: false, legendgroup: String(cell.agent),
        });
      }
      traces.push({
        x: cell.x, y: curve.mean, mode: alone ? "markers" : "lines+markers", name: short(cell.agent), legendgroup: String(cell.agent),
        line: { color: colour(cell.agent), dash: dash(cell.agent), width: 2 },
        marker: { color: colour(cell.agent), symbol: symbol(cell.agent), size: alone ? 9 : 6, maxdisplayed: 7 },
        error_y: band && alone ? { type: "data", symmetric: false, array: [band[1][0] - curve.mean[0]],
          arrayminus: [curve.mean[0] - band[0][0]] } : undefined,
        hovertemplate: "episode %{x}<br>%{y:.5g}", meta: "mean",
      });
    }
    say("curves", "no-curves", traces.length > 0 ? "" : ticked().length === 0 ? "No agent is ticked."
      : "None of the ticked agents has this curve.");
    const title = data.metrics.find((m) => m[0] === metric)[1] + (data.units ? ", own units" : "");
    const found = layout("episode", title, {});
    found.xaxis.type = found.yaxis.type = log ? "log" : "linear";
    if (metric === "regret" && !log) found.yaxis.rangemode = "tozero";
    Plotly.react("curves", traces, found, look);
  }

  function drawScaling() {
    const along = (name) => data.scaling.some((l) => data.families[l.family].axis === name && l.panels.includes(panel()));
    for (const each of axisPicker.options) each.disabled = !along(each.value);
    const able = data.axes.filter((a) => along(a[0]));
    if (able.length > 0 && !along(axisPicker.value)) axisPicker.value = able[0][0];
    const axis = data.axes.find((a) => a[0] === axisPicker.value);
    const here = axis ? data.scaling.filter((l) => data.families[l.family].axis === axis[0] && l.panels.includes(panel())) : [];
    const traces = [];
    for (const line of here) {
      if (!line.agents.some((a) => shown.has(a))) continue;
      const slope = line.slope ? `, slope ${line.slope}` : "";
      const known = line.low.every((x) => x !== null);
      const own = line.agents.length > 1; // along a setting of agents a line is no agent's own
      const look = own ? here.indexOf(line) : line.agent;
      traces.push({
        x: line.sizes, y: line.mean, mode: "lines+markers", name: (own ? plain(data.lines[line.name]) : short(line.agent)) + slope,
        line: { color: colour(look), dash: dash(look) },
        marker: { symbol: symbol(look), size: 8 },
        error_y: known ? { type: "data", symmetric: false, array: line.high.map((x, i) => x - line.mean[i]),
          arrayminus: line.low.map((x, i) => line.mean[i] - x) } : undefined,
        hovertemplate: "%{x}<br>%{y:.5g}",
      });
    }
    say("scaling", "no-scaling", traces.length > 0 ? ""
      : here.length === 0 ? "No agent has regret at two values of one setting of this environment, all else being equal."
      : ticked().length === 0 ? "No agent is ticked." : "The ticked agents have regret at one value of it only.");
    if (traces.length === 0) return;
    const family = data.families[here[0].family];
    const name = family.episodes === null ? family.name : `${family.name}, T = ${family.episodes}`;
    const found = layout(plain(axis[1]), "regret after the last episode", {
      title: { text: plain(name), font: { size: narrow() ? 9 : 13 } },
    });
    found.xaxis.type = "log";
    found.yaxis.type = "log";
    const sizes = [...new Set(traces.flatMap((t) => t.x))].sort((a, b) => a - b), step = Math.ceil(sizes.length / 8);
    found.xaxis.tickvals = sizes.filter((_, i) => i % step === 0);
    found.xaxis.ticktext = found.xaxis.tickvals.map((x) => String(Number(x.toPrecision(4))));
    // plotly would write 20 as 2
    found.yaxis.tickvals = [];
    for (let k = -6; k <= 9; k += 1) found.yaxis.tickvals.push(...[1, 2, 5].map((d) => Number(`${d}e${k}`)));
    found.yaxis.ticktext = found.yaxis.tickvals.map(String);
    Plotly.react("scaling", traces, found, look);
  }

  function drawPairs() {
    const here = data.pairs.filter((p) => p.panel === panel() && shown.has(p.first) && shown.has(p.second));
    say("pairs", "no-pairs", here.length > 0 ? ""
      : agentsOf(panel()).length < 2 ? "There is only one agent here."
      : ticked().length < 2 ? "Tick two agents or more to compare them."
      : "No two of the ticked agents have five seeds in common here, or their pairs are left out.");
    fill(at("pairs-table"), [
      ["first", "text"], ["second", "text"], ["first − second", "number"], ["P(first is better)", "number"], ["seeds", "number"],
    ], here.map((p) => ({
      cells: [data.agents[p.first], data.agents[p.second], ...p.told, p.seeds],
      keys: [data.agent_rank[p.first], data.agent_rank[p.second], p.difference[0], p.improvement[0], p.seeds],
    })));
    if (here.length === 0) return;
    const drawn = here.slice(0, 40);
    if (here.length > drawn.length) {
      at("no-pairs").hidden = false;
      at("no-pairs").textContent = `Drawn are the first ${drawn.length} of ${here.length} pairs; the table has all.`;
    }
    const clear = (p) => p.difference[1] > 0 || p.difference[2] < 0;
    const trace = {
      x: drawn.map((p) => p.difference[0]), y: drawn.map((_, i) => i), mode: "markers", type: "scatter",
      marker: { color: drawn.map((p) => (clear(p) ? "#0072b2" : "#999999")), symbol: drawn.map((p) => (clear(p) ? "circle" : "circle-open")), size: 9 },
      error_x: { type: "data", symmetric: false, array: drawn.map((p) => p.difference[2] - p.difference[0]),
        arrayminus: drawn.map((p) => p.difference[0] - p.difference[1]), color: "#555555" },
      hovertemplate: "%{x:.5g}<extra></extra>",
    };
    const long = narrow() || drawn.some((p) => data.short[p.first].length + data.short[p.second].length > 60);
    const names = drawn.map((p) => `${short(p.first)} −${long ? "<br>" : " "}${short(p.second)}`);
    Plotly.react("pairs", [trace], layout("", "", {
      showlegend: false,
      margin: { l: 60, r: 20, t: 20, b: 50 },
      height: 120 + (long ? 40 : 28) * drawn.length,
      xaxis: { title: { text: "difference of regret, seed by seed", font: { size: 12 } }, automargin: true, nticks: narrow() ? 4 : 10 },
      yaxis: { tickfont: { size: narrow() ? 9 : 12 }, tickvals: drawn.map((_, i) => i), ticktext: names, autorange: "reversed", automargin: true, zeroline: false, showgrid: false },
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
    columns.forEach(([title, kind], i) => {
      const cell = make("th", null, kind), button = make("button", title + (by === i ? (up ? " ▲" : " ▼") : ""));
      button.type = "button";
      button.addEventListener("click", () => fill(table, columns, rows, [i, by === i ? !up : true]));
      cell.setAttribute("aria-sort", by === i ? (up ? "ascending" : "descending") : "none");
      cell.append(button);
      head.append(cell);
    });
    const body = make("tbody");
    for (const row of order.slice(0, LIMIT)) {
      const line = make("tr", null, row.bad ? "bad" : "");
      row.cells.forEach((x, i) => line.append(make("td", x, columns[i][1])));
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
    const baseKeys = (c) => [data.panel_rank[c.panel], data.agent_rank[c.agent]];
    fill(at("table"), [
      ["environment", "text"], ["agent", "text"], ["T", "number"], ["H", "number"], ["seeds", "number"], ["regret", "number"],
      ["interquartile mean", "number"], ["realised regret", "number"], ["σ̄", "number"],
      ...(data.units ? [["normalised regret", "number"]] : []),
    ], found.map((c) => {
      const p = data.panels[c.panel], counts = [p.episodes, p.horizon, c.seeds], told = c.told;
      return {
        cells: [...base(c), ...counts, told.regret, told.iqm, told.realised, told.sigma_bar, ...(data.units ? [told.normalised] : [])],
        keys: [...baseKeys(c), ...counts, c.regret[0], c.iqm[0], c.realised[0], c.audit.sigma_bar, ...(data.units ? [c.normalised[0]] : [])],
      };
    }));
    fill(at("audit"), [
      ["environment", "text"], ["agent", "text"], ["T", "number"], ["sets", "text"], ["episodes covered", "number"], ["runs always covered", "number"],
      ["each stage by itself", "number"], ["episodes optimistic", "number"], ["least optimism", "number"], ["largest inner gap", "number"],
    ], found.filter((c) => c.audit.covered !== null || c.audit.optimistic !== null).map((c) => {
      const a = c.audit, told = c.told, episodes = data.panels[c.panel].episodes;
      const names = ["promised", "covered", "always_covered", "stages_always", "optimistic", "least_optimism", "inner_gap"];
      return {
        cells: [...base(c), episodes, ...names.map((name) => told[name])],
        keys: [...baseKeys(c), episodes, ...names.map((name) => (Array.isArray(a[name]) ? a[name][0] : a[name]))],
        bad: c.contradicted,
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
  axisPicker.addEventListener("change", drawScaling);
  at("all").addEventListener("click", () => tickAll(true));
  at("none").addEventListener("click", () => tickAll(false));
  at("filter").addEventListener("input", drawTables);
  at("only-panel").addEventListener("change", drawTables);
  drawAll();
  document.body.dataset.ready = "yes";
})();
