from numpy import int32, int64, uint16
from numpy.typing import NDArray

def count(
    codes: NDArray[uint16], bins: NDArray[int32], marginals: list[list[int]], out: NDArray[int64], *, workers: int = 1
) -> None: ...
