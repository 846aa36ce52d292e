from numpy import float64, int64
from numpy.typing import NDArray

def slopes(
    x: NDArray[float64],
    y: NDArray[float64],
    turn: int,
    index: int,
    lower: float,
    upper: float,
    out: NDArray[float64],
) -> None: ...
def ends(places: NDArray[int64], lower: float, upper: float, out: NDArray[float64]) -> None: ...
