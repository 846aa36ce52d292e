from numpy import float64
from numpy.typing import NDArray

def plane(
    root: NDArray[float64],
    theta: NDArray[float64],
    truth: NDArray[float64],
    room: NDArray[float64],
    out: NDArray[float64],
) -> None: ...
def clipped(
    axes: NDArray[float64],
    rest: NDArray[float64],
    clip: float,
    nodes: NDArray[float64],
    lengths: NDArray[float64],
    labels: NDArray[float64],
    slopes: NDArray[float64],
    out: NDArray[float64],
) -> None: ...
