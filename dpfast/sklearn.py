"""Estimators of scikit-learn whose fit is differentially private: what is fitted can be published.

What `fit` learns is a release, epsilon-differentially private for one replaced row; all else is post-processing and
costs nothing. Bounds are public parameters, chosen without looking at the data: they have no default. docs/sklearn.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dpfast import _checks
from dpfast.densities.histograms import histogram
from dpfast.grid import Grid
from dpfast.privacy import Privacy
from dpfast.quantiles import Quantiles

__all__ = ["PrivateHistogramDensity", "PrivateQuantileTransformer", "PrivateRobustScaler"]

_EDGE = 1e-7  # normal scores are clipped at this quantile and its mirror image, as scikit-learn does


class _PrivateEstimator(BaseEstimator):
    """What the estimators share: how they read data, bounds and `random_state`."""

    bounds: Any
    epsilon: float
    random_state: Any
    privacy_: Privacy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _privacy(self) -> Privacy:
        """The guarantee of what `fit` releases, as the parameters are then."""
        return Privacy(_checks.positive_down("epsilon", self.epsilon))

    def _rows(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        """The records: no error, dtype or shape depends on their values."""
        if issparse(X):
            raise TypeError("sparse data are not supported: which entries are stored would tell about records")
        if getattr(getattr(X, "dtype", None), "kind", None) == "c":
            raise ValueError("Complex data not supported")
        values: NDArray[Any] = check_array(
            _checks.numbers("X", X), dtype=None, ensure_all_finite=False, input_name="X", estimator=self
        )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return values

    def _grids(self, d: int) -> list[Grid]:
        """A grid for each of d columns."""
        if self.bounds is None:
            raise ValueError("bounds must be given: they are public, chosen without looking at the data")
        if isinstance(self.bounds, Grid) or all(map(_is_number, self.bounds)):
            return [_as_grid(self.bounds)] * d
        grids = [_as_grid(column) for column in self.bounds]
        if len(grids) != d:
            raise ValueError(f"bounds must be one pair, or one for each column: {d}, not {len(grids)}")
        return grids

    def _share(self, d: int) -> float:
        """What each of d columns may spend of epsilon, rounded down."""
        epsilon = _checks.positive_down("epsilon", self.epsilon)
        return _checks.positive_down("epsilon / columns", Fraction(epsilon) / d)

    def _rng(self) -> Any:
        return _generator(self.random_state)


def _generator(random_state: Any) -> Any:
    """None is the secure generator; all else is reproducible, hence not private."""
    if isinstance(random_state, np.random.RandomState):
        return random_state._bit_generator
    return None if random_state is None else np.random.default_rng(random_state)


def _is_number(value: Any) -> bool:
    return not isinstance(value, (Grid, Sequence, np.ndarray))


def _as_grid(bounds: Any) -> Grid:
    return bounds if isinstance(bounds, Grid) else Grid(*_checks.pair("bounds", bounds))


class PrivateRobustScaler(OneToOneFeatureMixin, TransformerMixin, _PrivateEstimator):
    """Subtract a private median and divide by a private interquartile range, in each column.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair of floats or Grid, or one of them for each column
        Public. A Grid says where NaN counts, too: a missing value counts at the lower bound otherwise.
    epsilon : float
        Positive, for the whole fit: a column gets ``epsilon / d``, its two or three quantiles share that
        (`dpfast.Quantiles`).
    with_centering, with_scaling, quantile_range, unit_variance
        As for ``sklearn.preprocessing.RobustScaler``. What is not used is not released.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    center_ : ndarray of shape (d,), or None
    scale_ : ndarray of shape (d,), or None
        1 where the released quantiles are equal.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: `dpfast.Quantiles` for each column, basic composition over them; `transform` is no release: it shows the
    rows that it is given. Cost: a selection in each column.

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
        """Release the quantiles of X, (n, d), of any number type; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        low, high = (_checks.fraction("quantile_range / 100", q / 100) for q in self.quantile_range)
        if not low < high:
            raise ValueError(f"quantile_range must be ascending, not {self.quantile_range!r}")
        values = self._rows(X, reset=True)
        d, rng = values.shape[1], self._rng()
        qs = [0.5] * self.with_centering + [low, high] * self.with_scaling
        released = np.empty((d, len(qs)))
        for j, grid in enumerate(self._grids(d)):
            if qs:
                released[j] = Quantiles(qs, grid=grid, epsilon=self._share(d))(values[:, j], rng=rng)
        self.center_ = released[:, 0] if self.with_centering else None
        self.scale_ = self._spread(released[:, -2:], low, high) if self.with_scaling else None
        self.privacy_ = privacy
        return self

    def _spread(self, quantiles: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        spread = quantiles[:, 1] - quantiles[:, 0]
        spread[spread == 0] = 1.0
        return spread / (ndtri(high) - ndtri(low)) if self.unit_variance else spread

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Centred and scaled rows; X is not modified."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        if self.center_ is not None:
            out -= self.center_
        if self.scale_ is not None:
            out /= self.scale_
        return out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Rows before `transform`."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        if self.scale_ is not None:
            out *= self.scale_
        if self.center_ is not None:
            out += self.center_
        return out


class PrivateQuantileTransformer(OneToOneFeatureMixin, TransformerMixin, _PrivateEstimator):
    """Map each column to a uniform or normal distribution, by private quantiles and straight lines between them.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair of floats or Grid, or one of them for each column
        Public, and the ends of the map: 0 and 1 of the uniform distribution.
    epsilon : float
        Positive, for the whole fit: a column gets ``epsilon / d``, all its quantiles share that (`dpfast.Quantiles`).
    n_quantiles : int
        Evenly spaced levels strictly between 0 and 1 whose quantiles are released.
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
    Privacy: as for `PrivateRobustScaler`. Where released quantiles are equal, their value is mapped to the middle of
    their levels, as scikit-learn does.

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
        """Release the quantiles of X, (n, d), of any number type; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        count = _checks.whole("n_quantiles", self.n_quantiles, least=1)
        _checks.choice("output_distribution", self.output_distribution, ("uniform", "normal"))
        values = self._rows(X, reset=True)
        d, rng = values.shape[1], self._rng()
        levels = np.linspace(0, 1, count + 2)
        quantiles = np.empty((count + 2, d))
        for j, grid in enumerate(self._grids(d)):
            quantiles[[0, -1], j] = grid.lower, grid.upper
            mechanism = Quantiles(levels[1:-1].tolist(), grid=grid, epsilon=self._share(d))
            quantiles[1:-1, j] = mechanism(values[:, j], rng=rng)
        self.quantiles_, self.references_, self.privacy_ = quantiles, levels, privacy
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Rows with columns of the output distribution; NaN stays NaN."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        for j, quantiles in enumerate(self.quantiles_.T):
            rising = np.interp(out[:, j], quantiles, self.references_)
            falling = np.interp(-out[:, j], -quantiles[::-1], -self.references_[::-1])
            out[:, j] = (rising - falling) / 2
        return ndtri(np.clip(out, _EDGE, 1 - _EDGE)) if self.output_distribution == "normal" else out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Rows before `transform`, inside the bounds."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        if self.output_distribution == "normal":
            out = ndtr(out)
        for j, quantiles in enumerate(self.quantiles_.T):
            out[:, j] = np.interp(out[:, j], self.references_, quantiles)
        return out


class PrivateHistogramDensity(DensityMixin, _PrivateEstimator):
    """A density made of private histograms.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair of floats or Grid, or one of them for each column
        Public: the density is 0 outside.
    epsilon : float
        Positive, for the whole fit: see `joint`.
    bins : int or "auto"
        Of each column; "auto" as for `dpfast.histogram`.
    joint : bool
        False: columns are taken as independent, each with a histogram that gets ``epsilon / d``. True: one histogram of
        all columns, at most 4, that gets all of epsilon.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    histograms_ : list of Histogram
        One, or one for each column.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: `dpfast.histogram`, basic composition over columns.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateHistogramDensity
    >>> X = np.random.default_rng(0).normal(0, 1, (10_000, 2))
    >>> density = PrivateHistogramDensity(bounds=(-5, 5), epsilon=1.0).fit(X)
    >>> bool(np.diff(density.score_samples([[4, 4], [0, 0]]))[0] > 1)
    True
    >>> density.sample(3).shape
    (3, 2)
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        epsilon: float = 1.0,
        bins: int | str = "auto",
        joint: bool = False,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.bins = bins
        self.joint = joint
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the histograms of X, (n, d), of any number type; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        values = self._rows(X, reset=True)
        d, rng = values.shape[1], self._rng()
        grids = self._grids(d)
        if _checks.flag("joint", self.joint):
            data = values[:, 0] if d == 1 else values
            grid = grids[0] if d == 1 else grids
            self.histograms_ = [histogram(data, self.bins, grid=grid, epsilon=self._share(1), rng=rng)]
        else:
            self.histograms_ = [
                histogram(values[:, j], self.bins, grid=grids[j], epsilon=self._share(d), rng=rng) for j in range(d)
            ]
        self.privacy_ = privacy
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithm of the density at each row; -inf where it is 0."""
        check_is_fitted(self)
        values = self._rows(X, reset=False)
        if len(self.histograms_) == 1:
            densities = self.histograms_[0].pdf(values[:, 0] if values.shape[1] == 1 else values)
        else:
            densities = np.column_stack([part.pdf(values[:, j]) for j, part in enumerate(self.histograms_)])
        with np.errstate(divide="ignore"):
            logs = np.log(densities)
        return np.asarray(logs if logs.ndim == 1 else logs.sum(axis=1))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The total log-likelihood of the rows. It is no release: it tells about X."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.float64]:
        """Synthetic rows, (n_samples, d): post-processing."""
        check_is_fitted(self)
        rng = _generator(random_state)
        parts = [part.sample(n_samples, rng) for part in self.histograms_]
        return np.column_stack(parts)
