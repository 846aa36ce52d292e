from numpy import float64, int64
from numpy.typing import NDArray

def add_by_label(
    labels: NDArray[int64], codes: NDArray[int64], last: int, half: bool, sums: NDArray[int64]
) -> None: ...
def add_by_offset(
    offsets: NDArray[int64], codes: NDArray[int64], last: int, half: bool, sums: NDArray[int64]
) -> None: ...
def spreads(
    sums: NDArray[int64],
    last: int,
    codes: NDArray[int64],
    lasts: NDArray[int64],
    sensitivities: NDArray[int64],
) -> None: ...
def spread_values(
    codes: NDArray[int64], sizes: NDArray[int64], last: int, unit: float, out: NDArray[float64]
) -> None: ...
def quotients(numerators: NDArray[int64], denominators: NDArray[int64], unit: float, out: NDArray[float64]) -> None: ...
