from typing import Any

from numpy import int64, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def fill_box(
    bit_generator: BitGenerator, scales: NDArray[Any], out: NDArray[int64], *, exact: bool = False
) -> None: ...
def fill_ball(
    bit_generator: BitGenerator, scales: NDArray[Any], out: NDArray[int64], *, exact: bool = False
) -> None: ...
def fill_lattice_box(
    bit_generator: BitGenerator, scales: NDArray[Any], out: NDArray[int64], *, exact: bool = False
) -> None: ...
def gamma_of_words(words: NDArray[uint64]) -> tuple[float, float]: ...
def ball_unit_of_words(words: NDArray[uint64], d: int) -> tuple[float, float]: ...
