"""``method="auto"``: a choice among mechanisms for the same statistic by their expected errors, never by data.

The first candidate is the default. Another one replaces it if public numbers show that it has less noise:

- Under an assumed distribution, the pool is all candidates whose expected error is within 2 % of the least.
- Without an assumption it is the default and all candidates whose expected error is at most 2 % greater than that of
  the default under *each* of up to twelve reference distributions: normal, lognormal and Student's t with 2 degrees of
  freedom, as wide as the bounds, and 10, 100 and 1000 times narrower, if that is at least eight steps of the grid.
- For a statistic between two records (`LinearQuantile`), which is chosen to be near that of the records, 5 % instead.
- The errors are those of an epsilon of five significant bits, at most 6 % larger, and of a number of records of three;
  those that a table shows are of epsilon and n themselves.
- For a pair (low, high) of typical values the references are the three shapes that have nine tenths between them.

Of the pool, the candidate with the least noise is taken (the geometric mean over the references), or the default if it
has at most 5 % more. An unknown error leaves the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpfast.choosing import Choice, Known, gainful, near_least
from dpfast.choosing.choice import LOSS
from dpfast.core.grid import Grid
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.references import Typical, assumption, references_of

_NEGLIGIBLE = 0.01  # noise relative to the sampling error
_MEASURE = "Expected error: E|release - population value| in data units, to about 10 %"


@dataclass
class ExpectedErrors:
    """The expected errors of candidates for a statistic, each computed when it is first asked for.

    Parameters
    ----------
    candidates : mapping from str to Mechanism
        The first one is the default.
    n : int or None
        The number of records; None if it is private, which leaves the default.
    grid : Grid or None
        The range of the reference distributions; None leaves the default, unless a distribution is assumed.
    distribution : object, optional
        What the user assumes: a distribution, see `Mechanism.expected_error`, or a pair of typical values.
    loss : float
        The most of the expected error of the default that another candidate may have under a reference.
    """

    candidates: Mapping[str, Mechanism]
    n: int | None
    grid: Grid | None
    distribution: Any = None
    loss: float = LOSS
    _found: dict[tuple[str, int], Expected | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assumed = assumption(self.distribution)
        self._typical = isinstance(assumed, Typical)
        self._alone = assumed is not None and not self._typical
        self._references = references_of(assumed, self.grid)
        self._default = next(iter(self.candidates))

    def choice(
        self, limits: Mapping[str, str], candidates: Mapping[str, Mechanism] | None = None, n: int | None = None
    ) -> Choice:
        """Return the candidate that is taken; the limits are those of other methods.

        With candidates, that of the same name for an epsilon and a number of records near these; the errors that are
        shown are for them.
        """
        shown = replace(self, candidates=candidates, n=n, _found={}) if candidates else self
        return Choice(shown.candidates, *self._decided(), limits=limits, known=shown._known)

    def _error(self, method: str, reference: int) -> Expected | None:
        """Return the expected error of a candidate under a reference; None if it is not known."""
        key = method, reference
        if key not in self._found:
            assert self.n is not None
            try:
                found = self.candidates[method].expected_error(self.n, self._references[reference].assumed)
                self._found[key] = found if math.isfinite(found.total) else None
            except (TypeError, ValueError):
                self._found[key] = None
        return self._found[key]

    def _decided(self) -> tuple[str, str]:
        """Return the method that is taken, and why."""
        default = self._default
        if len(self.candidates) == 1:
            return default, "no other mechanism is compared for these parameters"
        if self.n is None:
            return default, "the number of records is private, so errors cannot be compared: this is the default"
        if not self._references:
            return default, "there are no public bounds to compare errors within: this is the default"
        pool = self._pool()
        if not pool:
            return default, "the errors are not known: this is the default"
        if pool == [default]:
            return default, f"no other candidate has at most {self._percent} % more expected error"
        taken = gainful(pool, self._noise, default)
        if taken == default:
            return default, f"no other candidate with at most {self._percent} % more expected error has 5 % less noise"
        if self._alone:
            return taken, "its expected error under the assumed distribution is the least, or within 2 % of it"
        relative = self._noise(taken) / self._noise(default)
        return taken, (
            f"it has {relative:.2g} times the noise of {default} on average over the reference distributions, and "
            f"under each of them at most {self._percent} % more expected error"
        )

    @property
    def _percent(self) -> int:
        return 2 if self._alone else round(100 * self.loss) - 100

    def _pool(self) -> list[str]:
        """Return the candidates within 2 % of the least error, or of that of the default under each reference."""
        if self._alone:
            found = {method: self._error(method, 0) for method in self.candidates}
            return near_least({method: error.total for method, error in found.items() if error})
        every = range(len(self._references))
        return [method for method in self.candidates if all(self._loss(method, i) <= self.loss for i in every)]

    def _loss(self, method: str, reference: int) -> float:
        """Return the expected error relative to that of the default."""
        if method == self._default:
            return 1.0
        own, other = self._error(method, reference), self._error(self._default, reference)
        if own is None or other is None:
            return math.inf
        return own.total / other.total if other.total else math.inf if own.total else 1.0

    def _noise(self, method: str) -> float:
        """Return the geometric mean of the noise, not below a hundredth of the sampling error."""
        logs = []
        for i in range(len(self._references)):
            expected = self._error(method, i)
            if expected is None:
                return math.inf
            logs.append(math.log(max(math.hypot(expected.noise, _NEGLIGIBLE * expected.sampling), 1e-300)))
        return math.exp(math.fsum(logs) / len(logs))

    def _known(self) -> Known:
        """Return the columns: of one distribution, of the normal ones by width, or of typical values."""
        if self._alone and self.n is not None:
            rows: dict[str, tuple[float | str | None, ...]] = {}
            for method in self.candidates:
                error = self._error(method, 0)
                rows[method] = (error.total, error.noise, error.sampling) if error else (None, "", "")
            legend = f"{_MEASURE}, of n = {self.n:,} records of the assumed distribution."
            return Known(("expected error", "noise", "sampling"), rows, legend)
        if self.n is None or not self._references or len(self.candidates) == 1:
            return Known()
        count = len(self._references)
        shown = [i for i in range(count) if self._typical or self._references[i].shape == "normal"][::-1]
        found = {method: [self._error(method, i) for i in shown] for method in self.candidates}
        worst = {method: max(self._loss(method, i) for i in range(count)) for method in self.candidates}
        rows = {
            method: (*(error and error.total for error in errors), worst[method]) for method, errors in found.items()
        }
        if self._typical:
            names = [self._references[i].shape for i in shown]
            of, over = "records of three shapes, nine tenths of them between the typical values", ""
        else:
            names = [f"width / {4 / self._references[i].scale:g}" for i in shown]
            of = "normal records with these standard deviations, in units of the width of the bounds"
            over = f" over {count} reference distributions"
        legend = f"{_MEASURE}, of n = {self.n:,} {of}; greatest ratio to {self._default}{over}."
        return Known((*names, "greatest ratio"), rows, legend)
