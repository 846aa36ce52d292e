"""Theil-Sen regression: matchings and slopes against slow twins, laws, privacy on small lattices, standard errors."""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import binom

import dpfast as dpf
from dpfast.regression import slopes as module
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.reference import lines
from tests.statistical import ALPHA

bounded_range = partial(dpf.InverseSensitivity, selection="exponential")  # as `TheilSen` releases its steps

COARSE = {"slope_grid": dpf.Grid(-2, 2, step=1), "intercept_grid": dpf.Grid(0, 2, step=1)}
LATTICES = [(4, dpf.Grid(0, 2, step=1), dpf.Grid(0, 1, step=1)), (5, dpf.Grid(0, 1, step=1), dpf.Grid(0, 1, step=1))]
InverseSensitivity = partial(dpf.InverseSensitivity, selection="exponential")
NASTY = np.array([0.0, -0.0, 1.0, 1.0, 2.5, -3.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, 1e-300, 7.0])


def line(n, seed=0, *, slope=1.7, errors="normal"):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    noise = rng.normal(size=n) if errors == "normal" else rng.standard_t(2, n)
    return x, 1 + slope * x + noise


class TestMatchings:
    @every("n", range(2, 14))
    def test_every_two_records_are_a_pair_once(self, n):
        pairs = [pair for turn in range(n - 1 + n % 2) for pair in lines.matching(n, turn)]
        assert len({frozenset(pair) for pair in pairs}) == len(pairs) == n * (n - 1) // 2

    @every("n", range(2, 14))
    def test_a_record_is_in_one_pair_of_a_matching(self, n):
        for turn in range(n - 1 + n % 2):
            assert len({record for pair in lines.matching(n, turn) for record in pair}) == n - n % 2

    @every("n, k", [(2, 1), (3, 3), (8, 3), (8, 7), (9, 4), (100, 100), (101, 10)])
    def test_one_record_changes_at_most_k_slopes(self, n, k):
        """The sensitivity on which the share of epsilon depends, attained."""
        mechanism = dpf.TheilSen(epsilon=1.0, matchings=k)
        k = mechanism.matching_count(n)
        x, y = line(n)
        before = module.slopes_of_pairs(x, y, k, (0.0, 0.0))
        changed = []
        for i in range(n):
            other = y.copy()
            other[i] += 100.0
            changed.append(np.count_nonzero(module.slopes_of_pairs(x, other, k, (0.0, 0.0)) != before))
        assert max(changed) == min(k, n - 1)
        assert len(before) == k * (n // 2)

    def test_the_number_of_matchings(self):
        automatic = dpf.TheilSen(epsilon=1.0)
        assert [automatic.matching_count(n) for n in (2, 3, 50, 1000, 100_000, 10**7)] == [1, 3, 49, 100, 41, 10]
        assert dpf.TheilSen(epsilon=1.0, matchings=7).matching_count(4) == 3


@pytest.mark.kernel
@pytest.mark.parametrize("n", [2, 3, 4, 5, 14, 63, 64, 257])
def test_slopes_are_those_of_the_slow_twin(n):
    rng = np.random.default_rng(n)
    for k in {1, 2, min(5, n - 1 + n % 2), n - 1 + n % 2}:
        if k > n - 1 + n % 2:
            continue
        for ends in ((-math.inf, math.inf), (0.5, 0.5)):
            for x, y in (line(n), rng.choice(NASTY, (2, n)), np.round(rng.normal(size=(2, n)))):
                with np.errstate(all="ignore"):
                    expected = lines.slopes(np.asarray(x), np.asarray(y), k, ends)
                found = module.slopes_of_pairs(np.array(x), np.array(y), k, ends, 2)
                np.testing.assert_array_equal(found, expected)


class TestLaw:
    @pytest.mark.parametrize("matchings", [1, 3])
    def test_it_is_a_median_of_slopes_and_then_one_of_residuals(self, matchings):
        x, y = line(9)
        mechanism = dpf.TheilSen(**COARSE, epsilon=3.0, matchings=matchings)
        slopes = np.array(lines.slopes(x, y, matchings, (-math.inf, math.inf)))
        first = bounded_range(Median(), grid=COARSE["slope_grid"], epsilon=2.0 / matchings).law(slopes)
        law = mechanism.law((x, y))
        for slope, intercept in product(range(5), range(3)):
            residuals = y - (slope - 2) * x
            second = bounded_range(Median(), grid=COARSE["intercept_grid"], epsilon=1.0).law(residuals)
            expected = first.logpmf(slope) + second.logpmf(intercept)
            assert law.logpmf([slope, intercept]) == pytest.approx(float(expected), abs=1e-12)
        assert np.exp(law.logpmf(law.outcomes())).sum() == pytest.approx(1.0, abs=1e-12)
        assert np.isneginf(law.logpmf([[5, 0], [-1, 0], [0, 3]])).all()

    def test_draws_follow_it(self):
        law = dpf.TheilSen(**COARSE, epsilon=3.0).law(line(9))
        draws = law.sample(8000, PCG64(1))
        counts = np.bincount(draws[:, 0] * 3 + draws[:, 1], minlength=15)
        expected = 8000 * np.exp(law.logpmf(law.outcomes()))
        assert (np.abs(counts - expected) < 7 * np.sqrt(expected) + 7).all()

    @pytest.mark.parametrize("options", [{}, {"standard_error": True, "epsilon": 60.0}])
    @pytest.mark.parametrize("grids", [{}, COARSE])
    def test_a_call_is_a_draw(self, options, grids):
        x, y = line(60)
        mechanism = dpf.TheilSen(**{"epsilon": 3.0, **grids, **options})
        law = mechanism.law((x, y))
        for seed in range(20):
            np.testing.assert_array_equal(mechanism((x, y), rng=PCG64(seed)), law.value(law.sample(rng=PCG64(seed))))

    def test_the_spread_is_a_quantile_of_distances_from_the_released_slope(self):
        x, y = line(60)
        mechanism = dpf.TheilSen(**COARSE, epsilon=60.0, matchings=5, standard_error=True)
        slopes = np.array(lines.slopes(x, y, 5, (-math.inf, math.inf)))
        sampling = math.sqrt(150 * (1 + 8 / 9)) / 2
        quantile = Quantile(2 * max(12 / 2, 2 * sampling) / 150)
        law = mechanism.law((x, y))
        total = 0.0
        for codes in law.outcomes():
            distances = bounded_range(quantile, grid=dpf.Grid(0, 4, step=1), epsilon=2.0)
            given = distances.law(np.abs(slopes - (codes[0] - 2)))
            two = bounded_range(Median(), grid=COARSE["slope_grid"], epsilon=6.0).law(slopes).logpmf(codes[0])
            three = bounded_range(Median(), grid=COARSE["intercept_grid"], epsilon=20.0)
            expected = two + three.law(y - (codes[0] - 2) * x).logpmf(codes[1]) + given.logpmf(codes[2])
            assert float(law.logpmf(codes)) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
            total += math.exp(law.logpmf(codes))
        assert total == pytest.approx(1.0, abs=1e-9)


@dataclass(frozen=True, repr=False)
class Undivided(dpf.TheilSen):
    """The control: the whole share of epsilon for each slope, as if a record changed one slope."""

    def _make_plan(self, n):
        plan = super()._make_plan(n)
        plan.slope = replace(plan.slope, epsilon=self._shares[0])
        return plan


class TestPrivacy:
    @pytest.mark.parametrize(
        ("matchings", "lattice"),
        [(1, 0), (2, 1), pytest.param(2, 0, marks=pytest.mark.slow), pytest.param("auto", 1, marks=pytest.mark.slow)],
    )
    def test_on_all_datasets(self, matchings, lattice):
        n, x, y = LATTICES[lattice]
        mechanism = dpf.TheilSen(**COARSE, epsilon=2.0, matchings=matchings)
        certificate = dpf.audit.verify(mechanism, n=n, values=3, grids=(x, y))
        assert certificate.holds
        assert certificate.epsilon > 0.7  # of 2.0: the bound is not idle

    def test_an_undivided_epsilon_is_rejected(self):
        n, x, y = LATTICES[0]
        certificate = dpf.audit.verify(Undivided(**COARSE, epsilon=2.0), n=n, values=3, grids=(x, y))
        assert not certificate.holds

    def test_with_a_spread(self, monkeypatch):
        """The least radius, which small datasets do not have, is no part of the proof."""
        monkeypatch.setattr(module, "_half_width", lambda sampling, noise: 1.0)
        monkeypatch.setattr(module, "_LEAST_RADIUS", 0.1)
        monkeypatch.setattr(module, "_DEVIATIONS", 0.1)
        mechanism = dpf.TheilSen(**COARSE, epsilon=2.0, standard_error=True)
        certificate = dpf.audit.verify(mechanism, n=4, values=2, grids=(LATTICES[1][1], LATTICES[1][2]))
        assert certificate.holds
        assert certificate.epsilon > 0.5

    def test_the_charge(self):
        for options in ({}, {"standard_error": True}):
            parts = dpf.TheilSen(epsilon=1.0, **options).privacy_profile.parts
            assert {family for family, _, _ in parts} == {"bounded-range"}
            assert 1 - 1e-12 < math.fsum(epsilon for _, epsilon, _ in parts) <= 1
            assert len(parts) == 2 + bool(options)

    def test_every_step_has_a_bounded_range(self):
        """Permute-and-flip, which a step would take by default on a coarse grid, has not."""
        plan = dpf.TheilSen(**COARSE, epsilon=600.0, standard_error=True).plan(200)
        for step in (plan.slope, plan.intercept, plan.spread):
            assert step.selection == "exponential"
            assert step.privacy_profile.parts == (("bounded-range", step.epsilon, 1),)

    def test_shares_are_rounded_down(self):
        for epsilon in (0.1, 1 / 3, 1.0, 1e-300, 7e200):
            assert math.fsum(dpf.TheilSen(epsilon=epsilon, standard_error=True)._shares) <= epsilon


class TestStandardError:
    def test_coverage(self):
        """docs/proofs/theil-sen.md lists more settings; the control is a quarter of the error."""
        for n, epsilon, errors in ((1000, 1.0, "normal"), (2000, 2.0, "t")):
            mechanism = dpf.TheilSen(epsilon=epsilon, standard_error=True, matchings=20)
            releases = [mechanism(line(n, seed, errors=errors), rng=PCG64(seed)) for seed in range(200)]
            inside = sum(abs(slope - 1.7) <= 1.96 * error for slope, _, error in releases)
            assert inside >= binom.isf(1 - ALPHA, 200, 0.94)
            outside = sum(abs(slope - 1.7) > 1.96 * error / 4 for slope, _, error in releases)
            assert outside > 200 - binom.isf(1 - ALPHA, 200, 0.94)

    def test_the_half_width_covers_both_errors(self):
        rng = np.random.default_rng(0)
        for sampling, noise in ((1.0, 0.01), (1.0, 1.0), (0.1, 1.0)):
            errors = rng.normal(0, sampling, 200_000) + rng.laplace(0, noise, 200_000)
            width = module._half_width(sampling, noise) * (1 + rng.laplace(size=200_000) / 12)
            assert np.mean(np.abs(errors) > width) == pytest.approx(0.05, abs=0.003)

    def test_too_few_records(self):
        mechanism = dpf.TheilSen(epsilon=1.0, standard_error=True)
        with pytest.raises(ValueError, match="100 records are too few for a standard error"):
            mechanism.plan(100)
        assert mechanism.plan(600).n == 600


class TestCalls:
    def test_a_fit(self):
        x, y = line(20_000)
        fit = dpf.theil_sen(x, y, epsilon=1.0, rng=PCG64(0))
        assert abs(fit.coefficients[0] - 1.7) < 0.05
        assert abs(fit.intercept - 1) < 0.05
        assert np.isnan(fit.standard_errors).all()
        assert math.isnan(fit.intercept_error)
        assert fit.n == 20_000
        assert fit.privacy == dpf.Privacy(1.0)
        released = dpf.TheilSen(epsilon=1.0)((x, y), rng=PCG64(0))
        np.testing.assert_array_equal(released, [fit.coefficients[0], fit.intercept])

    def test_bounds(self):
        x, y = line(30)
        fit = dpf.theil_sen(x, y, epsilon=0.01, slope_bounds=(3, 4), intercept_bounds=(-2, 0), rng=PCG64(0))
        assert 3 <= fit.coefficients[0] <= 4
        assert -2 <= fit.intercept <= 0

    @pytest.mark.parametrize("size", [1, 7, 100])
    def test_chunks(self, size):
        x, y = line(100)
        expected = dpf.theil_sen(x, y, epsilon=1.0, rng=PCG64(0))
        pieces = [(x[i : i + size], y[i : i + size]) for i in range(0, 100, size)]
        tables = [np.stack(piece, axis=1) for piece in pieces]
        for chunks in (pieces, tables):
            fit = dpf.theil_sen(dpf.Chunks(chunks), epsilon=1.0, rng=PCG64(0))
            assert fit.coefficients == expected.coefficients
            assert fit.n == 100

    def test_containers_and_dtypes(self):
        x, y = np.arange(40) % 7, np.arange(40) % 11
        expected = dpf.theil_sen(x, y, epsilon=1.0, rng=PCG64(0)).coefficients
        for kind in (np.float64, np.float32, np.int16, list):
            convert = list if kind is list else lambda column, kind=kind: column.astype(kind)
            assert dpf.theil_sen(convert(x), convert(y), epsilon=1.0, rng=PCG64(0)).coefficients == expected
        wide = np.stack([x, x, y, y], axis=1)[:, ::2]
        assert dpf.TheilSen(epsilon=1.0)(wide, rng=PCG64(0))[0] == expected

    def test_threads_do_not_matter(self):
        x, y = line(1001)
        fits = [dpf.theil_sen(x, y, epsilon=1.0, rng=PCG64(0), workers=workers).coefficients for workers in (1, 3)]
        assert fits[0] == fits[1]

    def test_groups(self):
        x, y = line(3000)
        mechanism = dpf.TheilSen(epsilon=2.0)
        released = dpf.by_group(mechanism, np.stack([x, y], axis=1), labels=np.arange(3000) % 3, rng=PCG64(0))
        assert released.shape == (3, 2)
        assert (np.abs(released - [1.7, 1.0]) < 0.5).all()

    def test_order_matters_but_not_to_the_guarantee(self):
        x, y = line(50)
        laws = [
            dpf.TheilSen(**COARSE, epsilon=1.0, matchings=1).law((x[p], y[p])) for p in (np.arange(50), np.argsort(x))
        ]
        logs = [law.logpmf(law.outcomes()) for law in laws]
        assert not np.array_equal(*logs)

    def test_missing_values_do_not_move_the_slope(self):
        x, y = line(20_000)
        for period in (2, 3, 4, 8):
            gone = np.arange(20_000) % period == 0
            for hidden in (np.nan, np.inf):
                fit = dpf.theil_sen(np.where(gone, hidden, x), y, epsilon=1.0, rng=PCG64(0))
                assert abs(fit.coefficients[0] - 1.7) < 0.1
            fit = dpf.theil_sen(x, np.where(gone, np.nan, y), epsilon=1.0, rng=PCG64(0))
            assert abs(fit.coefficients[0] - 1.7) < 0.1
            assert abs(fit.intercept - 1) < 0.1
        moved = dpf.theil_sen(np.where(gone, np.nan, x), y, epsilon=1.0, missing=-50.0, rng=PCG64(0))
        assert moved.coefficients[0] < 1.5

    @pytest.mark.parametrize("x", [np.zeros(50), np.full(50, np.nan), np.full(50, np.inf), np.full(50, 1e308)])
    def test_no_slope_at_all(self, x):
        fit = dpf.theil_sen(x, np.arange(50.0), epsilon=1.0, slope_bounds=(-1, 1), intercept_bounds=(-1, 1))
        assert -1 <= fit.coefficients[0] <= 1

    def test_infinite_slopes_are_the_ends(self):
        x = np.tile([0.0, 5e-324], 500)
        y = np.tile([0.0, 1.0], 500)
        mechanism = dpf.TheilSen(dpf.Grid(0, 100), dpf.Grid(-1, 1), epsilon=500.0, missing=100.0)
        assert mechanism((x, y), rng=PCG64(0))[0] == 100


class TestBadParameters:
    @every(
        "options, error, message",
        [
            ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
            ({"epsilon": 5e-324}, ValueError, "epsilon must be positive"),
            ({"matchings": 0}, ValueError, "matchings must be at least 1"),
            ({"matchings": "all"}, ValueError, "matchings must be an integer or 'auto'"),
            ({"matchings": 1.5}, TypeError, "matchings must be an integer"),
            ({"missing": "lower"}, ValueError, "missing must be a number or 'half'"),
            ({"missing": np.nan}, ValueError, "missing must be finite"),
            ({"standard_error": 1}, TypeError, "standard_error must be True or False"),
            ({"slope_bounds": (1, 0)}, ValueError, "lower must be below upper"),
            ({"intercept_bounds": 3}, TypeError, "intercept_bounds must be a pair"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            dpf.theil_sen([1, 2, 3], [1, 2, 3], **{"epsilon": 1.0, **options})

    def test_grids(self):
        with pytest.raises(TypeError, match="grid must be"):
            dpf.TheilSen((0, 1), epsilon=1.0)

    def test_signalling_nans_are_missing(self):
        x = np.full(600, 0x7FA00000, np.uint32).view(np.float32)
        x[::2] = np.arange(300)
        fit = dpf.theil_sen(x, x, epsilon=100.0)
        assert abs(fit.coefficients[0] - 1) < 1e-3

    def test_records(self):
        with pytest.raises(ValueError, match="at least two records, not 1"):
            dpf.theil_sen([1.0], [1.0], epsilon=1.0)
        with pytest.raises(ValueError, match="equally long, not 2 and 3"):
            dpf.theil_sen([1, 2], [1, 2, 3], epsilon=1.0)
        with pytest.raises(ValueError, match="one x for each y, not 2 columns"):
            dpf.TheilSen(epsilon=1.0)((np.zeros((3, 2)), [1, 2, 3]))
        with pytest.raises(TypeError, match="y must be given"):
            dpf.theil_sen([1, 2], epsilon=1.0)
        with pytest.raises(TypeError, match="y must be left out"):
            dpf.theil_sen(dpf.Chunks([np.zeros((3, 2))]), [1, 2, 3], epsilon=1.0)
        with pytest.raises(TypeError, match="use Chunks"):
            dpf.TheilSen(epsilon=1.0).start()


@pytest.mark.host
def test_the_slope_has_the_name_of_its_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0, 4.0] * 20, "pay": [2.0, 3.0, 4.0, 5.0] * 20})
    pieces = dpf.Chunks([(frame[["age"]], frame["pay"])])
    for given in ((frame["age"], frame["pay"]), (frame[["age"]], frame["pay"]), (pieces,)):
        assert dpf.theil_sen(*given, epsilon=20.0).names == ("age",)
    assert dpf.theil_sen(frame["age"].to_numpy(), frame["pay"], epsilon=20.0).names is None
    assert "age" in repr(dpf.theil_sen(frame["age"], frame["pay"], epsilon=20.0))
