from typing import Any

from numpy import float64, int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels._measures import Measure

MOST_FREE: int

def fill_multiset(bit_generator: BitGenerator, start: int, width: int, out: NDArray[int64]) -> None: ...

class Chain:
    total: float
    exponent: int
    margin: float
    certain: bool
    def __init__(
        self,
        codes: NDArray[int64],
        bases: NDArray[int64],
        ranks: NDArray[int64],
        firsts: NDArray[int64],
        lasts: NDArray[int64],
        lowers: NDArray[int64],
        uppers: NDArray[int64],
        rate: float,
        reach: int,
        measure: Measure | None = None,
        *,
        held: int = ...,
    ) -> None: ...
    def score(self, o: NDArray[int64]) -> int: ...
    def scores(self, outputs: NDArray[int64], out: NDArray[int64]) -> None: ...
    def draw(self, bit_generator: BitGenerator, *, exact: bool = False) -> NDArray[int64] | None: ...
    def whole(self) -> Chain: ...
    def odds(self) -> tuple[list[tuple[float, NDArray[float64]]], list[tuple[int, int, int]]]: ...
    def refresh(self) -> None: ...

class GroupChain(Chain): ...

class GroupStage:
    def __init__(
        self,
        chain: GroupChain,
        codes: NDArray[int64],
        ranks: NDArray[int64],
        places: NDArray[int64],
        epsilon: float,
        reach: int,
        last: int,
        logs: tuple[float, float],
        decisions: Any,
    ) -> None: ...

class WideChain(Chain): ...

def draw_groups(
    bit_generator: BitGenerator,
    values: NDArray[float64],
    offsets: NDArray[int64],
    start: int,
    out: NDArray[int64],
    stages: list[GroupStage | None],
    *,
    lower: float,
    upper: float,
    step: float,
    first: float,
    rounds: int,
    exact: bool = False,
) -> int: ...
