from numpy import int64, uint8
from numpy.random import BitGenerator
from numpy.typing import NDArray

def thin(bit_generator: BitGenerator, codes: NDArray[int64], groups: int, limit: int, keep: NDArray[uint8]) -> None: ...
def thin_sorted(
    bit_generator: BitGenerator, keys: NDArray[int64], limit: int, keep: NDArray[uint8], seed: int | None = None
) -> None: ...

class Reservoirs:
    def __new__(cls, per_unit: int, per_key: int) -> Reservoirs: ...
    def add(
        self,
        bit_generator: BitGenerator,
        units: NDArray[int64],
        pairs: NDArray[int64] | None,
        first: int,
        entered: NDArray[uint8],
        unit_count: int,
        pair_count: int,
    ) -> None: ...
    def kept(self) -> NDArray[int64]: ...
