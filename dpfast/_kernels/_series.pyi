from numpy import float64, int32, int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def add_counts(codes: NDArray[int64], multiplier: int, counts: NDArray[int64]) -> None: ...
def sums(
    counts: NDArray[int64],
    table: NDArray[int32],
    starts: NDArray[int64],
    strides: NDArray[int64],
    out: NDArray[int64],
) -> None: ...
def evaluate(
    cosines: NDArray[float64],
    sines: NDArray[float64],
    frequency: float,
    points: NDArray[float64],
    out: NDArray[float64],
) -> None: ...
def fill_density(
    bit_generator: BitGenerator,
    cells: NDArray[int32],
    cosines: NDArray[float64],
    sines: NDArray[float64],
    frequency: float,
    *,
    envelope: NDArray[float64],
    squeeze: NDArray[float64],
    size: int,
    first_code: int,
    step: float,
    out: NDArray[float64],
) -> int: ...
