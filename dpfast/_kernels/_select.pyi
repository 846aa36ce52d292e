from typing import Any

import numpy as np
from numpy.typing import NDArray

def window(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    first: int,
    last: int,
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    workers: int = 1,
) -> NDArray[np.float64]: ...
def sample_positions(n: int) -> list[int]: ...
