from typing import Any

from numpy import float64, int64, uint8, uint16, uint32, uint64
from numpy.random import BitGenerator
from numpy.typing import NDArray

def categories(x: NDArray[float64] | NDArray[int64] | NDArray[uint64], k: int, out: NDArray[uint32]) -> None: ...
def fill_keys(x: NDArray[float64] | NDArray[int64] | NDArray[uint64], last: int, out: NDArray[uint64]) -> None: ...
def fill_windows(
    bit_generator: BitGenerator,
    starts: NDArray[uint32],
    width: int,
    size: int,
    threshold: int,
    out: NDArray[uint8] | NDArray[uint16] | NDArray[uint32],
) -> None: ...
def fill_rows(
    bit_generator: BitGenerator,
    x: NDArray[uint32],
    last: int,
    threshold: int,
    out: NDArray[uint8] | NDArray[uint16] | NDArray[uint32],
) -> None: ...
def fill_dither(
    bit_generator: BitGenerator, x: NDArray[float64], lower: float, knots: NDArray[float64], out: NDArray[uint32]
) -> None: ...
def fill_unary(
    bit_generator: BitGenerator, x: NDArray[uint32], threshold: int, size: int, out: NDArray[uint64]
) -> None: ...
def fill_subsets(
    bit_generator: BitGenerator, x: NDArray[uint32], width: int, size: int, threshold: int, out: NDArray[uint64]
) -> None: ...
def fill_large_subsets(
    bit_generator: BitGenerator, x: NDArray[uint32], width: int, size: int, threshold: int, out: NDArray[uint64]
) -> None: ...
def fill_lines(
    bit_generator: BitGenerator, x: NDArray[uint32], edge: int, threshold: int, out: NDArray[uint32]
) -> None: ...
def count_lines(lines: NDArray[uint32], edge: int, out: NDArray[int64]) -> int: ...
def count_symbols(
    reports: NDArray[uint8] | NDArray[uint16] | NDArray[uint32], counts: NDArray[uint32] | NDArray[int64]
) -> int: ...
def transform(x: NDArray[int64]) -> None: ...
def fill_hashed(
    drawn: NDArray[uint64],
    heights: NDArray[uint32],
    keys: NDArray[uint64],
    buckets: int,
    prime: int,
    digits: int,
    seed: int,
    hashed: bool,
    out: NDArray[Any],
) -> None: ...
def add_cells(sums: NDArray[int64], keys: NDArray[uint64], seed: int, out: NDArray[int64]) -> None: ...
def add_functions(
    reports: NDArray[Any],
    ends: NDArray[int64],
    functions: NDArray[int64],
    prime: int,
    digits: int,
    width: int,
    lanes: int,
    out: NDArray[int64],
) -> None: ...
def add_function(reports: NDArray[Any], prime: int, digits: int, width: int, out: NDArray[int64]) -> None: ...
def add_reports(reports: NDArray[Any], prime: int, digits: int, width: int, out: NDArray[int64]) -> None: ...
def group_functions(reports: NDArray[Any], cells: int, ends: NDArray[int64], out: NDArray[Any]) -> int: ...
