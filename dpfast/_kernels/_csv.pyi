from numpy import float64, int64, uint8
from numpy.typing import NDArray

def rows(
    text: NDArray[uint8],
    start: int,
    stop: int,
    delimiter: int,
    final: bool,
    columns: NDArray[int64],
    places: NDArray[int64],
) -> tuple[int, int]: ...
def numbers(
    text: NDArray[uint8],
    start: int,
    places: NDArray[int64],
    column: int,
    out: NDArray[float64],
    hard: NDArray[int64],
) -> int: ...
def texts(
    text: NDArray[uint8],
    start: int,
    places: NDArray[int64],
    column: int,
    known: dict[str, str | None],
    out: list[str | None],
    hard: NDArray[int64],
    encoding: bytes,
) -> int: ...
