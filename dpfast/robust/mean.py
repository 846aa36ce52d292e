"""Location of records in d dimensions by a robust estimator of each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast.grid import Grid, grid_with, grids_within, natural_step
from dpfast.mechanisms.explanation import Explain, explained
from dpfast.random import RandomSource
from dpfast.robust.boxes import NestedBoxes
from dpfast.robust.columns import CoordinateWise
from dpfast.robust.independent import IndependentColumns
from dpfast.robust.range_free import RangeFreeBoxes
from dpfast.statistics import Median, RankStatistic
from dpfast.streaming import Chunks

METHODS = ("auto", "boxes", "columns")


def robust_mean(
    X: ArrayLike | Chunks,
    *,
    epsilon: float,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    delta: float = 0.0,
    radius: float = 0.0,
    statistic: RankStatistic = Median(),  # noqa: B008  (frozen)
    scale: float | Sequence[float] | None = None,
    transform: ArrayLike | None = None,
    method: str = "auto",
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
    bounds : pair of floats, or d pairs
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
        Public scales of the coordinates: `radius`, `width` and the corner of `Huber` are multiples of them. Default: 1.
    transform : array_like of shape (d, d), optional
        A public invertible matrix A, for example a rotation or whitening. The release, its bounds and its steps are for
        the records A x; the inverse of A maps the release back.
    method : str
        With bounds: "boxes", a pure release by `NestedBoxes`; "columns", independent releases of the columns by
        `dpfast.robust.IndependentColumns`; "auto" takes the one with less expected noise, by d, epsilon and delta:
        boxes for delta = 0, and for delta > 0 up to 10 to 30 columns.
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
    docs/proofs/nested-boxes.md, docs/proofs/independent-columns.md. The following is for boxes.
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
    >>> release = dpf.robust_mean(X, epsilon=1.0, delta=1e-9, step=2**-10, width=1.0)
    >>> bool(np.abs(release - [0, 1, 2, 3, 4]).max() < 0.25)
    True
    """
    delta, method = _checks.delta_down(delta), _checks.choice("method", method, METHODS)
    options: dict[str, Any] = {"epsilon": epsilon, "radius": radius, "scale": scale, "transform": transform}
    mechanism: CoordinateWise
    if bounds is None and grid is None:
        if step is None or width is None or not delta:
            raise TypeError(
                "give bounds=(lower, upper) or grid=Grid(...), public bounds on the values; or, without bounds, "
                "delta > 0, step and width"
            )
        if missing is not None:
            raise TypeError("missing is for bounds= or grid=: without bounds NaN counts as 0")
        mechanism = RangeFreeBoxes(statistic, step=step, width=width, delta=delta, **options)
    else:
        if step is not None or width is not None:
            raise TypeError("step and width are for releases without bounds: give a grid for the step")
        if bounds is not None and grid is not None:
            raise TypeError("give either bounds=(lower, upper) or grid=Grid(...), not both")
        given = grids_within(bounds, natural_step(X) if transform is None else None) if grid is None else grid
        options["grid"] = grid_with(given, missing)
        mechanism = NestedBoxes(statistic, **options)
        if method == "columns" or (method == "auto" and delta):
            X, d = _with_dimension(X)
            columns = IndependentColumns(statistic, dimension=d, delta=delta, **options)
            mechanism = columns if method == "columns" or columns.favoured else mechanism
    release: NDArray[np.float64] | None = explained(mechanism, explain, X)(X, rng=rng, workers=workers)
    return release


def _with_dimension(X: ArrayLike | Chunks) -> tuple[ArrayLike | Chunks, int]:
    """The records and their public number of columns, by the first piece of `Chunks`."""
    if isinstance(X, Chunks):
        return X, _containers.matrix("X", next(iter(X), [])).shape[1]
    records = _containers.matrix("X", X)
    return records, records.shape[1]
