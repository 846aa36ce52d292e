"""Density estimation with private histograms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import (
    check_is_fitted,
)

from dpfast.core import checks
from dpfast.core.grid import natural_step
from dpfast.core.traps import warn
from dpfast.densities import PerturbedHistogram
from dpfast.densities.bins import automatic_bins, table
from dpfast.densities.cells import traps_of_bins
from dpfast.sklearn.estimator import PrivateEstimator, generator_of


class PrivateHistogramDensity(DensityMixin, PrivateEstimator):
    """Density estimate from private histograms.

    Epsilon-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    bounds : pair (lower, upper), one pair for each column, or mapping from column names to pairs
        Public, and a Grid may stand for a pair; the density is 0 outside. If X has an integer or boolean dtype, bins
        divide the whole numbers, as in `dpfast.histogram`: five bins of ratings from 1 to 5 are one for each.
    epsilon : float
        Positive; budget of the whole fit, see `joint`.
    bins : int or "auto"
        Number of bins of each column; for "auto" see `dpfast.histogram`.
    joint : bool
        False: columns are treated as independent, with one histogram each, for ``epsilon / d``. True: one histogram of
        all columns, at most 4, for all of epsilon.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    histograms_ : list of Histogram
        One histogram, or one for each column.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: that of `dpfast.histogram`, with basic composition over columns.

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
        """Release the histograms of X, (n, d), of any numeric dtype; spends epsilon once. `y` is ignored."""
        privacy = self._privacy()
        values = self._rows(X, reset=True)
        d, rng = values.shape[1], self._rng()
        grids = self._grids(d, natural_step(X))
        if checks.flag("joint", self.joint) and d > 1:
            parts: list[tuple[NDArray[Any], Any]] = [(values, grids)]
        else:
            parts = list(zip(values.T, grids, strict=True))
        mechanisms = [self._mechanism(part, grid, self._share(len(parts))) for part, grid in parts]
        warn(dict.fromkeys(trap for made in mechanisms for trap in traps_of_bins(made.grids, made.cells.bins)))
        with self._paid(mechanisms):
            self.histograms_ = [release(part, rng=rng) for release, (part, _) in zip(mechanisms, parts, strict=True)]
        self.privacy_ = privacy
        return self

    def _mechanism(self, part: NDArray[Any], grid: Any, epsilon: float) -> PerturbedHistogram:
        """Return the mechanism of `dpfast.histogram` for one or several columns."""
        _, grids, _ = table(part, None, grid)
        bins = automatic_bins(self.bins, part, grids, epsilon) if isinstance(self.bins, str) else self.bins
        return PerturbedHistogram(bins, grid=grids, epsilon=epsilon)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log density at each row; -inf where the density is 0."""
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
        """Return the total log-likelihood of the rows. Not a release: it depends on X."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.float64]:
        """Draw synthetic rows, (n_samples, d), by post-processing."""
        check_is_fitted(self)
        rng = generator_of(random_state)
        parts = [part.sample(n_samples, rng) for part in self.histograms_]
        return np.column_stack(parts)
