from typing import Any

from numpy import int64
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
