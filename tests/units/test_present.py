"""The mean of the records that are not missing, for a public number of all records."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import dpfast as dpf
from dpfast import Grid, audit
from dpfast.mechanisms.intervals import interval_for
from dpfast.statistics import Mean, Median
from dpfast.streaming import State
from tests.cases import every

NAN = math.nan
NORMAL = scipy.stats.norm(80, 20)


def PCG(seed):
    return np.random.PCG64(seed)


def on(grid, epsilon=1.0, kind=dpf.PresentMean):
    return kind(grid=grid.with_missing("drop"), epsilon=epsilon)


def column(n=3000, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, NAN, rng.normal(30, 20, n))


# ---- privacy ----


class Windowed(dpf.PresentMean):
    """Releases the noisy sum and number, in a window with nearly all of the probability."""

    def law(self, x, *, workers=1):
        law = super().law(x, workers=workers)
        law.outcomes = lambda: np.array(list(itertools.product(range(-60, 61), range(-20, 24))))
        law.value = lambda k: k
        return law


class FromTheLowerBound(Windowed):
    """Wrong: codes count from the lower bound, so that a missing record changes the sum by up to the whole width."""

    def centered(self, n, total, absent):
        return 2 * total // self.unit, absent


class Doubled(Windowed):
    """Wrong: the noise on the number of missing records is for all of epsilon, as if the sum did not change, too."""

    @property
    def noises(self):
        of_sum, _ = super().noises
        return of_sum, dpf.laws.DiscreteLaplace(1 / Fraction(self.epsilon))


@every("last", [1, 2, 3])
def test_the_audit_certifies_the_guarantee_and_rejects_wrong_ones(last):
    grid = Grid(0, last, step=1)
    for n in (1, 3):
        found = audit.verify(on(grid, 3.0, Windowed), n=n, values=last + 1, ordered=False)
        assert found.holds
        assert found.epsilon == pytest.approx(3.0, rel=1e-6)
    for wrong in (FromTheLowerBound, Doubled):
        found = audit.verify(on(grid, 3.0, wrong), n=2, values=last + 1, ordered=False)
        assert not found.holds
        assert any(math.isnan(value) for dataset in found.worst for value in dataset)


def hockey_stick(p, q, epsilon):
    """Return the least delta for epsilon."""
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


@every("last, epsilon", itertools.product([1, 2, 3], [0.5, 3.0]))
def test_the_profile_is_above_the_deltas_of_all_neighbours(last, epsilon):
    mechanism = on(Grid(0, last, step=1), epsilon)
    reach = [math.ceil(20 * noise.scale) + last for noise in mechanism.noises]
    outcomes = np.stack(np.meshgrid(*(np.arange(-each, each) for each in reach), indexing="ij"), axis=-1)
    laws = [np.exp(mechanism.law(np.array([float(x), last, 0.0])).logpmf(outcomes)) for x in (0, last // 2, last, NAN)]
    for amount in np.linspace(0, 1.1, 7) * epsilon:
        least = max(hockey_stick(p, q, amount) for p, q in itertools.permutations(laws, 2))
        assert least <= mechanism.privacy_profile.delta(amount) + 1e-9
    assert mechanism.privacy == dpf.Privacy(epsilon)


# ---- releases ----


@every("grid", [Grid(0, 100), Grid(0, 99, step=1), Grid(-50, 50, step=1), Grid(7, 8, step=1)])
def test_without_missing_records_it_is_the_mean_of_all(grid):
    """From the same words, except where noise alone passes for missing records."""
    x = np.random.default_rng(1).normal(30, 20, 500)
    usual = dpf.GlobalSensitivity(Mean(), grid=grid, epsilon=0.7, noise="discrete-laplace")
    if grid.size % 2:
        assert [on(grid, 0.7)(x, rng=PCG(s)) for s in range(50)] == [usual(x, rng=PCG(s)) for s in range(50)]
    made = np.array([on(grid, 0.7)(x) for _ in range(4000)])
    error, expected = (float(np.std(values)) for values in (made, [usual(x) for _ in range(4000)]))
    assert error == pytest.approx(expected, rel=0.12)
    assert np.mean(made) == pytest.approx(np.mean(grid.decode(grid.encode(x))), abs=5 * error / math.sqrt(4000))


@every("share", [0.02, 0.3, 0.9])
def test_the_mean_of_those_that_are_present(share):
    x, grid = column(20_000, share), Grid(0, 100)
    true = np.nanmean(np.clip(x, 0, 100))
    made = np.array([dpf.mean(x, bounds=(0, 100), epsilon=1.0) for _ in range(500)])
    present = np.count_nonzero(~np.isnan(x))
    expected = math.sqrt(2 * 100**2 + 8 * (true - 50) ** 2) / present  # of both noises
    assert math.sqrt(np.mean((made - true) ** 2)) == pytest.approx(expected, rel=0.25)
    assert abs(dpf.mean(x, grid=grid, epsilon=1.0) - true) > 0.5  # a grid says itself what becomes of them


def test_few_missing_records_count_as_the_middle():
    mechanism = on(Grid(0, 100, step=1), 1e6)
    x = np.array([10.0, 20.0, NAN, NAN])
    assert mechanism.few == 0
    assert mechanism(x) == 15.0
    assert [on(Grid(0, 100), epsilon).few for epsilon in (0.1, 1.0, 4.0)] == [99, 10, 2]  # 0.1 is above a tenth
    assert on(Grid(0, 100, step=1), 1e6)(np.array([NAN, NAN])) == 50.0  # of no record
    assert on(Grid(0, 100), 1e-3).mean(500, 0, 400) == 50.0


@every("grid", [Grid(0, 100), Grid(0, 99, step=1), Grid(-3, 4, step=0.5)])
def test_all_roads_draw_the_same(grid):
    for n, share in itertools.product((1, 2, 3000), (0.0, 0.6, 1.0)):
        x, mechanism = column(n, share, n), on(grid, 0.9)
        parts = [mechanism.start() for _ in range(3)]
        for part, chunk in zip(parts, np.array_split(x, 3), strict=True):
            part.update(chunk)
        state = State.from_bytes(parts[0].to_bytes(), mechanism)
        for part in parts[1:]:
            state.merge(State.from_bytes(part.to_bytes(), mechanism))
        law = mechanism.law(x)
        releases = [
            mechanism(x, rng=PCG(1)),
            mechanism(x[::-1].astype(np.float32).astype(np.float64) if grid.step == 1 else x[::-1], rng=PCG(1)),
            mechanism(dpf.Chunks([x]), rng=PCG(1), workers=2),
            mechanism(dpf.Counted(x, np.ones(n, int)), rng=PCG(1)),
            mechanism(np.ma.masked_invalid(x), rng=PCG(1)),
            state.release(rng=PCG(1)),
            law.value(law.sample(rng=PCG(1))),
        ]
        assert len(set(releases)) == 1, (n, share)
        assert law.value(np.array([[0, 0], [1, 1]])).shape == (2,)


def test_groups_have_the_law_of_each():
    grid, counts = Grid(0, 99, step=1), np.array([0, 1, 40, 400])
    labels = np.repeat(np.arange(4), counts)
    x = column(len(labels), 0.4, 5)
    mechanism = on(grid, 1.0)
    made = np.array([dpf.by_group(mechanism, x, labels=labels, num_groups=4) for _ in range(1000)])
    for g in (1, 2, 3):
        alone = np.sort([mechanism(x[labels == g]) for _ in range(1000)])
        shares = [np.searchsorted(np.sort(each), alone, side="right") / 1000 for each in (made[:, g], alone)]
        assert np.max(np.abs(shares[0] - shares[1])) < 0.09, g
    assert set(made[:, 0]) <= set(range(100))  # no records: any point
    assert len(set(made[:, 0])) > 50
    ordered = dpf.by_group(mechanism, x, labels=labels, num_groups=4, rng=PCG(1))
    back = slice(None, None, -1)
    assert np.array_equal(ordered, dpf.by_group(mechanism, x[back], labels=labels[back], num_groups=4, rng=PCG(1)))


def test_functions_leave_out_missing_records_where_that_costs_nothing():
    x = column()
    for container in (x, x.astype(np.float32), np.ma.masked_invalid(x), list(x)):
        drawn = [
            dpf.mean(container, bounds=(0, 100), epsilon=1.0, rng=PCG(1), **options)
            for options in ({}, {"missing": "drop"}, {"distribution": (1, 90)})
        ]
        assert len(set(drawn)) == 1
        assert abs(drawn[0] - np.nanmean(np.clip(x, 0, 100))) < 0.5
    assumed = [dpf.mean(50 + x, bounds=(0, 1e6), epsilon=1.0, distribution=around) for around in ((50, 110), NORMAL)]
    assert np.abs(np.array(assumed) - 80).max() < 5  # within bounds that are found, a missing record is a typical one
    with pytest.raises(ValueError, match="a PresentMean leaves out missing records: the grid needs missing='drop'"):
        dpf.PresentMean(grid=Grid(0, 1), epsilon=1.0)
    with pytest.raises(TypeError, match=r"statistic must be Mean\(\)"):
        dpf.PresentMean(Median(), grid=Grid(0, 1, missing="drop"), epsilon=1.0)
    with pytest.raises(ValueError, match="records times grid points must be below"):
        on(Grid(0, 200_000)).plan(2**31)
    on(Grid(0, 200_000)).plan(2**30)


# ---- intervals ----


@every("share", [0.0, 0.02, 0.4, 1.0])
def test_intervals_cover_the_mean_of_the_population_of_those_that_are_present(share):
    """Of a skewed population; those that count no missing records are narrower if there are none."""
    rng, covered, widths = np.random.default_rng(3), 0, []
    for _ in range(300):
        x = np.where(rng.random(2000) < share, NAN, rng.exponential(10, 2000).clip(0, 100))
        found = dpf.interval("mean", x, bounds=(0, 100), epsilon=1.0, rng=rng)
        covered += found.low <= 9.9955 <= found.high  # 10 - 10 exp(-10)
        widths.append(found.high - found.low)
    assert covered >= 279
    assert (min(widths) == 100) == (share == 1)
    if share == 0:
        least = dpf.interval("mean", x, bounds=(0, 100), epsilon=1.0, missing="lower")
        assert 1.1 < np.mean(widths) / (least.high - least.low) < 1.7


def test_intervals_of_present_records_have_the_guarantee_of_both_parts():
    mechanism = interval_for(Mean(), Grid(0, 100, missing="drop"), 1.0, 0.95)
    assert mechanism.privacy == dpf.Privacy(1.0)
    assert [part[0] for part in mechanism.privacy_profile.parts] == ["discrete-laplace", "laplace"]
    assert [part[1] for part in mechanism.privacy_profile.parts] == pytest.approx([0.6, 0.4])
    x = column(500)
    one, other = (mechanism(x, rng=PCG(1)) for x in (x, dpf.Chunks([x[:9], x[9:]])))
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    for confidence in (1e-17, 1 - 2**-50):
        with pytest.raises(ValueError, match="confidence must be from"):
            dpf.interval("mean", x, bounds=(0, 100), epsilon=1.0, confidence=confidence)
    with pytest.raises(ValueError, match="'lower' or 'half' for the interval of the variance"):
        dpf.interval("variance", x, bounds=(0, 100), epsilon=1.0, missing="drop")
