from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Volumes:
    columns: int
    exponent: NDArray[np.int64]
    mantissa: NDArray[np.float64]
    def __init__(self, n: int) -> None: ...
    def add_ranges(self, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> None: ...
    def add_window(
        self,
        window: NDArray[np.float64],
        radius: float,
        last: int,
        lower: float,
        upper: float,
        step: float,
        first: float,
        kept_lower: NDArray[np.int64],
        kept_upper: NDArray[np.int64],
        kept: int,
    ) -> None: ...
    def merge(self, other: Volumes) -> None: ...
    def fill_levels(
        self,
        bit_generator: Any,
        epsilon: float,
        columns: Callable[[], Iterable[Sequence[int]]],
        out: NDArray[np.int64],
        *,
        exact: bool = False,
    ) -> None: ...

def fill_points(
    bit_generator: Any,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    levels: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None: ...
def transform(matrix: NDArray[np.float64], x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
