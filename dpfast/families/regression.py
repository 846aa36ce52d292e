"""Regressions: a record is a row of regressors and a response."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from dpfast._kernels import _blocks, _fits
from dpfast.core import checks
from dpfast.families.family import LARGEST, NOTHING, Ranges, Theta, digamma_deficits, logarithms
from dpfast.families.fitted import Estimates, Fitted, fragile
from dpfast.streaming import Labelled

_NODES = 80


@lru_cache(maxsize=1)
def _normal() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights for means over a standard normal variable; do not modify."""
    z, mass = hermegauss(_NODES)
    return z, mass / mass.sum()


@dataclass(frozen=True)
class Regression(Fitted):
    """Base class of the three regressions. A record is a row of X and an entry of y.

    Parameters
    ----------
    columns : int or sequence of str
        The regressors: their number (then named ``"x0"``, ``"x1"``, ...), or their names.
    intercept : bool
        Whether to put a constant before them; its coefficient is ``"intercept"``.
    spread : float or sequence of float
        Public assumption about the regressors, only for the number of blocks and the predicted error: independent,
        normal with mean 0 and these standard deviations.
    """

    columns: Any
    intercept: bool = True
    spread: Any = 1.0

    model: ClassVar[str]
    cubic_bias: ClassVar[float] = 0.0  # b2 in units of |b1|**3 / variance, by simulation

    def __post_init__(self) -> None:
        columns: Any = self.columns
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            count = checks.whole("columns", columns, least=1)  # type: ignore[arg-type]
            names = tuple(f"x{j}" for j in range(count))
        else:
            names = tuple(columns)
            if not names or len({*names, "intercept", "sd"}) < len(names) + 2:
                raise ValueError(f"columns must be different names other than intercept and sd, not {columns!r}")
        spread = self.spread if isinstance(self.spread, Sequence) else (self.spread,) * len(names)
        if len(spread) != len(names):
            raise ValueError(f"spread must be one number or {len(names)}, one for each column, not {len(spread)}")
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "intercept", checks.flag("intercept", self.intercept))
        object.__setattr__(self, "spread", tuple(checks.positive("spread", value) for value in spread))

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the coefficients, in order."""
        return ("intercept", *self.columns) if self.intercept else self.columns

    @property
    def names(self) -> tuple[str, ...]:
        return self.coefficients

    @property
    def least_block(self) -> int:
        return 20 + 10 * len(self.coefficients)

    @property
    def default(self) -> tuple[str, ...]:
        return self.coefficients

    def records(self, x: Any) -> tuple[NDArray[Any], ...]:
        records = Labelled.pair(x)
        if records.columns != len(self.columns):
            raise ValueError(f"X must have {len(self.columns)} columns, not {records.columns}")
        return records.rows, records.labels

    def kernel(self, corrected: bool) -> Callable[..., None]:
        return partial(_fits.regression, model=self.model, intercept=self.intercept, correct=corrected)

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        return {**dict.fromkeys(self.coefficients, 0.0), **box.middle(), **known}

    def weights(self, eta: NDArray[np.float64], theta: Theta) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the information of one record about eta, and mu'' / (2 mu'), at each predictor eta."""
        raise NotImplementedError

    def information(self, name: str, theta: Theta) -> float:
        return 1 / self._moments(theta)[name].variance

    def bias(self, name: str, theta: Theta) -> float:
        return self._moments(theta)[name].bias

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        moments = self._moments(theta)[name]
        return moments.design + moments.bias**2, self.cubic_bias * abs(moments.bias) ** 3 / moments.variance

    @property
    def skewness_factors(self) -> Theta:  # type: ignore[override]
        return dict.fromkeys(self.coefficients, 2.0)

    def reach(self, name: str, theta: Theta) -> float:
        return fragile(self, self.coefficients, theta) if self.cubic_bias else 0.0

    def _moments(self, theta: Theta) -> dict[str, _Moments]:
        """Return the moments of each coefficient, under the assumption `spread`.

        The regressors are z times their spread. After a rotation, the predictor is intercept + tau z_1 with z_1 normal;
        the information about the constant and z_1 is a two by two matrix, and about each other coordinate E w.
        """
        slopes = np.array([theta[name] * s for name, s in zip(self.columns, self.spread, strict=True)])
        tau = math.sqrt(float(slopes @ slopes))
        direction = slopes / tau if tau else np.eye(len(slopes))[0]
        z, mass = _normal()
        eta = theta["intercept"] + tau * z if self.intercept else tau * z
        weight, bend = self.weights(eta, theta)
        basis = np.stack([np.ones_like(z), z] if self.intercept else [z])
        inverse = np.linalg.inv(basis * (mass * weight) @ basis.T)
        mean = float(mass @ weight)
        leverage = np.einsum("in,ij,jn->n", basis, inverse, basis) + (len(slopes) - 1) / mean
        bias = -inverse @ (basis @ (mass * weight * bend * leverage))
        design = inverse @ (basis * (mass * weight**2 * leverage) @ basis.T) @ inverse - inverse
        aside = float(mass @ (weight**2 * (leverage + 2 / mean))) / mean**2 - 1 / mean
        along, across = float(inverse[-1, -1]), 1 / mean
        moments = {
            name: _Moments(
                (along * e**2 + across * (1 - e**2)) / s**2,
                float(bias[-1]) * e / s,
                (float(design[-1, -1]) * e**2 + aside * (1 - e**2)) / s**2,
            )
            for name, e, s in zip(self.columns, direction.tolist(), self.spread, strict=True)
        }
        if self.intercept:
            moments["intercept"] = _Moments(float(inverse[0, 0]), float(bias[0]), float(design[0, 0]))
        return moments


class _Moments(NamedTuple):
    """One coefficient, m records: m times variance and bias; m**2 times the excess of E (X'WX)**-1 over its limit."""

    variance: float
    bias: float
    design: float


@dataclass(frozen=True)
class LogisticRegression(Regression):
    """Logistic regression, P(y > 0) = 1 / (1 + exp(-(intercept + X . slopes))). Released: the bounded coefficients.

    Records are pairs: ``mle((X, y), LogisticRegression(columns=3), ...)``. Labels above 0 count as 1, others as 0; rows
    with a NaN label or a non-finite regressor are left out. The first-order bias, ``(X'WX)**-1 X' (h (pi - 1/2))`` with
    the leverages h, is subtracted. For separated labels, the likelihood has no maximum: the estimate is the last
    iterate of Newton's method, far out in the separating direction, hence at an end of the bounds. A singular design
    gives NaN, hence the middle of the bounds.

    Parameters
    ----------
    columns : int or sequence of str
        The regressors: their number (then named ``"x0"``, ``"x1"``, ...), or their names.
    intercept : bool
        Whether to put a constant before them; its coefficient is ``"intercept"``.
    spread : float or sequence of float
        Public assumption about the regressors, only for the number of blocks and the predicted error: independent,
        normal with mean 0 and these standard deviations.

    Examples
    --------
    >>> from dpfast.families import LogisticRegression
    >>> LogisticRegression(columns=("age", "dose")).names
    ('intercept', 'age', 'dose')

    Release all three at once, each with a third of epsilon:

    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200_000, 2))
    >>> y = rng.random(200_000) < 1 / (1 + np.exp(-(0.5 + X @ [1.0, -1.0])))
    >>> estimate = dpf.mle((X, y), "logistic", bounds=(-3, 3), epsilon=2.0)
    >>> bool(np.all(np.abs(estimate - [0.5, 1.0, -1.0]) < 0.2))
    True
    """

    model: ClassVar[str] = "logistic"
    cubic_bias: ClassVar[float] = 0.2

    def weights(self, eta: NDArray[np.float64], theta: Theta) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        e = np.exp(-np.abs(eta))
        return e / (1 + e) ** 2, -np.tanh(eta / 2) / 2


@dataclass(frozen=True)
class PoissonRegression(Regression):
    """Poisson regression, mean exp(intercept + X . slopes). Released: the coefficients in the bounds.

    Records are pairs (X, y); rows with a non-finite number or a negative count are left out. The first-order bias,
    ``-(X'WX)**-1 X' h / 2``, is subtracted. Parameters: see `LogisticRegression`.
    """

    model: ClassVar[str] = "poisson"
    cubic_bias: ClassVar[float] = 0.1

    def weights(self, eta: NDArray[np.float64], theta: Theta) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.exp(eta), np.full_like(eta, 0.5)


@dataclass(frozen=True)
class LinearRegression(Regression):
    """Linear regression, intercept + X . slopes + normal noise. Released: the coefficients in the bounds, and ``sd``.

    Records are pairs (X, y); rows with a non-finite number are left out. Least squares is unbiased. ``sd``, of the
    noise, has m - p degrees of freedom and is exactly unbiased. Parameters: see `LogisticRegression`.
    """

    model: ClassVar[str] = "linear"

    logarithmic: ClassVar[tuple[str, ...]] = ("sd",)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.coefficients, "sd")

    def space(self, name: str) -> tuple[float, float]:
        return (0.0, LARGEST) if name == "sd" else (-LARGEST, LARGEST)

    def better(self, fitted: Estimates, counts: NDArray[np.int64]) -> Estimates:
        freedom = np.maximum(counts - len(self.coefficients), 1)
        return {**fitted, "sd": fitted["sd"] / _blocks.normal_corrections(freedom + 1.0)}

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        return {"sd": 1.0, **super().reference(box, known)}

    def weights(self, eta: NDArray[np.float64], theta: Theta) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.full_like(eta, theta["sd"] ** -2), np.zeros_like(eta)

    def information(self, name: str, theta: Theta) -> float:
        return 2 * theta["sd"] ** -2 if name == "sd" else super().information(name, theta)

    def bias(self, name: str, theta: Theta) -> float:
        if name == "sd":
            return -theta["sd"] * (0.75 + (len(self.coefficients) - 1) / 2)
        return super().bias(name, theta)

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        if name == "sd":
            return theta["sd"] ** 2 * (0.125 + len(self.coefficients) / 2), 0.0
        return super().second_order(name, theta)

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        freedom = np.maximum(count - len(self.coefficients), 1.0)
        return -digamma_deficits(freedom / 2) / 2 - logarithms(_blocks.normal_corrections(freedom + 1))

    def skewness(self, name: str, theta: Theta) -> float:
        return math.sqrt(0.5) if name == "sd" else 0.0

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return (len(self.coefficients) + 1) / 2, 0.0
