"""Private scaling and quantile transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    check_is_fitted,
)

from dpfast import _checks
from dpfast.grid import Grid, Points, unbounded
from dpfast.sklearn.estimator import PrivateEstimator
from dpfast.statistics import InterquartileRange

_EDGE = 1e-7  # normal scores are clipped at this quantile and its mirror image, as in scikit-learn


class PrivateRobustScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Subtract a private median and divide by a private interquartile range, in each column.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair of floats or Grid, or one of them for each column, optional
        Public. By default, a missing value counts as the lower bound; a Grid can specify another value for NaN. None,
        the default, needs n epsilon / d of at least 200 (`dpfast.iqr`), or 50 / min(q, 1 - q) for other quantiles q.
    epsilon : float
        Positive; budget of the whole fit: each column gets ``epsilon / d``, which its two or three quantiles share
        (`dpfast.Quantiles`).
    with_centering, with_scaling, quantile_range, unit_variance
        See ``sklearn.preprocessing.RobustScaler``. Unused quantiles are not released.
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
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the quantiles of X, (n, d), of any numeric dtype; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        low, high = (_checks.fraction("quantile_range / 100", q / 100) for q in self.quantile_range)
        if not low < high:
            raise ValueError(f"quantile_range must be ascending, not {self.quantile_range!r}")
        values = self._rows(X, reset=True)
        qs = [0.5] * self.with_centering + [low, high] * self.with_scaling
        if self.with_scaling:
            for grid in self._points(values.shape[1]):
                if isinstance(grid, Grid):
                    InterquartileRange().last(grid, 1)  # raises if the spread overflows float64
        released = self._quantiles(qs, values) if qs else np.empty((0, values.shape[1]))
        self.center_ = released[0] if self.with_centering else None
        self.scale_ = self._spread(released[-2:], low, high) if self.with_scaling else None
        self.privacy_ = privacy
        return self

    def _points(self, d: int) -> Sequence[Points]:
        return [unbounded(False)] * d if self.bounds is None else self._grids(d)

    def _spread(self, quantiles: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            spread = np.minimum(quantiles[1] - quantiles[0], np.finfo(np.float64).max)
        spread[spread == 0] = 1.0
        return np.asarray(spread / (ndtri(high) - ndtri(low)) if self.unit_variance else spread)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Centre and scale the rows; X is not modified."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        with np.errstate(all="ignore"):  # a row may be far outside the bounds
            if self.center_ is not None:
                out -= self.center_
            if self.scale_ is not None:
                out /= self.scale_
        return out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Undo `transform`."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        with np.errstate(all="ignore"):
            if self.scale_ is not None:
                out *= self.scale_
            if self.center_ is not None:
                out += self.center_
        return out


class PrivateQuantileTransformer(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Map each column to a uniform or normal distribution, by linear interpolation of private quantiles.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair of floats or Grid, or one of them for each column
        Public; they are mapped to 0 and 1 of the uniform distribution.
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
        count = _checks.whole("n_quantiles", self.n_quantiles, least=1)
        _checks.choice("output_distribution", self.output_distribution, ("uniform", "normal"))
        values = self._rows(X, reset=True)
        levels = np.linspace(0, 1, count + 2)
        ends = np.array([(grid.lower, grid.upper) for grid in self._grids(values.shape[1])]).T
        quantiles = np.vstack([ends[:1], self._quantiles(levels[1:-1].tolist(), values), ends[1:]])
        self.quantiles_, self.references_, self.privacy_ = quantiles, levels, privacy
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Map each column to the output distribution; NaN stays NaN."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        for j, quantiles in enumerate(self.quantiles_.T):
            rising = np.interp(out[:, j], quantiles, self.references_)
            falling = np.interp(-out[:, j], -quantiles[::-1], -self.references_[::-1])
            out[:, j] = (rising - falling) / 2
        return ndtri(np.clip(out, _EDGE, 1 - _EDGE)) if self.output_distribution == "normal" else out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Undo `transform`; the result is inside the bounds."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        if self.output_distribution == "normal":
            out = ndtr(out)
        for j, quantiles in enumerate(self.quantiles_.T):
            out[:, j] = np.interp(out[:, j], self.references_, quantiles)
        return out
