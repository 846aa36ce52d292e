"""Bounds found privately: round, in order, of the stated coverage; statistics within them, charged in one piece."""

import itertools
import math
import operator
import pickle
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.stats import gamma, norm, uniform

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy
from dpfast._kernels._calls import Parameters
from dpfast.core import containers
from dpfast.mechanisms import GlobalSensitivity, MomentPair
from dpfast.mechanisms.bounds import _Coverage, rounded_outward
from dpfast.mechanisms.methods import mechanism_for
from dpfast.statistics import Huber, Mean, Median, Sum, TrimmedMean, Variance, WinsorizedMean
from tests.cases import every
from tests.untouchable import Untouchable

PAY = np.random.default_rng(1).lognormal(10.5, 0.6, 20_000)
WITHIN = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-300)


def round_steps():
    return [m * Fraction(10) ** k for k in range(-340, 110) for m in (1, 2, 5)]


STEPS = round_steps()


class TestRounding:
    @settings(max_examples=500)
    @given(WITHIN | st.integers(-1000, 1000).map(float), WITHIN | st.integers(-1000, 1000).map(float))
    def test_outward_to_a_round_step(self, a, b):
        low, high = min(a, b), max(a, b)
        lower, upper = rounded_outward(low, high)
        assert lower <= low <= high <= upper
        assert lower < upper
        width = max(high - low, max(abs(low), abs(high)) / 1e6 if low or high else 1)
        assert upper - lower <= 1.51 * width
        quarter = Fraction(width) / 4
        step = STEPS[bisect_right(STEPS, quarter * (1 + Fraction(1, 10**9))) - 1]
        for end in (lower, upper):
            assert abs(end / step - round(end / step)) < 1e-6 * max(1, abs(end / step))

    @every(
        "ends, rounded",
        [
            ((3.1, 97.2), (0.0, 100.0)),
            ((997.4, 1002.6), (997.0, 1003.0)),
            ((-2.58, 2.58), (-3.0, 3.0)),
            ((5200.0, 141_000.0), (0.0, 160_000.0)),
            ((0.0, 1.0), (0.0, 1.0)),
            ((0.0, 0.0), (-0.2, 0.2)),
            ((5.0, 5.0), (4.999999, 5.000001)),
            ((-1e99, 9e99), (-2e99, 1e100)),
        ],
    )
    def test_known(self, ends, rounded):
        assert rounded_outward(*ends) == rounded


class TestBounds:
    @pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
    def test_coverage(self, coverage):
        for x in (PAY, -PAY, PAY * 1e-9, np.random.default_rng(0).normal(1000, 1, 20_000)):
            lower, upper = dpf.bounds(x, epsilon=5.0, coverage=coverage, rng=PCG64(0))
            share = np.mean((x >= lower) & (x <= upper))
            assert coverage - 0.02 < share
            low, high = np.quantile(x, [(1 - coverage) / 2, (1 + coverage) / 2])
            assert upper - lower < 1.7 * (high - low)

    def test_integers_and_chunks(self):
        ages = np.random.default_rng(0).integers(18, 90, 20_000)
        found = dpf.bounds(ages, epsilon=5.0, rng=PCG64(0))
        assert found == dpf.bounds(dpf.Chunks.slices(ages, 999), epsilon=5.0, rng=PCG64(0))
        assert found == (10.0, 90.0)
        assert dpf.bounds(ages > 50, epsilon=5.0, rng=PCG64(0)) == (0.0, 1.0)

    def test_always_in_order(self):
        """Few records, ties, infinities, NaN: lower < upper, both finite, and a grid of any statistic."""
        for x, seed in itertools.product(([1.0], [0.0], [math.inf, -math.inf], [math.nan], [math.nan, 5.0]), range(40)):
            lower, upper = dpf.bounds(np.resize(x, 330), epsilon=1.0, rng=PCG64(seed))
            assert lower < upper
            assert max(abs(lower), abs(upper)) <= 2e100
            dpf.GlobalSensitivity(Variance(), grid=dpf.Grid(lower, upper), epsilon=1.0)

    def test_few_records_are_refused_by_their_public_number(self):
        for x, least in ((np.zeros(283), 284), (np.full(283, np.nan), 284), (np.zeros(223, int), 224)):
            with Ledger(1.0) as ledger, pytest.raises(ValueError, match=f"bounds need {least} records for epsilon=1.0"):
                dpf.bounds(x, epsilon=1.0)
            assert not ledger.charges

    def test_bounds_of_records_far_from_zero(self):
        """Of levels that n does not reach: inner quantiles are extended."""
        x = np.random.default_rng(1).normal(1e5, 10, 5000)
        found = np.array([dpf.bounds(x, epsilon=1.0, rng=PCG64(seed)) for seed in range(200)])
        assert np.mean((found[:, 0] >= 9e4) & (found[:, 1] <= 1.1e5)) >= 0.99
        assert np.mean([np.mean((x >= low) & (x <= high)) for low, high in found]) > 0.98

    @pytest.mark.parametrize("share", [0.05, 0.24, 0.4])
    def test_missing_records_do_not_become_a_bound(self, share):
        rng = np.random.default_rng(2)
        x = rng.normal(50, 15, 4000)
        x[rng.random(4000) < share] = math.nan
        for seed in range(10):
            lower, upper = dpf.bounds(x, epsilon=1.0, rng=PCG64(seed))
            assert -200 < lower < 20
            assert 80 < upper < 300
            found = {
                missing: dpf.mean(x, bounds="private", epsilon=1.0, missing=missing, rng=PCG64(seed))
                for missing in (None, "half", "lower")
            }
            assert abs(found[None] - 50) < 3  # a released median stands for missing records
            assert abs(found["half"] - 50) < 150  # they count as bounds that are found
            assert found["lower"] < found[None]

    def test_the_median_that_stands_for_missing_records_changes_no_guarantee(self):
        """Of all small neighbours, whatever was released first; a median of the records at hand is rejected."""
        plan = mechanism_for(Mean(), [0.5], Parameters("private", None, 1.0, 0.0, "global-sensitivity")).plan(1000)
        quantiles = list(map(Fraction, (0, 1, 2, 3)))
        records = [-math.inf, 1.0, 3.0, math.nan]

        def loss(median_of):
            laws = {}
            for x in itertools.product(records, repeat=2):
                within = replace(plan.mechanism_within(quantiles, median_of(x)), epsilon=1.0)
                grid = dpf.Grid(-4, 4, step=1, missing=within.grid.missing)
                law = replace(within, grid=grid).law(np.array(x))
                laws[x] = law.logpmf(law.outcomes())
            neighbors = [pair for pair in itertools.permutations(laws, 2) if sum(map(operator.is_not, *pair)) == 1]
            return max(float(np.max(laws[x] - laws[y])) for x, y in neighbors)

        ends = plan.grid_for(quantiles)
        for median in (-1e100, 1.5, 2.0, 1e100):
            assert plan.grid_for(quantiles, median).missing == min(max(median, ends.lower), ends.upper)
            assert loss(lambda _, median=median: median) <= 1 + 1e-9
        assert loss(lambda x: np.nanmax([*x, -4.0])) > 1.2

    @every("kind", ["masked", "chunks", "counted"])
    def test_missing_integers_do_not_become_a_bound(self, kind):
        """The type says whether integers may be missing; a control takes them for integers of which none is."""
        whole = np.random.default_rng(1).integers(1000, 2000, 4000)
        masked = np.ma.array(whole, mask=np.arange(4000) % 4 == 0)
        counted = dpf.Counted([None, *range(1000, 2000)], [1000, *np.bincount(whole[:3000] - 1000, minlength=1000)])
        x = {"masked": masked, "chunks": dpf.Chunks([masked[:1500], masked[1500:]]), "counted": counted}[kind]
        for seed in range(5):
            low, high = dpf.bounds(x, epsilon=1.0, rng=PCG64(seed))
            assert 0 <= low <= 1000 < 1990 <= high <= 3000
            assert abs(dpf.mean(x, bounds="private", epsilon=1.0, rng=PCG64(seed)) - 1500) < 100
        assert not containers.may_be_missing(whole)
        full = _Coverage(0.99, 1.0, 1.0, full=True)
        assert full(np.ma.filled(masked.astype(float), np.nan), rng=PCG64(1))[0] < -1e9

    def test_one_charge(self):
        with Ledger(1.0) as ledger:
            dpf.bounds(PAY, epsilon=0.25)
        assert ledger.spent == Privacy(0.25)

    @every(
        "options, error, message",
        [
            ({"coverage": 1}, ValueError, "coverage must be strictly between 0 and 1, not 1"),
            ({"coverage": 0.0}, ValueError, "coverage must be strictly between 0 and 1"),
            ({"coverage": "most"}, TypeError, "coverage must be a real number"),
            ({"epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"rng": 3}, TypeError, "rng must be None"),
        ],
    )
    def test_refused(self, options, error, message):
        with pytest.raises(error, match=message):
            dpf.bounds(Untouchable(), **{"epsilon": 1.0, **options})


FUNCTIONS = {
    "mean": (lambda x, **options: dpf.mean(x, **options), np.mean),
    "sum": (lambda x, **options: dpf.sum(x, **options), np.sum),
    "std": (lambda x, **options: dpf.std(x, **options), np.std),
    "variance": (lambda x, **options: dpf.variance(x, **options), np.var),
    "trimmed mean": (lambda x, **options: dpf.trimmed_mean(x, 0.1, **options), None),
    "Winsorized mean": (lambda x, **options: dpf.winsorized_mean(x, 0.1, **options), None),
    "Huber": (lambda x, **options: dpf.huber(x, 20_000, **options), None),
    "smooth median": (lambda x, **options: dpf.median(x, method="smooth-sensitivity", **options), np.median),
    "mean, inverse": (lambda x, **options: dpf.mean(x, method="inverse-sensitivity", **options), np.mean),
}


class TestPrivateBounds:
    @every("name", FUNCTIONS)
    def test_close_to_the_statistic(self, name):
        function, exact = FUNCTIONS[name]
        expected = function(PAY, bounds=(0, 1e6), epsilon=1e4, rng=PCG64(0)) if exact is None else exact(PAY)
        for x in (PAY, PAY.tolist(), dpf.Chunks.slices(PAY, 4097)):
            assert function(x, bounds="private", epsilon=10.0, rng=PCG64(1)) == pytest.approx(expected, rel=0.05)

    def test_chunks_are_arrays(self):
        options = {"bounds": "private", "epsilon": 1.0}
        chunks = dpf.Chunks.slices(PAY, 999)
        for seed in range(5):
            assert dpf.mean(chunks, **options, rng=PCG64(seed)) == dpf.mean(PAY, **options, rng=PCG64(seed))

    def test_integers_of_any_size(self):
        """Step 1, and a coarser one where bounds are far: no exception."""
        rng = np.random.default_rng(0)
        for scale in (1, 10**6, 10**15):
            x = rng.integers(0, 2000, 5000) * scale
            total = x.sum(dtype=float)
            assert dpf.sum(x, bounds="private", epsilon=2.0, rng=PCG64(0)) == pytest.approx(total, rel=0.05)
        for seed in range(30):  # bounds that say nothing
            dpf.mean(np.full(480, -(2**63)), bounds="private", epsilon=1.0, rng=PCG64(seed))

    def test_the_ledger_charges_both_in_one_piece(self):
        with Ledger(0.5, composition="renyi", delta=1e-9) as ledger:
            dpf.mean(PAY, bounds="private", epsilon=0.25)
        [charge] = ledger.charges
        assert charge.times == 1
        mechanism = mechanism_for(Mean(), PAY, Parameters("private", None, 0.25, 0.0, "global-sensitivity"))
        assert mechanism.privacy == Privacy(0.25)
        assert mechanism.privacy_profile.parts == (("pure", 0.25, 1),)
        assert "within bounds found privately" in repr(mechanism)
        with Ledger(0.2) as small, pytest.raises(BudgetError):
            dpf.mean(Untouchable(), bounds="private", epsilon=0.25)
        assert not small.charges

    def test_the_shares_add_up_to_at_most_epsilon(self):
        for epsilon, n in itertools.product((1e-6, 0.1, 1 / 3, 1.7e308), (10**5, 10**9)):
            n = max(n, math.ceil(500 / epsilon))
            plan = mechanism_for(Sum(), PAY, Parameters("private", None, epsilon, 0.0, "global-sensitivity")).plan(n)
            assert Fraction(plan.center) + Fraction(plan.finding) + Fraction(plan.releasing) <= Fraction(epsilon)
            assert plan.releasing >= 0.2499 * epsilon

    def test_it_is_two_releases(self):
        """The slow twin: a median, four joint quantiles, the outer ones moved outward, the statistic within them."""
        for n, epsilon in ((1000, 1.0), (20_000, 0.3)):
            x, rng = PAY[:n].copy(), Generator(PCG64(5))
            x[::5] = np.nan
            plan = mechanism_for(Mean(), PAY, Parameters("private", None, epsilon, 0.0, "global-sensitivity")).plan(n)
            levels = [plan.beyond, 2 * plan.beyond, 1 - 2 * plan.beyond, 1 - plan.beyond]
            floats = dpf.FloatGrid(resolution=2.0**-900, lower=-1e100, upper=1e100, missing="half")
            median = dpf.InverseSensitivity(Median(), grid=floats, epsilon=plan.center)(x, rng=rng)
            floats = floats.with_missing(median)
            low, inner, above, high = dpf.Quantiles(levels, grid=floats, epsilon=plan.finding)(x, rng=rng).tolist()
            ends = low - plan.stretch * (inner - low), high + plan.stretch * (high - above)
            grid = dpf.Grid(*rounded_outward(*ends, 64), missing=median)
            expected = dpf.GlobalSensitivity(Mean(), grid=grid, epsilon=plan.releasing)(x, rng=rng)
            assert dpf.mean(x, bounds="private", epsilon=epsilon, rng=PCG64(5)) == pytest.approx(expected, rel=1e-9)

    @every(
        "call, error, message",
        [
            (lambda x: dpf.mean(x, bounds="publik", epsilon=1.0), ValueError, "or 'private', not 'publik'"),
            (lambda x: dpf.mean(x, bounds="private", grid=dpf.Grid(0, 1), epsilon=1.0), TypeError, "give either"),
            (lambda x: dpf.mean(x, bounds="private", epsilon=-1.0), ValueError, "epsilon must be positive"),
            (
                lambda x: dpf.variance(x, bounds="private", epsilon=1.0, delta=0.1, method="global-sensitivity"),
                ValueError,
                "delta must be 0 for method='global-sensitivity'",
            ),
            (lambda x: dpf.huber(x, -1.0, bounds="private", epsilon=1.0), ValueError, "k must be positive"),
            (
                lambda x: dpf.median(x, bounds="private", epsilon=1e-12, method="smooth-sensitivity"),
                ValueError,
                "beta must be at least",
            ),
        ],
    )
    def test_refused_before_data_are_read(self, call, error, message):
        with pytest.raises(error, match=message):
            call(Untouchable())

    def test_few_records_are_refused_by_their_public_number(self):
        for x in (np.zeros(447), np.full(447, np.nan), dpf.Chunks.slices(np.ones(447), 100)):
            with (
                Ledger(1.0) as ledger,
                pytest.raises(ValueError, match=r"bounds='private' needs 448 records for epsilon=1.0, not 447"),
            ):
                dpf.mean(x, bounds="private", epsilon=1.0)
            assert not ledger.charges
        assert np.isfinite(dpf.mean(np.ones(448), bounds="private", epsilon=1.0))

    def test_it_reads_no_streams_and_has_no_law(self):
        for statistic in (Mean(), TrimmedMean(0.1), WinsorizedMean(0.1), Huber(2.0)):
            method = "global-sensitivity" if statistic == Mean() else "inverse-sensitivity"
            mechanism = mechanism_for(statistic, PAY, Parameters("private", None, 1.0, 0.0, method))
            with pytest.raises(TypeError, match="each of which reads all records"):
                mechanism.start()
            with pytest.raises(TypeError, match="each of which reads all records"):
                mechanism.law(PAY)
        smooth = mechanism_for(Median(), PAY, Parameters("private", None, 1.0, 1e-6, "smooth-sensitivity"))
        assert smooth.privacy == Privacy(1.0, 1e-6)

    @pytest.mark.parametrize(
        ("statistic", "method"),
        [(Mean(), "global-sensitivity"), (Median(), "interpolated"), (Median(), "smooth-sensitivity")],
    )
    def test_pickled_copies_are_equal(self, statistic, method):
        mechanism = mechanism_for(statistic, PAY, Parameters("private", None, 1.0, 0.0, method))
        made = pickle.loads(pickle.dumps(mechanism))
        assert made == mechanism
        assert hash(made) == hash(mechanism)
        assert made(PAY, rng=PCG64(1)) == mechanism(PAY, rng=PCG64(1))


WIDE = {"bounds": (0, 3e8), "epsilon": 1.0, "method": "private-bounds"}


class TestInsideBounds:
    def test_wide_bounds_cost_little(self):
        """With bounds a thousand times too wide, the error is a hundredth of that of the default at most."""
        errors = [abs(dpf.mean(PAY[:5000], **WIDE, rng=PCG64(seed)) - PAY[:5000].mean()) for seed in range(40)]
        others = [dpf.mean(PAY[:5000], bounds=(0, 3e8), epsilon=1.0, rng=PCG64(seed)) for seed in range(40)]
        assert 100 * np.mean(errors) < np.mean(np.abs(others - PAY[:5000].mean()))

    def test_it_is_two_releases(self):
        x, rng, grid = PAY[:2000], Generator(PCG64(7)), dpf.Grid(0, 3e8)
        plan = mechanism_for(Mean(), x, Parameters((0, 3e8), None, 1.0, 0.0, "private-bounds")).plan(2000)
        levels = [plan.beyond, 2 * plan.beyond, 1 - 2 * plan.beyond, 1 - plan.beyond]
        floats = dpf.FloatGrid(12, resolution=2048 * grid.step, lower=0, upper=3e8)
        low, inner, above, high = dpf.Quantiles(levels, grid=floats, epsilon=plan.finding)(x, rng=rng).tolist()
        lower, upper = max(low - plan.stretch * (inner - low), 0), high + plan.stretch * (high - above)
        part = dpf.Grid(lower, upper, step=grid.step)
        expected = dpf.GlobalSensitivity(Mean(), grid=part, epsilon=plan.releasing)(x, rng=rng)
        assert dpf.mean(x, **WIDE, rng=PCG64(7)) == expected

    @pytest.mark.parametrize("name", ["mean", "sum", "std", "variance"])
    def test_close_to_the_statistic(self, name):
        function, exact = FUNCTIONS[name]
        for x in (PAY, dpf.Chunks.slices(PAY, 4097)):
            assert function(x, **{**WIDE, "epsilon": 10.0}, rng=PCG64(1)) == pytest.approx(exact(PAY), rel=0.05)

    @every(
        "grid",
        [dpf.Grid(0, 1, step=1), dpf.Grid(-3, 1000, step=1), dpf.Grid(1e9, 1e9 + 4), dpf.Grid(-1e300, 1e300)],
        ids=str,
    )
    @every("missing", [None, 2.0, "half"])
    def test_all_data_have_a_release_inside_the_bounds(self, grid, missing):
        mechanism = mechanism_for(Mean(), [0.5], Parameters(None, grid, 1.0, 0.0, "private-bounds", missing=missing))
        for value in (grid.lower, grid.upper, np.nan, np.inf, -np.inf):
            for seed in range(4):
                assert grid.lower <= mechanism(np.full(400, value), rng=PCG64(seed)) <= grid.upper

    @pytest.mark.parametrize("bounds", [(-8e307, 8e307), (0.0, 1.7e308), (1e308, 1.7e308)], ids=str)
    def test_bounds_near_the_largest_double(self, bounds):
        """The outer quantiles move outward beyond all doubles, whatever the records are."""
        mechanism = mechanism_for(Mean(), [0.5], Parameters(bounds, None, 1.0, 0.0, "private-bounds"))
        rng = np.random.default_rng(1)
        for x in (rng.choice(bounds, 400), rng.normal(size=400), np.linspace(bounds[0] / 2, bounds[1] / 2, 400)):
            for seed in range(4):
                assert math.isfinite(mechanism(x, rng=PCG64(seed)))

    def test_the_error_is_predicted(self):
        """The frequency of errors below the prediction in 300 releases: 4.5 standard deviations of it are 0.1."""
        mechanism = mechanism_for(Mean(), [0.5], Parameters((-1e4, 1e4), None, 0.5, 0.0, "private-bounds"))
        records = norm(50, 10)
        bound, rng = mechanism.error(2000, distribution=records, confidence=0.8), np.random.default_rng(3)
        samples = (rng.normal(50, 10, 2000) for _ in range(300))
        errors = [abs(mechanism(x, rng=PCG64(i)) - 50) for i, x in enumerate(samples)]
        assert abs(np.mean(np.array(errors) <= bound) - 0.8) < 0.1
        assert abs(np.mean(np.array(errors) <= bound / 1.5) - 0.8) > 0.1
        total = mechanism_for(Sum(), [0.5], Parameters((-1e4, 1e4), None, 0.5, 0.0, "private-bounds"))
        assert total.error(2000, distribution=records, confidence=0.8) == pytest.approx(2000 * bound)

    @every(
        "call, error, message",
        [
            (lambda x: dpf.mean(x, **{**WIDE, "bounds": "private"}), ValueError, "give these, or no method"),
            (lambda x: dpf.mean(x, **{**WIDE, "bounds": None}), TypeError, "bounds"),
            (lambda x: dpf.mean(x, **WIDE, delta=0.1), ValueError, "delta must be 0"),
            (lambda x: dpf.mean(x, **{**WIDE, "epsilon": 0.0}), ValueError, "epsilon must be positive"),
            (lambda x: dpf.mean(np.zeros(383), **WIDE), ValueError, "'private-bounds' needs 384 records"),
        ],
    )
    def test_refused(self, call, error, message):
        with pytest.raises(error, match=message):
            call(Untouchable())

    def test_errors_that_are_not_known(self):
        mechanism = mechanism_for(Huber(1.0), [0.5], Parameters("private", None, 1.0, 0.0, "inverse-sensitivity"))
        with pytest.raises(TypeError, match=r"no error is known for the .* within private bounds"):
            mechanism.error(1000, distribution=norm())
        mechanism = mechanism_for(Variance(), [0.5], Parameters((0, 1), None, 1.0, 0.0, "private-bounds"))
        with pytest.raises(TypeError, match="give distribution="):
            mechanism.error(1000, deviation=1.0)


class TestVarianceWithin:
    """Of a variance, the bounds decide between noise on it and noise on a pair of moments."""

    @staticmethod
    def made(bounds=(0, 200), method="private-bounds"):
        return mechanism_for(Variance(), [0.5], Parameters(bounds, None, 1.0, 0.0, method))

    @every(
        "quantiles, kind",
        [
            ((10, 12, 40, 42), MomentPair),  # tails of equal length
            ((10, 11, 40, 49), MomentPair),  # the shorter is a tenth of both
            ((10, 11, 40, 50), GlobalSensitivity),
            ((10, 19, 40, 40), GlobalSensitivity),
            ((10, 10, 40, 40), GlobalSensitivity),  # rare events, or equal records: nothing is known of the mean
        ],
    )
    def test_the_tails_of_released_quantiles_choose(self, quantiles, kind):
        found = list(map(Fraction, quantiles))
        for mechanism in (self.made(), self.made("private", "auto")):
            inner = mechanism.plan(2000).mechanism_within(found)
            assert type(inner) is kind
            assert inner.epsilon == mechanism.plan(2000).releasing
        assert type(self.made("private", "global-sensitivity").plan(2000).mechanism_within(found)) is GlobalSensitivity

    def test_more_records_than_a_pair_has_never_raise(self):
        """Otherwise the tails, which the records decide, would raise."""
        plan = self.made().plan(2**30 + 1)
        for quantiles in ((10, 12, 40, 42), (10, 10, 40, 60)):
            assert type(plan.mechanism_within(list(map(Fraction, quantiles)))) is GlobalSensitivity

    @every("law, bounds", [(norm(3, 2), (-50, 50)), (gamma(2, scale=6), (0, 200)), (uniform(0, 10), (-100, 100))])
    def test_the_predicted_error_is_that_of_simulations(self, law, bounds):
        n, mechanism = 2000, self.made(bounds)
        generator = np.random.default_rng(7)
        found = [abs(mechanism(law.rvs(n, random_state=generator), rng=generator) - law.var()) for _ in range(200)]
        expected = mechanism.expected_error(n, law).total
        assert 0.8 < np.mean(found) / expected < 1.25
        other = mechanism_for(Variance(), [0.5], Parameters(bounds, None, 0.25, 0.0, "private-bounds"))
        assert not 0.8 < np.mean(found) / other.expected_error(n, law).total < 1.25

    @every("assumed", [norm(3, 2), (0, 6)])
    def test_an_assumption_takes_private_bounds_in_wide_ones(self, assumed):
        choice = dpf.explain("std", n=2000, bounds=(-50, 50), epsilon=1.0, distribution=assumed)
        assert [row[0] for row in choice.table if row[-1] == "taken"] == ["private-bounds"]

    @every("assumed", [norm(3, 2), (0, 6)])
    def test_one_record_has_no_variance(self, assumed):
        assert dpf.std([3.0], bounds=(-1, 99), epsilon=0.1, distribution=assumed) == 0
        expected = dpf.GlobalSensitivity(Variance(), grid=dpf.Grid(-1, 99), epsilon=0.1).expected_error(1, norm(3, 2))
        assert abs(expected.noise - 4) < 1e-6

    def test_an_assumption_takes_given_bounds_that_are_narrow(self):
        choice = dpf.explain("std", n=2000, bounds=(-3, 3), epsilon=1.0, distribution=norm(0, 1))
        assert [row[0] for row in choice.table if row[-1] == "taken"] == ["moments"]


@every("value", [2**53 - 10**9, 2**53, 12 * 10**15 + 1, 19 * 10**15 + 1, -(2**63)])
@every("name", ["mean", "std"])
def test_integers_far_from_zero_have_private_bounds(value, name):
    """The bounds of equal integers beyond 2**53 are close to each other; the integers between them are not doubles."""
    x = np.full(2000, value, np.int64)
    released = getattr(dpf, name)(x, bounds="private", epsilon=1.0, rng=Generator(PCG64(0)))
    assert abs(released - (value if name == "mean" else 0)) <= abs(value) * 1e-6


def test_bounds_whose_missing_records_have_positions_are_ordered():
    """A sample in the order of positions would tell of one record that moves all others: `Resized` must shuffle it."""
    for step in (None, 1.0):
        assert _Coverage(0.5, step, 1.0, "half").ordered
        assert _Coverage(0.5, step, 1.0, "lower").ordered == _Coverage(0.5, step, 1.0).ordered


def test_missing_records_that_fill_up_samples_are_no_bounds():
    """With a private number of records samples may be filled up, those of integers, too, which have no missing ones."""
    ages, source = np.arange(260) % 70 + 18, PCG64(1)
    options = {"epsilon": 1.0, "neighbors": "add-remove", "rng": source}
    with pytest.warns(dpf.UtilityWarning, match="filled up"):
        found = [(dpf.mean(ages, bounds="private", **options), *dpf.bounds(ages, **options)) for _ in range(20)]
    assert np.max(np.abs(found)) < 1000
