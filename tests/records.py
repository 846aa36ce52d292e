"""Nasty records, and the containers in which users have them."""

from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction

import numpy as np

import dpfast as dpf


def pick(rng, pool):
    return pool[int(rng.integers(len(pool)))]


# ---- records ----

SIGNALLING = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
SPECIAL = np.concatenate(
    [
        [0.0, -0.0, 1.0, -1.0, 0.5, 1 / 3, 5e-324, -5e-324, 2.0**-1022, 1e-300, 1e300, -1e308, 1.7976931348623157e308],
        [2.0**31, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, 2.0**64, np.inf, -np.inf, np.nan, -np.nan],
        SIGNALLING,
    ]
)


def datasets(rng, n, lower=0.0, upper=1.0):
    """Records of one number, in many ways: constant, tied, split in two at a random place, special, spread, missing."""
    middle = 0.5 * lower + 0.5 * upper
    shuffled = rng.permutation(n)
    for value in (lower, upper, middle, np.nan, np.inf, 0.0, -5e-324):
        yield np.full(n, value)
    for _ in range(4):  # where the data jump from one end to the other
        yield np.where(shuffled < rng.integers(0, n + 1), lower, upper)
    for share in (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9):  # or near the ranks of statistics
        near = rng.integers(-3, 4) if rng.random() < 0.5 else rng.uniform(-0.07, 0.07) * n
        yield np.where(shuffled < share * n + near, -np.inf, np.inf)
    yield np.where(shuffled < 0.8 * n, lower, rng.uniform(0, 1, n) * (0.5 * upper) + 0.5 * lower)
    yield np.where(np.arange(n) % 2, np.nan, middle)
    yield np.where(np.arange(n) % 3, lower, np.nan)
    yield np.where(np.arange(n) == n // 2, 1e308, lower)
    yield rng.choice(SPECIAL, n)
    with np.errstate(all="ignore"):
        yield middle + (0.5 * upper - 0.5 * lower) * rng.standard_normal(n)
        yield middle + (0.5 * upper - 0.5 * lower) * rng.standard_cauchy(n)
    share = rng.random(n)
    yield lower * (1 - share) + upper * share
    yield np.sort(rng.normal(30, 8, n).round())
    yield np.repeat(rng.choice(SPECIAL, 3), -(-n // 3))[:n]


# ---- containers ----


class Odd:
    """A cell that cannot be a number, and says so in its own way."""

    def __float__(self):
        raise RuntimeError("not for you")


CELLS = [None, np.ma.masked, 2**70, -(10**400), "1.5", "text", b"3", Odd(), 1 + 2j, Decimal("NaN"), Decimal("1e999")]
CELLS += [Fraction(10**400, 3), True, np.float32("nan"), np.int8(-3), np.array(2.0), object()]
CELLS += [np.datetime64("NaT", "s")]


def as_cells(x, rng):
    """A list of Python's floats, with special values replaced by one of `CELLS`."""
    cells = x.tolist()
    if len(cells):
        for i in np.flatnonzero(~np.isfinite(x) | (x == 0.0))[:50].tolist():
            cells[i] = pick(rng, CELLS)
    return cells


def as_integers(x, dtype):
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        inside = np.clip(np.nan_to_num(x, nan=0.0), float(info.min), float(info.max))
        return np.where(inside >= float(info.max), info.max, inside.astype(dtype)).astype(dtype)


def masked(x, rng):
    return np.ma.masked_array(np.nan_to_num(x), mask=~np.isfinite(x) | (rng.random(x.shape) < rng.choice([0.0, 0.2])))


def nullable(x):
    """Integers, with None for all that are not finite."""
    numbers = as_integers(x, np.int64).tolist()
    return [number if ok else None for number, ok in zip(numbers, np.isfinite(x).tolist(), strict=True)]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def as_type(x, dtype):
    with np.errstate(all="ignore"):  # signalling NaN, overflow
        return x.astype(dtype)


# What records of one number are handed over as. Those with a module's name in front need that module.
FORMS = {
    "float64": lambda x, rng: x,
    "strided": lambda x, rng: np.repeat(x, 2)[::2],
    "reversed": lambda x, rng: x[::-1].copy()[::-1],
    "read-only": lambda x, rng: read_only(x),
    "float32": lambda x, rng: as_type(x, np.float32),
    "big-endian": lambda x, rng: as_type(x, ">f8"),
    "longdouble": lambda x, rng: as_type(x, np.longdouble),
    "int64": lambda x, rng: as_integers(x, np.int64),
    "uint64": lambda x, rng: as_integers(x, np.uint64),
    "int8": lambda x, rng: as_integers(x, np.int8),
    "bool": lambda x, rng: x > 0,
    "masked": masked,
    "masked integers": lambda x, rng: np.ma.masked_array(as_integers(x, np.int64), mask=~np.isfinite(x)),
    "list": as_cells,
    "tuple": lambda x, rng: tuple(as_cells(x, rng)),
    "deque": lambda x, rng: deque(as_cells(x, rng)),
    "UserList": lambda x, rng: UserList(as_cells(x, rng)),
    "chunks": lambda x, rng: dpf.Chunks(np.array_split(x, 3)),
    "counted": lambda x, rng: dpf.Counted(x, np.bincount((len(x) * rng.random(len(x))).astype(int), minlength=len(x))),
    "pandas.Series": lambda x, rng: module("pandas").Series(x),
    "pandas.Float64": lambda x, rng: module("pandas").array(x, dtype="Float64"),
    "pandas.Int64": lambda x, rng: module("pandas").Series(module("pandas").array(nullable(x), dtype="Int64")),
    "pyarrow.float64": lambda x, rng: module("pyarrow").array(x, mask=~np.isfinite(x)),
    "pyarrow.float32": lambda x, rng: module("pyarrow").array(as_type(x, np.float32), from_pandas=True),
    "pyarrow.int64": lambda x, rng: module("pyarrow").array(nullable(x), type=module("pyarrow").int64()),
    "pyarrow.chunked": lambda x, rng: module("pyarrow").chunked_array(
        [x[: len(x) // 2], x[len(x) // 2 :]], type=module("pyarrow").float64()
    ),
    "polars.Float64": lambda x, rng: module("polars").Series(x),
    "polars.Int64": lambda x, rng: module("polars").Series(nullable(x), dtype=module("polars").Int64),
}
# Records of several numbers.
ROW_FORMS = {
    "float64": lambda x, rng: x,
    "columns": lambda x, rng: np.asfortranarray(x),
    "float32": lambda x, rng: as_type(x, np.float32),
    "int64": lambda x, rng: as_integers(x, np.int64),
    "masked": masked,
    "list": lambda x, rng: [as_cells(row, rng) for row in x] if len(x) else x,
    "chunks": lambda x, rng: dpf.Chunks(np.array_split(x, 3)),
    "pandas.DataFrame": lambda x, rng: module("pandas").DataFrame(x),
    "pandas.nullable": lambda x, rng: module("pandas").DataFrame(
        {j: module("pandas").array(nullable(x[:, j]), dtype="Int64") for j in range(x.shape[1])}
    ),
    "pyarrow.table": lambda x, rng: module("pyarrow").table({str(j): x[:, j] for j in range(x.shape[1])}),
    "polars.DataFrame": lambda x, rng: module("polars").DataFrame({str(j): x[:, j] for j in range(x.shape[1])}),
}


def module(name):
    return __import__(name)


def installed(form):
    name, dot, _ = form.partition(".")
    if not dot:
        return True
    try:
        module(name)
    except ImportError:
        return False
    return True
