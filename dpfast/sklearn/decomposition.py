"""Private principal components."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpfast.core import checks, containers
from dpfast.mechanisms import Covariance, SecondMoments
from dpfast.sklearn.estimator import PrivateEstimator

Values = NDArray[np.float64]

# The largest eigenvalue of the noise on the covariances of d columns tends to this multiple of sqrt(d) times the
# standard deviation off the diagonal: the edges of the semicircle law, and of the difference of two Marchenko-Pastur
# laws of ratio 1, sqrt((11 + 5 sqrt(5)) / 4).
_EDGE_OF_GAUSSIAN, _EDGE_OF_WISHART = 2.0, math.sqrt((11 + 5 * math.sqrt(5)) / 4)


_AroundCenter = partial(Covariance, centered=False, psd=False)


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Principal components: eigenvectors of a private covariance matrix.

    (epsilon, delta)-differentially private for one replaced row; the number of rows is public.

    Parameters
    ----------
    n_components : int, optional
        From 1 to d; None: d. Public: not chosen by the explained variance of the data.
    radius : float
        Public bound on the distance of a row from the center, in the l2 norm; rows farther away are moved to it.
    center : float or d floats
        Public: a guess of the mean of the rows. A row with NaN or an infinity counts as the center.
    epsilon : float
        Positive; budget of the whole fit.
    delta : float
        0 for a pure guarantee. Positive: Gaussian noise if that is less, by public numbers; else a pure guarantee.
    centered : bool
        Whether to subtract the mean of the rows, which is released with the products. False: `center` is subtracted, as
        for columns that are standardised, with less noise.
    whiten : bool
        See ``sklearn.decomposition.PCA``.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        Orthonormal rows, by descending variance. The entry of the largest magnitude of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarrays of shape (n_components,)
        At least 0; they include noise, see `noise_level_`.
    noise_level_ : float
        About the largest explained variance that noise alone leads to. A component is of use if its variance exceeds
        that of the columns to be left out by several times this number, which depends only on n, d and the parameters.
    mean_ : ndarray of shape (d,)
    n_components_, n_samples_ : int
    noise_variance_ : float
        The mean variance of the components left out, as in scikit-learn.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: one release of `dpfast.SecondMoments`, or of `dpfast.Covariance` if not `centered`; eigenvectors are
    post-processing. `transform` is not a release: it shows the rows that it is given.
    Accuracy: the noise on a covariance is of the order of radius**2 sqrt(d) / (n epsilon) for ``delta=0``, so the
    radius should be near the norm of most rows.
    Cost: one pass over X, as for a covariance matrix, and an eigendecomposition.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis".

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivatePCA
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3)) * [3, 2, 1] + 5
    >>> pca = PrivatePCA(2, radius=12.0, center=5.0, epsilon=1.0).fit(X)
    >>> bool(np.abs(np.abs(pca.components_) - np.eye(2, 3)).max() < 0.2)
    True
    >>> pca.transform(X).shape, bool(pca.noise_level_ < 1)
    ((10000, 2), True)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        radius: float | None = None,
        center: Any = 0.0,
        epsilon: float = 1.0,
        delta: float = 0.0,
        centered: bool = True,
        whiten: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.radius = radius
        self.center = center
        self.epsilon = epsilon
        self.delta = delta
        self.centered = centered
        self.whiten = whiten
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Release the components of X, (n, d), of any numeric dtype; spends the budget once. `y` is ignored."""
        privacy = self._privacy()
        centered, _ = checks.flag("centered", self.centered), checks.flag("whiten", self.whiten)
        values = self._rows(X, reset=True)
        n, d = values.shape
        kept, ball = self._kept(d), self._ball(d)
        made = partial(SecondMoments if centered else _AroundCenter, domain=ball, epsilon=privacy.epsilon)
        candidates = [made(), made(delta=privacy.delta)] if privacy.delta else [made()]
        mechanism = min(candidates, key=lambda one: _edge(one, n, d))
        moments = self._released(mechanism, values)
        mean = moments[:d, d] if centered else np.zeros(d)
        variances, vectors = np.linalg.eigh(moments[:d, :d] - np.outer(mean, mean))
        variances = np.maximum(variances[::-1], 0.0) * (n / max(n - 1, 1))
        total = variances.sum()
        self.components_ = _with_positive_peaks(vectors.T[::-1][:kept])
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = variances[:kept] / (total if total > 0 else 1.0)
        self.singular_values_ = np.sqrt(variances[:kept] * (n - 1))
        self.noise_variance_ = float(variances[kept:].mean()) if kept < d else 0.0
        self.noise_level_ = _edge(mechanism, n, d)
        self.mean_ = ball.center_of(d) + mean
        self.n_components_, self.n_samples_, self.privacy_ = kept, n, mechanism.privacy
        return self

    def _kept(self, d: int) -> int:
        """Return the number of components to keep of d."""
        kept = d if self.n_components is None else checks.whole("n_components", self.n_components, least=1)
        if kept > d:
            raise ValueError(f"n_components must be at most the number of columns, {d}, not {kept}")
        return kept

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _scales(self) -> Values | float:
        """Return what whitening divides by; a component without variance is left as it is."""
        if not self.whiten:
            return 1.0
        deviations = np.sqrt(self.explained_variance_)
        return np.where(deviations > 0, deviations, 1.0)

    def transform(self, X: ArrayLike) -> Values:
        """Return the coordinates of the rows along the components, (n, n_components); NaN for rows with NaN."""
        check_is_fitted(self)
        rows = self._doubles(X)
        with np.errstate(all="ignore"):  # a row may be far outside the ball
            return np.asarray((rows - self.mean_) @ self.components_.T / self._scales())

    def inverse_transform(self, X: ArrayLike) -> Values:
        """Return the rows, (n, d), that have these coordinates, (n, n_components), and lie on the plane of the
        components.
        """
        check_is_fitted(self)
        coordinates = containers.numbers("X", X, dimensions=2)
        with np.errstate(all="ignore"):
            return np.asarray((coordinates.astype(np.float64) * self._scales()) @ self.components_ + self.mean_)


def _edge(mechanism: SecondMoments | Covariance, n: SupportsIndex, d: int) -> float:
    """About the largest eigenvalue of the noise on the covariances."""
    if d == 1:
        return float(mechanism.noise_deviation(n, dimension=1)[0, 0])
    edge = _EDGE_OF_GAUSSIAN if mechanism.gaussian_mu else _EDGE_OF_WISHART
    return edge * math.sqrt(d) * float(mechanism.noise_deviation(n, dimension=d)[0, 1])


def _with_positive_peaks(vectors: Values) -> Values:
    """Return the rows with the signs that make the entry of the largest magnitude of each positive."""
    peaks = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
    return np.asarray(vectors * np.where(peaks < 0, -1.0, 1.0))
