"""Private scaling and quantile transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    check_is_fitted,
)

from dpfast.core import checks
from dpfast.core.grid import Grid, Points, grid_with, unbounded
from dpfast.domains import Box
from dpfast.mechanisms import NoisySums
from dpfast.sklearn.estimator import PrivateEstimator
from dpfast.sklearn.moments import ColumnMoments
from dpfast.statistics import InterquartileRange, Mean

_EDGE = 1e-7  # normal scores are clipped at this quantile and its mirror image, as in scikit-learn


class _Scaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator, ABC):
    """Base class of the scalers: subtract a shift and divide by a scale, in each column."""

    scale_: NDArray[np.float64] | None

    @abstractmethod
    def _shift(self) -> NDArray[np.float64] | None:
        """Return what `transform` subtracts from each column."""

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Centre and scale the rows; X is not modified."""
        check_is_fitted(self)
        out = self._doubles(X)
        with np.errstate(all="ignore"):  # a row may be far outside the bounds
            if (shift := self._shift()) is not None:
                out -= shift
            if self.scale_ is not None:
                out /= self.scale_
        return out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Undo `transform`."""
        check_is_fitted(self)
        out = self._doubles(X)
        with np.errstate(all="ignore"):
            if self.scale_ is not None:
                out *= self.scale_
            if (shift := self._shift()) is not None:
                out += shift
        return out


class PrivateRobustScaler(_Scaler):
    """Subtract a private median and divide by a private interquartile range, in each column.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair (lower, upper), one pair for each column, or mapping from column names to pairs, optional
        Public; a Grid may stand for a pair. None, the default, needs n epsilon / d of at least 177 for quartiles; with
        fewer rows a `UtilityWarning` says so.
    epsilon : float
        Positive; budget of the whole fit: each column gets ``epsilon / d``, which its two or three quantiles share
        (`dpfast.Quantiles`).
    with_centering, with_scaling, quantile_range, unit_variance
        See ``sklearn.preprocessing.RobustScaler``. Unused quantiles are not released.
    missing : float, "lower", "half" or "drop", optional
        What a missing entry becomes, as for `dpfast.quantile`; "drop" leaves it out of the quantiles of its column, at
        no cost. Default: "drop" without bounds, "lower" for pairs of bounds, and what a Grid says.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    center_ : ndarray of shape (d,), or None
    scale_ : ndarray of shape (d,), or None
        1 if the released quantiles are equal.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: `dpfast.Quantiles` for each column, with basic composition. The output of `transform` is not a release: it
    shows the rows that it is given. Cost: one selection per column.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateRobustScaler
    >>> X = np.random.default_rng(0).normal([50, 5], [10, 1], (10_000, 2))
    >>> scaler = PrivateRobustScaler(bounds=[(0, 100), (0, 10)], epsilon=1.0).fit(X)
    >>> bool(np.abs(scaler.center_ - [50, 5]).max() < 2)
    True
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        epsilon: float = 1.0,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
        missing: float | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the quantiles of X, (n, d), of any numeric dtype; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        low, high = (checks.fraction("quantile_range / 100", q / 100) for q in self.quantile_range)
        if not low < high:
            raise ValueError(f"quantile_range must be ascending, not {self.quantile_range!r}")
        values = self._rows(X, reset=True)
        qs = [0.5] * self.with_centering + [low, high] * self.with_scaling
        if self.with_scaling:
            for grid in self._points(values.shape[1]):
                if isinstance(grid, Grid):
                    InterquartileRange().last(grid, 1)  # raises if the spread overflows float64
        released = self._quantiles(qs, values) if qs else np.empty((0, values.shape[1]))
        self.center_: Any = released[0] if self.with_centering else None
        self.scale_: Any = self._spread(released[-2:], low, high) if self.with_scaling else None
        self.privacy_ = privacy
        return self

    def _points(self, d: int) -> Sequence[Points]:
        grids = [unbounded(False)] * d if self.bounds is None else self._grids(d)
        return [grid.with_missing(self.missing) for grid in grids]

    def _shift(self) -> NDArray[np.float64] | None:
        center: NDArray[np.float64] | None = self.center_
        return center

    def _spread(self, quantiles: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            spread = np.minimum(quantiles[1] - quantiles[0], np.finfo(np.float64).max)
        spread[spread == 0] = 1.0
        return np.asarray(spread / (ndtri(high) - ndtri(low)) if self.unit_variance else spread)


class PrivateStandardScaler(_Scaler):
    """Subtract a private mean and divide by a private standard deviation, in each column.

    (epsilon, delta)-differentially private for one replaced row; the number of rows is public. `PrivateRobustScaler`
    has less error if the bounds are many standard deviations wide, and needs none if there are enough rows.

    Parameters
    ----------
    bounds : pair (lower, upper), one pair for each column, or mapping from column names to pairs
        Public; a Grid may stand for a pair. Values outside are clamped.
    radius, center : float, float or d floats
        Public, in place of `bounds`: a ball that contains the rows, in the l2 norm. A row outside is moved to its
        nearest point; a row with NaN or an infinity counts as the center, 0 by default.
    epsilon : float
        Positive; budget of the whole fit.
    delta : float
        0 for a pure guarantee. Positive: Gaussian noise if that is less, for many columns or a ball.
    with_mean, with_std : bool
        See ``sklearn.preprocessing.StandardScaler``. If only the mean is used, only the mean is released.
    missing : float, "lower" or "half", optional
        What a missing entry becomes within `bounds`, as for `dpfast.mean`; "drop" needs a private number of rows.
        Default: "lower", and what a Grid says.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    mean_ : ndarray of shape (d,), or None
    var_, scale_ : ndarrays of shape (d,), or None
        The variance and its square root. A variance below the standard deviation of its noise counts as that, so a
        constant column does not get the scale 1, but one that depends on the bounds, n and epsilon.
    n_samples_seen_ : int
    privacy_ : Privacy
        With delta = 0 if the noise is pure.
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: one release of `dpfast.NoisySums`, of all columns and their squares. `transform` is not a release: it shows
    the rows that it is given.
    Accuracy: for bounds, the noise on the mean has a standard deviation of about 1.2 d width / (n epsilon), and that on
    the variance of about 0.3 d width**2 / (n epsilon) for columns with their mean in the middle of the bounds, up to 4
    times that near a bound. Cost: one pass over X and its squares.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateStandardScaler
    >>> X = np.random.default_rng(0).normal([50, 5], [10, 1], (10_000, 2))
    >>> scaler = PrivateStandardScaler(bounds=[(0, 100), (0, 10)], epsilon=1.0).fit(X)
    >>> bool(np.abs(scaler.mean_ - [50, 5]).max() < 1), bool(np.abs(scaler.scale_ / [10, 1] - 1).max() < 0.1)
    (True, True)
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        radius: float | None = None,
        center: Any = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        with_mean: bool = True,
        with_std: bool = True,
        missing: float | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.radius = radius
        self.center = center
        self.epsilon = epsilon
        self.delta = delta
        self.with_mean = with_mean
        self.with_std = with_std
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the moments of X, (n, d), of any numeric dtype; spends the budget once. `y` is ignored."""
        privacy = self._privacy()
        with_mean, with_std = (checks.flag(name, getattr(self, name)) for name in ("with_mean", "with_std"))
        values = self._rows(X, reset=True)
        n, d = values.shape
        domain = self._domain(d)
        if isinstance(domain, Box):
            domain = Box(grid_with(domain.grids, self.missing))
        mean = scale = None
        if with_std:
            moments = ColumnMoments(domain, d, privacy.epsilon, privacy.delta)
            mean, scale = moments.read(self._released(moments.mechanism, moments.pieces(values)), n)
            privacy = moments.mechanism.privacy
        elif with_mean:
            mechanism = NoisySums(Mean(), domain=domain, epsilon=privacy.epsilon, delta=privacy.delta)
            mean, privacy = self._released(mechanism, values), mechanism.privacy
        self.mean_, self.var_ = mean, None if scale is None else scale**2
        self.scale_ = None if scale is None else np.where(scale > 0, scale, 1.0)
        self.n_samples_seen_, self.privacy_ = n, privacy
        return self

    def _shift(self) -> NDArray[np.float64] | None:
        return self.mean_ if self.with_mean else None


class PrivateQuantileTransformer(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Map each column to a uniform or normal distribution, by linear interpolation of private quantiles.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair (lower, upper), one pair for each column, or mapping from column names to pairs
        Public, and a Grid may stand for a pair; they are mapped to 0 and 1 of the uniform distribution.
    epsilon : float
        Positive; budget of the whole fit: each column gets ``epsilon / d`` for all its quantiles (`dpfast.Quantiles`).
    n_quantiles : int
        Number of released quantiles, at evenly spaced levels strictly between 0 and 1.
    output_distribution : {"uniform", "normal"}
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles + 2, d)
        The released quantiles, ascending, between the bounds.
    references_ : ndarray of shape (n_quantiles + 2,)
        Their levels, from 0 to 1.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: see `PrivateRobustScaler`. Equal released quantiles are mapped to the middle of their levels, as in
    scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(10, (10_000, 1))
    >>> U = PrivateQuantileTransformer(bounds=(0, 100), epsilon=1.0).fit_transform(X)
    >>> bool(abs(np.median(U) - 0.5) < 0.1)
    True
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        epsilon: float = 1.0,
        n_quantiles: int = 15,
        output_distribution: str = "uniform",
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the quantiles of X, (n, d), of any numeric dtype; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        count = checks.whole("n_quantiles", self.n_quantiles, least=1)
        checks.choice("output_distribution", self.output_distribution, ("uniform", "normal"))
        values = self._rows(X, reset=True)
        levels = np.linspace(0, 1, count + 2)
        ends = np.array([(grid.lower, grid.upper) for grid in self._grids(values.shape[1])]).T
        quantiles = np.vstack([ends[:1], self._quantiles(levels[1:-1].tolist(), values), ends[1:]])
        self.quantiles_, self.references_, self.privacy_ = quantiles, levels, privacy
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Map each column to the output distribution; NaN stays NaN."""
        check_is_fitted(self)
        out = self._doubles(X)
        for j, quantiles in enumerate(self.quantiles_.T):
            rising = np.interp(out[:, j], quantiles, self.references_)
            falling = np.interp(-out[:, j], -quantiles[::-1], -self.references_[::-1])
            out[:, j] = (rising - falling) / 2
        return ndtri(np.clip(out, _EDGE, 1 - _EDGE)) if self.output_distribution == "normal" else out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Undo `transform`; the result is inside the bounds."""
        check_is_fitted(self)
        out = self._doubles(X)
        if self.output_distribution == "normal":
            out = ndtr(out)
        for j, quantiles in enumerate(self.quantiles_.T):
            out[:, j] = np.interp(out[:, j], self.references_, quantiles)
        return out
