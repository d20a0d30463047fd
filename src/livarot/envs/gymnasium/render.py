"""Pictures of an episode, as text and as pixels.  A frame needs NumPy only, no plotting library.

Both show the same things: every state as a cell with its name or number, the states visited in this episode, the
current one, and how far the episode has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

CELL = 36  # side of a state's square, in pixels
MARGIN = 8
BAR = 10  # height of the bar of stages
COLUMNS = 12  # states per line
MANY = 400  # beyond this many states, only those of this episode are shown

PAPER = (255, 255, 255)
EMPTY = (226, 232, 240)
VISITED = (147, 197, 253)
CURRENT = (234, 88, 12)
INK = (15, 23, 42)

# 3 x 5 characters, one octal figure per line of three pixels
SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ -"
DIGITS = "75557 26227 71747 71717 55711 74717 74757 71111 75757 75717"
LETTERS = "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755"  # A to M
LETTERS += " 65555 25552 65644 25573 65655 34216 72222 55557 55552 55775 55255 55222 71247"
CHARACTERS = dict(zip(SIGNS, f"{DIGITS} {LETTERS} 00000 00700".split(), strict=True))
OTHER = "00002"  # any other character: a dot
LONGEST = 9  # characters in a cell

Names = Sequence[Any] | None  # None: numbers


def text(
    n_states: int,
    horizon: int,
    trail: Sequence[int],
    actions: Sequence[int],
    earned: float,
    names: tuple[Names, Names] = (None, None),
) -> str:
    """The episode so far: ``trail`` are the states from the first to the current one, ``names`` of states and actions.

    >>> print(text(4, 3, [0, 1], [1], 0.5))
    stage 1/3  state 1  return 0.5
    .0  [1]   2    3
    0 -1-> 1
    >>> print(text(2, 3, [0, 1], [1], 0.5, (["new", "worn"], ["rest", "work"])))
    stage 1/3  state worn  return 0.5
    . new  [worn]
    new -work-> worn
    """
    states, moves = names
    current, seen = trail[-1], set(trail)
    lines = [f"stage {len(actions)}/{horizon}  state {_name(states, current)}  return {earned:.6g}"]
    shown = {s: _name(states, s) for s in _shown(n_states, trail)}
    width = max(map(len, shown.values()))
    cells = [
        f"[{name:>{width}}]" if s == current else f".{name:>{width}} " if s in seen else f" {name:>{width}} "
        for s, name in shown.items()
    ]
    lines += [" ".join(cells[at : at + COLUMNS]).rstrip() for at in range(0, len(cells), COLUMNS)]
    if actions:
        last = zip(actions[-6:], trail[1:][-6:], strict=True)
        steps = "".join(f" -{_name(moves, a)}-> {_name(states, s)}" for a, s in last)
        lines.append(f"{'' if len(actions) <= 6 else '.. '}{_name(states, trail[-len(actions[-6:]) - 1])}{steps}")
    return "\n".join(lines)


def pixels(n_states: int, horizon: int, trail: Sequence[int], stage: int, names: Names = None) -> Pixels:
    """The same as a picture, (height, width, 3); its size depends on the number of states and not on the episode."""
    shown = _shown(n_states, trail)
    places = min(n_states, MANY)
    columns = min(places, COLUMNS)
    lines = -(-places // columns)
    width = columns * CELL + 2 * MARGIN
    frame = np.full((lines * CELL + BAR + 3 * MARGIN, width, 3), PAPER, dtype=np.uint8)
    seen = set(trail)
    for place, state in enumerate(shown[:places]):
        top, left = MARGIN + place // columns * CELL, MARGIN + place % columns * CELL
        colour = CURRENT if state == trail[-1] else VISITED if state in seen else EMPTY
        frame[top + 1 : top + CELL - 1, left + 1 : left + CELL - 1] = colour
        _write(frame, _name(names, state)[:LONGEST].upper(), top, left, PAPER if state == trail[-1] else INK)
    top, full = frame.shape[0] - MARGIN - BAR, width - 2 * MARGIN
    frame[top : top + BAR, MARGIN : MARGIN + full] = EMPTY
    frame[top : top + BAR, MARGIN : MARGIN + full * stage // horizon] = CURRENT
    return frame


def _shown(n_states: int, trail: Sequence[int]) -> list[int]:
    return list(range(n_states)) if n_states <= MANY else sorted(set(trail))


def _name(names: Names, number: int) -> str:
    """The name, or the number, in one line."""
    return str(number) if names is None else " ".join(str(names[number]).split())


def _write(frame: Pixels, name: str, top: int, left: int, colour: tuple[int, int, int]) -> None:
    """The name in the middle of its cell; fewer pixels per dot when it is long."""
    dot = 4 if len(name) == 1 else 3 if len(name) == 2 else 2 if len(name) <= 4 else 1
    advance = 4 * dot
    x = left + (CELL - len(name) * advance + dot) // 2
    y = top + (CELL - 5 * dot) // 2
    for at, sign in enumerate(name):
        for line, octal in enumerate(CHARACTERS.get(sign, OTHER)):
            for column in range(3):
                if int(octal) & (4 >> column):
                    row, col = y + line * dot, x + at * advance + column * dot
                    frame[row : row + dot, col : col + dot] = colour
