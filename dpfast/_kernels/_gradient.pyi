from collections.abc import Sequence

from numpy import float64, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def descend_halfspace(
    bit_generator: BitGenerator,
    threshold: int,
    model: int,
    clip: float,
    inverse: float,
    bound: float,
    x: NDArray[float64],
    y: NDArray[float64],
    push: NDArray[float64],
    theta: NDArray[float64],
    total: NDArray[float64],
    reports: NDArray[uint64],
) -> None: ...
def follow_directions(
    reports: NDArray[uint64], push: NDArray[float64], bound: float, theta: NDArray[float64], total: NDArray[float64]
) -> None: ...
def descend_hypercube(
    bit_generator: BitGenerator,
    threshold: int,
    k: int,
    inside: Sequence[int],
    outside: Sequence[int],
    model: int,
    clip: float,
    inverse: float,
    bound: float,
    x: NDArray[float64],
    y: NDArray[float64],
    push: NDArray[float64],
    theta: NDArray[float64],
    total: NDArray[float64],
    reports: NDArray[uint64],
) -> None: ...
def follow_signs(
    reports: NDArray[uint64],
    k: int,
    push: NDArray[float64],
    bound: float,
    theta: NDArray[float64],
    total: NDArray[float64],
) -> None: ...
