"""The kernel of streams: digits, counted and copied cells."""

import numpy as np
import pytest

import dpfast as dpf
from dpfast._kernels import _stream
from tests.cases import every
from tests.streams import DEFAULT

pytestmark = pytest.mark.kernel


def test_the_kernel_checks_its_tables():
    options = {**DEFAULT.kernel, "first": DEFAULT.first}
    with pytest.raises(ValueError, match="fewer counts"):
        _stream.count(np.zeros(3), np.zeros(10, np.uint32), 0, **options)
    marks, counts, room = np.zeros((1, 4), np.int32), np.zeros((0, 4), np.uint32), np.zeros(0, np.int64)
    for levels in ([], [(marks, 0)]):
        with pytest.raises(ValueError, match="marks"):
            _stream.refine(np.zeros(3), np.zeros(4, np.uint8), levels, counts, room, 0, **options)
    with pytest.raises(TypeError, match="no keys"):
        _stream.count(np.zeros(3, np.complex128), np.zeros(2**16, np.uint32), 16, **options)


@every("step", [2.0**-1074, 2.0**-1000, 2.0**-30, 1.0, 2.0**60, 2.0**970])
def test_codes_of_every_step(step):
    grid = dpf.Grid(-1000 * step, 3000 * step, step=step, missing=7 * step)
    x = np.concatenate([np.arange(-1010, 3010) * step, np.arange(-1000, 3000) * step * 0.5, [np.nan, 5e-324, -1e308]])
    counts = np.zeros(grid.size, np.uint32)
    _stream.count(x, counts, 0, first=grid.first, **grid.kernel)
    assert np.array_equal(counts, np.bincount(grid.encode(x), minlength=grid.size))


SHIFTED = [
    dpf.Grid(0, 1e6),
    dpf.Grid(-999, 3001, step=1),  # an odd first step: ties go to the even step, not to the even code
    dpf.Grid(-999 * 2.0**-10, 3.0, step=2.0**-10, missing=0.5),
    dpf.Grid(0, 2.0**51, step=1),  # the last for which steps are counted by one sum,
    dpf.Grid(-(2.0**51), 2.0**51 - 1, step=1),
    dpf.Grid(0, 2.0**51 + 2, step=1),  # and the first beyond
    dpf.Grid(2.0**53 - 2.0**20, 2.0**53, step=1),
    dpf.Grid(-(2.0**-1000), 2.0**-1000, step=2.0**-1022),
    dpf.Grid(-1.5e308, 1.5e308),  # wider than the largest double
]


KINDS = ["smooth", "ties", "runs", "1 values", "2 values", "9 values", "20 values"]


def hard(grid, n, kind, rng):
    """n records around the middles and the ends of the steps of a grid."""
    values, step = grid.decode(rng.integers(0, grid.size, n)), grid.step
    if kind == "ties":
        values = rng.choice(values[:3], n)
    if kind == "runs":
        values = np.sort(values)
    with np.errstate(over="ignore"):
        near = values + step * rng.choice([0.0, 0.5, -0.5, 0.25, 1.0], n)
        near = np.nextafter(near, rng.choice([-np.inf, 0.0, np.inf], n))
    x = np.where(rng.random(n) < 0.5, values, near)
    beyond = rng.random(n) < 0.05
    x[beyond] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e308, -1e308, 5e-324], np.count_nonzero(beyond))
    return rng.choice(x[: int(kind.split()[0])], n) if kind.endswith("values") and n else x


@every("kind", KINDS)
@every("grid", SHIFTED, ids=str)
def test_digits_match_encode(grid, kind):
    rng = np.random.default_rng(14)
    bits = (grid.size - 1).bit_length()
    for n in (0, 1, 15, 16, 17, 31, 32, 33, 2047, 2049, 5000):
        x = hard(grid, n, kind, rng)
        shift = max(bits - 10, 0)
        counts = np.zeros(((grid.size - 1) >> shift) + 1, np.uint32)
        for values in (x, np.repeat(x, 2)[::2]):
            counts[:] = 0
            _stream.count(values, counts, shift, first=grid.first, **grid.kernel)
            assert np.array_equal(counts, np.bincount(grid.encode(x) >> shift, minlength=counts.size))


def walked(codes, levels, counts, capacity, shift):
    """What `_stream.refine` does, one code after another."""
    copied, last = [], counts.shape[1] - 1
    for code in codes.tolist():
        mark = 2
        for marks, at in levels:
            if mark > 1:
                digit = code >> at if marks is levels[0][0] else (code >> at) % marks.shape[1]
                mark = int(marks[mark - 2, digit])
        if mark > 1:
            counts[mark - 2, (code >> shift) & last] += 1
        elif mark == 1 and len(copied) < capacity:
            copied.append(code)
    return copied


@every("kind", KINDS)
@every("depth", [1, 2])
@every("share", [0.02, 0.5, 1.0])
def test_marked_cells_are_counted_and_copied_in_order(kind, depth, share):
    rng, grid = np.random.default_rng(15), dpf.Grid(-999, 2**15 - 1000, step=1)
    for n in (0, 1, 31, 32, 33, 1024, 5000):
        x = hard(grid, n, kind, rng)
        marks = np.where(rng.random((1, 2**5)) < share, rng.integers(1, 4, (1, 2**5)), 0).astype(np.int32)
        levels, shift = [(marks, 10)], 6
        if depth == 2:
            levels.append((rng.integers(0, 4, (2, 2**4)).astype(np.int32), 6))
            shift = 0
        digits = 2 ** (levels[-1][1] - shift)
        counts, expected = np.zeros((2, digits), np.uint32), np.zeros((2, digits), np.int64)
        room = np.zeros(n // 2, np.int64)
        found = (marks[0] != 0).view(np.uint8)
        filled = _stream.refine(x, found, levels, counts, room, shift, first=grid.first, **grid.kernel)
        assert room[:filled].tolist() == walked(grid.encode(x), levels, expected, room.size, shift)
        assert np.array_equal(counts, expected)
