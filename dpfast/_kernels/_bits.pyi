from collections.abc import Sequence

import numpy as np
from numpy import float64, int64, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def randomize_majority(
    bit_generator: BitGenerator, x: NDArray[float64], inverse: float, threshold: int, out: NDArray[uint64]
) -> None: ...
def decide_ones(
    bit_generator: BitGenerator, favoured: bool, word: int, inside: Sequence[int], outside: Sequence[int]
) -> int: ...
def digits(edges: Sequence[int]) -> NDArray[uint64]: ...
def randomize_threshold(
    bit_generator: BitGenerator,
    x: NDArray[float64],
    inverse: float,
    threshold: int,
    k: int,
    inside: Sequence[int],
    outside: Sequence[int],
    out: NDArray[uint64],
) -> None: ...
def subsets(seeds: NDArray[uint64], d: int, out: NDArray[int64]) -> None: ...
def count_columns(reports: NDArray[uint64], counts: NDArray[int64], ones: NDArray[int64] | None = None) -> None: ...
def have_ones(reports: NDArray[uint64], d: int, weight: int, out: NDArray[np.bool_]) -> None: ...
def add_subsets(reports: NDArray[uint64], k: int, sums: NDArray[int64]) -> None: ...
