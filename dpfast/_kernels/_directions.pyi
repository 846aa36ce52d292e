import numpy as np
from numpy import float64, uint32, uint64
from numpy.typing import NDArray

def randomize_halfspace(
    words: NDArray[uint64], x: NDArray[float64], inverse: float, threshold: int, reports: NDArray[uint64]
) -> None: ...
def randomize_vectors(
    words: NDArray[uint64],
    x: NDArray[float64],
    inverse: float,
    threshold: int,
    scale: float,
    out: NDArray[float64],
) -> None: ...
def choose_directions(
    words: NDArray[uint64],
    ranks: NDArray[uint32],
    count: int,
    x: NDArray[float64],
    inverse: float,
    reports: NDArray[uint64],
) -> None: ...
def expand(reports: NDArray[uint64], signs: bool, scale: float, out: NDArray[float64]) -> None: ...
def add_directions(reports: NDArray[uint64], signs: bool, scale: float, sums: NDArray[float64]) -> None: ...
def have_length(
    vectors: NDArray[float64], factor: float, least: float, most: float, out: NDArray[np.bool_]
) -> None: ...
def add_vectors(vectors: NDArray[float64], factor: float, least: float, most: float, sums: NDArray[float64]) -> int: ...
def fill_caps(
    words: NDArray[uint64],
    x: NDArray[float64],
    inverse: float,
    heights: NDArray[float64],
    scale: float,
    out: NDArray[float64],
) -> None: ...
