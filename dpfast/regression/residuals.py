"""A quantile of the residuals of a linear predictor, without bounds of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import FloatGrid
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.domains import Ball
from dpfast.laws import NestedIntervals
from dpfast.mechanisms import InverseSensitivity, Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.statistics import Quantile, Summary
from dpfast.streaming import Chunks, Labelled, Reading

Values = NDArray[np.float64]

_DIGITS, _BINADES = 10, 30  # of the grid of scales below its upper end
_MOST_SCALE = 4.0  # in label bounds


@dataclass(frozen=True, repr=False)
class ResidualScale(Mechanism):
    """Release a quantile of the distances of labels from a public linear predictor: the size of the residuals.

    Pure epsilon-differential privacy under one replaced record, a row x and a label y; the number of records is public.

    Parameters
    ----------
    coefficients : sequence of d floats
        Public: a function of earlier releases and public numbers only. The predictor is ``constant + (x - center) .
        coefficients``.
    constant : float
        Public.
    domain, labels : dpfast.domains.Ball
        The public domains of the rows and of the labels.
    q : float
        The level of the quantile.
    epsilon : float
        Positive; rounded down to a double.

    Notes
    -----
    A row outside of its ball is moved into it, a row with NaN or an infinity is the center, and a missing label has the
    residual 0. A release is a multiple of 2**-39 or less of the label bound, at most four label bounds.
    Privacy: a residual is a function of one record, and their quantile is that of `InverseSensitivity` on a
    `FloatGrid`: the privacy loss has a range of epsilon, so that it is also mu-Gaussian differentially private for mu =
    sqrt(pi / 8) epsilon (https://dpfast.readthedocs.io/en/latest/proofs/residuals.html).
    Cost: one pass, with d products for each row, and a selection.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import ResidualScale
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100_000, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=100_000)
    >>> ball, labels = dpf.domains.Ball(1.5), dpf.domains.Ball(6.0)
    >>> scale = ResidualScale([1.0, -2.0], 0.0, domain=ball, labels=labels, q=0.68, epsilon=0.1)
    >>> bool(abs(scale((X, y)) - 0.1) < 0.01)
    True
    """

    coefficients: tuple[float, ...]
    constant: float
    domain: Ball = field(kw_only=True)
    labels: Ball = field(kw_only=True)
    q: float = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    def __post_init__(self) -> None:
        for name in ("domain", "labels"):
            if not isinstance(getattr(self, name), Ball):
                raise TypeError(f"{name} must be a dpfast.domains.Ball, not {type(getattr(self, name)).__name__}")
        numbers = tuple(checks.real("each of coefficients", value) for value in np.atleast_1d(self.coefficients))
        object.__setattr__(self, "coefficients", numbers)
        object.__setattr__(self, "constant", checks.real("constant", self.constant))
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        self._quantile  # noqa: B018  # reject a wrong q
        self._check_columns(len(numbers))

    @cached_property
    def _quantile(self) -> InverseSensitivity:
        return _quantile_of(self.labels, Quantile(self.q), self.epsilon)

    @staticmethod
    def range_of(labels: Ball) -> tuple[float, float]:
        """Return the sizes of residuals between which a release has a small relative error, from the label bound."""
        upper = _MOST_SCALE * labels.radius
        return math.ldexp(1.0, math.frexp(upper)[1] - _BINADES), upper

    def __repr__(self) -> str:
        return (
            f"<ResidualScale release of the {self._quantile.statistic} of residuals, of rows in a {self.domain}, "
            f"labels in a {self.labels}: {self.privacy}>"
        )

    @property
    def dimensions(self) -> int:
        return 2

    @property
    def privacy(self) -> Privacy:
        return self._quantile.privacy

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return self._quantile.privacy_profile

    def _check_columns(self, d: int) -> None:
        self.domain.check_columns(d)
        if d != len(self.coefficients):
            raise ValueError(f"X must have {len(self.coefficients)} columns, like coefficients, not {d}")

    def _residuals(self, x: Any) -> Values:
        """Return the distance of each record's label from the predictor."""
        records = Labelled.of(x)
        self._check_columns(records.columns)
        with np.errstate(all="ignore"):  # labels may be NaN, infinite or huge, and slopes of codes overflow
            left = records.labels.astype(np.float64) - self.constant
            return self.domain.residuals(records.rows, left, self.domain.step * np.array(self.coefficients))

    def values_of(self, x: Any) -> Any:
        return x if isinstance(x, Chunks) else self._residuals(x)

    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n) if n is None else _ScalePlan(self, checks.records(n))

    def reading(self) -> Reading:
        return _OfResiduals(self)

    def law_of(self, summary: Summary) -> NestedIntervals:
        return self._quantile.law_of(summary)


@lru_cache(maxsize=256)
def _quantile_of(labels: Ball, statistic: Quantile, epsilon: float) -> InverseSensitivity:
    """Return the quantile of residuals from any predictor, with its plan: a regression has another one each time."""
    resolution, upper = ResidualScale.range_of(labels)
    grid = FloatGrid(_DIGITS, resolution=resolution, lower=0.0, upper=upper, missing="lower")
    options: dict[str, Any] = {"measure": "uniform", "selection": "exponential"}
    return InverseSensitivity(statistic, grid=grid, epsilon=epsilon, **options)


class _ScalePlan(Plan):
    """A draw of a quantile of residuals, by that of the quantile."""

    mechanism: ResidualScale

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        if isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        return self.mechanism._quantile.plan(self.n).draw(values, source, threads)


class _OfResiduals(Reading):
    """The reading of the quantile, which sees the residuals of the records."""

    def __init__(self, mechanism: ResidualScale) -> None:
        self._mechanism, self._inner = mechanism, mechanism._quantile.reading()
        self.passes = self._inner.passes

    def records(self, x: Any) -> Values:
        return self._mechanism._residuals(x)

    def add(self, values: Values, threads: int) -> None:
        self._inner.add(values, threads)

    def of(self, values: Values, threads: int = 1) -> Summary:
        found: Summary = self._inner.of(values, threads)
        return found

    def merge(self, other: _OfResiduals) -> None:
        self._inner.merge(other._inner)

    def advance(self, n: int) -> None:
        self._inner.advance(n)

    def summary(self, n: int) -> Summary:
        found: Summary = self._inner.summary(n)
        return found

    def pack(self) -> Any:
        return self._inner.pack()

    def unpack(self, packed: Any, n: int, number: int) -> None:
        self._inner.unpack(packed, n, number)
