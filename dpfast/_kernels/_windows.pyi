from typing import Any

import numpy as np
from numpy.typing import NDArray

def windows(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    firsts: NDArray[np.int64],
    lasts: NDArray[np.int64],
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    workers: int = 1,
) -> NDArray[np.float64] | None: ...
