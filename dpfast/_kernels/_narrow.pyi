from collections.abc import Callable

from numpy import float64, int64
from numpy.typing import NDArray

from dpfast._kernels._chain import Chain
from dpfast._kernels._measures import Measure

class NarrowChain(Chain):
    is_bounded: bool
    def __init__(
        self,
        make_whole: Callable[[], Chain],
        near: int,
        vectors: NDArray[float64],
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
    ) -> None: ...
