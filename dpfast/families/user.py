"""User-defined families: a function of the records of a block, or a distribution of ``scipy.stats``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.core import callbacks, containers
from dpfast.core.foreign import swallowed
from dpfast.families.continuous import Beta, Exponential, Gamma, Lognormal, Normal, Pareto
from dpfast.families.counts import Bernoulli, Geometric, Poisson
from dpfast.families.family import BlockFamily, Family, Ranges
from dpfast.families.fitted import Laplace, NegativeBinomial, Weibull
from dpfast.families.regression import LinearRegression, LogisticRegression, PoissonRegression, Regression

# Of the records of a block, left out in turn by the jackknife. With g groups of b records, what it makes of the square
# of a mean has the variance 2 g / (g - 1) b**-2, beside that of order 1 / b; with single records 2 b**-2.
_GROUPS = 4


@dataclass(frozen=True)
class Custom(BlockFamily):
    """Family defined by an estimator, a function of the records of one block.

    Parameters
    ----------
    estimator : callable
        Takes an array of records, a copy; returns one number, or one for each of the bounds. An exception, another
        shape or a result that is not numeric counts as NaN: the block takes the middle of the bounds. The proof of
        privacy requires that it depends on this array alone and keeps no state between calls. It cannot release:
        where there is a ledger, it is first called with made-up records, and a BudgetError then ends the call.
    parameters : tuple of str
        Names of the returned numbers.
    jackknife : bool
        Correct the bias of order 1 / b by the jackknife: g t - sum_j (b_j / b) t_j for a block of b records, t_j the
        estimate from the b_j records that are left without every g-th one from the j-th on; g is 4, or b if that is
        less. False: do not correct it.

    Notes
    -----
    Cost: one call per block, in one thread; with the jackknife, 5; where there is a ledger, one more.
    """

    estimator: Callable[[NDArray[np.float64]], Any]
    parameters: tuple[str, ...] = ("parameter",)
    jackknife: bool = True
    many: ClassVar[bool] = True  # each block is a copy

    def __post_init__(self) -> None:
        callbacks.check_takes("estimator", self.estimator, "the records of a block")

    @property
    def names(self) -> tuple[str, ...]:
        return self.parameters

    @property
    def default(self) -> tuple[str, ...]:
        return self.parameters

    @property
    def _is_foreign(self) -> bool:
        return True

    def rehearse(self, *data: NDArray[Any], box: Ranges, corrected: bool) -> None:
        self.estimator(*data)

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        return super().estimates(data, blocks, box, corrected=corrected, workers=1)  # warnings are silenced globally

    def fit(self, *data: NDArray[Any], offsets: NDArray[np.int64], box: Ranges, corrected: bool) -> NDArray[np.float64]:
        [x] = data
        places_of = [self.parameters.index(name) for name in box.names]
        left_out = cache(_left_out)  # of this call: numbers of records may be private
        sizes = np.diff(offsets)
        found = np.empty((len(sizes), 1 + _GROUPS, len(self.parameters)))  # of each block, and without each group
        with warnings.catch_warnings(), swallowed():
            warnings.simplefilter("ignore")
            for at, start, stop in zip(found, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
                block = x[start:stop]
                at[0] = self._estimate(block.copy())
                if corrected and self.jackknife:
                    for j, places in enumerate(left_out(stop - start)[0], 1):
                        at[j] = self._estimate(block.take(places))
        out = found[:, 0].copy()
        if corrected and self.jackknife:
            for size in np.unique(sizes[sizes > 0]).tolist():
                kept, weights = left_out(size)
                blocks, groups = np.flatnonzero(sizes == size), len(kept)
                mean = np.add.reduce(found[blocks, 1 : 1 + groups] * weights, axis=1) / np.add.reduce(weights)
                out[blocks] = groups * out[blocks] - (groups - 1) * mean
        return out[:, places_of]

    def _estimate(self, records: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """Return the estimate from records that only the estimator has; NaN if it fails."""
        try:
            found = self.estimator(records)
            if type(found) is np.float64 and len(self.parameters) == 1:
                return found
            estimate = np.asarray(found, dtype=np.float64).reshape(-1)
        except Exception:
            return math.nan
        return estimate if estimate.shape == (len(self.parameters),) else math.nan


def _left_out(b: int) -> tuple[list[NDArray[np.intp]], NDArray[np.float64]]:
    """Return the places of the records that remain without each group of a block, and their numbers, relative to the
    last of these.
    """
    groups = min(b, _GROUPS)
    kept = [np.flatnonzero(np.arange(b) % groups != j) for j in range(groups)]
    return kept, np.array([[places.size / kept[-1].size if b > 1 else 1.0] for places in kept])


@dataclass(frozen=True)
class Scipy(BlockFamily):
    """A continuous distribution of ``scipy.stats``, fitted by its `fit` to each block; bias is not corrected.

    Parameters
    ----------
    distribution : scipy.stats.rv_continuous

    Notes
    -----
    Released: its shapes, ``loc`` and ``scale``, as named in the bounds; all of them are fitted. Cost: that of `fit`,
    about a millisecond or more per block.
    """

    distribution: Any

    @property
    def names(self) -> tuple[str, ...]:
        shapes = self.distribution.shapes
        return (*(shapes.replace(" ", "").split(",") if shapes else ()), "loc", "scale")

    def space(self, name: str) -> tuple[float, float]:
        return (0.0, math.inf) if name == "scale" else (-math.inf, math.inf)

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        return self._custom().estimates(data, blocks, box, corrected=corrected, workers=workers)

    def fit(self, *data: NDArray[Any], offsets: NDArray[np.int64], box: Ranges, corrected: bool) -> NDArray[np.float64]:
        return self._custom().fit(*data, offsets=offsets, box=box, corrected=corrected)

    def _custom(self) -> Custom:
        return Custom(self.distribution.fit, self.names, jackknife=False)


_NAMED: Mapping[str, Callable[[], Family]] = {
    "bernoulli": Bernoulli,
    "beta": Beta,
    "exponential": Exponential,
    "gamma": Gamma,
    "geometric": Geometric,
    "laplace": Laplace,
    "lognormal": Lognormal,
    "negativebinomial": NegativeBinomial,
    "normal": Normal,
    "pareto": Pareto,
    "poisson": Poisson,
    "weibull": Weibull,
}

_REGRESSIONS: Mapping[str, Callable[[Any], Regression]] = {
    "linear": LinearRegression,
    "logistic": LogisticRegression,
    "poisson-regression": PoissonRegression,
}

_OF_SCIPY = {
    "expon": "exponential",
    "geom": "geometric",
    "lognorm": "lognormal",
    "nbinom": "negativebinomial",
    "norm": "normal",
    "weibull_min": "weibull",
}


def named() -> tuple[str, ...]:
    """Names of the families that can be given by name."""
    return tuple(_NAMED)


def family_for(value: Any, x: Any) -> Any:
    """Return the regression of this name for data (X, y): on as many columns as X has, with their
    names if X has names.
    """
    if not isinstance(value, str) or value not in _REGRESSIONS:
        return value
    if not isinstance(x, tuple) or len(x) != 2:
        raise TypeError(f"x must be a pair (X, y) of regressors and response for {value!r}")
    names = getattr(x[0], "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        return _REGRESSIONS[value](tuple(names))
    return _REGRESSIONS[value](containers.matrix("X", x[0]).shape[1])


def family_of(value: Any) -> Family:
    """Return a family, given by name, as an object of `dpfast.families`, distribution of ``scipy.stats`` or callable.

    Distributions of ``scipy.stats`` that also exist in `dpfast.families` are replaced, with the parameter names there.
    """
    if isinstance(value, Family):
        return value
    if isinstance(value, type) and issubclass(value, Family):
        raise TypeError(f"family must be an instance, {value.__name__}(...), not the class")
    if isinstance(value, str):
        if value in _REGRESSIONS:
            regression = _REGRESSIONS[value]
            raise TypeError(f"a {value} family needs the regressors: families.{regression.__name__}(columns)")
        if value not in _NAMED:
            raise ValueError(f"family must be one of {', '.join(map(repr, _NAMED))}, not {value!r}")
        return _NAMED[value]()
    name = getattr(value, "name", None)
    if isinstance(name, str) and hasattr(value, "rvs"):
        ours = _OF_SCIPY.get(name, name)
        if ours in _NAMED:
            return _NAMED[ours]()
        if callable(getattr(value, "fit", None)):
            return Scipy(value)
    if callable(value) and not hasattr(value, "rvs"):
        return Custom(value)
    raise TypeError(
        f"family, which is after the records, must be a name, a family or a callable, not {type(value).__name__}"
    )
