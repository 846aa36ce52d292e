from collections.abc import Callable, Sequence
from typing import Any

from numpy import float64, int64
from numpy.typing import NDArray

MOST_PARTS: int

class Magnitudes:
    def __init__(
        self,
        digits: int,
        slopes: NDArray[int64],
        points: NDArray[int64],
        more: NDArray[int64],
        made_by: tuple[Callable[..., Magnitudes], tuple[Any, ...]],
        *,
        fine: int = 11,
    ) -> None: ...

class Measure:
    last: int
    total: int
    least: int
    unit: int
    offset: int
    parts: Sequence[tuple[int, int, int]]
    table: Sequence[int] | None
    floats: Magnitudes | None

    def __init__(
        self,
        last: int,
        unit: int = 1,
        offset: int = 0,
        parts: Sequence[tuple[int, int, int]] = (),
        table: Sequence[int] | None = None,
        floats: Magnitudes | None = None,
    ) -> None: ...
    def weights(self, lower: NDArray[int64], upper: NDArray[int64]) -> NDArray[int64]: ...
    def kinds(self, first: int, last: int) -> list[tuple[int, int]]: ...
    def point_at(self, first: int, last: int, place: int) -> int: ...
    def power_sums(self, first: int, last: int, whole: float, count: int) -> NDArray[float64]: ...
    def code_of(self, weight: int, first: int, last: int, below: Callable[[int], int]) -> int: ...
