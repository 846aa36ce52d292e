"""Codes of rows in boxes and balls, and their exact sums."""

import numpy as np
import pytest

from dpfast import Grid
from dpfast.domains import Ball, Box
from tests.cases import every
from tests.reference.rows import adversarial_rows, code_of_row, shortened

pytestmark = pytest.mark.kernel

DIMENSIONS = [1, 2, 3, 7, 8, 9, 20, 130]


def domains(d):
    return [
        Box(Grid(-1, 2)),
        Box([Grid(-1 - j, 2) for j in range(d)]),
        Box([Grid(-(2.0 ** (40 + j % 9)), 2.0**50, step=2.0 ** (1 + j % 9)) for j in range(d)]),
        Box(Grid(-(2.0**-1030), 2.0**-1030, step=2.0**-1074, missing=2.0**-1040)),
        Ball(1.0),
        Ball(0.7, center=0.25),
        Ball(3.0, step=0.5),
        Ball(1e308, step=2.0**1000),
        Ball(2.0**-1000, center=[2.0**-1000] * d),
    ]


def containers(d, n=300):
    x = np.random.default_rng(d).normal(size=(n, d))
    x[3], x[6], x[8] = np.nan, 1e308, 5e-324
    x[5, 0], x[7, -1] = np.inf, -1e308
    small = np.nan_to_num(x).clip(-1e30, 1e30)
    packed = np.zeros(n, [("flag", "i1"), ("row", "f8", (d,))])
    packed["row"] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return [
        x,
        np.asfortranarray(x),
        x[::2],
        x[::-1, ::-1],
        np.repeat(x, 2, axis=1)[:, ::2],
        packed["row"],
        frozen,
        small.astype(np.float32),
        small.clip(-6e4, 6e4).astype(np.float16),
        (small.clip(-9e17, 9e17) * 10).astype(np.int64),
        np.asfortranarray(small.clip(0, 9e17) * 20).astype(np.uint64),
        small.clip(-100, 100).astype(np.int8),
        x > 0,
        x[:0],
    ]


def totals(sums):
    return [int(high) * 2**52 + int(low) for high, low in sums.T]


@pytest.mark.parametrize("d", DIMENSIONS)
def test_sums_are_those_of_the_codes(d):
    for rows in containers(d):
        for domain in domains(d):
            sums = np.zeros((2, d), np.int64)
            domain.add(rows, sums, 1)
            assert totals(sums) == domain.encode(rows).astype(object).sum(axis=0).tolist()
            assert ((sums[1] >= 0) & (sums[1] < 2**52)).all()


def test_codes_of_a_box_are_those_of_its_grids():
    for rows in containers(3):
        for domain in domains(3)[:4]:
            grids = domain.grids_of(3)
            assert np.array_equal(
                domain.encode(rows), np.stack([grids[j].encode(rows[:, j]) for j in range(3)], axis=1)
            )


@pytest.mark.parametrize("d", [1, 3, 8, 20])
def test_codes_within_a_ball_are_the_nearest(d):
    rng = np.random.default_rng(d)
    for ball in (Ball(2.0), Ball(1e307), Ball(2.0**-990), Ball(7.0, step=1.0)):
        rows = ball.radius / np.sqrt(d) * rng.normal(size=(200, d)) / 2
        rows[0], rows[1, 0] = 0.5 * ball.step, 1.5 * ball.step
        wanted = [code_of_row(row, ball) for row in rows]
        found = ball.encode(rows).tolist()
        inside = [i for i, code in enumerate(wanted) if code is not None]
        assert len(inside) > 20
        assert [found[i] for i in inside] == [wanted[i] for i in inside]


@pytest.mark.parametrize("d", [1, 3, 8, 20, 700])
def test_rows_beyond_a_ball_are_moved_to_its_surface(d):
    rng = np.random.default_rng(d)
    for ball in (Ball(2.0), Ball(2.0**-990), Ball(100.0)):
        rows = rng.normal(size=(20, d)) * 10.0 ** rng.integers(3, 300, (20, 1))
        rows[0], rows[1, 0] = 1e308, -1.7e308
        for row, code in zip(rows, ball.encode(rows), strict=True):
            assert np.abs(code - shortened(row, ball)).max() < 1 + 2.0**-23 * ball.ratio
    corner = Ball(5.0, center=-1e308).encode(np.full((1, d), 1.7e308))
    assert np.abs(corner - Ball(5.0).ratio / np.sqrt(d)).max() < 1 + 2.0**-23 * 2**26


@pytest.mark.parametrize("d", [2, 8, 20])
def test_rows_beyond_a_small_ball_around_a_huge_center_are_moved_to_its_surface(d):
    # Next to the center the squares of the differences underflow; next to a step they overflow.
    ball = Ball(2.0**-980, center=[2.0**437] + [0.0] * (d - 1))
    for size in (2.0**-100, 2.0**-99, 2.0**-98, 1.0):
        differences = np.full((1, d), 0.6 * size)
        differences[0, :2] = 0.0, size
        (code,) = ball.encode(differences + ball.center)
        assert np.abs(code - shortened(differences[0], ball)).max() < 1 + 2.0**-23 * ball.ratio


def test_rows_with_a_missing_or_infinite_number_are_the_center():
    for value in (np.nan, np.inf, -np.inf):
        rows = np.full((40, 9), 3.0)
        rows[5, 8] = value
        codes = Ball(50.0, center=1.0, step=1.0).encode(rows)
        assert (codes[5] == 0).all()
        assert (np.delete(codes, 5, axis=0) == 2).all()


def squared(codes):
    return np.sum(codes**2, axis=-1)


@pytest.mark.parametrize(
    ("ball", "d", "count"),
    [
        (Ball(1.0), 20, 15_000),
        (Ball(0.1), 3, 30_000),
        (Ball(2.0**-997), 2, 20_000),
        (Ball(1e300), 9, 20_000),
        (Ball(3.0, step=1.0), 5, 20_000),
        (Ball(2.0**20 + 0.5, step=1.0), 33, 10_000),
    ],
)
def test_no_code_leaves_the_ball(ball, d, count):
    """With the positive control of codes that are only projected and rounded."""
    rng = np.random.default_rng(0)
    rows = adversarial_rows(ball, count, d, rng)
    for x in (rows, np.nan_to_num(rows).clip(-1e37, 1e37).astype(np.float32)):
        codes = ball.encode(x)
        assert codes.dtype == np.int64
        assert (squared(codes) <= ball.most).all()
        with np.errstate(all="ignore"):
            y = x / ball.step
            unchecked = np.rint(y * np.minimum(1, ball.ratio / np.linalg.norm(y, axis=1, keepdims=True)))
        outside = squared(np.nan_to_num(unchecked)) > ball.most
        if x is rows:
            assert outside.mean() > 0.01, "the control should leave the ball"


def test_a_million_columns():
    rows = np.random.default_rng(0).normal(size=(3, 10**6)).astype(np.float32)
    rows[2] = 1e30
    ball = Ball(900.0)
    codes = ball.encode(rows)
    assert (squared(codes) <= ball.most).all()
    assert (squared(codes) > 0.99 * ball.most).all()
    sums = np.zeros((2, 10**6), np.int64)
    ball.add(rows, sums, 1)
    assert np.array_equal((sums[0] << 52) + sums[1], codes.sum(axis=0))


@pytest.mark.parametrize("domain", [Box(Grid(-3, 3)), Ball(2.0)], ids=str)
def test_sums_depend_on_neither_threads_nor_order(domain):
    rows = np.random.default_rng(0).normal(size=(70_001, 33))
    one, two, back = (np.zeros((2, 33), np.int64) for _ in range(3))
    domain.add(rows, one, 1)
    domain.add(rows, two, 3)
    domain.add(rows[::-1], back, 2)
    assert np.array_equal(one, two)
    assert np.array_equal(one, back)
    assert ((two[1] >= 0) & (two[1] < 2**52)).all()


def test_sums_beyond_64_bits_are_exact():
    box = Box(Grid(0, 2.0**52 - 1, step=1))
    rows = np.full((6000, 2), 2.0**52)
    sums = np.zeros((2, 2), np.int64)
    for _ in range(3):
        box.add(rows, sums, 1)
    assert totals(sums) == [18_000 * (2**52 - 1)] * 2
    assert totals(sums)[0] > 2**63


@every(
    "make, error, message",
    [
        (lambda: Box(3), TypeError, r"grid must be a dpfast\.Grid, or one for each column"),
        (lambda: Box([]), TypeError, "grid must be"),
        (lambda: Box([Grid(0, 1), None]), TypeError, "grid must be"),
        (lambda: Ball(0), ValueError, "radius must be positive"),
        (lambda: Ball("1"), TypeError, "radius must be a real number"),
        (lambda: Ball(1.0, center=[]), ValueError, "at least one coordinate"),
        (lambda: Ball(1.0, center=np.nan), ValueError, "center must be finite"),
        (lambda: Ball(1.0, step=0.3), ValueError, "step must be a power of two, not 0.3"),
        (lambda: Ball(1.0, step=2.0), ValueError, r"radius must be 1 to 2\*\*26 steps"),
        (lambda: Ball(1.0, step=2.0**-27), ValueError, r"radius must be 1 to 2\*\*26 steps"),
        (lambda: Ball(5e-324), ValueError, r"a step at least 2\*\*-1022"),
        (lambda: Ball(1.7e308, center=1e308), ValueError, "beyond the range of float64"),
        (lambda: Ball(1.0, center=[0, 1]).encode([[1.0]]), ValueError, "X must have 2 columns"),
        (lambda: Ball(1.0).encode([1.0]), ValueError, "X must be two-dimensional"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()
