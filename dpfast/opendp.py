"""Mechanisms of dpfast as OpenDP measurements: chained, composed and budgeted there, with the speed of dpfast.

    >>> import numpy as np, opendp.prelude as dp
    >>> import dpfast.opendp as dpf_opendp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dpf_opendp.array_domain(1000), dp.change_one_distance()
    >>> median = dpf_opendp.make_median(*space, 1.0, bounds=(0, 100))
    >>> 40 <= median(np.linspace(0, 100, 1000)) <= 60
    True
    >>> median.map(3)
    3.0

Both features are required because OpenDP cannot verify a measurement from outside; by enabling them, you trust this
module. It guarantees `Mechanism.privacy_map`, and that dtype, shape and number of records are checked before a
mechanism receives the data, since OpenDP does not check them at a release. See
https://dpfast.readthedocs.io/en/latest/guides/opendp.html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import opendp.prelude as dp
from numpy.typing import DTypeLike, NDArray

from dpfast import _checks, _containers
from dpfast.densities import PerturbedHistogram
from dpfast.grid import Grid, Points, grids_within, unbounded
from dpfast.mechanisms import InverseSensitivity, Mechanism, Quantiles
from dpfast.robust import NestedBoxes
from dpfast.rounding import double_up
from dpfast.statistics import Mean, Median, Quantile, RankStatistic, TrimmedMean

__all__ = [
    "array_domain",
    "make_histogram",
    "make_mean",
    "make_measurement",
    "make_median",
    "make_quantile",
    "make_quantiles",
    "make_robust_mean",
    "make_trimmed_mean",
    "register",
]

# Number of records that differ between neighbours at distance d, for the mechanisms of each relation. In data sets of
# equal size, symmetric distance counts each replaced record twice.
_DISTANCES: dict[str, dict[str, Callable[[int], int]]] = {
    "replace-one": {
        "ChangeOneDistance": lambda d: d,
        "HammingDistance": lambda d: d,
        "SymmetricDistance": lambda d: d // 2,
        "InsertDeleteDistance": lambda d: d // 2,
    },
    "add-remove": {
        "ChangeOneDistance": lambda d: 2 * d,
        "HammingDistance": lambda d: 2 * d,
        "SymmetricDistance": lambda d: d,
        "InsertDeleteDistance": lambda d: d,
    },
}


# Metrics that respect the order of records; for the other metrics, the order may differ at distance 0.
_IN_PLACE = ("HammingDistance",)


@dataclass(frozen=True)
class Arrays:
    """The properties of the arrays in a domain; None if unspecified.

    Attributes
    ----------
    n : int or None
        Number of records.
    columns : int or None
        0 for one-dimensional arrays.
    dtype : numpy.dtype or None
    """

    n: int | None
    columns: int | None
    dtype: np.dtype[Any] | None

    @classmethod
    def of(cls, domain: Any) -> Arrays:
        """Return the properties of an OpenDP domain: of vectors, of NumPy arrays, or an `array_domain`."""
        if str(domain.type).startswith("VectorDomain"):
            return cls(domain.size, 0, None)
        about: Any = domain.descriptor if str(domain.carrier_type) == "ExtrinsicObject" else None
        if isinstance(about, Arrays):
            return about
        dtype = _DTYPES.get(str(getattr(about, "T", None)))
        if dtype is not None and hasattr(about, "num_columns"):
            return cls(about.size, about.num_columns, dtype)
        if dtype is not None and len(getattr(about, "shape", ())) in (1, 2):
            return cls(about.shape[0], 0 if len(about.shape) == 1 else about.shape[1], dtype)
        raise TypeError(
            "input_domain must be an array_domain of dpfast.opendp, a vector_domain, or a numpy.array2_domain or "
            f"arrayd_domain, not {domain}"
        )

    def hold(self, x: Any) -> bool:
        """Whether x is an array with these properties."""
        return (
            isinstance(x, np.ndarray)
            and x.dtype.kind in "biuf"
            and x.ndim == (2 if self.columns != 0 else 1)
            and self.n in (None, x.shape[0])
            and (not self.columns or x.shape[1] == self.columns)
            and (self.dtype is None or self.dtype == x.dtype)  # in NumPy, the dtype float64 equals None
        )

    def __str__(self) -> str:
        columns = "" if self.columns == 0 else f", columns={self.columns or 'any'}"
        return f"n={'any' if self.n is None else self.n}{columns}, dtype={self.dtype or 'any'}"


_DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "bool": np.dtype(np.bool_),
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
}


def array_domain(n: int | None = None, *, columns: int = 0, dtype: DTypeLike | None = np.float64) -> Any:
    """Return the domain of NumPy arrays of `n` records, which OpenDP passes on without conversion or copy.

    Parameters
    ----------
    n : int, optional
        The public number of records; None for any, with mechanisms of ``neighbors`` "add-remove" only.
    columns : int
        0 for one-dimensional arrays; else the number of columns of an array with a record in each row.
    dtype : dtype, optional
        A numeric dtype; None for any.

    Returns
    -------
    opendp.mod.Domain
        Domains with equal parameters are equal. NaN is allowed; it counts as ``grid.missing``.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from dpfast.opendp import array_domain
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> array_domain(1000, columns=3)
    dpfast.array_domain(n=1000, columns=3, dtype=float64)
    """
    arrays = Arrays(
        None if n is None else _checks.whole("n", n, least=1),
        _checks.whole("columns", columns),
        None if dtype is None else np.dtype(dtype),
    )
    if arrays.dtype is not None and arrays.dtype.kind not in "biuf":
        raise TypeError(f"dtype must be numeric, not {arrays.dtype}")
    return dp.user_domain(f"dpfast.array_domain({arrays})", arrays.hold, arrays)


def make_measurement(input_domain: Any, input_metric: Any, mechanism: Mechanism) -> Any:
    """Make an OpenDP measurement from any mechanism of dpfast that is not local.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        An `array_domain`, ``dp.numpy.array2_domain`` or ``arrayd_domain``, whose arrays are passed on unchanged; or a
        ``dp.vector_domain``, which passes lists and so costs 20 ns per record or more. OpenDP would include the numbers
        under a mask there: use domains of arrays for masked arrays, where masked records are missing. It must have a
        size, unless the mechanism keeps the number of records private.
    input_metric : opendp.mod.Metric
        ``dp.change_one_distance()`` or ``dp.hamming_distance()``; or ``dp.symmetric_distance()`` or
        ``dp.insert_delete_distance()``, where d // 2 records are replaced in data of public size. A mechanism that
        depends on the order of records, such as `dpfast.SampleAndAggregate`, requires ``dp.hamming_distance()``.
    mechanism : dpfast.Mechanism
        A mechanism on records; not a `dpfast.Selection`, which takes scores.

    Returns
    -------
    opendp.mod.Measurement
        Its release is that of the mechanism: a float, an array or another object. Its measure is
        ``dp.max_divergence()``, or ``dp.approximate(dp.max_divergence())`` if delta is positive. Its map is
        `Mechanism.privacy_map`, rounded up, monotone, and defined for every distance.

    Raises
    ------
    TypeError, ValueError
        If the mechanism takes scores, the domain lacks a public property, or the metric is not one of these. At a
        release: if the data are not in the domain; the message contains no data.

    Notes
    -----
    Privacy: `Mechanism.privacy_map`. Releases use the secure generator and may run in several threads.

    Examples
    --------
    >>> import numpy as np, opendp.prelude as dp, dpfast
    >>> from dpfast.opendp import array_domain, make_measurement
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> iqr = dpfast.InverseSensitivity(
    ...     dpfast.statistics.InterquartileRange(), grid=dpfast.Grid(0, 100), epsilon=0.5
    ... )
    >>> measurement = make_measurement(array_domain(1000), dp.symmetric_distance(), iqr)
    >>> [measurement.map(d) for d in range(5)]
    [0.0, 0.0, 0.5, 0.5, 1.0]
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a dpfast.Mechanism, not {type(mechanism).__name__}")
    _checks.reads_records(mechanism)
    arrays, privacy = Arrays.of(input_domain), mechanism.privacy
    if privacy.neighbors not in _DISTANCES:
        raise ValueError(f"a mechanism of neighbors={privacy.neighbors!r} is for one record: not a measurement")
    distances = _DISTANCES[privacy.neighbors]
    if mechanism.ordered:
        distances = {name: distances[name] for name in _IN_PLACE}
    changed = distances.get(str(input_metric).removesuffix("()"))
    if changed is None:
        known = ", ".join(distances)
        raise ValueError(f"input_metric must be one of {known}, not {input_metric}")
    if arrays.n is None and privacy.neighbors == "replace-one":
        raise ValueError("input_domain must have a size: the number of records is public, and checked at every release")

    def function(x: Any) -> Any:
        return mechanism(_member(arrays, x))

    def pure_map(d_in: int) -> float:
        return double_up(mechanism.privacy_map(changed(d_in)).epsilon)

    def approximate_map(d_in: int) -> tuple[float, float]:
        guarantee = mechanism.privacy_map(changed(d_in))
        return double_up(guarantee.epsilon), double_up(guarantee.delta)

    divergence = dp.max_divergence()
    measure, privacy_map = (dp.approximate(divergence), approximate_map) if privacy.delta else (divergence, pure_map)
    return dp.m.make_user_measurement(input_domain, input_metric, measure, function, privacy_map)


def _member(arrays: Arrays, x: Any) -> NDArray[Any]:
    """Return the data unchanged; a masked array keeps its mask."""
    values: NDArray[Any] = _containers.numbers("x", x) if isinstance(x, list) else x
    if not arrays.hold(values):
        raise ValueError(f"the data are not in the input domain: they must be an array of {arrays}")
    return values


def _inverse(
    statistic: RankStatistic, input_domain: Any, input_metric: Any, epsilon: float, bounds: Any, grid: Points | None
) -> Any:
    where = _grid(bounds, grid, input_domain, order_only=statistic.order_only)
    return make_measurement(input_domain, input_metric, InverseSensitivity(statistic, grid=where, epsilon=epsilon))


def _grid(bounds: Any, grid: Any, input_domain: Any, *, order_only: bool = False, several: bool = False) -> Any:
    """Return the grid of a measurement; without bounds, that of floats if the order of the records is enough."""
    if grid is not None and bounds is None:
        return grid
    dtype = Arrays.of(input_domain).dtype
    integers = dtype is not None and dtype.kind in "biu"
    if order_only and bounds is None:
        return unbounded(integers)
    if grid is not None or bounds is None:
        raise TypeError("give either bounds=(lower, upper) or grid=Grid(...): they are public and have no default")
    step = 1.0 if integers else None
    return grids_within(bounds, step) if several else Grid(*_checks.pair("bounds", bounds), step=step)


def make_median(
    input_domain: Any, input_metric: Any, epsilon: float, *, bounds: Any = None, grid: Points | None = None
) -> Any:
    """Make a measurement of the median, a float, by inverse sensitivity (`dpfast.InverseSensitivity`).

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        See `make_measurement`.
    input_metric : opendp.mod.Metric
        See `make_measurement`.
    epsilon : float
        Positive; for one replaced record. If omitted, a ``dp.Context`` finds the one that spends its budget.
    bounds : pair of floats, optional
        Public, in data units; short for ``grid=Grid(lower, upper)``, with step 1 if the domain has an integer dtype.
    grid : Grid or FloatGrid, optional
        Instead of `bounds`. Without both, see `dpfast.median`: quantiles alone need no bounds.
    """
    return _inverse(Median(), input_domain, input_metric, epsilon, bounds, grid)


def make_quantile(
    input_domain: Any, input_metric: Any, epsilon: float, *, q: float, bounds: Any = None, grid: Points | None = None
) -> Any:
    """Make a measurement of the q-quantile, a float, by inverse sensitivity. `q` in [0, 1]; else see `make_median`."""
    return _inverse(Quantile(q), input_domain, input_metric, epsilon, bounds, grid)


def make_quantiles(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    qs: Sequence[float],
    bounds: Any = None,
    grid: Points | None = None,
) -> Any:
    """Make a measurement of several quantiles, an array; epsilon in total (`dpfast.Quantiles`). See `make_median`."""
    mechanism = Quantiles(qs, grid=_grid(bounds, grid, input_domain, order_only=True), epsilon=epsilon)
    return make_measurement(input_domain, input_metric, mechanism)


def make_mean(
    input_domain: Any, input_metric: Any, epsilon: float, *, bounds: Any = None, grid: Grid | None = None
) -> Any:
    """Make a measurement of the mean, a float, by inverse sensitivity. Parameters: see `make_median`."""
    return _inverse(Mean(), input_domain, input_metric, epsilon, bounds, grid)


def make_trimmed_mean(
    input_domain: Any, input_metric: Any, epsilon: float, *, trim: float, bounds: Any = None, grid: Grid | None = None
) -> Any:
    """Make a measurement of the trimmed mean, without a fraction `trim` at each end, a float. See `make_median`."""
    return _inverse(TrimmedMean(trim), input_domain, input_metric, epsilon, bounds, grid)


def make_robust_mean(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    radius: float = 0.0,
) -> Any:
    """Make a measurement of a robust location, of shape (d,), of rows (`dpfast.NestedBoxes` of medians).

    Parameters: see `make_median`, with a domain of rows. `bounds` are a pair for all columns or one for each,
    and `grid` is one Grid or d of them; for `radius` see `dpfast.robust_mean`.
    """
    where = tuple(grid) if isinstance(grid, Sequence) else _grid(bounds, grid, input_domain, several=True)
    return make_measurement(
        input_domain, input_metric, NestedBoxes(Median(), grid=where, epsilon=epsilon, radius=radius)
    )


def make_histogram(
    input_domain: Any,
    input_metric: Any,
    epsilon: float,
    *,
    bins: int | Sequence[int],
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    neighbors: str | None = None,
) -> Any:
    """Make a measurement of a histogram, a `dpfast.Histogram` (`dpfast.densities.PerturbedHistogram`).

    Parameters: see `make_median`. `bins` applies to every column, or has one number per column; for 2 to 4 columns,
    `bounds` and `grid` may have one pair or Grid each. `neighbors` is by default "add-remove" for a domain without a
    size, else "replace-one".
    """
    where = tuple(grid) if isinstance(grid, Sequence) else _grid(bounds, grid, input_domain, several=True)
    if neighbors is None:
        neighbors = "add-remove" if Arrays.of(input_domain).n is None else "replace-one"
    mechanism = PerturbedHistogram(bins, grid=where, epsilon=epsilon, neighbors=neighbors)
    return make_measurement(input_domain, input_metric, mechanism)


def register() -> None:
    """Add the measurements to queries of ``dp.Context``, as ``dpfast_median`` and so on; may be called repeatedly.

    Examples
    --------
    >>> import numpy as np, opendp.prelude as dp, dpfast.opendp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> dpfast.opendp.register()
    >>> context = dp.Context.compositor(
    ...     data=np.linspace(0, 100, 1000),
    ...     privacy_unit=dp.unit_of(changes=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=2,
    ...     domain=dpfast.opendp.array_domain(1000),
    ... )
    >>> 30 <= context.query().dpfast_median(bounds=(0, 100)).release() <= 70
    True
    """
    for constructor in (
        make_histogram,
        make_mean,
        make_median,
        make_quantile,
        make_quantiles,
        make_robust_mean,
        make_trimmed_mean,
    ):
        with suppress(ValueError):  # already registered
            dp.register(constructor, "dpfast_" + constructor.__name__.removeprefix("make_"))
