from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint8, uint64
from numpy.typing import NDArray

LAYOUTS: dict[str, int]

class _Keys:
    def __init__(self, seed: int) -> None: ...
    def __len__(self) -> int: ...
    def counts(self) -> NDArray[int64]: ...
    def add_counts(self, codes: NDArray[int64], counts: NDArray[int64]) -> None: ...

class Integers(_Keys):
    def keys(self) -> NDArray[int64]: ...
    def group(
        self, keys: NDArray[int64], missing: NDArray[uint8] | None, codes: NDArray[int64], insert: bool
    ) -> None: ...

class Spans(_Keys):
    def keys(self) -> tuple[NDArray[int64], NDArray[uint8]]: ...
    def words(self, codes: NDArray[int64], depth: int, words: NDArray[uint64], lengths: NDArray[int64]) -> None: ...
    def group_offsets(
        self,
        offsets: NDArray[int32] | NDArray[int64],
        data: NDArray[uint8],
        missing: NDArray[uint8] | None,
        codes: NDArray[int64] | None,
        insert: bool,
        counted: bool,
    ) -> None: ...
    def group_fixed(
        self,
        records: NDArray[uint8],
        layout: str,
        missing: NDArray[uint8] | None,
        codes: NDArray[int64] | None,
        insert: bool,
        counted: bool,
    ) -> None: ...
    def group_cells(
        self,
        cells: list[Any],
        encode: Callable[[Any], bytes | None],
        codes: NDArray[int64] | None,
        insert: bool,
        counted: bool,
    ) -> None: ...

def merge_counts(
    keys: NDArray[int64],
    counts: NDArray[int64],
    other_keys: NDArray[int64],
    other_counts: NDArray[int64],
    out_keys: NDArray[int64],
    out_counts: NDArray[int64],
) -> int: ...
