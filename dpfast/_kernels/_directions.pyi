from numpy import float64, uint64
from numpy.typing import NDArray

def randomize_halfspace(
    words: NDArray[uint64], x: NDArray[float64], inverse: float, threshold: int, reports: NDArray[uint64]
) -> None: ...
def randomize_vectors(
    words: NDArray[uint64],
    x: NDArray[float64],
    inverse: float,
    threshold: int,
    scale: float,
    out: NDArray[float64],
) -> None: ...
def expand(reports: NDArray[uint64], scale: float, out: NDArray[float64]) -> None: ...
def add_directions(reports: NDArray[uint64], scale: float, sums: NDArray[float64]) -> None: ...
def fill_caps(
    words: NDArray[uint64],
    x: NDArray[float64],
    inverse: float,
    heights: NDArray[float64],
    scale: float,
    out: NDArray[float64],
) -> None: ...
