"""Estimators of scikit-learn whose fit is differentially private: what is fitted can be published.

What `fit` learns is a release, epsilon-differentially private for one replaced row; all else is post-processing and
costs nothing. Bounds are public parameters, chosen without looking at the data: they have no default.
Guide: docs/guides/sklearn.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit, log_expit, ndtr, ndtri
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from dpfast import _checks, _containers
from dpfast.aggregate import SampleAndAggregate
from dpfast.densities import PerturbedHistogram
from dpfast.densities.bins import automatic_bins, table
from dpfast.families.regression import LogisticRegression
from dpfast.grid import Grid
from dpfast.local.randomizer import LocalMechanism
from dpfast.local.regression import GradientDescent
from dpfast.mechanisms import Mechanism, Quantiles
from dpfast.privacy import Privacy
from dpfast.spending import Carrier, claim, spending
from dpfast.statistics import InterquartileRange

__all__ = [
    "PrivateHistogramDensity",
    "PrivateLogisticRegression",
    "PrivateQuantileTransformer",
    "PrivateRobustScaler",
]

_EDGE = 1e-7  # normal scores are clipped at this quantile and its mirror image, as scikit-learn does


class _PrivateEstimator(Carrier, BaseEstimator):
    """What the estimators share: how they read data, bounds and `random_state`, and who pays for a fit.

    An estimator that is made, cloned, copied or pickled inside `with ledger:` carries the ledger, and so do its clones,
    and those that are made of the same one while the block is open: scikit-learn makes some of them in threads.
    """

    bounds: Any
    epsilon: float
    random_state: Any
    privacy_: Privacy

    def __new__(cls, *args: Any, **options: Any) -> Self:
        made: Self = super().__new__(cls)
        if (ticket := claim(cls)) is not None:
            made._ticket = ticket
        return made

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        if (ticket := claim(self)) is not None:
            made._ticket = self._lent = ticket
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _privacy(self) -> Privacy:
        """The guarantee of what `fit` releases, as the parameters are then."""
        return Privacy(_checks.positive_down("epsilon", self.epsilon))

    def _rows(self, X: ArrayLike, y: Any = "no_validation", *, reset: bool) -> NDArray[Any]:
        """The records: no error, dtype or shape depends on their values. `y` is looked at for None only."""
        if issparse(X):
            raise TypeError("sparse data are not supported: which entries are stored would tell about records")
        if getattr(getattr(X, "dtype", None), "kind", None) == "c":
            raise ValueError("Complex data not supported")
        values: NDArray[Any] = check_array(
            _containers.numbers("X", X, dimensions=2),
            dtype=None,
            ensure_all_finite=False,
            input_name="X",
            estimator=self,
        )
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        return values

    def _grids(self, d: int) -> list[Grid]:
        """A grid for each of d columns."""
        return self._each(d, "column", _as_grid)

    def _each(self, count: int, part: str, read: Callable[[Any], Any]) -> list[Any]:
        """What `read` makes of the bounds of each of `count` parts."""
        if self.bounds is None:
            raise ValueError("bounds must be given: they are public, chosen without looking at the data")
        if isinstance(self.bounds, Grid) or all(map(_is_number, self.bounds)):
            return [read(self.bounds)] * count
        each = [read(bounds) for bounds in self.bounds]
        if len(each) != count:
            raise ValueError(f"bounds must be one pair, or one for each {part}: {count}, not {len(each)}")
        return each

    def _quantiles(self, qs: list[float], values: NDArray[Any]) -> NDArray[np.float64]:
        """A release of the quantiles of each column, (len(qs), d)."""
        d, rng = values.shape[1], self._rng()
        mechanisms = [Quantiles(qs, grid=grid, epsilon=self._share(d)) for grid in self._grids(d)]
        with self._paid(mechanisms):
            return np.column_stack([mechanism(values[:, j], rng=rng) for j, mechanism in enumerate(mechanisms)])

    def _paid(self, mechanisms: Sequence[Mechanism | LocalMechanism]) -> AbstractContextManager[None]:
        """Pays for a whole fit at once: a release of each mechanism, all of one profile."""
        profile, label = mechanisms[0].privacy_profile, f"{type(self).__name__}: {mechanisms[0]!r}"
        return spending(profile, times=len(mechanisms), label=label, of=self)

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


def _classes(classes: Any) -> NDArray[Any]:
    """The two classes in ascending order: numbers, or strings."""
    if classes is None:
        raise ValueError("classes must be given: they are public, chosen without looking at the data")
    if isinstance(classes, str) or np.ndim(classes) != 1 or len(classes) != 2:
        raise ValueError(f"classes must be a pair, not {classes!r}")
    if not all(isinstance(label, str) for label in classes):
        for label in classes:
            if not isinstance(label, (bool, np.bool_)):
                _checks.real("each of classes", label)
    pair = np.unique(np.asarray(classes))
    if pair.dtype.kind not in "biufU":
        raise ValueError(f"classes must be two strings, or numbers of a type of NumPy's, not {classes!r}")
    if len(pair) != 2:
        raise ValueError(f"classes must be different, not {classes!r}")
    return pair


def _codes(y: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """0 and 1 for labels of the two classes, NaN for all others, each by itself; the shape is that of y."""
    if classes.dtype.kind != "U":
        if _containers.is_sequence(y):  # a label that is a list would decide the shape of all
            y = [None if _containers.is_sequence(label) else label for label in y]
        values = _containers.numbers("y", y, dimensions=1)
        zero, one = classes.astype(values.dtype) if values.dtype.kind == "f" else classes
        with np.errstate(all="ignore"):  # a signalling NaN
            return np.where(values == one, 1.0, np.where(values == zero, 0.0, np.nan))
    shape: tuple[int, ...]
    if _containers.is_sequence(y):
        labels = list(y)
        shape = (len(labels),)
    else:
        array = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
        if array.dtype.kind not in "OTU":
            raise TypeError(f"y must hold text, as classes do, not dtype {_containers.name_of(array.dtype)}")
        labels, shape = array.ravel().tolist(), array.shape
    codes = {str(label): float(code) for code, label in enumerate(classes)}
    coded = [codes.get(label, np.nan) if isinstance(label, str) else np.nan for label in labels]
    return np.array(coded, dtype=np.float64).reshape(shape)


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
        qs = [0.5] * self.with_centering + [low, high] * self.with_scaling
        if self.with_scaling:
            for grid in self._grids(values.shape[1]):
                InterquartileRange().last(grid, 1)  # a spread beyond the range of float64 is refused
        released = self._quantiles(qs, values) if qs else np.empty((0, values.shape[1]))
        self.center_ = released[0] if self.with_centering else None
        self.scale_ = self._spread(released[-2:], low, high) if self.with_scaling else None
        self.privacy_ = privacy
        return self

    def _spread(self, quantiles: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        spread = quantiles[1] - quantiles[0]
        spread[spread == 0] = 1.0
        return np.asarray(spread / (ndtri(high) - ndtri(low)) if self.unit_variance else spread)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Centred and scaled rows; X is not modified."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        with np.errstate(all="ignore"):  # a row may be far outside the bounds
            if self.center_ is not None:
                out -= self.center_
            if self.scale_ is not None:
                out /= self.scale_
        return out

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Rows before `transform`."""
        check_is_fitted(self)
        out = self._rows(X, reset=False).astype(np.float64)
        with np.errstate(all="ignore"):
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
        levels = np.linspace(0, 1, count + 2)
        ends = np.array([(grid.lower, grid.upper) for grid in self._grids(values.shape[1])]).T
        quantiles = np.vstack([ends[:1], self._quantiles(levels[1:-1].tolist(), values), ends[1:]])
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
        if _checks.flag("joint", self.joint) and d > 1:
            parts: list[tuple[NDArray[Any], Any]] = [(values, grids)]
        else:
            parts = list(zip(values.T, grids, strict=True))
        mechanisms = [self._mechanism(part, grid, self._share(len(parts))) for part, grid in parts]
        with self._paid(mechanisms):
            self.histograms_ = [release(part, rng=rng) for release, (part, _) in zip(mechanisms, parts, strict=True)]
        self.privacy_ = privacy
        return self

    def _mechanism(self, part: NDArray[Any], grid: Any, epsilon: float) -> PerturbedHistogram:
        """What `dpfast.histogram` releases of one column or of several."""
        _, grids, _ = table(part, None, grid)
        bins = automatic_bins(self.bins, part, grids, epsilon) if isinstance(self.bins, str) else self.bins
        return PerturbedHistogram(bins, grid=grids, epsilon=epsilon)

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


class PrivateLogisticRegression(ClassifierMixin, _PrivateEstimator):
    """A logistic regression of two classes: a private mean of many small fits, or private gradient descent.

    Epsilon-differentially private for one replaced row and label; the number of rows is public. With
    ``method="local"`` the guarantee is the local one, that each row's own report is private.

    Parameters
    ----------
    classes : pair of numbers or of strings
        Public: which labels occur in `y` would tell about records. A label that is neither counts as missing (Notes).
    bounds : pair of floats, or one of them for each coefficient, that of the intercept last
        Public, for "aggregate": where coefficients lie. Noise is proportional to their width; but see `combine`.
    radius : float
        Public, for "local": the norm that rows have at most. Longer ones are projected ("l2") or clamped ("linf").
    epsilon : float
        Positive, for the whole fit. "aggregate" gives each coefficient an equal share.
    method : {"aggregate", "local"}
        `dpfast.SampleAndAggregate` of maximum-likelihood fits, or `dpfast.local.GradientDescent`. Which one is better:
        docs/guides/sklearn.md.
    fit_intercept : bool
    blocks, combine : int or "auto", str
        For "aggregate", as for `dpfast.SampleAndAggregate`. "auto" needs 40 rows, and 20 more for each coefficient;
        ``combine="winsorized"`` makes little of wide bounds if there are many more.
    spread : float or sequence of float
        Public, for "aggregate" with blocks="auto" or combine="winsorized": assumed standard deviations of the columns.
    norm, bound : {"l2", "linf"}, float
        For "local", as for `dpfast.local.GradientDescent`. Coefficients times the radius are confined to a ball of the
        radius `bound`, 5 by default.
    shuffle : int, optional
        Public seed of a permutation of the rows: blocks and steps are made by position, so rows that are sorted, say by
        label, would spoil them. None: the order they have.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes in ascending order: the second is the one whose probability increases with `decision_function`.
    coef_ : ndarray of shape (1, d)
    intercept_ : ndarray of shape (1,)
        0 without `fit_intercept`.
    privacy_ : Privacy
        For "local" of neighbors "local".
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: one release of the mechanism of `method`, whose proof it has (docs/proofs/sample-and-aggregate.md,
    docs/proofs/local-glm.md). It is charged to an active `dpfast.Ledger`, "local" to one for "local". There is no
    ``sample_weight``: weights would multiply what one row may change. No error depends on labels: there may be one
    class, or more than two.
    Missing: "aggregate" leaves out rows with NaN or infinities, or with a missing label (in a list of labels, also one
    that is a list). For "local" a missing label counts as ``classes_[0]``; a row with NaN has no features ("l2"), or a
    NaN is 0 ("linf").
    `predict` takes ``classes_[0]`` for a row with NaN.
    Accuracy: "aggregate" adds noise of standard deviation ``sqrt(2) p width / (k epsilon)`` to each of p coefficients,
    k the blocks: at most ``n / (20 + 10 p)`` with "auto", for it takes fits to so many rows, whose bias is small.
    "local" is as good as about ``n tanh(epsilon / 2)**2 / (2 pi d)`` rows without privacy, for slopes near 0. No
    penalty pulls coefficients to 0.
    Cost: "aggregate" a few Newton steps over each block; "local" d normals for each row.

    References
    ----------
    Smith 2008, "Efficient, differentially private point estimators"; Duchi, Jordan and Wainwright 2018, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50_000, 2))
    >>> y = np.where(rng.random(50_000) < 1 / (1 + np.exp(-X @ [2, -1])), "yes", "no")
    >>> model = PrivateLogisticRegression(classes=("no", "yes"), bounds=(-4, 4), epsilon=1.0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [2, -1]).max() < 1)
    True
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        bounds: Any = None,
        radius: float | None = None,
        epsilon: float = 1.0,
        method: str = "aggregate",
        fit_intercept: bool = True,
        blocks: int | str = "auto",
        combine: str = "mean",
        spread: Any = 1.0,
        norm: str = "l2",
        bound: float | None = None,
        shuffle: int | None = 0,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.bounds = bounds
        self.radius = radius
        self.epsilon = epsilon
        self.method = method
        self.fit_intercept = fit_intercept
        self.blocks = blocks
        self.combine = combine
        self.spread = spread
        self.norm = norm
        self.bound = bound
        self.shuffle = shuffle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _privacy(self) -> Privacy:
        one = super()._privacy()
        return Privacy(one.epsilon, neighbors="local") if self.method == "local" else one

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Release the coefficients, of X, (n, d), of any number type and the labels y, (n,); spends epsilon once.

        Labels are of a number type if the classes are numbers, text or objects if they are strings.
        """
        classes, privacy = _classes(self.classes), self._privacy()
        fit = {"aggregate": self._aggregate, "local": self._descend}[
            _checks.choice("method", self.method, ("aggregate", "local"))
        ]
        intercept = _checks.flag("fit_intercept", self.fit_intercept)
        values = self._rows(X, y, reset=True)
        labels = column_or_1d(_codes(y, classes), warn=True)
        check_consistent_length(values, labels)
        theta = fit(values, labels, intercept)
        self.coef_ = theta[None, : values.shape[1]]
        self.intercept_ = theta[values.shape[1] :] if intercept else np.zeros(1)
        self.classes_, self.privacy_ = classes, privacy
        return self

    def _aggregate(self, X: NDArray[Any], y: NDArray[np.float64], intercept: bool) -> NDArray[np.float64]:
        """The slopes, and the intercept if there is one."""
        family = LogisticRegression(columns=X.shape[1], intercept=intercept, spread=self.spread)
        names = (*family.columns, "intercept") if intercept else family.columns
        ranges = self._each(len(names), "coefficient", partial(_checks.pair, "bounds"))
        mechanism = SampleAndAggregate(
            family,
            bounds=dict(zip(names, ranges, strict=True)),
            epsilon=self.epsilon,
            blocks=self.blocks,
            combine=self.combine,
            shuffle=self.shuffle,
        )
        rng = self._rng()
        with self._paid([mechanism]):
            theta: NDArray[np.float64] = np.atleast_1d(mechanism((X, y), rng=rng))
        return theta

    def _descend(self, X: NDArray[Any], y: NDArray[np.float64], intercept: bool) -> NDArray[np.float64]:
        """The slopes, and the intercept if there is one."""
        if self.radius is None:
            raise ValueError("radius must be given: it is public, chosen without looking at the data")
        protocol = GradientDescent(
            X.shape[1], self.epsilon, radius=self.radius, norm=self.norm, bound=self.bound, intercept=intercept
        )
        if self.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(_checks.whole("shuffle", self.shuffle))).permutation(len(X))
            X, y = X[order], y[order]
        rng = self._rng()
        with self._paid([protocol]):
            return protocol(X, y, rng=rng)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithm of the odds of ``classes_[1]`` for each row."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(all="ignore"):  # a row may hold infinities
            return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The more probable class of each row."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probabilities of the classes for each row, (n, 2)."""
        t = self.decision_function(X)
        return np.column_stack([expit(-t), expit(t)])

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logarithms of the probabilities of the classes for each row, (n, 2)."""
        t = self.decision_function(X)
        return np.column_stack([log_expit(-t), log_expit(t)])
