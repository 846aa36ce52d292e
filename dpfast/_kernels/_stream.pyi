from typing import Any

import numpy as np
from numpy.typing import NDArray

def count(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    counts: NDArray[np.uint32],
    shift: int,
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    first: float,
) -> None: ...
def refine(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    any: NDArray[np.uint8],
    levels: list[tuple[NDArray[np.int32], int]],
    counts: NDArray[np.uint32],
    room: NDArray[np.int64],
    shift: int,
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    first: float,
) -> int: ...
