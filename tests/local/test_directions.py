"""The best of many random directions: constants, the order of scores, exact laws of reports, and wrong versions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import Grid, Privacy, audit, local
from dpfast._kernels import _directions
from dpfast.core.coin import coin
from dpfast.local import Shuffled
from dpfast.local.caps import _best_moments, best_directions
from tests.cases import every
from tests.reference import directions as reference
from tests.reference import shuffling

pytestmark = pytest.mark.kernel

AWKWARD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 0.3]


def orders(x, seed, rounding, count):
    """The directions in the order of a record, from the reports of all ranks."""
    words = np.tile(np.array([[seed, rounding]], np.uint64), (count, 1))
    rows, reports = np.tile(np.asarray(x, np.float64), (count, 1)), np.empty(count, np.uint64)
    _directions.choose_directions(words, np.arange(count, dtype=np.uint32), count, rows, 1.0, reports)
    bits = (count - 1).bit_length()
    assert set((reports >> np.uint64(bits)).tolist()) == {seed >> bits}
    return (reports & np.uint64(2**bits - 1)).tolist()


# ---- constants ----


@pytest.mark.parametrize(("count", "m"), [(2, 1), (16, 5), (64, 22), (1024, 300)])
def test_heights_in_three_dimensions(count, m):
    """U_1 is uniform on [-1, 1], and the j-th largest of K has the mean 1 - 2 j / (K + 1)."""
    along, square = _best_moments(3, count)
    j = np.arange(1, m + 1)
    up = (count + 1 - j) / (count + 1)
    assert along[m - 1] == pytest.approx(np.mean(2 * up - 1), rel=1e-10)
    squares = up * (count + 2 - j) / (count + 2)  # the mean of the square of an order statistic on [0, 1]
    assert square[m - 1] == pytest.approx(np.mean(4 * squares - 4 * up + 1), rel=1e-10)


@pytest.mark.parametrize("count", [2, 3])
def test_heights_in_many_dimensions_and_on_the_circle(count):
    """The mean of the largest of 2 and 3 normals is 1 / sqrt(pi), 3 / (2 sqrt(pi)); of 2 arcsines 4 / pi^2."""
    d = 10**8
    assert _best_moments(d, count)[0][0] * math.sqrt(d * math.pi) == pytest.approx(count / 2, rel=1e-7)
    with mpmath.workdps(30):
        largest = (
            count
            * mpmath.quad(
                lambda t: mpmath.sin(t) * (t / mpmath.pi + 0.5) ** (count - 1), [-mpmath.pi / 2, 0, mpmath.pi / 2]
            )
            / mpmath.pi
        )
    assert _best_moments(2, count)[0][0] == pytest.approx(float(largest), rel=1e-12)


@every("epsilon", [1.0, 2.0, 4.0])
@every("d", [2, 10, 1000])
def test_64_directions_are_nearly_privunit(d, epsilon):
    cap = local.L2Ball(d, epsilon, method="privunit").second_moment
    moments = [
        local.L2Ball(d, epsilon, method="directions", directions=count).second_moment / cap
        for count in (1024, 256, 64, 16)
    ]
    assert moments == sorted(moments)
    assert moments[0] > 1
    assert moments[1] < 1.02
    assert moments[2] < 1.07
    assert moments[3] < 1.25
    if d >= 1000:  # n E|error|^2 / d of the specification
        expected = {1.0: (6.60, 7.00), 2.0: (1.67, 1.84), 4.0: (0.46, 0.54)}.get(epsilon)
        found = tuple(cap * moment / d for moment in moments[2:])
        assert expected is None or found == pytest.approx(expected, rel=0.02)


@every("epsilon", [2.0**-30, 0.1, 1.0, 4.0, 8.0, 60.0])
def test_the_number_of_near_directions_is_the_best(epsilon):
    """Among all m, by the scale that each would have; at most half of them, for shuffled reports."""
    ratio = coin(epsilon).ratio
    for count in (2, 9, 64):
        best = best_directions(5, epsilon, count)
        shares = {m: float(reference.surplus(count, m, ratio)) for m in range(1, count // 2 + 1)}
        gains = {m: share * _best_moments(5, count)[0][m - 1] for m, share in shares.items()}
        assert gains[best.m] >= max(gains.values()) * (1 - 1e-12)


# ---- the order ----


@pytest.mark.parametrize(("d", "count"), [(2, 2), (3, 5), (9, 64), (2, 1024)])
def test_reports_are_those_of_the_twin(d, count):
    rng = Generator(PCG64(d))
    for row in rng.normal(size=(6 if count < 100 else 2, d)) / math.sqrt(d):
        seed, rounding = PCG64(int(rng.integers(2**32))).random_raw(2).tolist()
        scores = reference.scores(row, seed, rounding, count)
        found = orders(row, seed, rounding, count)
        assert sorted(found) == list(range(count))
        assert (np.diff(np.array(scores)[found]) <= 1e-12).all()


@every("value", AWKWARD)
def test_every_record_has_an_order(value):
    for x in ([value, 0.1, -0.2], [value] * 3):
        assert sorted(orders(x, 12345 << 8, 2**63, 37)) == list(range(37))


def test_ties_are_in_the_order_of_the_indices():
    """All scores of a record without numbers, and of zeros, are 0."""
    for x in ([math.nan, 1.0], [0.0, -0.0]):
        assert orders(x, 99, 0, 64) == list(range(64))


def test_decoded_reports_are_the_chosen_directions():
    survey = local.L2Ball(3, 1.0, method="directions", directions=20)
    reports = survey.randomize(np.eye(3), rng=PCG64(1))
    vectors = survey.decode(reports)
    for report, vector in zip(reports.tolist(), vectors, strict=True):
        np.testing.assert_allclose(vector, survey.scale * reference.direction(report, 3), rtol=0, atol=1e-13)
    dense = local.L2Ball(3, 1.0, method="directions", directions=20, report="vector")
    np.testing.assert_array_equal(dense.randomize(np.eye(3), rng=PCG64(1)), vectors)


# ---- laws ----

COUNT, RECORDS = (
    9,
    [(math.nan, 0.0), (0.0, 0.0), (0.6, -0.8), (-0.6, 0.8), (0.1, 0.2), (1e300, 1e-300), (-3.0, math.inf)],
)


def law(survey, x, seed, coin_shown=None, m=None):
    """The exact law of the index, given the seed: the record is rounded to one of two points, of which each has an
    order; a coin decides between the first m of it and the others."""
    near, among_best = survey._best
    m, p = m or near.m, (coin_shown or among_best).probability
    pmf = [Fraction(0)] * survey.directions
    length = min(1.0, float(np.linalg.norm(np.clip(np.nan_to_num(x, nan=0.0), -9, 9))) / survey.radius)
    own = (1 + Fraction(length)) / 2
    for weight, rounding in ((own, 0), (1 - own, 2**64 - 1)):
        for rank, index in enumerate(orders(x, seed, rounding, survey.directions)):
            pmf[index] += weight * (p / m if rank < m else (1 - p) / (survey.directions - m))
    return pmf


class Claimed:
    """Laws of records by index that claim to be private."""

    def __init__(self, epsilon, rows):
        self.privacy, self.grid, self.grids = (
            Privacy(epsilon, neighbors="local"),
            Grid(0, len(rows) - 1, step=1.0),
            None,
        )
        self.rows = rows

    def law(self, x):
        row = self.rows[int(x[0])]
        return local.FiniteLaw(np.arange(len(row)), tuple(row))

    def verified(self):
        return audit.verify(self, values=len(self.rows))


@every("epsilon", [0.5, 1.0, 4.0])
@every("seed", [0, 77 << 4, 2**64 - 16])
def test_verified_for_a_seed(seed, epsilon):
    """Whatever the directions are: seeds are public, so laws given the seed are what must not differ."""
    survey = local.L2Ball(2, epsilon, method="directions", directions=COUNT)
    certificate = Claimed(epsilon, [law(survey, x, seed) for x in RECORDS]).verified()
    assert certificate.holds
    assert certificate.epsilon > 0.99 * epsilon


def test_controls():
    survey = local.L2Ball(2, 1.0, method="directions", directions=COUNT)
    near, among_best = survey._best
    assert near.m < COUNT - near.m
    even = [law(survey, x, 5 << 4, coin_shown=coin(1.0)) for x in RECORDS]  # odds of m among COUNT forgotten
    assert not Claimed(1.0, even).verified().holds
    fewer = [law(survey, x, 5 << 4, m=near.m - 1) for x in RECORDS]  # with the coin of one direction more
    assert not Claimed(1.0, fewer).verified().holds
    up = type(among_best)(among_best.threshold + 2**40, among_best.odds)
    assert not Claimed(1.0, [law(survey, x, 5 << 4, coin_shown=up) for x in RECORDS]).verified().holds


@pytest.mark.parametrize(("chosen", "holds"), [(False, True), (True, False)])
def test_directions_chosen_from_the_data_are_rejected(chosen, holds):
    """Four seeds. A client that draws two and sends the one with the direction nearest to its record leaks by the seed,
    although the index, given the seed, is private."""
    survey = local.L2Ball(2, 1.0, method="directions", directions=COUNT)
    seeds, rows = [s << 4 for s in (3, 8, 21, 40)], []
    for x in RECORDS[2:5]:
        best = [max(reference.scores(np.array(x), seed, 0, COUNT)) for seed in seeds]
        weights = [
            sum(Fraction(1, 16) for other in best if own > other) * 2 + Fraction(1, 16) if chosen else Fraction(1, 4)
            for own in best
        ]
        assert sum(weights) == 1
        rows.append([weight * p for weight, seed in zip(weights, seeds, strict=True) for p in law(survey, x, seed)])
    assert Claimed(1.0, rows).verified().holds == holds


# ---- parameters ----


def test_parameters():
    made = local.L2Ball(3, 1.0, method="directions")
    assert (made.report, made.directions) == ("index", 64)
    assert local.L2Ball(3, 1.0).report == "vector"
    one = local.L2Ball(1, 1.0, method="directions")
    assert (one.method, one.report) == ("halfspace", "sign")
    for report, method in (("sign", "directions"), ("index", "halfspace"), ("index", "privunit"), ("sign", "privunit")):
        with pytest.raises(ValueError, match=f"report='{report}' requires method="):
            local.L2Ball(3, 1.0, method=method, report=report)
    for wrong in (1, 1025):
        with pytest.raises(ValueError, match="directions must be"):
            local.L2Ball(3, 1.0, method="directions", directions=wrong)


@pytest.mark.parametrize("count", [2, 64])
def test_shuffled(count):
    """The share of near directions takes the place of 1 / k: less epsilon than any reports with this epsilon."""
    survey = local.L2Ball(3, 2.0, method="directions", directions=count)
    assert survey.share == Fraction(survey._best[0].m, count) <= Fraction(1, 2)
    ratio = Shuffled(survey, n=10**4, delta=1e-6).privacy.epsilon / Shuffled(2.0, n=10**4, delta=1e-6).privacy.epsilon
    assert ratio == 1 if count == 2 else 0.75 < ratio < 0.95


def test_shuffled_batches_are_below_the_bound():
    """Given the seed of all: three records in opposite directions, enumerated."""
    survey = local.L2Ball(2, 2.0, method="directions", directions=4)
    matrix = [law(survey, x, 5 << 2) for x in ((1.0, 0.0), (-1.0, 0.0), (0.0, 0.6))]
    batch = Shuffled(survey, n=3, delta=1e-6)
    for threshold in (Fraction(1), Fraction(3, 2), Fraction(4)):
        worst = shuffling.worst_delta(matrix, 3, threshold)
        assert 0 < worst <= Fraction(batch.delta_up(Fraction(math.log(threshold) * (1 - 2.0**-50))))
