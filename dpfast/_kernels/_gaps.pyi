from collections.abc import Sequence

from numpy import float64, int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def weights(beta: float, ratio: float, most: int) -> NDArray[float64]: ...
def stretches(low: NDArray[int64], high: NDArray[int64], corners: bool, weights: NDArray[float64]) -> list[float]: ...

class GroupBound:
    def __init__(
        self,
        first: int,
        final: int,
        pairs: Sequence[tuple[int, int]],
        difference: bool,
        corner: int,
        discounts: NDArray[float64],
        scale: float,
        last: int,
    ) -> None: ...

def draw_groups(
    bit_generator: BitGenerator,
    values: NDArray[float64],
    offsets: NDArray[int64],
    start: int,
    out: NDArray[int64],
    bounds: list[GroupBound | None],
    *,
    slack: float,
    student: bool,
    lower: float,
    upper: float,
    step: float,
    first: float,
    whole: int,
) -> int: ...
