from fractions import Fraction
from typing import Any

from numpy import float64, int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels._measures import Measure

class RankDraw:
    def __init__(
        self,
        epsilon: float,
        radius: int,
        lower: float,
        upper: float,
        step: float,
        first: float,
        last: int,
        measure: Measure | None = None,
        *,
        levels: int = 0,
        records: int = 1,
        corner: int = 0,
        flips: bool = False,
        interpolates: bool = False,
        deep: bool = True,
        floats: dict[str, Any] | None = None,
    ) -> None: ...
    def draw(self, bit_generator: BitGenerator, window: NDArray[float64], *, exact: bool = False) -> int: ...
    def release(
        self, bit_generator: BitGenerator, values: NDArray[Any], first: int, last: int, missing: float, workers: int
    ) -> int: ...
    def release_between(
        self,
        bit_generator: BitGenerator,
        values: NDArray[Any],
        low: NDArray[int64],
        high: NDArray[int64],
        absent: int,
        missing: float,
        workers: int,
    ) -> int: ...

def fill(
    bit_generator: BitGenerator,
    lower: NDArray[int64],
    upper: NDArray[int64],
    epsilon: float,
    last: int,
    out: NDArray[int64],
    measure: Measure | None = None,
    depth: int = 0,
    *,
    exact: bool = False,
) -> None: ...
def fill_flips(
    bit_generator: BitGenerator,
    lower: NDArray[int64],
    upper: NDArray[int64],
    epsilon: float,
    last: int,
    out: NDArray[int64],
    measure: Measure | None = None,
    depth: int = 0,
    *,
    exact: bool = False,
) -> None: ...
def fill_interpolated(
    bit_generator: BitGenerator,
    low: NDArray[int64],
    high: NDArray[int64],
    epsilon: float,
    last: int,
    out: NDArray[int64],
    depth: int = 0,
    *,
    exact: bool = False,
) -> None: ...
def draw_coin(bit_generator: BitGenerator, exponent: Fraction, *, exact: bool = False) -> bool: ...
def shifted_sums(
    low: NDArray[int64], high: NDArray[int64], total: int, corner: int, lower: NDArray[int64], upper: NDArray[int64]
) -> None: ...
def difference_ranges(
    low: NDArray[int64], high: NDArray[int64], lower: NDArray[int64], upper: NDArray[int64]
) -> None: ...
def huber_ranges(
    codes: NDArray[int64],
    corner: int,
    last: int,
    lower: NDArray[int64],
    upper: NDArray[int64],
    rest: tuple[int, int, int, int, int, int] | None = None,
) -> None: ...
def count_cells(codes: NDArray[int64], shift: int, counts: NDArray[int64]) -> None: ...
def near_corners(
    codes: NDArray[int64], corner: int, least: int, greatest: int
) -> tuple[NDArray[int64], tuple[int, int, int, int, int, int]]: ...
def draw_groups(
    bit_generator: BitGenerator,
    values: NDArray[float64],
    offsets: NDArray[int64],
    start: int,
    out: NDArray[int64],
    *,
    kind: int,
    sizes: NDArray[int64],
    epsilon: float,
    corner: int,
    lower: float,
    upper: float,
    step: float,
    first: float,
    whole: int,
    measure: Measure | None = None,
    flips: bool = False,
    exact: bool = False,
) -> int: ...

SUM: int
DIFFERENCE: int
HUBER: int
