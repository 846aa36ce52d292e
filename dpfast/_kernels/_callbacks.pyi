from numpy import float64
from numpy.typing import NDArray

def evaluate(capsule: object, rows: bool, data: bool, points: NDArray[float64], out: NDArray[float64]) -> None: ...
