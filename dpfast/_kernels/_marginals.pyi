import numpy as np
from numpy import float64, int32, int64, uint16, uint32
from numpy.typing import NDArray

def count(
    codes: NDArray[uint16], bins: NDArray[int32], marginals: list[list[int]], out: NDArray[int64], *, workers: int = 1
) -> None: ...
def distances(
    counts: NDArray[int64],
    margins: NDArray[float64],
    starts: NDArray[int64],
    totals: NDArray[float64],
    pairs: NDArray[int64],
    out: NDArray[int64],
) -> None: ...
def fold(table: NDArray[float64], axes: NDArray[int64], out: NDArray[float64]) -> None: ...
def sweep(
    tables: list[NDArray[float64]],
    views: list[tuple[NDArray[int64], int]],
    steps: NDArray[int64],
    noisy: list[NDArray[float64]],
    potentials: list[NDArray[float64]],
    shifts: NDArray[float64],
    spreads: NDArray[float64],
    separators: list[NDArray[float64]],
    total: float,
    sweeps: int,
    tolerance: float,
) -> int: ...
def project(
    values: NDArray[float64],
    cells: int,
    margins: int,
    views: list[tuple[NDArray[int64], int]],
    up: NDArray[int64],
    down: NDArray[int64],
    groups: NDArray[int64],
    weights: NDArray[float64],
    total: float,
    sweeps: int,
    tolerance: float,
) -> int: ...
def draw(bit_generator: np.random.BitGenerator, weights: NDArray[float64], given: NDArray[uint32]) -> None: ...
