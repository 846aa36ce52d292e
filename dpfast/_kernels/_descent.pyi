from numpy import float64, int64, uint16, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

RUNS: int

def fill_pushes(first: int, scale: float, decay: float, out: NDArray[float64]) -> None: ...
def fill_powers(first: int, decay: float, powers: NDArray[float64], factors: NDArray[float64]) -> None: ...
def fill_coins(bit_generator: BitGenerator, threshold: int, lanes: NDArray[uint16], run: int, first: int) -> None: ...
def descend_together(
    lanes: NDArray[uint16],
    threshold: int,
    x: NDArray[float64],
    powers: NDArray[float64],
    factors: NDArray[float64],
    lean: float,
    lower: float,
    upper: float,
    missing: float,
    first: NDArray[int64],
    scale: NDArray[float64],
    theta: NDArray[float64],
    total: NDArray[float64],
) -> None: ...
def descend(
    bit_generator: BitGenerator,
    threshold: int,
    x: NDArray[float64],
    push: NDArray[float64],
    lean: float,
    lower: float,
    upper: float,
    missing: float,
    theta: NDArray[float64],
    total: NDArray[float64],
) -> None: ...
def ask(
    words: NDArray[uint64],
    threshold: int,
    x: NDArray[float64],
    theta: float,
    lower: float,
    upper: float,
    missing: float,
    evidence: NDArray[float64],
    enough: float,
    ones: int,
    zeros: int,
) -> tuple[int, int]: ...
