from typing import Any

from numpy import float64, int64
from numpy.typing import NDArray

def weibull(
    values: NDArray[Any],
    offsets: NDArray[int64],
    out: NDArray[float64],
    counts: NDArray[int64],
    *,
    workers: int = 1,
) -> None: ...
def laplace(
    values: NDArray[Any],
    offsets: NDArray[int64],
    out: NDArray[float64],
    counts: NDArray[int64],
    *,
    workers: int = 1,
) -> None: ...
def negative_binomial(
    values: NDArray[Any],
    offsets: NDArray[int64],
    out: NDArray[float64],
    counts: NDArray[int64],
    *,
    correct: bool,
    workers: int = 1,
) -> None: ...
def regression(
    design: NDArray[Any],
    response: NDArray[Any],
    offsets: NDArray[int64],
    out: NDArray[float64],
    counts: NDArray[int64],
    *,
    model: str,
    intercept: bool,
    correct: bool,
    workers: int = 1,
) -> None: ...
