"""Intervals of quantiles of the records that are not missing, for a public number of all records."""

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpfast as dpf
from dpfast import Grid, audit
from dpfast.laws import DiscreteLaplace
from dpfast.mechanisms.intervals import _Around, _Beyond, _limits, interval_for
from dpfast.mechanisms.slots import Anchored, taken_below
from dpfast.statistics import Median, Quantile
from tests.cases import every

NAN = math.nan
LEVELS = (0.0, 0.1, 0.3, 0.5, 0.62, 0.9, 1.0)
GRID = Grid(0, 3, step=1, missing="drop")


def PCG(seed):
    return np.random.PCG64(seed)


def column(n=20_000, share=0.6, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(87_000, 24_000, n)
    x[rng.random(n) < share] = NAN
    return x


@dataclass(frozen=True)
class EvenRank(Quantile):
    """Wrong: the rank is rounded up to an even number, so that one record which becomes missing moves it by two."""

    def rank(self, n):
        return min(n, 2 * math.ceil(super().rank(n) / 2))


# ---- places ----


@every("q", LEVELS)
def test_a_further_missing_record_takes_one_place_of_one_gap(q):
    anchor = Quantile(q)
    for n in (1, 2, 5, 9, 16):
        middle = anchor.rank(n)
        for below, above in itertools.product((0, 1, 4), (0, 1, 3)):
            ranks = tuple(sorted({max(middle - below, 1), middle, min(middle + above, n)}))
            for several in (ranks, *((rank,) for rank in ranks)):
                slots = Anchored(n, several, anchor)
                assert slots.ranks_without(0) == list(several)
                most = slots.left_out(n)
                assert [slots.left_out(absent) for absent in range(n + 1)] == [
                    min(absent, most) for absent in range(n + 1)
                ]
                gaps = [np.diff([0, *slots.ranks_without(k), n - k + 1]) for k in range(most + 1)]
                for fewer, more in itertools.pairwise(gaps):
                    assert sorted(more - fewer) == [-1] + [0] * len(several)
                for k in range(most + 1):
                    assert all(gaps[k] >= 1)
                    if len(several) > 1 and middle > 1 and anchor.rank(n - k) > 1:
                        assert anchor.rank(n - k) in slots.ranks_without(k)


# ---- privacy ----


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_the_audit_certifies_candidates_for_one_replaced_record(epsilon):
    for q, n in itertools.product((0.3, 1.0), (2, 4)):
        anchor = Quantile(q)
        options = {"statistic": anchor, "grid": GRID, "epsilon": epsilon}
        for rank, last in itertools.product(range(1, n + 1), (False, True)):
            one = _Around([(rank - 0.5) / n], absent_last=last, **options)
            assert audit.verify(one, n=n, values=3, ordered=False).holds
        for ranks in itertools.combinations(range(1, n + 1), 2):
            found = audit.verify(_Around([(r - 0.5) / n for r in ranks], **options), n=n, values=3, ordered=False)
            assert found.holds, found


def test_candidates_that_move_by_two_are_rejected():
    options = {"grid": Grid(0, 4, step=1, missing="drop"), "epsilon": 1.0}
    for kind, holds in ((Quantile, True), (EvenRank, False)):
        mechanism = _Around([0.5, 0.9], statistic=kind(0.5), **options)
        assert audit.verify(mechanism, n=5, values=2, ordered=False).holds == holds


def tallies(counting, x):
    return counting.law_of(counting.reading().of(np.array(x))).center.tolist()


@pytest.mark.parametrize("kind", [Quantile, EvenRank])
def test_each_count_changes_by_at_most_one_with_one_record(kind):
    changes = set()
    for q, n in itertools.product(LEVELS, (1, 2, 5)):
        counting = _Beyond(kind(q), GRID, 1, 2, Fraction(1))
        found = {
            places: tallies(counting, places)
            for places in itertools.combinations_with_replacement([0.0, 1.0, 3.0, NAN], n)
        }
        for places, i, other in itertools.product(found, range(n), [0.0, 1.0, 3.0, NAN]):
            kept = [*places[:i], *places[i + 1 :], other]
            there = tuple(sorted(value for value in kept if value == value))
            neighbour = next(
                tally
                for key, tally in found.items()
                if key[: len(there)] == there and all(value != value for value in key[len(there) :])
            )
            changes |= {a - b for a, b in zip(found[places], neighbour, strict=True)}
    assert (changes == {-1, 0, 1}) == (kind is Quantile)


# ---- coverage ----


def limit_below(n, q, epsilon, rank):
    return _limits(n, q, rank, 0.95, epsilon, epsilon, 50.0).first


ALLOWED = 0.9 * 0.025


@every("q", [0.1, 0.37, 0.5, 0.9])
@every("epsilon", [0.2, 1.0, 8.0])
def test_limits_of_counts_hold_whatever_the_number_of_missing_records(q, epsilon):
    for n in (30, 101, 250):
        rank, noise = Quantile(q).rank(n), DiscreteLaplace(2 / Fraction(epsilon))
        low, high = limit_below(n, q, epsilon, rank)
        usual = limit_below(n, q, epsilon, None)
        assert usual[0] - 1 - 2 / epsilon <= low <= usual[0]
        assert usual[1] - 1 - 2 / epsilon <= high <= usual[1]
        for m in range(0, n + 1, 1 if n < 100 else 3):
            present = np.arange(m + 1)
            share = taken_below(Quantile(q), n, n - m)
            for limit, part, absent in ((low, q, share), (high, 1 - q, n - m - share)):
                wrong = binom.pmf(present, m, part) @ noise.cdf((limit - present - absent).astype(float))
                assert limit < 0 or wrong <= ALLOWED


def test_limits_for_records_that_are_present_do_not_hold_if_some_are_missing():
    n, q, epsilon = 90, 0.3, 8.0
    limit, _ = limit_below(n, q, epsilon, None)
    noise, worst = DiscreteLaplace(2 / Fraction(epsilon)), 0.0
    for m in range(n + 1):
        counts = np.arange(m + 1) + taken_below(Quantile(q), n, n - m)
        worst = max(worst, float(binom.pmf(np.arange(m + 1), m, q) @ noise.cdf((limit - counts).astype(float))))
    assert worst > 1.05 * ALLOWED


@pytest.mark.parametrize("q", [0.3, 0.5])
def test_the_bound_of_order_statistics_holds_whatever_the_number_of_missing_records(q):
    """By the exact law of a single order statistic on records below and above the quantile of a small grid."""
    n, epsilon, anchor = 60, 4.0, Quantile(q)
    grid = Grid(0, 3, step=1, missing="drop")
    made = interval_for(anchor, grid, 10 * epsilon, 0.95)
    log_points = math.log(grid.size)

    def bound(rank, count):
        return min(1.0, math.exp(min(log_points + epsilon / 2 * (rank - count - 1), 0.0)) + math.exp(-42))

    for end, rank in ((0, 8), (1, 8)):
        release = made._statistic_of_order(end, rank, n, epsilon)
        for m in (0, 1, 10, 25, 59, 60):
            for inside in range(m + 1):  # records on the side of the end, at the quantile; the others are beyond it
                x = np.full(n, NAN)
                x[:m] = 2.0 - end
                x[:inside] = 1.0 + end
                law = release.plan(n)._joint(release.plan(n).read(x)[1])
                codes = range(2, 4) if not end else range(2)
                wrong = math.fsum(math.exp(float(law.logpmf(np.array([code])))) for code in codes)
                share = taken_below(anchor, n, n - m)
                count = inside + (share if not end else n - m - share)
                assert wrong <= bound(rank, count) * (1 + 1e-9), (end, m, inside)


@pytest.mark.parametrize("q", [0.2, 0.5])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_intervals_cover_the_quantile_of_the_population_that_is_present(q, share):
    truth, wrong, finite, runs = 87_000 + 24_000 * norm.ppf(q), 0, 0, 100
    made = dpf.interval
    for seed in range(runs):
        found = made(Quantile(q), column(4000, share, seed), epsilon=2.0, rng=PCG(seed))
        wrong += not found.low <= truth <= found.high
        finite += found.high - found.low < (20_000 if share < 0.5 else math.inf)
    assert binom.sf(wrong - 1, runs, 0.05) > 1e-9
    assert finite > 0.95 * runs


# ---- the default, and roads ----


def test_an_interval_without_bounds_is_among_the_records_that_are_present():
    x = column()
    found = dpf.interval("median", x, epsilon=1.0, rng=PCG(0))
    assert 75_000 < found.low < found.value < found.high < 100_000
    assert found == dpf.interval("median", x, epsilon=1.0, missing="drop", rng=PCG(0))
    assert dpf.interval("median", x, epsilon=1.0, missing="lower", rng=PCG(0)).value < -1e300
    bounded = dpf.interval("median", x, bounds=(0, 1e6), epsilon=1.0, rng=PCG(0))
    assert 75_000 < bounded.low < bounded.high < 100_000
    assert dpf.interval("median", x, bounds=(0, 1e6), missing="lower", epsilon=1.0, rng=PCG(0)).value < 10.0


@pytest.mark.parametrize("grid", [Grid(0, 200_000, step=1), dpf.FloatGrid(), Grid(0, 4, step=1)], ids=str)
def test_all_roads_release_the_same(grid):
    for q, n, share in itertools.product((0.0, 0.1, 1.0), (1, 3, 2000), (0.0, 0.3, 0.97, 1.0)):
        x = column(n, share, n)
        mechanism = interval_for(
            Quantile(q),
            replace(grid, missing="drop") if not isinstance(grid, dpf.FloatGrid) else grid.with_missing("drop"),
            1.0,
            0.95,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpf.UtilityWarning)
            releases = [
                mechanism(x, rng=PCG(1)),
                mechanism(x[::-1], rng=PCG(1), workers=2),
                mechanism(dpf.Chunks(lambda x=x: iter(np.array_split(x, 3))), rng=PCG(1)),
            ]
        assert releases[0] == releases[1] == releases[2], (q, n, share)


def test_an_interval_of_groups_leaves_them_out():
    x, labels = column(20_000, 0.4), np.arange(20_000) % 2
    found = dpf.interval("median", x, labels=labels, keys=[0, 1], epsilon=1.0, rng=PCG(0))
    assert all(70_000 < found[key].low < found[key].high < 105_000 for key in (0, 1))


def test_the_explanation_says_so():
    said = []
    dpf.interval("median", column(1000), epsilon=1.0, explain=said.append)
    assert "Missing records (NaN, None, null) are left out." in "\n".join(said)


def test_median_and_the_quantile_of_a_half_have_one_rank():
    assert [Median().rank(n) for n in range(1, 200)] == [Quantile(0.5).rank(n) for n in range(1, 200)]
