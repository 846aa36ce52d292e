from typing import Any

from numpy import float64, int64
from numpy.typing import NDArray

def encode(
    values: NDArray[Any],
    out: NDArray[int64],
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    first: float,
    shift: int,
) -> None: ...
def encode_floats(
    values: NDArray[Any],
    out: NDArray[float64],
    *,
    lower: float,
    upper: float,
    missing: float,
    resolution: float,
    unit: float,
    origin: int,
    first: int,
    shift: int,
) -> None: ...
