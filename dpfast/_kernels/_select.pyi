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
def windows(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    low_ranks: tuple[int, int],
    high_ranks: tuple[int, int],
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    first: float,
    sums: bool = False,
    workers: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int] | None: ...
def moments(
    values: NDArray[np.floating[Any] | np.integer[Any] | np.bool_],
    *,
    lower: float,
    upper: float,
    step: float,
    missing: float,
    first: float,
    low: float = ...,
    high: float = ...,
    squares: bool = False,
    absent: bool = False,
    workers: int = 1,
) -> tuple[int, int, int]: ...
def doubles(values: Any, start: int, stop: int) -> NDArray[np.float64]: ...
def sample_positions(n: int, secret: int) -> list[int]: ...
