"""`release`: a release of the records in columns of a Spark frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

from dpfast.aggregate import SampleAndAggregate
from dpfast.core import checks
from dpfast.core.spending import spending_together
from dpfast.mechanisms import Mechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.spark import counting, states
from dpfast.spark.frames import ChosenColumns
from dpfast.streaming.state import Planned


def release(
    mechanism: Mechanism,
    frame: Any,
    columns: str | Sequence[str],
    *,
    y: str | None = None,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
    mergers: SupportsIndex = 8,
) -> Any:
    """Release a central mechanism on columns of a Spark frame, as for the same records in memory.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism with a state (`Mechanism.start`).
    frame : pyspark.sql.DataFrame
        Private records, one in each row, of a classic session or of Spark Connect.
    columns : str or sequence of str
        The column of the records, or the columns of records that are rows. Booleans, integers, floats or doubles, which
        the schema says; null and NaN are missing. Cast decimals to double.
    y : str, optional
        The column of the labels, for a mechanism of records with labels. Default: the last one of `columns`.
    size, rng
        See `Mechanism.release`.
    mergers : int
        Number of tasks that merge states, each of which sends one state to the driver.

    Returns
    -------
    Any
        See `Mechanism.release`.

    Raises
    ------
    TypeError, ValueError
        Before anything is charged: a wrong parameter; a column that is not in the schema, or has another type;
        ``missing="half"`` and `SampleAndAggregate`, for which records need positions; errors of the mechanism. Later: a
        public number of records that the mechanism does not support; a frame that differs from pass to pass.

    Notes
    -----
    Privacy: that of `mechanism`. Spark has access to the records, as it must, and to states and counts of codes, which
    are PRIVATE. The release is drawn on the driver. With a `dpfast.Ledger` it is charged before anything is computed.
    A task that Spark repeats returns the same state. All passes must read the same records: persist a frame that is
    random, or expensive to compute.
    Cost: order statistics and sums of one column on a `Grid` are counted by Spark's own engine, up to 2**36 records:
    one query for a mean, or for a grid of at most 2**16 points. For order statistics the first 2**16 records show where
    the wanted ranks are, and two scans count the records around them; of a frame in another order, such as a sorted
    one, a query for every 14 bits of a code counts cells. Other mechanisms run in Python on the workers, which need
    dpfast: one query for each pass of the mechanism.

    Examples
    --------
    >>> import dpfast as dpf, dpfast.spark
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> frame = spark.range(100_001).selectExpr("id / 1000 AS age")  # doctest: +SKIP
    >>> 49 < dpfast.spark.release(median, frame, "age") < 51  # doctest: +SKIP
    True
    """
    # Invalid parameters are rejected before anything is charged.
    shape = None if size is None else checks.shape(size)
    times = math.prod(shape or ())
    source = bit_generator(rng)
    tasks = checks.whole("mergers", mergers, least=1)
    chosen = ChosenColumns.of(frame, columns, y)
    check(mechanism, chosen)
    with spending_together((mechanism.cost._replace(times=times),), of=(mechanism,)):
        plan, summary = _read(mechanism, chosen, tasks)
        return plan.draw_from(summary, source) if shape is None else plan.draws(summary, shape, source)


def check(mechanism: Mechanism, chosen: ChosenColumns) -> None:
    """Raise the errors of a mechanism for records of these columns."""
    if isinstance(mechanism, SampleAndAggregate):
        raise TypeError(
            "SampleAndAggregate forms blocks by the positions of records, and rows of a Spark frame have none: use "
            "dpfast.dask, or dpfast.Chunks of the files"
        )
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a dpfast.Mechanism, not {type(mechanism).__name__}")
    if mechanism.ordered:
        raise ValueError(
            'missing="half" depends on the positions of records, and rows of a Spark frame have none: use a number, or '
            'missing="drop"'
        )
    states.blank(mechanism, chosen)


def _read(mechanism: Mechanism, chosen: ChosenColumns, mergers: int) -> tuple[Planned, Any]:
    """Return the plan for the records of a frame, and their summary. PRIVATE."""
    if counting.counted(mechanism, chosen):
        return counting.summary(mechanism, chosen)
    state = states.read(mechanism, chosen, mergers)
    return state.plan(), state.summary()
