from numpy import float64, int64, uint8, uint16
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels._measures import Measure

LARGEST_GROUP: int

def by_label(
    labels: NDArray[int64], values: NDArray[float64], missing: float, offsets: NDArray[int64], out: NDArray[float64]
) -> None: ...
def count_ranges(labels: NDArray[int64], groups: int, shift: int, counts: NDArray[int64]) -> None: ...
def by_range(
    labels: NDArray[int64],
    values: NDArray[float64],
    missing: float,
    groups: int,
    shift: int,
    places: NDArray[int64],
    out_labels: NDArray[uint16],
    out: NDArray[float64],
) -> None: ...
def within_ranges(
    labels: NDArray[uint16],
    values: NDArray[float64],
    ends: NDArray[int64],
    first: int,
    stop: int,
    shift: int,
    offsets: NDArray[int64],
    scratch: NDArray[float64],
) -> None: ...
def sizes(offsets: NDArray[int64], out: NDArray[uint8]) -> None: ...
def powers(epsilon: float, out: NDArray[float64]) -> None: ...
def private_ranks(q: tuple[int, int, bool], n: int, low: NDArray[int64], high: NDArray[int64]) -> None: ...
def draw_quantiles(
    bit_generator: BitGenerator,
    values: NDArray[float64],
    offsets: NDArray[int64],
    start: int,
    out: NDArray[int64],
    *,
    epsilon: float,
    powers: NDArray[float64],
    cap: int,
    ranks: NDArray[int64] | None,
    q: tuple[int, int, bool] | None,
    radius: int,
    lower: float,
    upper: float,
    step: float,
    first: float,
    last: int,
    deep: bool,
    measure: Measure | None = None,
    flips: bool = False,
    exact: bool = False,
) -> int: ...
