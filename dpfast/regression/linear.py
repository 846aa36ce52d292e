"""Linear regression in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from dpfast.choosing import Choice, Explain, Known, built, describe
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.traps import of_few_within_bounds, warn, warn_of
from dpfast.core.types import Bounds, Exact, Records
from dpfast.domains import Ball
from dpfast.random import RandomSource, bit_generator
from dpfast.regression.blocks import BlockFits
from dpfast.regression.bounds import ColumnBounds, given_bounds
from dpfast.regression.corrections import Corrections
from dpfast.regression.fit import Fit
from dpfast.regression.moments import GREATEST, RegressionMoments
from dpfast.regression.sequences import completed, records_for
from dpfast.regression.sized import PrivateNumber
from dpfast.streaming import Chunks, Labelled

METHODS = ("auto", "sums", "residuals", "blocks")
_REASONS = {
    "residuals": "noise in proportion to the residuals is less than noise in proportion to label_bound",
    "sums": "there are too few records to find the size of the residuals first, or sums have little noise",
}


@lru_cache(maxsize=256)
def _moments(labels: Ball, epsilon: float, intercept: bool, domain: Ball, delta: float) -> RegressionMoments:
    """Return the mechanism for checked parameters, which calls with these share."""
    return RegressionMoments(domain=domain, labels=labels, epsilon=epsilon, delta=delta, intercept=intercept)


def _noise_choice(gaussian: RegressionMoments, pure: RegressionMoments, n: int | None, d: int) -> Choice:
    """Return the choice of the noise on sums for d columns."""
    candidates = {"gaussian": gaussian, "pure": pure}
    taken, known = "pure" if gaussian.pure_is_quieter(d) else "gaussian", Known()
    if n:
        rows = {name: (float(made.noise_deviation(n, dimension=d)[0, d]),) for name, made in candidates.items()}
        known = Known(("noise",), rows, "Noise: standard deviation on the mean product of a column and the label.")
    return Choice(candidates, taken, f"its noise has less deviation for {d} columns", known=lambda: known)


def _corrections(sums: RegressionMoments, n: int, d: int) -> Corrections:
    """Return the sequence for the guarantee of the sums, with the noise that has less deviation for it."""
    assert sums.epsilon is not None
    public: dict[str, Any] = {"n": n, "d": d, "domain": sums.domain, "labels": sums.labels}
    public["intercept"] = sums.intercept
    pure = Corrections(privacy=Privacy(sums.epsilon), **public)
    if not sums.delta:
        return pure
    gaussian = Corrections(privacy=Privacy(sums.epsilon, sums.delta), **public)
    return pure if pure.noise < gaussian.noise else gaussian


class Public(NamedTuple):
    """The checked public parameters of a linear regression, but for the domain of the rows."""

    method: str
    labels: Ball | None
    epsilon: float
    delta: float
    intercept: bool

    @classmethod
    def of(
        cls, method: str, label_bound: float | None, label_center: float, epsilon: Exact, delta: Exact, intercept: bool
    ) -> Public:
        """Check parameters."""
        checks.choice("method", method, METHODS)
        if label_bound is None:
            if method in ("sums", "residuals"):
                raise TypeError(f"label_bound must be given for method={method!r}: public, chosen without the labels")
            if checks.real("label_center", label_center):
                raise ValueError("label_center must be 0 without label_bound")
        labels = None if label_bound is None else Ball(label_bound, center=label_center)
        amounts = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
        return cls("blocks" if labels is None else method, labels, *amounts, checks.flag("intercept", intercept))

    def sums(self, domain: Ball, delta: float) -> RegressionMoments:
        """Return the release of sums."""
        assert self.labels is not None
        return _moments(self.labels, self.epsilon, self.intercept, domain, delta)

    def blocks(self, domain: Ball) -> BlockFits:
        """Return the release of the median of fits of blocks."""
        return BlockFits(domain, epsilon=self.epsilon, intercept=self.intercept)

    def check(self, domain: Ball, columns: ColumnBounds | None = None) -> None:
        """Reject parameters that no number of records and columns makes good, and warn of traps."""
        if self.method == "blocks":
            return warn_of(self.blocks(domain))
        sums = self.sums(domain, self.delta)
        if columns is not None:
            largest = GREATEST * sums.labels.radius * columns.size
            checks.finite_scale(largest * largest)
        return warn_of(sums)

    def chosen(self, domain: Ball, n: int, d: int) -> Choice:
        """Return the choice of the method for n records of d columns."""
        if self.method == "blocks":
            return Choice({"blocks": self.blocks(domain)}, "blocks", "labels have no bound")
        sums, method = self.sums(domain, self.delta), self.method
        builders = {"sums": lambda: sums, "residuals": lambda: _corrections(sums, n, d)}
        candidates, limits = built(builders, "sums" if method == "auto" else method)
        corrections = candidates.get("residuals")
        if method == "auto":
            method = "residuals" if corrections is not None and corrections.useful else "sums"
        if sums.pure_is_quieter(d):
            candidates["sums"] = self.sums(domain, 0.0)
        return Choice(candidates, method, _REASONS[method], limits=limits)

    def warn_of_few(self, choice: Choice, domain: Ball, n: int, d: int) -> None:
        """Warn if n records are few for sums, or for corrections of them; fits of blocks warn by themselves."""
        if choice.method != "blocks":
            warn(of_few_within_bounds(n, self.sums(domain, self.delta).enough_for(d), "epsilon", self.epsilon))
        if self.method == "residuals":
            warn(choice.mechanism.few_records())

    def explanation_of(self, choice: Choice, domain: Ball, n: int, d: int) -> Choice | None:
        """Return the choice to explain: of the noise, for sums; None if there was none."""
        if choice.method != "sums":
            return choice
        gaussian, pure = self.sums(domain, self.delta), self.sums(domain, 0.0)
        return _noise_choice(gaussian, pure, n, d) if self.delta else None


_shared_choice = lru_cache(maxsize=32)(Public.chosen)  # for a public number of records; for large d, megabytes each


def fitted(made: Any, records: Labelled | Chunks, n: int, *, rng: RandomSource, workers: int) -> Fit:
    """Release a regression by the method that was chosen: `RegressionMoments`, `Corrections` or `BlockFits`."""
    if isinstance(made, Corrections):
        return completed(made, records, rng=rng, workers=workers)
    fit: Fit = made.fit(made(records, rng=rng, workers=workers), n)
    return fit


def linear_regression(
    X: Any,
    y: Records | None = None,
    *,
    radius: float | None = None,
    bounds: Bounds | None = None,
    label_bound: float | None = None,
    epsilon: Exact,
    delta: Exact = 0.0,
    method: str = "auto",
    intercept: bool = True,
    center: float | Sequence[float] = 0.0,
    label_center: float = 0.0,
    neighbors: str = "replace-one",
    missing: str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Fit:
    """Release a linear regression, (epsilon, delta)-differentially private for one replaced record (row and label).

    Parameters
    ----------
    X : array_like of shape (n, d), or Chunks
        Private rows: floats, integers or booleans of any strides, a pandas, polars or Arrow table; never modified. n >=
        1 and d >= 1 are public. Also `dpfast.Chunks` of pairs (X, y) or of tables whose last column is y, with ``y``
        left out.
    y : array_like of shape (n,)
        Private labels.
    radius : float
        Public bound on the distance of a row from the center, in the l2 norm, chosen without knowledge of the data;
        rows farther away are moved to it. The noise grows with it: scale columns to similar, public ranges first, or
        give bounds in place of it.
    bounds : pair (lower, upper), d pairs, or for frames a mapping from column names to pairs
        Public, in place of radius and center, chosen without knowledge of the data. Columns are clamped to them and
        scaled to [-1, 1], so that their units do not matter. Within 2**100 in magnitude, and at least 2**-99 apart.
    label_bound : float, optional
        Public bound on the distance of a label from the label center; labels farther away are moved to it in the sums.
        The noise of sums grows with it; that of corrections hardly does, unless there are few records.
    epsilon : float
        Positive.
    delta : float
        0 for a pure guarantee. Positive: Gaussian noise, if public numbers say that its deviation is less than that of
        pure noise, which is spent without delta: at epsilon = 1, delta = 1e-6 from six columns on.
    method : {"auto", "sums", "residuals", "blocks"}
        "sums": least squares from one release of sums of products, with noise in proportion to `label_bound`.
        "residuals": sums, then two corrections by clipped gradients, with noise in proportion to the size of the
        residuals, which is released before (`dpfast.regression.Corrections`): 2 to 50 times closer if there are enough
        records. It estimates the coefficients of Huber's loss: those of least squares if errors are symmetric or
        independent of the columns; of other errors, such as labels 0 and 1, as far as the released numbers show a
        difference, moved towards those of least squares. Where they show residuals of unequal spread or with long
        tails, its target is least squares. With few records, of epsilon times n below some thousands, they may not show
        it, and intervals then miss least squares: take "sums" where means are wanted, of skewed or heteroscedastic
        labels. "auto": residuals if there are enough records for their size and for the second moments, by n, the
        number of columns, epsilon and delta, and unless sums have little noise.
        "blocks", and the default without `label_bound`: the median of fits of disjoint blocks of records, without
        delta, standard errors, and bounds of the labels (`dpfast.regression.BlockFits`); 1.5 times as far from the
        coefficients as corrections with a `label_bound` that is ten times too wide.
    intercept : bool
        False: the fit goes through the centers, or the middle of the bounds, with less noise.
    center : float or d floats
        Public: a guess of the mean of the rows.
    label_center : float
        Public: a guess of the mean of the labels.
    neighbors : {"replace-one", "add-remove"}
        "add-remove": the number of records is private. A tenth of epsilon releases it with noise, and the fit is to a
        random sample of as many, as for `dpfast.Resized`. `Chunks` are then in memory together.
    missing : {None, "drop"}
        "drop": records with NaN in the row or the label are left out; only for "add-remove".
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Fit
        With `coefficients`, `intercept`, `standard_errors`, `interval` and `predict`. Always finite, but for standard
        errors of "blocks", which are NaN.
        Where the noise hides a direction of the rows, as for strongly correlated columns, coefficients are moved
        towards 0 along it; standard errors include this, so that intervals become wide there, and conservative. In
        simulations with correlations of 0.8 to 0.95 of two columns and with slopes that nearly cancel, 92 % or more of
        the intervals of 95 % hold the coefficient. Those of corrections hold 93 to 97 % where n epsilon is some
        hundreds of times the number of columns, and more where labels are much larger than their errors.

    Raises
    ------
    TypeError, ValueError
        Parameters of a wrong type or out of range, X empty or of a wrong shape, X and y of different lengths; never
        because of the values in X and y.

    Notes
    -----
    Missing values: a record with NaN counts as one at both centers, unless it is left out; with bounds,
    an infinity in a row is at a bound.
    Privacy: one release by `RegressionMoments`, of which the fit is post-processing (`RegressionMoments.fit`); or three
    to six by `dpfast.regression.Corrections`, charged together, once; or one by `dpfast.regression.BlockFits`.
    Target: least squares for sums, also where residuals are large for the labels. Otherwise corrections have that of
    Huber's loss for residuals that spread alike for all rows, and nearly that of least squares where released numbers
    show that they do not, as those of pay.
    Cost: one pass over X; for 20 columns 1.6 times ``X.T @ X`` on one thread; or five or six passes. Chunks of unknown
    length are counted before. Bounds copy X, in pieces.

    References
    ----------
    Wang 2018, "Revisiting differentially private linear regression: optimal and adaptive prediction and estimation in
    unbounded domain"; Bernstein and Sheldon 2019, "Differentially private Bayesian linear regression".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (50_000, 2))
    >>> y = 3 + X @ [1.0, -2.0] + rng.normal(size=50_000)
    >>> fit = dpf.linear_regression(X, y, radius=1.5, label_bound=6.0, label_center=3.0, epsilon=1.0)
    >>> bool(np.abs(fit.coefficients - [1, -2]).max() < 0.1), bool(abs(fit.intercept - 3) < 0.1)
    (True, True)
    >>> fit.interval(0.95).shape, fit.predict([[0.5, 0.5]]).shape
    ((2, 2), (1,))
    >>> ages, incomes = 18 + 60 * rng.random(50_000), 1e5 * rng.random(50_000)
    >>> bounds = [(18, 90), (0, 150_000)]
    >>> fit = dpf.linear_regression(
    ...     np.column_stack([ages, incomes]), ages / 10 + incomes / 1e4, bounds=bounds, label_bound=20.0, epsilon=1.0
    ... )
    >>> bool(np.abs(fit.coefficients * [10, 1e4] - 1).max() < 0.1)
    True
    """
    columns = given_bounds(X, bounds, radius, center)
    domain = Ball(cast(float, radius), center=center) if columns is None else columns.domain()
    private = PrivateNumber.of(neighbors, missing, epsilon, delta)
    public = Public.of(method, label_bound, label_center, private.rest if private else epsilon, delta, intercept)
    bit_generator(rng)
    public.check(domain, columns)
    records, n, d, names = records_for(X, y)
    if columns is not None:
        domain = columns.domain(d)

    def released(records: Labelled | Chunks, choice: Choice, n: int) -> Fit:
        records = records if columns is None else columns.scaled(records)
        fit = replace(fitted(choice.mechanism, records, n, rng=rng, workers=workers), names=names)
        return fit if columns is None else columns.in_data_units(fit)

    if private is not None:
        return private.fit(
            records,
            lambda n: public.chosen(domain, n, d),
            lambda sample, n: released(sample, public.chosen(domain, n, d), n),
            label="linear regression",
            rng=rng,
            explain=explain,
        )
    choice = _shared_choice(public, domain, checks.records(n), d)
    public.warn_of_few(choice, domain, n, d)
    if explain is not False:
        describe(choice.mechanism, explain, n, public.explanation_of(choice, domain, n, d))
    return released(records, choice, n)
