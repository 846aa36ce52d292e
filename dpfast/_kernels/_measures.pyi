from collections.abc import Callable, Sequence

from numpy import int64
from numpy.typing import NDArray

MOST_PARTS: int

class Measure:
    last: int
    total: int
    least: int
    unit: int
    offset: int
    parts: Sequence[tuple[int, int, int]]
    table: Sequence[int] | None

    def __init__(
        self,
        last: int,
        unit: int = 1,
        offset: int = 0,
        parts: Sequence[tuple[int, int, int]] = (),
        table: Sequence[int] | None = None,
    ) -> None: ...
    def weights(self, lower: NDArray[int64], upper: NDArray[int64]) -> NDArray[int64]: ...
    def kinds(self, first: int, last: int) -> list[tuple[int, int]]: ...
    def code_of(self, weight: int, first: int, last: int, below: Callable[[int], int]) -> int: ...
