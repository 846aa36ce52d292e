"""Linear regression in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

from dpfast.choosing import Choice, Explain, Known, built, describe
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.traps import warn_of
from dpfast.core.types import Bounds, Exact, Records
from dpfast.domains import Ball
from dpfast.random import RandomSource, bit_generator
from dpfast.regression.bounds import given_bounds
from dpfast.regression.corrections import Corrections
from dpfast.regression.fit import Fit
from dpfast.regression.moments import GREATEST, RegressionMoments
from dpfast.regression.sequences import completed, records_for

METHODS = ("auto", "sums", "residuals")


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


def _method_choice(sums: RegressionMoments, method: str, n: int, d: int) -> Choice:
    """Return the choice between one release of sums and corrections by the size of the residuals."""
    builders = {"sums": lambda: sums, "residuals": lambda: _corrections(sums, n, d)}
    candidates, limits = built(builders, "sums" if method == "auto" else method)
    corrections = candidates.get("residuals")
    if method == "auto":
        method = "residuals" if corrections is not None and corrections.useful else "sums"
    reasons = {
        "residuals": "noise in proportion to the residuals is less than noise in proportion to label_bound",
        "sums": "there are too few records to find the size of the residuals first",
    }
    return Choice(candidates, method, reasons[method], limits=limits)


def linear_regression(
    X: Any,
    y: Records | None = None,
    *,
    radius: float | None = None,
    bounds: Bounds | None = None,
    label_bound: float,
    epsilon: Exact,
    delta: Exact = 0.0,
    method: str = "auto",
    intercept: bool = True,
    center: float | Sequence[float] = 0.0,
    label_center: float = 0.0,
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
    label_bound : float
        Public bound on the distance of a label from the label center; labels farther away are moved to it in the sums.
        The noise of sums grows with it; that of corrections hardly does, unless there are few records.
    epsilon : float
        Positive.
    delta : float
        0 for a pure guarantee. Positive: Gaussian noise, if public numbers say that its deviation is less than that of
        pure noise, which is spent without delta: at epsilon = 1, delta = 1e-6 from six columns on.
    method : {"auto", "sums", "residuals"}
        "sums": least squares from one release of sums of products, with noise in proportion to `label_bound`.
        "residuals": sums, then two corrections by clipped gradients, with noise in proportion to the size of the
        residuals, which is released before (`dpfast.regression.Corrections`): 2 to 50 times closer if there are enough
        records. It estimates the coefficients of Huber's loss: those of least squares if errors are symmetric or
        independent of the columns; of other errors, such as labels 0 and 1, as far as the released numbers show a
        difference, moved towards those of least squares. "auto": residuals if there are enough records for their size
        and for the second moments, by n, the number of columns, epsilon and delta, and unless sums have little noise.
    intercept : bool
        False: the fit goes through the centers, or the middle of the bounds, with less noise.
    center : float or d floats
        Public: a guess of the mean of the rows.
    label_center : float
        Public: a guess of the mean of the labels.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Fit
        With `coefficients`, `intercept`, `standard_errors`, `interval` and `predict`. Always finite.
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
    Missing values: a record with NaN or an infinity counts as one at both centers; with bounds, an infinity in a row
    is at a bound.
    Privacy: one release by `RegressionMoments`, of which the fit is post-processing (`RegressionMoments.fit`); or five
    by `dpfast.regression.Corrections`, charged together, once.
    Cost: one pass over X; for 20 columns 1.6 times ``X.T @ X`` on one thread; or five passes. Chunks of unknown length
    are counted before. Bounds copy X, in pieces.

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
    checks.choice("method", method, METHODS)
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    made = partial(_moments, Ball(label_bound, center=label_center), epsilon, checks.flag("intercept", intercept))
    mechanism = made(domain, delta)
    if columns is not None:
        largest = GREATEST * mechanism.labels.radius * columns.size
        checks.finite_scale(largest * largest)
    bit_generator(rng)
    warn_of(mechanism)
    records, n, d, names = records_for(X, y)
    if columns is not None:
        domain, records = columns.domain(d), columns.scaled(records)
    choice = _method_choice(made(domain, delta), method, n, d)
    if choice.method == "residuals":
        warn_of(choice.mechanism)
        describe(choice.mechanism, explain, n, choice)
        fit = completed(choice.mechanism, records, rng=rng, workers=workers)
    else:
        mechanism = made(domain, 0.0 if mechanism.pure_is_quieter(d) else delta)
        describe(mechanism, explain, n, _noise_choice(made(domain, delta), made(domain, 0.0), n, d) if delta else None)
        fit = mechanism.fit(mechanism(records, rng=rng, workers=workers), n)
    fit = replace(fit, names=names)
    return fit if columns is None else columns.in_data_units(fit)
