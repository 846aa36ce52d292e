from collections.abc import Sequence
from fractions import Fraction

from numpy import float64, int64, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def largest(scores: NDArray[float64]) -> float: ...
def below_largest(scores: NDArray[int64] | NDArray[uint64]) -> NDArray[float64]: ...
def exponents(scores: NDArray[float64], rate: float) -> NDArray[float64]: ...
def fill_choice(
    bit_generator: BitGenerator,
    scores: NDArray[float64],
    rate: float,
    exponents: Sequence[Fraction | float],
    out: NDArray[int64],
    *,
    exact: bool = False,
) -> None: ...
def fill_permute_and_flip(
    bit_generator: BitGenerator,
    scores: NDArray[float64],
    rate: float,
    exponents: Sequence[Fraction | float],
    out: NDArray[int64],
    *,
    exact: bool = False,
) -> None: ...
