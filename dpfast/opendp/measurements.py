"""Any mechanism as a measurement of OpenDP, and the domain of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import opendp.prelude as dp
from numpy.typing import DTypeLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.rounding import double_up
from dpfast.mechanisms import Mechanism

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
        None if n is None else checks.whole("n", n, least=1),
        checks.whole("columns", columns),
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
    checks.reads_records(mechanism)
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
    values: NDArray[Any] = containers.numbers("x", x) if isinstance(x, list) else x
    if not arrays.hold(values):
        raise ValueError(f"the data are not in the input domain: they must be an array of {arrays}")
    return values
