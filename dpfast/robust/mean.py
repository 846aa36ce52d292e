"""Location of records in d dimensions by a robust estimator of each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.choosing import Choice, Explain, explained
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, grid_with, grids_within, natural_step
from dpfast.core.types import Exact, Records
from dpfast.random import RandomSource
from dpfast.robust.boxes import NestedBoxes
from dpfast.robust.choice import by_errors, by_noise, methods
from dpfast.robust.columns import CoordinateWise
from dpfast.robust.independent import IndependentColumns
from dpfast.robust.range_free import RangeFreeBoxes
from dpfast.statistics import Median, RankStatistic
from dpfast.streaming import Chunks

METHODS = ("auto", "boxes", "columns", "depth", "whitened")
DISTRIBUTIONS = ("normal",)


def robust_mean(
    X: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    delta: Exact = 0.0,
    radius: float = 0.0,
    statistic: RankStatistic = Median(),  # noqa: B008  (frozen)
    scale: float | Sequence[float] | None = None,
    transform: ArrayLike | None = None,
    method: str = "auto",
    distribution: str | None = None,
    step: float | None = None,
    width: float | None = None,
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> NDArray[np.float64] | None:
    """Release the location of records in d dimensions, (epsilon, delta)-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Private data, a record in each row: floats, integers or booleans of any strides, never modified. NaN counts as
        the lower bound (without bounds as 0) unless `missing` says otherwise. n >= 1 and d >= 1 are public.
    epsilon : float
        Positive, for all coordinates together.
    bounds : pair (lower, upper), d pairs, or for frames a mapping from column names to pairs
        Public bounds in data units, chosen without knowledge of X; short for grids with these bounds, with step 1 if X
        has an integer or boolean dtype (and there is no `transform`).
    grid : Grid or d of them
        Instead of `bounds`.
    delta : float
        At least 0 with bounds; positive without bounds, where a test may fail (see Returns).
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value
        of the statistic scores as well as that value.
    statistic : RankStatistic
        The robust estimator of each coordinate: ``Median()``, ``TrimmedMean(0.1)``, ``Huber(2.0)``, or another one of
        `dpfast.statistics`. Without bounds it must be an order statistic.
    scale : float or d floats, optional
        Public scales of the coordinates: `radius`, `width` and the corner of
        `dpfast.statistics.Huber` are multiples of them. Default: 1.
    transform : array_like of shape (d, d), optional
        A public invertible matrix A, for example a rotation or whitening. The release, its bounds and its steps are for
        the records A x; the inverse of A maps the release back.
    method : str
        With bounds: "boxes", a pure release by `NestedBoxes`; "columns", independent releases of the columns by
        `dpfast.robust.IndependentColumns`; "depth", the point of greatest Tukey depth by `dpfast.robust.TukeyDepth`, a
        pure release for two columns, or for three columns of some thousand records; "whitened", medians of records that
        are whitened by private locations, scales and a covariance, which have half of epsilon, for correlated columns.
        "auto" takes boxes or columns, the one with less expected noise, by d, epsilon and delta: boxes for delta = 0,
        and for delta > 0 up to 10 to 30 columns; with `distribution` the method with the least expected error.
    distribution : "normal", optional
        An assumption for "auto": records are normal with some covariance, so that all methods estimate their mean. The
        errors of `dpfast.theory.medians_error` and `dpfast.theory.depth_error` are compared, in the Mahalanobis norm
        and averaged over correlations. Not for `Chunks`, nor with a radius, scale, transform or another statistic.
    step, width : float
        Instead of bounds: the granularity, a power of two, and a guess of the spread of the middle of the data in each
        coordinate. The test passes if most of the records are close together on the scale of `width`.
    missing : float, "lower" or "half", optional
        With bounds, what NaN and None become in each column: this value, clamped to the bounds; the lower bound; the
        lower and the upper bound in even and odd rows (from 0, in X or in each chunk; not with a `transform`, which
        `missing` follows). Not "drop", as the number of records is public. Default: that of `grid`, else "lower".
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the columns; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    ndarray of shape (d,), or None
        None, only without bounds, is the private failure of the test: try a larger `width` with a new budget.

    Raises
    ------
    TypeError
        Neither or both of `bounds` and `grid`, unless `step` and `width` replace them; data that are not numbers.
    ValueError
        A parameter out of range; X empty or of another shape; without bounds, too few records for the test to ever
        pass (the message states how many it needs).

    Notes
    -----
    Privacy: `NestedBoxes` or `dpfast.robust.IndependentColumns` with bounds, `dpfast.robust.RangeFreeBoxes` without;
    https://dpfast.readthedocs.io/en/latest/proofs/nested-boxes.html,
    https://dpfast.readthedocs.io/en/latest/proofs/independent-columns.html,
    https://dpfast.readthedocs.io/en/latest/proofs/tukey-depth.html. "whitened" makes four releases, each private given
    the ones before, and is charged once: 1/8 of epsilon for locations, 1/8 for scales, 1/4 and half of delta for the
    covariance, and the rest. It needs arrays of about 540 d / epsilon records or more. The following is for boxes.
    Below about n = 2 d log(size) / epsilon records the release is noise, a point anywhere in the bounds; for medians,
    more precisely, below n = 4 d log(bounds / spread) / epsilon, since "anywhere" has weight exp(-epsilon n / 4) times
    its volume. For much larger n, privacy moves each coordinate by about (d + 1) / (n epsilon f), f the density at its
    median, besides the sampling error, and a fraction of adversarial records moves it about as much as the medians.
    Cost: a selection in each column, about 0.4 times ``np.median(X, axis=0)``; memory for a few columns.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023, "Robustness implies privacy in statistical estimation"; Asi and Duchi
    2020; Dwork and Lei 2009 for the test without bounds.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> X = np.random.default_rng(0).normal(size=(20_000, 5)) + [0, 1, 2, 3, 4]
    >>> X[:2000] = 1e9
    >>> release = dpf.robust_mean(X, bounds=(-1e6, 1e6), epsilon=1.0)
    >>> bool(np.abs(release - [0, 1, 2, 3, 4]).max() < 0.25)
    True
    >>> Y = X[2000:, :2] @ [[1, 0.9], [0, 0.44]]
    >>> release = dpf.robust_mean(Y, bounds=(-1e6, 1e6), epsilon=1.0, distribution="normal", explain=True)
    method    expected error
    boxes     0.015
    whitened  0.0133
    depth     0.0123          taken
    columns                   it needs a delta
    Expected error: in standard deviations, of normal records.
    Taken: depth, because its expected error is the least.
    TukeyDepth release of the point of greatest depth on grids of 2 coordinates: epsilon = 1 (pure differential \
privacy) for one record replaced (the number of records is public).
    Missing records (NaN, None, null) count as -1000000, the lower bound.
    The mechanism's error(n, ...) predicts the error from public assumptions.
    >>> bool(np.abs(release - [0, 0.44]).max() < 0.1)
    True
    >>> release = dpf.robust_mean(X, epsilon=1.0, delta=1e-9, step=2**-10, width=1.0)
    >>> bool(np.abs(release - [0, 1, 2, 3, 4]).max() < 0.25)
    True
    """
    delta, method = checks.delta_down(delta), checks.choice("method", method, METHODS)
    if distribution is not None:
        checks.choice("distribution", distribution, DISTRIBUTIONS)
    options: dict[str, Any] = {"epsilon": epsilon, "radius": radius, "scale": scale, "transform": transform}
    mechanism: CoordinateWise
    choice: Choice | None
    if bounds is None and grid is None:
        if step is None or width is None or not delta:
            raise TypeError(
                "give bounds=(lower, upper) or grid=Grid(...), public bounds on the values; or, without bounds, "
                "delta > 0, step and width"
            )
        if method in ("depth", "whitened") or distribution is not None:
            raise TypeError("method='depth', method='whitened' and distribution= are for bounds= or grid=")
        if missing is not None:
            raise TypeError("missing is for bounds= or grid=: without bounds NaN counts as 0")
        mechanism, choice = RangeFreeBoxes(statistic, step=step, width=width, delta=delta, **options), None
    else:
        if step is not None or width is not None:
            raise TypeError("step and width are for releases without bounds: give a grid for the step")
        if bounds is not None and grid is not None:
            raise TypeError("give either bounds=(lower, upper) or grid=Grid(...), not both")
        given = grids_within(bounds, natural_step(X) if transform is None else None, X) if grid is None else grid
        options["grid"] = grid_with(given, missing)
        if method in ("depth", "whitened") or distribution is not None:
            if radius or scale is not None or transform is not None:
                raise TypeError(
                    "radius, scale and transform are for methods 'boxes' and 'columns', not for distribution="
                )
            if statistic != Median() and method != "whitened":
                raise TypeError(f"statistic must be Median() for method={method!r} with distribution={distribution!r}")
            return _affine(X, options["grid"], epsilon, delta, statistic, method, rng, workers, explain)
        mechanism, choice = NestedBoxes(statistic, **options), None
        if method == "columns" or (method == "auto" and delta):
            X, d = _with_dimension(X)
            columns = IndependentColumns(statistic, dimension=d, delta=delta, **options)
            choice = None if method == "columns" else by_noise(mechanism, columns)
            mechanism = columns if choice is None else choice.mechanism
    release: NDArray[np.float64] | None = explained(mechanism, explain, X, choice)(X, rng=rng, workers=workers)
    return release


def _affine(
    X: Any,
    grid: Grid | tuple[Grid, ...],
    epsilon: Exact,
    delta: Exact,
    statistic: RankStatistic,
    method: str,
    rng: RandomSource,
    workers: int,
    explain: Explain,
) -> NDArray[np.float64]:
    """Return a release by Tukey depth or of whitened records, or by the method with the least expected error."""
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    if isinstance(X, Chunks) and method != "depth":
        raise TypeError("give an array instead of Chunks: records are read several times, or counted for distribution=")
    X, d = _with_dimension(X)
    grids = (grid,) * d if isinstance(grid, Grid) else grid
    if len(grids) != d:
        raise ValueError(f"X must have {len(grids)} columns, like grid, not {d}")
    choice = by_errors(statistic, len(X), grids, epsilon, delta) if method == "auto" else None
    mechanism = methods(statistic, grids, epsilon, delta)[method]() if choice is None else choice.mechanism
    release: NDArray[np.float64] = explained(mechanism, explain, X, choice)(X, rng=rng, workers=workers)
    return release


def _with_dimension(X: Records | Chunks) -> tuple[Records | Chunks, int]:
    """Return the records and their public number of columns, by the first piece of `Chunks`."""
    if isinstance(X, Chunks):
        return X, containers.matrix("X", next(iter(X), [])).shape[1]
    records = containers.matrix("X", X)
    return records, records.shape[1]
