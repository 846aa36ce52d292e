from numpy import float64, int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def feasible(codes: NDArray[int64], count: int, n: int, k: int, level: int) -> bool: ...
def decay(y: float, length: float) -> float: ...
def choose(bit_generator: BitGenerator, weights: NDArray[float64], *, exact: bool = False) -> int: ...

class Band:
    part: float
    exponent: int
    states: int
    edges: NDArray[int64]
    def __init__(
        self,
        codes: NDArray[int64],
        size: int,
        count: int,
        n: int,
        k: int,
        level: int,
        rate: float,
        *,
        keep: bool = True,
    ) -> None: ...
    def draw(
        self, bit_generator: BitGenerator, *, exact: bool = False
    ) -> tuple[NDArray[int64], NDArray[int64], bool]: ...
    def odds(self, path: NDArray[int64]) -> list[tuple[float, NDArray[float64]]]: ...
