from numpy import float64, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def fill_pushes(first: int, scale: float, decay: float, out: NDArray[float64]) -> None: ...
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
