"""Private linear and logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from dpfast.aggregate import SampleAndAggregate
from dpfast.core import checks, containers
from dpfast.core.privacy import Privacy
from dpfast.core.spending import spending
from dpfast.core.traps import warn
from dpfast.families.regression import LogisticRegression
from dpfast.local.regression import GradientDescent
from dpfast.regression import Descent, Fit
from dpfast.regression.linear import Public
from dpfast.regression.sequences import completed
from dpfast.sklearn.estimator import PrivateEstimator, checked_classes, class_codes
from dpfast.streaming import Labelled

Values = NDArray[np.float64]


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):
    """Linear regression from private sums, corrected by the size of the residuals: `dpfast.linear_regression`.

    (epsilon, delta)-differentially private for one replaced row and label; the number of rows is public.

    Parameters
    ----------
    radius : float
        Public bound on the distance of a row from the center, in the l2 norm; rows farther away are moved to it.
        Standardise columns of different scales first.
    label_bound : float, optional
        Public bound on the distance of a label from `label_center`; labels farther away are moved to it. None: fits of
        blocks, without bounds of labels.
    center, label_center : float or d floats, float
        Public: guesses of the mean of the rows and of the labels.
    epsilon : float
        Positive; budget of the whole fit.
    delta : float
        0 for a pure guarantee. Positive: Gaussian noise if that is less, by public numbers; else a pure guarantee.
    method : {"auto", "sums", "residuals", "blocks"}
        See `dpfast.linear_regression`.
    fit_intercept : bool
        False: the fit goes through the centers, with less noise.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    standard_errors_ : ndarray of shape (d,)
        Of the coefficients: of sampling and of the noise together.
    fit_ : dpfast.regression.Fit
        The release, with confidence intervals.
    privacy_ : Privacy
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: one release of `dpfast.RegressionMoments` or `dpfast.regression.BlockFits`, or those of
    `dpfast.regression.Corrections`, charged together. There is no ``sample_weight``:
    weights would increase the influence of a row.
    Missing: a row with NaN or an infinity, in the row or the label, counts as a row and a label at the centers.
    Cost: one pass over X, or five.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.sklearn import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (50_000, 2))
    >>> y = 3 + X @ [1, -2] + rng.normal(size=50_000)
    >>> model = PrivateLinearRegression(radius=1.5, label_bound=6.0, label_center=3.0, epsilon=1.0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, -2]).max() < 0.1), bool(abs(model.intercept_ - 3) < 0.1)
    (True, True)
    >>> bool(model.score(X, y) > 0.6)
    True
    """

    def __init__(
        self,
        *,
        radius: float | None = None,
        label_bound: float | None = None,
        center: Any = 0.0,
        label_center: float = 0.0,
        epsilon: float = 1.0,
        delta: float = 0.0,
        method: str = "auto",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.radius = radius
        self.label_bound = label_bound
        self.center = center
        self.label_center = label_center
        self.epsilon = epsilon
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Release the regression, for X, (n, d), and y, (n,), of any numeric dtype; spends the budget once."""
        privacy = self._privacy()
        public = Public.of(
            self.method, self.label_bound, self.label_center, privacy.epsilon, privacy.delta, self.fit_intercept
        )
        values = self._rows(X, y, reset=True)
        labels = column_or_1d(containers.numbers("y", y), warn=True)
        check_consistent_length(values, labels)
        domain = self._ball(values.shape[1])
        choice = public.chosen(domain, *values.shape)
        public.warn_of_few(choice, domain, *values.shape)
        made, records = choice.mechanism, Labelled.of((values, labels))
        if choice.method == "residuals":
            rng = self._rng()
            with self._paid([made]):
                self.fit_ = completed(made, records, rng=rng, workers=1)
        else:
            self.fit_ = made.fit(self._released(made, records), len(values))
        self.coef_, self.intercept_ = self.fit_.coefficients, self.fit_.intercept
        self.standard_errors_, self.privacy_ = self.fit_.standard_errors, self.fit_.privacy
        return self

    def predict(self, X: ArrayLike) -> Values:
        """Predict the label of each row; NaN for a row with NaN."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(all="ignore"):  # a row may contain infinities
            return np.asarray(rows @ self.coef_ + self.intercept_)


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):
    """Logistic regression: by private sums of gradients, a private mean of many fits, or local reports.

    (epsilon, delta)-differentially private for one replaced row and label; the number of rows is public. With
    ``method="local"`` the guarantee is local: each row's own report is private.

    Parameters
    ----------
    classes : pair of numbers or of strings, or more for "sums"
        Public, since the set of labels in ``y`` would depend on the records. Other labels count as missing (Notes).
    radius : float
        Public bound on the norm of rows, for "sums" around `center`. Longer ones are projected; for "local" with norm
        "linf" they are clamped. Standardise columns of different scales first.
    center : float or d floats
        Public, for "sums": a guess of the mean of the rows.
    bounds : pair (lower, upper), one pair for each coefficient, that of the intercept last, or mapping from names
        Public, for "blocks": ranges of the coefficients. Noise is proportional to their width; but see `combine`.
    epsilon : float
        Positive; budget of the whole fit. "blocks" gives each coefficient an equal share.
    delta : float
        For "sums": 0 for a pure guarantee; positive for Gaussian noise, which has less error.
    method : {"auto", "sums", "blocks", "local"}
        `dpfast.glm`, `dpfast.SampleAndAggregate` of maximum-likelihood fits, or `dpfast.local.GradientDescent`. "auto":
        "sums" if `radius` is given, else "blocks". For the choice see
        https://dpfast.readthedocs.io/en/latest/guides/sklearn.html.
    fit_intercept : bool
    blocks, combine : int or "auto", str
        For "blocks", see `dpfast.SampleAndAggregate`. "auto" requires 40 rows, and 20 more for each coefficient;
        with many more rows, ``combine="winsorized"`` reduces the effect of wide bounds.
    spread : float or sequence of float
        Public, for "blocks" with blocks="auto" or combine="winsorized": assumed standard deviations of the columns.
    norm, bound : {"l2", "linf"}, float
        For "local", see `dpfast.local.GradientDescent`. Coefficients times the radius are confined to a ball of radius
        `bound`, 5 by default.
    shuffle : int, optional
        Public seed of a permutation of the rows for "blocks" and "local". Blocks and steps are formed by position, so
        sorted rows (by label, for example) would impair them. None: keep the order.
    random_state : int, RandomState or numpy.random.Generator, optional
        Makes the fit reproducible, hence not private. Default: the secure generator.

    Attributes
    ----------
    classes_ : ndarray of shape (2,), or (K,)
        The classes in ascending order; with two, the probability of the second increases with `decision_function`.
    coef_ : ndarray of shape (1, d), or (K, d) with K > 2 classes
        With more than two, their sum over the classes is 0.
    intercept_ : ndarray of shape (1,), or (K,)
        0 without `fit_intercept`, unless "sums" has a `center`.
    fit_ : dpfast.regression.Fit, or None
        The release of "sums", with standard errors and confidence intervals.
    privacy_ : Privacy
        With neighbors "local" for "local".
    n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: all releases of a fit are charged together, once, to the active `dpfast.Ledger`; "local" requires a ledger
    for "local" (https://dpfast.readthedocs.io/en/latest/proofs/glm.html,
    https://dpfast.readthedocs.io/en/latest/proofs/sample-and-aggregate.html,
    https://dpfast.readthedocs.io/en/latest/proofs/local-glm.html). There is no ``sample_weight``: weights would
    increase the influence of a row. Errors do not depend on labels: there may be one class, or more than those given.
    Missing: for "sums" a row with NaN or an infinity counts as the center, and a missing label adds 0 to gradients.
    "blocks" leaves out rows with NaN or infinities, or with a missing label (in a list of labels, also one that is a
    list). For "local" a missing label counts as ``classes_[0]``; with "l2" a row with NaN counts as zeros, with "linf"
    a NaN counts as 0.
    `predict` returns ``classes_[0]`` for a row with NaN.
    Accuracy: "blocks" adds noise of standard deviation ``sqrt((p + 1) (p + 2) / 3) width / (k epsilon)`` to each of p
    coefficients, for k blocks: at most ``n / (20 + 10 p)`` with "auto", so that blocks are large enough for a small
    bias. "local" is as accurate as about ``n tanh(epsilon / 2)**2 / (2 pi d)`` rows without privacy, for slopes near 0.
    There is no penalty on the coefficients.
    Cost: "sums" reads the rows at most 18 times; "blocks" takes a few Newton steps over each block; "local" draws d
    normals for each row.

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
    >>> model = PrivateLogisticRegression(classes=("no", "yes"), radius=3.0, epsilon=1.0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [2, -1]).max() < 0.5)
    True
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        classes: Any = None,
        radius: float | None = None,
        center: Any = None,
        bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        method: str = "auto",
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
        self.radius = radius
        self.center = center
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
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
        tags.classifier_tags.multi_class = np.ndim(self.classes) == 1 and len(self.classes) > 2
        return tags

    def _privacy(self) -> Privacy:
        one = super()._privacy()
        return Privacy(one.epsilon, neighbors="local") if self.method == "local" else one

    def _method(self) -> str:
        """Return the method, where "auto" is replaced."""
        if self.method == "auto":
            return "blocks" if self.radius is None and self.bounds is not None else "sums"
        return checks.choice("method", self.method, ("auto", *_METHODS))

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Release the coefficients, for X, (n, d), of any numeric dtype and labels y, (n,); spends the budget once.

        Labels have a numeric dtype if the classes are numbers, and are text or objects if the classes are strings.
        """
        method = self._method()
        classes, privacy = checked_classes(self.classes, several=method == "sums"), self._privacy()
        if method != "sums" and checks.delta_down(self.delta):
            raise ValueError(f"delta must be 0 for method={method!r}, which is pure, not {self.delta!r}")
        intercept = checks.flag("fit_intercept", self.fit_intercept)
        values = self._rows(X, y, reset=True)
        labels = column_or_1d(class_codes(y, classes), warn=True)
        check_consistent_length(values, labels)
        self.fit_: Fit | None = None
        self.classes_, self.privacy_ = classes, privacy
        self.coef_, self.intercept_ = getattr(self, _METHODS[method])(values, labels, intercept)
        return self

    def _sums(self, X: NDArray[Any], y: Values, intercept: bool) -> tuple[Values, Values]:
        """Return the slopes and the intercept by noisy gradients."""
        n, d = X.shape
        ball, privacy, rng = self._ball(d), self.privacy_, self._rng()
        classes = len(self.classes_) if len(self.classes_) > 2 else None
        model = "logistic" if classes is None else "multinomial"
        descent = Descent(model, classes=classes, n=n, d=d, domain=ball, privacy=privacy, intercept=intercept)
        warn(descent.few_records())
        label = f"{type(self).__name__}: {descent!r}"
        with spending(descent.privacy_profile, label=label, of=self):
            while descent.mechanism is not None:
                descent.advance(descent.mechanism((X, y), rng=rng))
        self.fit_ = descent.result
        return np.atleast_2d(self.fit_.coefficients), np.atleast_1d(self.fit_.intercept)

    def _blocks(self, X: NDArray[Any], y: Values, intercept: bool) -> tuple[Values, Values]:
        """Return the slopes and the intercept of a mean of many fits."""
        family = LogisticRegression(columns=X.shape[1], intercept=intercept, spread=self.spread)
        names = (*family.columns, "intercept") if intercept else family.columns
        features = self._names(X.shape[1])
        ranges = self._each_bounds("coefficient", (*features, "intercept") if intercept else features)
        mechanism = SampleAndAggregate(
            family,
            bounds=dict(zip(names, ranges, strict=True)),
            epsilon=self.epsilon,
            blocks=self.blocks,
            combine=self.combine,
            shuffle=self.shuffle,
        )
        return _split(np.atleast_1d(self._released(mechanism, (X, y))), X.shape[1])

    def _descend(self, X: NDArray[Any], y: Values, intercept: bool) -> tuple[Values, Values]:
        """Return the slopes and the intercept of one pass of local gradient descent."""
        if self.radius is None:
            raise ValueError("radius must be given: it is public, chosen without access to the data")
        protocol = GradientDescent(
            X.shape[1], self.epsilon, radius=self.radius, norm=self.norm, bound=self.bound, intercept=intercept
        )
        if self.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(checks.whole("shuffle", self.shuffle))).permutation(len(X))
            X, y = X[order], y[order]
        rng = self._rng()
        with self._paid([protocol]):
            return _split(protocol(X, y, rng=rng), X.shape[1])

    def decision_function(self, X: ArrayLike) -> Values:
        """Log odds of ``classes_[1]`` for each row, (n,); with more than two classes linear predictors, (n, K)."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(all="ignore"):  # a row may contain infinities
            t = np.asarray(rows @ self.coef_.T + self.intercept_)
        return t if len(self.classes_) > 2 else t[:, 0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class of each row."""
        t = self.decision_function(X)
        return np.asarray(self.classes_[np.argmax(t, axis=1) if t.ndim > 1 else (t > 0).astype(np.intp)])

    def predict_proba(self, X: ArrayLike) -> Values:
        """Probabilities of the classes for each row, (n, 2) or (n, K)."""
        t = self.decision_function(X)
        return np.column_stack([expit(-t), expit(t)]) if t.ndim == 1 else np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Values:
        """Log probabilities of the classes for each row, (n, 2) or (n, K)."""
        t = self.decision_function(X)
        if t.ndim == 1:
            return np.column_stack([log_expit(-t), log_expit(t)])
        with np.errstate(all="ignore"):  # of a row with infinities
            return np.asarray(log_softmax(t, axis=1))


_METHODS = {"sums": "_sums", "blocks": "_blocks", "local": "_descend"}


def _split(theta: Values, d: int) -> tuple[Values, Values]:
    """Return the slopes, (1, d), and the intercept, (1,), of d coefficients and perhaps an intercept."""
    return theta[None, :d], theta[d:] if len(theta) > d else np.zeros(1)
