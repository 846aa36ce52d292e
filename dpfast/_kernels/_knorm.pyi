from typing import Any

from numpy import int64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def fill_box(
    bit_generator: BitGenerator, scales: NDArray[Any], out: NDArray[int64], *, exact: bool = False
) -> None: ...
