"""Draw docs/img/rooms.svg from the list of layers in docs/design.md: ``python docs/img/draw_rooms.py``.

On the left the rooms, one line per layer; on the right the way of the data, one line per step of WAY.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
WAY = """
learning | Problem -> agent.plan -> Plan -> rollout in the MNLMDP -> Episodes -> agent.update -> state
judging | Plan + MNLMDP -> judge -> exact regret, sigma_bar, coverage -> RunResult
comparing | TOML -> cells and seeds -> tasks -> workers -> store -> report, figures, page
fitting | table -> choices -> likelihood -> MNLTransition -> MNLMDP or InfiniteMDP -> plans, intervals, policy table
evaluating | logged episodes + policy -> importance weights, model -> estimates, intervals, warnings
"""
LINE, ROOM, STEP, WIDTH = 34, 118, 30, 1040
STYLE = "font-family: system-ui, sans-serif; font-size: 13px"


def layers(design: str) -> list[list[str]]:
    """The rooms, top line first, as design.md lists them."""
    found = re.search(r"^```layers\n(.*?)^```$", design, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError("docs/design.md has no block ```layers")
    return [[room.strip() for room in line.split("|")] for line in found.group(1).splitlines()]


def box(x: float, y: float, width: float, height: float, text: str, colour: str) -> str:
    middle = f'x="{x + width / 2:g}" y="{y + height / 2 + 4:g}" text-anchor="middle"'
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{colour}" stroke="#555"/>'
    return f"{shape}<text {middle}>{escape(text)}</text>"


def draw(design: str) -> str:
    """The picture as SVG."""
    lines = layers(design)
    parts = []
    for number, rooms in enumerate(lines):
        for place, room in enumerate(rooms):
            parts.append(box(8 + place * ROOM, 8 + number * LINE, ROOM - 8, LINE - 8, room, "#eef4fb"))
    y = 8.0
    left = 8 + ROOM * max(map(len, lines)) + 30
    for line in WAY.strip().splitlines():
        name, way = (part.strip() for part in line.split("|"))
        parts.append(f'<text x="{left}" y="{y + 12:g}" font-weight="bold">{escape(name)}</text>')
        y += 20
        steps = way.split(" -> ")
        for number, step in enumerate(steps):
            parts.append(box(left, y, WIDTH - left - 8, STEP - 8, ("" if not number else "↓ ") + step, "#fdf6e8"))
            y += STEP - 6
        y += 10
    height = max(y, 16 + LINE * len(lines))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" style="{STYLE}">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


if __name__ == "__main__":
    (HERE / "rooms.svg").write_text(draw((HERE.parent / "design.md").read_text("utf-8")), "utf-8")
