"""Generalised linear models: their residuals, and what a descent needs of them beyond gradients."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks
from dpfast.regression.fit import Fit

Values = NDArray[np.float64]

_MOST_PREDICTOR = 700.0  # whose exponential is finite
_MOST_FINITE = 2.0**1000
_WITHIN_BOUND = 0.75  # the share of residuals within +-bound in a Huber regression


@dataclass(frozen=True, repr=False, eq=False)
class LogisticFit(Fit):
    """A released logistic regression, see `Fit`: the linear predictor is the log-odds of a positive label."""

    def probability(self, X: ArrayLike) -> Values:
        """Return the probability of a positive label, for rows of shape (m, d): an ndarray of shape (m,)."""
        return np.asarray(scipy.special.expit(self.linear_predictor(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable label, 0.0 or 1.0 or one of `classes`, for rows of shape (m, d): an ndarray of shape
        (m,).
        """
        return self._labels(np.asarray(self.linear_predictor(X) > 0, dtype=np.float64))


@dataclass(frozen=True, repr=False, eq=False)
class PoissonFit(Fit):
    """A released Poisson regression, see `Fit`: the linear predictor is the logarithm of the mean of a label."""

    def predict(self, X: ArrayLike) -> Values:
        """Return the mean of a label, for rows of shape (m, d): an ndarray of shape (m,)."""
        return np.asarray(np.exp(np.minimum(self.linear_predictor(X), _MOST_PREDICTOR)))


@dataclass(frozen=True, repr=False, eq=False)
class MultinomialFit(Fit):
    """A released multinomial regression of K classes, see `Fit`: the linear predictors add up to 0."""

    def probability(self, X: ArrayLike) -> Values:
        """Return the probabilities of the classes, softmax, for rows of shape (m, d): an ndarray of shape (m, K)."""
        return np.asarray(scipy.special.softmax(self._predictor(X), axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class, 0.0 to K - 1 or one of `classes`, for rows of shape (m, d): an ndarray of
        shape (m,); the first for a NaN.
        """
        return self._labels(np.asarray(np.argmax(self._predictor(X), axis=1), dtype=np.float64))

    def _predictor(self, X: ArrayLike) -> Values:
        """Return the linear predictors, with finite differences."""
        return np.clip(np.nan_to_num(self.linear_predictor(X)), -_MOST_FINITE, _MOST_FINITE)


@dataclass(frozen=True)
class Model(ABC):
    """A model of the label given one or more linear predictors; all parameters are public.

    A mean of labels is a float, or with several predictors an array of the share of each class.
    """

    name: ClassVar[str]
    fit: ClassVar[type[Fit]] = Fit
    bound = math.inf  # of a residual
    least_steps: ClassVar[tuple[int, int]] = 1, 1  # of the default schedule, for Gaussian and for pure noise

    @property
    def unit(self) -> float:
        """The unit of linear predictors."""
        return 1.0

    @property
    def basis(self) -> Values:
        """The linear predictors as combinations of free ones, orthonormal: of shape (predictors, free ones)."""
        return np.ones((1, 1))

    @property
    @abstractmethod
    def half_range(self) -> float:
        """Half the length of the interval of labels, around `middle`, whose mean is released."""

    @property
    @abstractmethod
    def middle(self) -> float: ...

    @abstractmethod
    def link(self, mean: Any) -> Any:
        """Return the linear predictor, or predictors, without columns for this mean of the labels."""

    @abstractmethod
    def clamped(self, mean: Any, deviation: float) -> Any:
        """Return a mean of labels with noise of this standard deviation, moved to where `link` and `rate` are safe."""

    @abstractmethod
    def rate(self, mean: Any) -> Any:
        """Return the length of a step in units of the gradient, where the transformed rows have unit second moments."""

    def size(self, mean: Any) -> float:
        """Return the size of a residual, in which gradients are clipped."""
        return 1.0


class OnePredictor(Model):
    """A model with one linear predictor."""

    @abstractmethod
    def curvature(self, t: Values) -> Values:
        """Return the derivative of the mean residual by the linear predictor t, finite."""

    @abstractmethod
    def labels(self, t: Values, truth: Values) -> tuple[Values, Values, Values]:
        """Return the probability of the first of two labels for each linear predictor in `truth`, and both residuals at
        t.

        The labels have the mean and the variance of the model's.
        """


@dataclass(frozen=True)
class Logistic(OnePredictor):
    """Labels are positive, 1, or not, 0."""

    name: ClassVar[str] = "logistic"
    fit: ClassVar[type[Fit]] = LogisticFit
    middle = half_range = 0.5

    def link(self, mean: float) -> float:
        return math.log(mean / (1 - mean))

    def clamped(self, mean: float, deviation: float) -> float:
        margin = min(0.5, 5 * deviation + 0.01)
        return min(max(mean, margin), 1 - margin)

    def rate(self, mean: float) -> float:
        return min(1.6 / (mean * (1 - mean)), 12.0)

    def curvature(self, t: Values) -> Values:
        probability = scipy.special.expit(t)
        return np.asarray(probability * (1 - probability))

    def labels(self, t: Values, truth: Values) -> tuple[Values, Values, Values]:
        chance, probability = scipy.special.expit(truth), scipy.special.expit(t)
        return chance, probability - 1, probability


@dataclass(frozen=True)
class Poisson(OnePredictor):
    """Labels are counts; for their mean they are clamped to [0, label_bound]."""

    label_bound: float
    name: ClassVar[str] = "poisson"
    fit: ClassVar[type[Fit]] = PoissonFit

    @property
    def middle(self) -> float:
        return self.label_bound / 2

    @property
    def half_range(self) -> float:
        return self.label_bound / 2

    def link(self, mean: float) -> float:
        return math.log(mean)

    def clamped(self, mean: float, deviation: float) -> float:
        return min(max(mean, 2 * deviation, 0.01), self.label_bound)

    def rate(self, mean: float) -> float:
        return 1 / mean

    def size(self, mean: float) -> float:
        return 3 * math.sqrt(mean)

    def curvature(self, t: Values) -> Values:
        return np.asarray(np.exp(np.clip(t, -_MOST_PREDICTOR / 4, _MOST_PREDICTOR / 4)))

    def labels(self, t: Values, truth: Values) -> tuple[Values, Values, Values]:
        # The quadrature of Gauss for a Poisson law, exact for polynomials of degree 3.
        mean, here = self.curvature(truth), self.curvature(t)
        root = np.sqrt(mean + 0.25)
        chance = (root - 0.5) / (2 * root)
        return chance, here - mean - 0.5 - root, here - mean - 0.5 + root


@dataclass(frozen=True)
class Huber(OnePredictor):
    """Labels are numbers, clamped to +-label_bound for their mean; residuals are moved into +-bound.

    Errors take 3/4 of the residuals as within +-bound, and half of bound**2 as their mean square: a little more than
    for normal errors with 0.75 of bound as standard deviation, or for Student's t with 2 degrees of freedom and 1.5 as
    bound. Far from the solution a step has the length that bound allows, so that there are more of them.
    """

    label_bound: float
    bound: float
    name: ClassVar[str] = "huber"
    least_steps: ClassVar[tuple[int, int]] = 16, 10
    middle = 0.0

    @property
    def unit(self) -> float:
        return max(self.label_bound, self.bound)

    @property
    def half_range(self) -> float:
        return self.label_bound

    def link(self, mean: float) -> float:
        return mean

    def clamped(self, mean: float, deviation: float) -> float:
        return min(max(mean, -self.label_bound), self.label_bound)

    def rate(self, mean: float) -> float:
        return 2.0

    def size(self, mean: float) -> float:
        return self.bound

    def curvature(self, t: Values) -> Values:
        return np.full_like(t, _WITHIN_BOUND)

    def labels(self, t: Values, truth: Values) -> tuple[Values, Values, Values]:
        mean, deviation = _WITHIN_BOUND * (t - truth), self.bound / math.sqrt(2)
        return np.full_like(t, 0.5), mean - deviation, mean + deviation


@dataclass(frozen=True)
class Multinomial(Model):
    """Labels are classes 0, 1, ..., classes - 1; the mean of the labels is the share of each of them."""

    classes: int
    name: ClassVar[str] = "multinomial"
    fit: ClassVar[type[Fit]] = MultinomialFit
    middle, half_range = 0.0, 1.0

    @property
    def basis(self) -> Values:
        """Of predictors that add up to 0: the contrasts of a class and all before it."""
        contrasts = np.triu(np.ones((self.classes, self.classes - 1)))
        before = np.arange(1, self.classes)
        contrasts[before, before - 1] = -before
        return np.asarray(contrasts / np.sqrt(before * (before + 1.0)))

    def link(self, mean: Values) -> Values:
        logs = np.log(mean)
        return np.asarray(logs - logs.mean())

    def clamped(self, mean: Values, deviation: float) -> Values:
        shares = np.maximum(mean, min(1 / self.classes, 5 * deviation + 0.01))
        return np.asarray(shares / shares.sum())

    def rate(self, mean: Values) -> Values:
        return np.asarray(np.minimum(1.6 / mean, 12.0))


_BOUNDS = {"label_bound": ("poisson", "huber"), "k": ("huber",), "classes": ("multinomial",)}


def model_of(name: str, label_bound: float | None, k: float | None, classes: SupportsIndex | None = None) -> Model:
    """Return the model of this name; checks that exactly the public numbers that it needs are given."""
    checks.choice("model", name, ("logistic", "poisson", "huber", "multinomial"))
    for (given, models), value in zip(_BOUNDS.items(), (label_bound, k, classes), strict=True):
        if (value is None) == (name in models):
            raise TypeError(f"model={name!r} {'needs' if name in models else 'does not take'} {given}")
    if classes is not None:
        return Multinomial(checks.whole("classes", classes, least=2))
    if name == "logistic":
        return Logistic()
    most = checks.positive("label_bound", label_bound)
    return Poisson(most) if name == "poisson" else Huber(most, checks.positive("k", k))
