"""The counts of reports: symbols, lines, columns of bits, and the transform of Hadamard."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from dpfast import local
from dpfast._kernels import _bits, _randomize
from dpfast.local.randomizer import counted
from dpfast.local.responses import PRIME, method_of
from tests.cases import every

pytestmark = pytest.mark.kernel


@every("counter", [np.uint32, np.int64])
@every("dtype, size", [(np.uint8, 100), (np.uint16, 100), (np.uint32, 100), (np.uint32, 100_000)])
@every("n", [0, 1, 31, 33, 5000])
def test_symbols_are_counted(dtype, size, counter, n):
    """In counters that a cache holds, and in more; refused symbols far beyond them."""
    reports = np.random.default_rng(1).integers(0, size + size // 5, n).astype(dtype)
    reports[::7] = np.iinfo(dtype).max
    counts = np.full(size, 3, counter)
    assert _randomize.count_symbols(reports, counts) == (reports < size).sum()
    np.testing.assert_array_equal(counts, 3 + np.bincount(reports[reports < size], minlength=size))


@every("method", ["k-rr", "subset", "oue", "olh", "hadamard"])
@every("n", [0, 2**32 - 1, 2**32, 2**40])
def test_a_counter_holds_all_reports(method, n):
    assert np.iinfo(method_of(method, 3, 1.0).counts(n).dtype).max >= n


@every("method", ["k-rr", "subset", "oue", "olh", "hadamard"])
def test_merged_counters_are_those_of_all_reports(method):
    """Whether or not sums were asked for before, and whatever became of them on the way."""
    survey = local.Categorical(70, 1.0, method)
    reports = survey.randomize(np.arange(600) % 70, rng=np.random.PCG64(1))
    whole = survey.aggregate(reports)
    expected = local.Aggregate(600, survey.sums(reports))
    kept = [lambda part: part, copy.copy, lambda part: pickle.loads(pickle.dumps(part)), dataclasses.replace]
    kept += [lambda part: local.Aggregate.from_bytes(part.to_bytes()), lambda part: part if repr(part) else None]
    for first, second in itertools.product(kept, kept):
        some, others = survey.aggregate(reports[:200]), survey.aggregate(reports[200:])
        total = first(some) + second(others)
        assert total == expected == whole
        assert type(total) is local.Aggregate
        assert total.sums is total.sums
        assert total.sums.dtype == np.int64
        assert first(some).n == 200
        assert not hasattr(total, "other")
        with pytest.raises(ValueError, match="same randomiser"):
            total + local.Categorical(71, 1.0, method).aggregate(reports[:0])


@dataclasses.dataclass(frozen=True, eq=False)
class Noted(local.Aggregate):
    note: str = ""


def test_merged_counters_do_not_overflow():
    survey, n = local.Categorical(2, 1.0, "k-rr"), 2**32 - 1
    half = counted(n, np.array([n, 0], np.uint32), 0, method_of("k-rr", 2, 1.0), survey.digest())
    assert half + half == local.Aggregate(2 * n, np.array([2 * n, 0]))
    assert half + half + survey.aggregate(np.ones(3, np.uint8)) == local.Aggregate(2 * n + 3, np.array([2 * n, 3]))
    assert half == local.Aggregate(n, np.array([n, 0]))


def test_counters_of_two_widths_are_added():
    """Those of 2^32 reports and more have 64 bits, also if most of the reports are refused."""
    rule = method_of("k-rr", 2, 1.0)
    long, short = (counted(5, np.array([2, 3], width), 0, rule) for width in (np.int64, np.uint32))
    assert long + short == short + long == local.Aggregate(10, np.array([4, 6]))


def test_copies_of_a_subclass_keep_its_fields():
    noted = Noted(2, np.array([1, 1]), 0, "a note")
    for kept in (copy.copy(noted), copy.deepcopy(noted), pickle.loads(pickle.dumps(noted))):
        assert (kept, kept.note) == (noted, "a note")


def test_pairs_that_are_no_lines_are_not_counted():
    rng = np.random.default_rng(2)
    lines = rng.integers(0, PRIME, (1000, 2)).astype(np.uint32)
    lines[::3, 0], lines[::4, 1] = PRIME, 2**32 - 1
    counts, kept = np.zeros((2, 9), np.int64)
    good = (lines < PRIME).all(axis=1)
    assert _randomize.count_lines(lines, 2**31, counts) == good.sum()
    assert _randomize.count_lines(lines[good], 2**31, kept) == good.sum()
    np.testing.assert_array_equal(counts, kept)


@every("n, words", [(0, 2), (1, 1), (7, 300), (8, 3), (249, 270), (600, 2), (66_000, 1)])
def test_columns_and_rows_of_bits_are_counted(n, words):
    """Fewer rows than eight, more than the counters of a strip hold, more than their sums hold; one strip and two."""
    rows = np.random.default_rng(3).integers(0, 2**64, (n, words), np.uint64)
    rows[n // 3 :: 2] = 2**64 - 1
    bits = np.unpackbits(rows.astype("<u8").view(np.uint8).reshape(n, 8 * words), axis=1, bitorder="little")
    counts, ones, alone = np.full(64 * words, 5, np.int64), np.full(n, 7, np.int64), np.zeros(64 * words, np.int64)
    _bits.count_columns(rows, counts, ones)
    _bits.count_columns(rows, alone)
    np.testing.assert_array_equal(alone, bits.sum(axis=0, dtype=np.int64))
    np.testing.assert_array_equal(counts, 5 + alone)
    np.testing.assert_array_equal(ones, 7 + bits.sum(axis=1, dtype=np.int64))


@every("n", [1, 2, 4, 8, 4096, 2**13, 2**14])
def test_transform_is_that_of_hadamard(n):
    """Against the definition at a few places; its square is n times the identity."""
    x = np.random.default_rng(1).integers(-(2**40), 2**40, n)
    y = x.copy()
    _randomize.transform(y)
    for v in {0, 1 % n, n // 3, n - 1}:
        signs = [(-1) ** (j & v).bit_count() for j in range(n)]
        assert y[v] == sum(sign * int(entry) for sign, entry in zip(signs, x, strict=True))
    _randomize.transform(y)
    np.testing.assert_array_equal(y, n * x)
