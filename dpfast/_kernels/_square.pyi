from numpy import float64
from numpy.typing import NDArray

def maximise(
    counts: NDArray[float64],
    width: int,
    inside: float,
    outside: float,
    span: int,
    tolerance: float,
    most: int,
    density: NDArray[float64],
) -> float: ...
