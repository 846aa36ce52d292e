"""``method="auto"``: a choice among mechanisms for the same statistic by their expected errors, never by data.

The first candidate is the default. Another one replaces it if public numbers show that it has less noise:

- Under an assumed distribution, the pool is all candidates whose expected error is within 2 % of the least.
- Without an assumption it is the default and all candidates whose expected error is at most 2 % greater than that of
  the default under *each* of up to twelve reference distributions: normal, lognormal and Student's t with 2 degrees of
  freedom, as wide as the bounds, and 10, 100 and 1000 times narrower, if that is at least eight steps of the grid.
- For a pair (low, high) of typical values the references are the three shapes that have nine tenths between them.

Of the pool, the candidate with the least noise is taken (the geometric mean over the references), or the default if it
has at most 5 % more. An unknown error leaves the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.mechanisms.assumptions import Affine, Assumed
from dpfast.mechanisms.explanation import Comparison
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.prediction import Expected

_LOSS, _GAIN = 1.02, 0.95
_NEGLIGIBLE = 0.01  # noise relative to the sampling error
_SCALES = (1e-3, 1e-2, 1e-1, 1.0)  # of references, relative to the bounds; narrow ones first, which decide most often
_CENTER = (3 - math.sqrt(5)) / 2  # of the bounds: not a round number of any grid
_MOST_TYPICAL = 2.0**400  # squares of records far outside of them are doubles
_TYPICAL = np.array([0.05, 0.95])  # the levels of typical values


class Candidate(NamedTuple):
    """A mechanism that may be taken.

    Attributes
    ----------
    method : str
        The name of the method, as the user would give it.
    build : callable
        Returns the mechanism; a TypeError or ValueError excludes the candidate.
    """

    method: str
    build: Callable[[], Mechanism]


class Reference(NamedTuple):
    """A distribution under which candidates are compared: its shape, its width in units of the bounds."""

    shape: str
    scale: float
    assumed: Assumed


@dataclass(frozen=True)
class _Shape:
    """A standard distribution: its quantile function and mean."""

    ppf: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    center: float = 0.0

    def mean(self) -> float:
        return self.center


_LOGNORMAL = Assumed(_Shape(lambda u: np.exp(0.6 * scipy.special.ndtri(u)), math.exp(0.18)))
_HEAVY = Assumed(_Shape(lambda u: (2 * u - 1) / np.sqrt(2 * u * (1 - u))))
_NORMAL = Assumed(_Shape(lambda u: np.asarray(scipy.special.ndtri(u))))


def references(grid: Grid) -> tuple[Reference, ...]:
    """Return the reference distributions of records on a grid: those that spread over several of its points."""
    whole = grid.upper - grid.lower
    middle, found = grid.lower + _CENTER * whole, []
    for scale in _SCALES:
        width = scale * whole
        if width >= 8 * grid.step or scale == 1:
            found += [
                Reference("lognormal", scale, Affine(_LOGNORMAL, grid.lower, width / 8)),
                Reference("Student-t(2)", scale, Affine(_HEAVY, middle, width / 8)),
                Reference("normal", scale, Affine(_NORMAL, middle, width / 4)),
            ]
    return tuple(found)


class Typical(NamedTuple):
    """Typical values that a user assumes: nine tenths of the records are between them."""

    low: float
    high: float

    @property
    def references(self) -> tuple[Reference, ...]:
        """The three shapes with these quantiles."""
        found = []
        for shape, base in (("lognormal", _LOGNORMAL), ("Student-t(2)", _HEAVY), ("normal", _NORMAL)):
            first, last = base.points(_TYPICAL).tolist()
            scale = (self.high - self.low) / (last - first)
            found.append(Reference(shape, 1.0, Affine(base, self.low - first * scale, scale)))
        return tuple(found)


def assumption(distribution: Any) -> Any:
    """Return what a user assumes: None, `Typical` values of a pair (low, high), or an object with a
    quantile function.
    """
    if isinstance(distribution, tuple | list):
        low, high = checks.interval("distribution", distribution)
        if not (low < high and math.isfinite(high - low)):
            raise ValueError(f"typical values must be finite and different, not ({low!r}, {high!r})")
        if max(abs(low), abs(high)) > _MOST_TYPICAL:
            raise ValueError(f"typical values must be within 2**400, not ({low!r}, {high!r})")
        return Typical(low, high)
    if distribution is not None:
        Assumed(distribution)
    return distribution


class Choice(Comparison):
    """A mechanism that was chosen among candidates, and why. Public: it depends on no data.

    Parameters
    ----------
    candidates : sequence of Candidate
        The first one is the default.
    n : int or None
        The number of records; None if it is private, which leaves the default.
    grid : Grid, optional
        The range of the reference distributions; None leaves the default, unless a distribution is assumed.
    distribution : object, optional
        What the user assumes: a distribution, see `Mechanism.expected_error`, or a pair of typical values.

    Attributes
    ----------
    method : str
        The name of the method that was taken.
    mechanism : Mechanism
        The mechanism that was taken.
    reason : str
        Why.
    """

    mechanism: Mechanism

    def __init__(
        self,
        candidates: Sequence[Candidate],
        n: int | None,
        grid: Grid | None,
        distribution: Any = None,
    ) -> None:
        self.n, assumed = n, assumption(distribution)
        self._alone = not (assumed is None or isinstance(assumed, Typical))
        self._typical = isinstance(assumed, Typical)
        self._built: dict[str, Mechanism] = {candidates[0].method: candidates[0].build()}
        self._excluded: dict[str, str] = {}
        for candidate in candidates[1:]:
            try:
                self._built[candidate.method] = candidate.build()
            except (TypeError, ValueError) as error:
                self._excluded[candidate.method] = str(error)
        if assumed is None:
            self._references = () if grid is None else references(grid)
        else:
            self._references = (Reference("assumed", 1.0, Assumed(assumed)),) if self._alone else assumed.references
        self._errors: dict[tuple[str, int], Expected | None] = {}
        self.method, self.reason = self._decided()
        self.mechanism = self._built[self.method]

    @property
    def candidates(self) -> dict[str, Mechanism]:
        """The mechanisms that were compared, by the names of their methods."""
        return dict(self._built)

    @property
    def default(self) -> str:
        """The name of the default method."""
        return next(iter(self._built))

    def expected_error(self, method: str, reference: int) -> Expected | None:
        """Return the expected error of a candidate under a reference; None if it is not known."""
        key = method, reference
        if key not in self._errors:
            assert self.n is not None
            try:
                found = self._built[method].expected_error(self.n, self._references[reference].assumed)
                self._errors[key] = found if math.isfinite(found.total) else None
            except (TypeError, ValueError):
                self._errors[key] = None
        return self._errors[key]

    def _decided(self) -> tuple[str, str]:
        """Return the method that is taken, and why."""
        if len(self._built) == 1:
            return self.default, "no other mechanism is compared for these parameters"
        if self.n is None:
            return self.default, "the number of records is private, so errors cannot be compared: this is the default"
        if not self._references:
            return self.default, "there are no public bounds to compare errors within: this is the default"
        pool = [method for method in self._built if self._fits(method)]
        if not pool:
            return self.default, "the errors are not known: this is the default"
        if pool == [self.default]:
            return self.default, "no other candidate has at most 2 % more expected error"
        least = min(pool, key=self._noise)
        if self.default in pool and self._noise(least) > _GAIN * self._noise(self.default):
            return self.default, "no other candidate with at most 2 % more expected error has 5 % less noise"
        if self._alone:
            return least, "its expected error under the assumed distribution is the least, or within 2 % of it"
        relative = self._noise(least) / self._noise(self.default)
        return least, (
            f"it has {relative:.2g} times the noise of {self.default} on average over the reference distributions, and "
            f"under each of them at most 2 % more expected error"
        )

    def _fits(self, method: str) -> bool:
        """Whether the expected error is at most 2 % above the least, or above the default's under each reference."""
        if self._alone:
            errors = [self.expected_error(other, 0) for other in self._built]
            own, least = self.expected_error(method, 0), min((e.total for e in errors if e), default=math.inf)
            return own is not None and own.total <= _LOSS * least
        return all(self._loss(method, i) <= _LOSS for i in range(len(self._references)))

    def _loss(self, method: str, reference: int) -> float:
        """Return the expected error relative to that of the default."""
        if method == self.default:
            return 1.0
        own, other = self.expected_error(method, reference), self.expected_error(self.default, reference)
        if own is None or other is None:
            return math.inf
        return own.total / other.total if other.total else math.inf if own.total else 1.0

    def _noise(self, method: str) -> float:
        """Return the geometric mean of the noise, not below a hundredth of the sampling error."""
        logs = []
        for i in range(len(self._references)):
            expected = self.expected_error(method, i)
            if expected is None:
                return math.inf
            logs.append(math.log(max(math.hypot(expected.noise, _NEGLIGIBLE * expected.sampling), 1e-300)))
        return math.exp(math.fsum(logs) / len(logs))

    @cached_property
    def table(self) -> list[list[str]]:
        """The rows of the table, headings first."""
        if self._alone and self.n is not None:
            headings = ["method", "expected error", "noise", "sampling"]
        elif self._references and self.n is not None and len(self._built) > 1:
            shown = (self._references[i] for i in self._shown)
            names = [each.shape if self._typical else f"width / {4 / each.scale:g}" for each in shown]
            headings = ["method", *names, "greatest ratio"]
        else:
            headings = ["method"]
        rows = [[*headings, ""]]
        for method in self._built:
            rows.append([method, *self._cells(method, len(headings) - 1), "taken" if method == self.method else ""])
        blank = [""] * (len(headings) - 1)
        return [*rows, *([method, *blank, why] for method, why in self._excluded.items())]

    @property
    def _shown(self) -> list[int]:
        """The references that have a column: the normal ones, by width, or those of typical values."""
        chosen = (i for i, reference in enumerate(self._references) if self._typical or reference.shape == "normal")
        return sorted(chosen, reverse=True)

    def _cells(self, method: str, cells: int) -> list[str]:
        """Return the numbers of a row."""
        if not cells:
            return []
        if self._alone:
            found = self.expected_error(method, 0)
            parts = [] if found is None else [found.total, found.noise, found.sampling]
            return [f"{part:.3g}" for part in parts] or ["unknown", "", ""]
        totals = [self.expected_error(method, i) for i in self._shown]
        worst = max(self._loss(method, i) for i in range(len(self._references)))
        return [*("unknown" if e is None else f"{e.total:.3g}" for e in totals), f"{worst:.3g}"]

    @property
    def legend(self) -> str:
        """What the numbers of the table are."""
        if len(self.table[0]) == 2:
            return ""
        measure = "Expected error: E|release - population value| in data units, to about 10 %"
        if self._alone:
            return f"{measure}, of n = {self.n:,} records of the assumed distribution.\n"
        if self._typical:
            return (
                f"{measure}, of n = {self.n:,} records of three shapes, nine tenths of them between the typical "
                f"values; greatest ratio to {self.default}.\n"
            )
        return (
            f"{measure}, of n = {self.n:,} normal records with these standard deviations, in units of the width of the "
            f"bounds; greatest ratio to {self.default} over {len(self._references)} reference distributions.\n"
        )
