"""What states, actions and stages are called.

The package computes with their numbers; names are what people read and what data contain.  A model without names shows
numbers.
"""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, IntArray
from livarot.errors import bad, shown
from livarot.model.building.validation import whole_numbers
from livarot.model.derived import derived

if TYPE_CHECKING:
    from livarot.model.problem import Problem


class Labels(Sequence[Any]):
    """The names of states, actions or stages: any hashables, sorted if they can be, else in order of appearance.

    >>> zones = Labels(["north", "south", "east"])
    >>> list(zones), zones.index("north"), zones.decode([2, 0])
    (['east', 'north', 'south'], 1, array(['south', 'east'], dtype=object))
    """

    @checked
    def __init__(self, values: Iterable[Hashable], *, ordered: bool = False) -> None:
        try:
            kept = list(dict.fromkeys(values))
        except TypeError as error:
            raise bad("values", f"cannot be labels ({error})", cure="use text, numbers or tuples") from error
        if not ordered:
            with contextlib.suppress(TypeError):  # they cannot be sorted: keep the order of appearance
                kept = sorted(kept)  # type: ignore[type-var]
        self._values: tuple[Any, ...] = tuple(kept)
        self._place = {value: i for i, value in enumerate(self._values)}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, i: Any) -> Any:
        return self._values[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._values[:6]))
        return f"Labels([{shown}{', ...' if len(self) > 6 else ''}])"

    def __contains__(self, label: object) -> bool:
        return label in self._place

    def index(self, label: Any, start: int = 0, stop: int | None = None) -> int:
        """The number of a label."""
        try:
            return self._place[label]
        except (KeyError, TypeError):
            raise bad("label", f"{label!r} is not known", cure=f"use one of {self!r}") from None

    def decode(self, codes: ArrayLike) -> NDArray[Any]:
        """The labels of numbers, as an array of objects."""
        names = np.empty(len(self), dtype=object)
        names[:] = self._values
        numbers = whole_numbers("codes", codes).reshape(np.shape(codes))
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise bad("codes", "out of range", cure=f"labels are numbered 0..{len(self) - 1}")
        return np.asarray(names[numbers])

    def array(self) -> NDArray[Any]:
        """All labels: an array of numbers or of truth values if all of them are such, of objects otherwise.

        >>> Labels([2, 1]).array(), Labels(["b", "a"]).array()
        (array([1, 2]), array(['a', 'b'], dtype=object))
        """
        kinds = {type(label) for label in self._values}
        if len(kinds) == 1 and kinds <= {bool, int, float}:
            with contextlib.suppress(OverflowError):  # an integer beyond 64 bits
                return np.array(self._values, dtype=kinds.pop())
        return self.decode(np.arange(len(self)))

    def encode(self, values: Any, argument: str = "labels", cure: str | None = None) -> IntArray:
        """The numbers of labels, refused where one is not known."""
        codes, found = factorise(values, argument)
        places = np.array([self._place.get(label, -1) for label in found], dtype=np.int64)
        numbers = places[codes]
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            label = found[codes[unknown[0]]]
            problem = f"{len(unknown)} rows have a label that is not known, such as {label!r}"
            raise bad(argument, problem, index=int(unknown[0]), count=len(unknown), cure=cure)
        return numbers


def factorise(values: Any, argument: str) -> tuple[IntArray, list[Any]]:
    """Codes and the different values in order of appearance; missing values are refused."""
    import pandas as pd  # not at the top: only fits to tables need pandas

    try:
        if not isinstance(values, pd.Series | np.ndarray):
            kept = np.empty(len(values), dtype=object)
            kept[:] = list(values)  # tuples stay tuples
            values = kept
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise bad(
            argument, f"has values that cannot be labels ({error})", cure="use text, numbers or tuples"
        ) from error
    refuse(argument, "missing values", codes < 0, "drop those rows, or give the value a name of its own")
    return codes.astype(np.int64), list(found.tolist())


def refuse(argument: str, problem: str, wrong: BoolArray, cure: str) -> None:
    """A LivarotError if any entry is wrong, with the index of the first one and their number."""
    if wrong.any():
        raise bad(argument, problem, index=int(wrong.argmax()), count=int(wrong.sum()), cure=cure)


class ModelLabels(NamedTuple):
    """The names of states, actions and stages; ``stages`` is None where stages are not distinguished."""

    states: Labels
    actions: Labels
    stages: Labels | None = None


@derived
def model_labels(problem: Problem) -> ModelLabels:
    """The labels of a problem; numbers where states or actions have none."""
    sizes = (problem.states, problem.n_states), (problem.actions, problem.n_actions)
    states, actions = (Labels(range(size), ordered=True) if own is None else own for own, size in sizes)
    return ModelLabels(states, actions, problem.stages)


def check_labels(argument: str, given: Iterable[Hashable] | None, size: int) -> Labels | None:
    """One name for each of the ``size`` states, actions or stages, all different; None where there are no names."""
    if given is None or (isinstance(given, Labels) and len(given) == size):
        return given
    plain = given.tolist() if hasattr(given, "tolist") else given  # arrays and columns: Python's own numbers
    if isinstance(plain, str | bytes | Mapping | Set) or not isinstance(plain, Iterable):
        raise bad(argument, f"{shown(given)} is not a list of labels", cure=f"list {size} names")
    listed = list(islice(plain, size + 1))
    if len(listed) != size:
        many = f"more than {size}" if len(listed) > size else len(listed)
        raise bad(argument, f"has {many} labels, the model has {size} {argument}", cure=f"list {size} names")
    faults: dict[str, list[int]] = {"cannot be a label": [], "is not a name": [], "occurs twice": []}
    unusable, missing, repeated = faults.values()
    seen: set[Any] = set()
    for i, label in enumerate(listed):
        try:
            if label is None or label != label:
                missing.append(i)
            elif label in seen:
                repeated.append(i)
            seen.add(label)
        except (TypeError, ValueError):  # cannot be hashed or compared
            unusable.append(i)
    for fault, places in faults.items():
        if places:
            message = f"{reprlib.repr(listed[places[0]])} {fault}"
            cure = "use text, numbers or tuples, once each"
            raise bad(argument, message, index=places[0], count=len(places), cure=cure)
    return Labels(listed, ordered=True)
