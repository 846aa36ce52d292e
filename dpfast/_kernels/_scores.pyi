from fractions import Fraction
from typing import Any

from numpy import float64, int64, uint8, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

class Pieces:
    def __init__(
        self,
        values: NDArray[Any],
        knots: NDArray[int64],
        levels: NDArray[int64],
        slopes: NDArray[int64],
        *,
        reach: int,
        rate: Fraction,
        last: int,
        lower: float,
        upper: float,
        step: float,
        missing: float,
        first: float,
        edges: NDArray[int64],
        center: int = 0,
        width: int = 0,
        workers: int = 1,
    ) -> None: ...
    def fill_cells(self, worker: int) -> NDArray[uint64]: ...
    def collect(self, worker: int, marked: NDArray[uint8], capacity: int) -> NDArray[int64]: ...
    def scan(self, left: int, right: int) -> tuple[int, int, NDArray[int64]]: ...
    def arrays(
        self,
    ) -> tuple[NDArray[int64], NDArray[int64], NDArray[int64], NDArray[float64], NDArray[float64]]: ...
    def fill(self, bit_generator: BitGenerator, out: NDArray[int64], *, exact: bool = False) -> None: ...
