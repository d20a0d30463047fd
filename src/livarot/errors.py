"""The one error of the package, and the checks that raise it.

A message is one line and names the argument, what is wrong with it, where it is wrong first, how often, and
what to do about it:

>>> raise bad("features", "3 rows have norm > 1", index=(0, 2, 1), count=3, cure="pass normalise=True")
Traceback (most recent call last):
    ...
livarot.errors.LivarotError: features: 3 rows have norm > 1 (first at index (0, 2, 1)); pass normalise=True

The parts are attributes too, so a caller need not parse the text.
"""

from __future__ import annotations

import math
import operator
import reprlib
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Interrupted",
    "LivarotError",
    "MissingExtra",
    "bad",
    "require_callable",
    "require_finite",
    "require_non_negative",
    "require_number",
    "require_positive",
    "require_positive_int",
    "require_probability",
    "require_share",
    "shown",
]


class LivarotError(ValueError):
    """An input this package refuses; a ``ValueError``, so ``except ValueError`` catches it.

    Attributes
    ----------
    argument : name of the offending argument, or None.
    index : position of the first offending entry, as a tuple, or None.
    count : number of offending entries, or None.
    cure : what to do about it, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        argument: str | None = None,
        index: tuple[int, ...] | None = None,
        count: int | None = None,
        cure: str | None = None,
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.index = index
        self.count = count
        self.cure = cure


class MissingExtra(LivarotError, ImportError):
    """A package that one of livarot's extras installs is not there; also an ``ImportError``."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run, a search or a fit; ``result`` is what was done by then.

    After a run or a search it is what the function would have returned for the part that was done; after a fit the last
    theta, not converged (:class:`livarot.data.UnfinishedFit`), or None.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


def bad(
    argument: str,
    problem: str,
    *,
    index: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    count: SupportsIndex | None = None,
    cure: str | None = None,
) -> LivarotError:
    """Build (not raise) the error for `argument`.

    The count is put in brackets beside the index, unless `problem` begins with it.

    >>> str(bad("reward", "not finite", index=4, count=2))
    'reward: not finite (2 in all, first at index 4)'
    >>> bad("reward", "not finite", index=4, count=2).index
    (4,)
    """
    where = None
    if index is not None:
        where = tuple(map(operator.index, index if isinstance(index, tuple) else (index,)))
    number = None if count is None else operator.index(count)
    places = []
    if number is not None and not problem.startswith(f"{number} "):
        places.append(f"{number} in all")
    if where is not None:
        places.append(f"first at index {where[0] if len(where) == 1 else where}")
    message = f"{argument}: {problem}"
    if places:
        message += f" ({', '.join(places)})"
    if cure is not None:
        message += f"; {cure}"
    return LivarotError(" ".join(message.split()), argument=argument, index=where, count=number, cure=cure)


def require_finite(argument: str, array: Any) -> NDArray[np.float64]:
    """`array` as float64 (not copied if it is float64 already), refused unless all of it is finite.

    Integers are taken; booleans, complex numbers, text, objects and ragged lists are not.  Nor are masked entries,
    since the number under a mask is not data; a masked array without masked entries is treated as a plain one.

    >>> require_finite("reward", [0, 1])
    array([0., 1.])
    >>> require_finite("reward", [0.0, float("nan"), float("inf")])
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: reward: NaN or infinite (2 in all, first at index 1); give finite numbers
    """
    try:
        masked, values = _mask(array), np.asarray(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise bad(argument, f"not an array of numbers ({error})") from error
    if masked.any():
        cure = "there is no data under a mask: leave such entries out, for example with .compressed()"
        raise bad(argument, "masked", index=_first(masked), count=int(masked.sum()), cure=cure)
    if values.dtype.kind not in "fiu":
        raise bad(argument, f"must hold real numbers, got dtype {values.dtype}", cure="convert it to float64")
    with np.errstate(over="ignore"):  # what does not fit into float64 becomes infinite and is reported below
        numbers = values.astype(np.float64, copy=False)
    finite = np.isfinite(numbers)
    if not finite.all():
        cure = "give finite numbers"
        raise bad(argument, "NaN or infinite", index=_first(~finite), count=int((~finite).sum()), cure=cure)
    return numbers


def _mask(array: Any) -> NDArray[np.bool_]:
    """The mask of an array, or of a list of arrays, from whose rows ``np.asarray`` would take it off."""
    rows = array if isinstance(array, list | tuple) else (array,)
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        return np.asarray(np.ma.getmaskarray(np.ma.asarray(array)))
    return np.zeros((), dtype=np.bool_)


def _first(wrong: NDArray[np.bool_]) -> tuple[SupportsIndex, ...] | None:
    return np.unravel_index(int(wrong.argmax()), wrong.shape) if wrong.ndim else None


def require_positive_int(argument: str, value: Any, minimum: int = 1, maximum: int = 2**63 - 1) -> int:
    """`value` as an int, refused unless it is a whole number (not a bool or float) from `minimum` to `maximum`.

    >>> require_positive_int("horizon", 2.0)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: horizon: must be an integer >= 1, got 2.0 (float)
    """
    if type(value) is int and minimum <= value <= maximum:  # as nearly always
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise bad(argument, f"must be an integer >= {minimum}, got {shown(value)}")
    if value > maximum:
        raise bad(argument, f"must be an integer <= {maximum}, got {shown(value)}")
    return int(value)


def require_probability(argument: str, p: Any) -> float:
    """`p` as a float, refused unless 0 < p < 1.

    >>> require_probability("failure_level", 1)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: failure_level: must be a number strictly between 0 and 1, got 1 (int)
    """
    number = _real(p)
    if not 0.0 < number < 1.0:
        raise bad(argument, f"must be a number strictly between 0 and 1, got {shown(p)}")
    return number


def require_share(argument: str, value: Any) -> float:
    """`value` as a float, refused unless 0 <= value <= 1.

    >>> require_share("discount", 1.5)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: discount: must be a number from 0 to 1, got 1.5 (float)
    """
    number = _real(value)
    if not 0.0 <= number <= 1.0:
        raise bad(argument, f"must be a number from 0 to 1, got {shown(value)}")
    return number


def require_callable(**given: Any) -> None:
    """Refuse a value that is neither callable nor None.

    >>> require_callable(progress=3)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: progress: 3 (int) cannot be called; give a function, or None
    """
    for argument, value in given.items():
        if value is not None and not callable(value):
            raise bad(argument, f"{shown(value)} cannot be called", cure="give a function, or None")


def require_number(argument: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number, of whatever sign.

    >>> require_number("angle", None)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: angle: must be a finite number, got None (NoneType)
    """
    number = _real(value)
    if not math.isfinite(number):
        raise bad(argument, f"must be a finite number, got {shown(value)}")
    return number


def require_non_negative(argument: str, value: Any) -> float:
    """`value` as a float, refused unless 0 <= value < infinity.

    >>> require_non_negative("radius", float("nan"))
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: radius: must be a finite number >= 0, got nan (float)
    """
    number = _real(value)
    if not 0.0 <= number < math.inf:
        raise bad(argument, f"must be a finite number >= 0, got {shown(value)}")
    return number


def _real(value: Any) -> float:
    """`value` as a float; NaN, which every range check refuses, if it is not a real number."""
    if type(value) is float:  # as nearly always
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def shown(value: Any) -> str:
    """A value and its type, cut to what fits into a message."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def require_positive(argument: str, value: Any) -> float:
    """`value` as a float, refused unless finite and > 0.

    >>> require_positive("reg", 0.0)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: reg: must be greater than 0, got 0.0
    """
    number = require_non_negative(argument, value)
    if number == 0.0:
        raise bad(argument, f"must be greater than 0, got {number}")
    return number
