"""GlobalSensitivity: exact sums, sensitivities by brute force, laws by definition, independence of the row order."""

import contextlib
import copy
import importlib
import math
import pickle
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mpmath import mp, mpf
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, Privacy, PrivacyProfile
from dpfast._kernels import _select
from dpfast.laws import ClampedNoise, DiscreteLaplace, RoundedLaplace, Staircase
from dpfast.statistics import Count, Mean, Median, Sum, Variance, moment
from tests.cases import every
from tests.reference import grid as reference_grid
from tests.reference import laws
from tests.reference.statistics import MOMENT_CASES
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel
NOISES = ("discrete-laplace", "staircase")

# A count is released for neighbours of another number of records: tests/promises/test_add_remove.py.
TWINS = {case.statistic: case.twin for case in MOMENT_CASES.values() if not isinstance(case.statistic, Count)}
EVERY = every("statistic", TWINS, ids=str)
NUMBERS = {
    "float64": st.floats(width=64),
    "float32": st.floats(width=32),
    "float16": st.floats(width=16),
    "int8": st.integers(-128, 127),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}


def moments(x, grid, **options):
    return _select.moments(x, first=grid.first, squares=True, absent=True, **grid.kernel, **options)


class TestMoments:
    @given(st.data(), st.sampled_from(sorted(NUMBERS)), st.sampled_from([1, -1, 2, -3]))
    def test_equal_the_twin(self, data, dtype, stride):
        elements = st.one_of(st.sampled_from([0, 1, 2, 100]), NUMBERS[dtype])
        x = data.draw(hnp.arrays(dtype, st.integers(0, 60), elements=elements))
        x = x.repeat(abs(stride))[::stride]
        x.flags.writeable = False
        step = 2.0 ** data.draw(st.integers(-20, 70))
        grid = Grid(-5 * step, 12345 * step, step=step, missing=7 * step)
        codes = reference_grid.encode(x.tolist(), grid)
        absent = sum(value != value for value in x.tolist())
        assert moments(x, grid) == (sum(codes), sum(c * c for c in codes), absent)

    @every("n, workers", [(0, 1), (1, 1), (2047, 2), (2048, 1), (2049, 3), (2_200_001, 2)])
    def test_no_overflow(self, n, workers):
        """All records at the largest code of the largest grid: sums beyond 64 bits, squares beyond 104."""
        grid = Grid(0, 2.0**52 - 1, step=1)
        top = 2**52 - 1
        assert moments(np.full(n, np.inf), grid, workers=workers) == (n * top, n * top**2, 0)
        assert moments(np.full(n, np.nan), grid, workers=workers) == (0, 0, n)

    def test_clamped(self):
        x = np.random.default_rng(1).integers(0, 1000, 100_000).astype(float)
        grid = Grid(0, 1000, step=1)
        expected = int(np.clip(x, 100, 700).sum())
        assert moments(x, grid, low=100.0, high=700.0)[0] == expected
        assert moments(x, grid, low=-math.inf, high=700.0)[0] == int(np.clip(x, 0, 700).sum())

    @pytest.mark.parametrize("step", [2.0**-1074, 2.0**-1040, 2.0**-1022, 2.0**971])
    def test_extreme_steps(self, step):
        grid = Grid(-8 * step, 1000 * step, step=step)
        x = grid.decode(np.arange(1009))
        assert moments(x, grid)[0] == 1008 * 1009 // 2


class TestSensitivity:
    """T12: the table, by brute force; T5: in machine arithmetic."""

    @EVERY
    @pytest.mark.parametrize(("n", "last"), [(1, 4), (2, 4), (3, 4), (4, 3), (5, 2), (6, 2)])
    def test_by_brute_force(self, statistic, n, last):
        grid, twin = Grid(0, last, step=1), TWINS[statistic]
        values = {x: twin(x) for x in product(range(last + 1), repeat=n)}
        changes = [abs(t - values[(code, *x[1:])]) for x, t in values.items() for code in range(last + 1)]
        assert max(changes) == statistic.sensitivity(grid, n)
        assert (min(values.values()), max(values.values())) == (0, statistic.span(grid, n))
        for x, t in values.items():
            assert statistic.exact(n, sum(x), sum(c * c for c in x)) == t

    @EVERY
    @given(st.data())
    def test_of_the_program(self, statistic, data):
        """Permuted records give the same integer; a replaced one moves it by the declared sensitivity at the most."""
        awkward = st.sampled_from([0.5, -0.5, 1.5, 2.0**53, -(2.0**53), 2.0**53 + 2, 1e308, math.nan, math.inf])
        records = st.one_of(awkward, st.floats(-100, 100))
        x = np.array(data.draw(st.lists(records, min_size=1, max_size=50)))
        mechanism = GlobalSensitivity(statistic, grid=Grid(-(2.0**40), 2.0**40, step=0.5), epsilon=1.0)
        center = mechanism.law(x).center
        assert mechanism.law(np.array(data.draw(st.permutations(x.tolist())))).center == center
        y = x.copy()
        y[data.draw(st.integers(0, len(x) - 1))] = data.draw(records)
        assert abs(mechanism.law(y).center - center) <= mechanism.scale(len(x)) * Fraction(mechanism.epsilon)

    @EVERY
    def test_alternating_signs(self, statistic):
        mechanism = GlobalSensitivity(statistic, grid=Grid(-(2.0**51) + 1, 2.0**51, step=1), epsilon=1.0)
        x = np.tile([2.0**51, -(2.0**51)], 1000)
        order = np.random.default_rng(2).permutation(2000)
        assert mechanism.law(x).center == mechanism.law(x[order]).center == mechanism.law(np.sort(x)).center

    @given(st.integers(2, 10**9), st.integers(1, 2**52 - 1))
    def test_coarseness_of_the_variance(self, n, last):
        """Codes fit 62 bits, and rounding adds at most the stated part to the sensitivity."""
        grid, statistic = Grid(0, last, step=1), Variance()
        unit, sensitivity = statistic.coarseness(grid, n), statistic.sensitivity(grid, n)
        assert statistic.last(grid, n) <= 2**62
        codes = -(-sensitivity // unit)
        assert codes <= 2**32
        assert codes * unit <= sensitivity * (1 + max(2.0**-30, 8 * n / 2.0**62)) or unit == 1
        assert statistic.value(grid, n, statistic.last(grid, n)) == float(
            Fraction(statistic.span(grid, n), n**2) * Fraction(grid.step) ** 2
        )


class TestLaw:
    @every("scale", [Fraction(1, 50), Fraction(1, 3), Fraction(7, 2), Fraction(10**6), Fraction(2**56)])
    @every("center, last", [(0, 1), (1, 1), (3, 9), (0, 9), (9, 9), (0, 0)])
    def test_equals_definition(self, center, last, scale):
        law = ClampedNoise(RoundedLaplace(scale), center=center, last=last, decode=np.asarray)
        k = np.arange(-2, last + 3)
        with mp.workdps(50):

            def at_least(z):
                s = mpf(scale.numerator) / scale.denominator
                return mp.exp(-(z - mpf(1) / 2) / s) / 2 if z > 0 else 1 - mp.exp(-(mpf(1) / 2 - z) / s) / 2

            inner = {j: laws.rounded_laplace(j - center, scale) for j in range(1, last)}
            expected = {0: at_least(center), last: at_least(last - center), **inner} if last else {0: mpf(1)}
            assert mp.almosteq(mp.fsum(expected.values()), 1)
            assert_allclose(law.pmf(k), [float(expected.get(j, 0)) for j in k.tolist()], rtol=1e-13, atol=0)
            log = [float(mp.log(expected[j])) for j in range(last + 1)]
            assert_allclose(law.logpmf(np.arange(last + 1)), log, rtol=1e-13, atol=1e-15)
            sums = [float(mp.fsum(p for i, p in expected.items() if i <= j)) for j in k.tolist()]
            assert_allclose(law.cdf(k), sums, rtol=1e-12, atol=1e-15)

    def test_draws_fit_and_would_not_at_another_scale(self):
        law = ClampedNoise(RoundedLaplace(Fraction(3)), center=4, last=20, decode=np.asarray)
        draws = law.sample(200_000, rng=PCG64(1))
        counts = np.bincount(draws, minlength=21)
        assert not chi_square_rejects(counts, law.pmf(np.arange(21)))
        for factor in (Fraction(9, 10), Fraction(11, 10)):
            other = ClampedNoise(RoundedLaplace(3 * factor), center=4, last=20, decode=np.asarray)
            assert chi_square_rejects(counts, other.pmf(np.arange(21)))

    def test_extreme_scales_stay_in_range(self):
        for scale in (Fraction(2**56), Fraction(1, 10**6)):
            law = ClampedNoise(RoundedLaplace(scale), center=2**62, last=2**63 - 2, decode=np.asarray)
            draws = law.sample(1000, rng=PCG64(2))
            assert ((draws >= 0) & (draws <= 2**63 - 2)).all()


class Table:
    """A symmetric law by the masses of -m..m."""

    def __init__(self, masses):
        with np.errstate(divide="ignore"):
            self._logs, self._tails = np.log(masses), np.log(np.cumsum(masses[::-1])[::-1])

    def logpmf(self, z):
        return self._logs[z.astype(int) + len(self._logs) // 2]

    def log_tail(self, z):
        return self._tails[z.astype(int) + len(self._logs) // 2]


def spread(noise, r):
    """The levels of staircase noise, with their probabilities, on the integers of the levels of another r."""
    z = np.arange(-60 * noise.s, 60 * noise.s + 1)
    mine, other = ((np.maximum(np.abs(z) - first, -1) // noise.s + 1) for first in (noise.r, r))
    levels = np.append(np.bincount(mine, np.exp(noise.logpmf(z.astype(float)))), 0.0)
    return Table(levels[other] / np.bincount(other)[other])


class Moved:
    """A law, moved by an offset."""

    def __init__(self, law, offset):
        self._law, self._offset = law, offset
        self.support = tuple(end + offset for end in law.support)

    def logpmf(self, k):
        return self._law.logpmf(k - self._offset)

    def value(self, k):
        return np.asarray(k, dtype=float)


class Slotted(GlobalSensitivity):
    """An attribute beside those of the dictionary."""

    __slots__ = ("beside",)


class TestMechanism:
    def test_copies_of_a_subclass_with_slots(self):
        mechanism = Slotted(Mean(), grid=Grid(0, 1), epsilon=1)
        object.__setattr__(mechanism, "beside", 3)
        mechanism([0.5])
        for made in (copy.copy(mechanism), copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
            assert made == mechanism
            assert made.beside == 3
            assert "_recent" in vars(mechanism)
            assert "_recent" not in vars(made)

    def test_copies_of_a_subclass_with_slots_carry_their_ledger(self):
        mechanism, ledger = Slotted(Mean(), grid=Grid(0, 1), epsilon=1), dpf.Ledger(2.0)
        object.__setattr__(mechanism, "beside", 3)
        with ledger:
            copies = [copy.copy(mechanism), copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))]
        for made in copies:
            assert made == mechanism
            assert made.beside == 3
        copies[-1]([0.5])
        assert ledger.spent.epsilon == 1

    @EVERY
    @pytest.mark.parametrize("noise", NOISES)
    @pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 50.0])
    def test_certified(self, statistic, epsilon, noise):
        for grid in (Grid(0, 1, step=1), Grid(-1, 2, step=0.5)):
            mechanism = GlobalSensitivity(statistic, grid=grid, epsilon=epsilon, noise=noise)
            for n in (1, 2, 3):
                assert dpf.audit.verify(mechanism, n=n, values=4).holds

    @EVERY
    @pytest.mark.parametrize("noise", NOISES)
    def test_a_sensitivity_too_small_by_one_step_is_rejected(self, statistic, noise, monkeypatch):
        right = type(statistic).sensitivity
        monkeypatch.setattr(type(statistic), "sensitivity", lambda self, grid, n: right(self, grid, n) - 1)
        mechanism = GlobalSensitivity(statistic, grid=Grid(0, 10, step=1), epsilon=1.0, noise=noise)
        assert not dpf.audit.verify(mechanism, n=3, values=2).holds

    @EVERY
    @pytest.mark.parametrize("noise", NOISES)
    def test_noise_clamped_before_it_is_added_is_rejected(self, statistic, noise):
        """The control: the ends of the clamped noise then show where the center is."""

        @dataclass(frozen=True, repr=False)
        class Clamping(GlobalSensitivity):
            def law_of(self, sums):
                law = super().law_of(sums)
                return Moved(ClampedNoise(law.noise, center=40, last=80, decode=np.asarray), law.center)

        mechanism = Clamping(statistic, grid=Grid(0, 10, step=1), epsilon=1.0, noise=noise)
        assert not dpf.audit.verify(mechanism, n=3, values=2).holds

    @EVERY
    @pytest.mark.parametrize("other", [2.0, 8.0])
    def test_stairs_with_the_r_of_another_epsilon_are_rejected(self, statistic, other, monkeypatch):
        """The control: levels of the right probabilities, spread over the integers of the levels of another r."""

        @dataclass(frozen=True, repr=False)
        class Mixed(GlobalSensitivity):
            def law_of(self, sums):
                law = super().law_of(sums)
                noise = spread(law.noise, Staircase(law.noise.s / self.made_for, law.noise.s).r)
                return ClampedNoise(noise, center=law.center, last=law.support[1], decode=np.asarray)

        for made_for, holds in ((1, True), (other, False)):
            monkeypatch.setattr(Mixed, "made_for", Fraction(made_for), raising=False)
            mechanism = Mixed(statistic, grid=Grid(0, 10, step=1), epsilon=1.0, noise="staircase")
            assert dpf.audit.verify(mechanism, n=3, values=2).holds == holds

    def test_a_coarse_variance_is_certified(self, monkeypatch):
        """Rounding to release codes, on a grid where it happens; not allowed for, it is rejected."""
        monkeypatch.setattr(moment, "_RESOLUTION", 3)
        monkeypatch.setattr(moment, "_MOST_STEPS", 4)
        grid = Grid(0, 11, step=1)
        assert Variance().coarseness(grid, 3) == 32
        assert dpf.audit.verify(
            GlobalSensitivity(Variance(), grid=grid, epsilon=1.0), n=3, values=12, ordered=False
        ).holds
        monkeypatch.setattr(Variance, "sensitivity", lambda self, grid, n: 2 * 121 // 32 * 32)
        assert not dpf.audit.verify(
            GlobalSensitivity(Variance(), grid=grid, epsilon=1.0), n=3, values=12, ordered=False
        ).holds

    def test_a_count_has_the_error_of_the_geometric_mechanism(self):
        """Within 1 %, far from 0; the control: rounded Laplace noise has 13, 54 and 263 % more."""
        z, x = np.arange(-400, 401), np.zeros(1000)
        for epsilon, more in ((1.0, 1.12), (2.0, 1.53), (4.0, 3.6)):
            q = math.exp(-epsilon)
            geometric = 2 * q / (1 - q * q)
            law = GlobalSensitivity(Count(), grid=Grid(0, 1, step=1), epsilon=epsilon, neighbors="add-remove").law(x)
            assert np.sum(np.abs(z) * law.pmf(z + 1000)) == pytest.approx(geometric, rel=0.01)
            assert np.sum(np.abs(z) * np.exp(RoundedLaplace(1 / epsilon).logpmf(z))) > more * geometric

    def test_noise_is_that_of_less_magnitude_by_5_percent(self):
        def noise(statistic, epsilon, last, **options):
            return GlobalSensitivity(statistic, grid=Grid(0, last, step=1), epsilon=epsilon, **options).law([0.0]).noise

        z = np.arange(-2000.0, 2001.0)
        for last in (1, 2, 3, 10):
            for epsilon in (0.5, 1.0, 1.2, 1.4, 2.0, 8.0):
                kinds = [noise(Mean(), epsilon, last, noise=name) for name in NOISES]
                plain, stairs = (np.sum(np.abs(z) * np.exp(kind.logpmf(z))) for kind in kinds)
                better = Staircase if stairs <= 0.95 * plain else DiscreteLaplace
                assert type(noise(Mean(), epsilon, last)) is type(noise(Sum(), epsilon, last)) is better
                if (last, epsilon) == (10, 8.0):
                    assert stairs < 0.04 * plain
                assert type(noise(Count(), epsilon, last, neighbors="add-remove")) is DiscreteLaplace

    @EVERY
    @pytest.mark.parametrize("noise", ["auto", *NOISES])
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_profile_is_that_of_the_law(self, statistic, noise, epsilon):
        """At every n: exact where the sensitivity does not depend on n, never too small."""
        mechanism = GlobalSensitivity(statistic, grid=Grid(0, 10, step=1), epsilon=epsilon, noise=noise)
        profile = mechanism.privacy_profile
        for n in (2, 3, 50):
            steps = int(mechanism.scale(n) * Fraction(epsilon))
            law = mechanism.law(np.zeros(n)).noise
            z = np.arange(-40 * steps, 41 * steps).astype(float)
            p, q = law.logpmf(z), law.logpmf(z - steps)
            rho = math.fsum(np.exp(p) * (p - q))
            assert rho <= profile.rho * (1 + 1e-9)
            assert rho == pytest.approx(profile.rho, rel=0.02 if isinstance(statistic, Variance) else 1e-6)

    @every("noise", ["auto", *NOISES])
    @every("last", [1, 2, 2**10, 2**40])
    def test_the_profile_of_a_variance_holds_for_all_n(self, noise, last):
        """It is that of fewer steps than any n has."""
        statistic, grid = Variance(), Grid(0, last, step=1)
        mechanism = GlobalSensitivity(statistic, grid=grid, epsilon=1.0, noise=noise)
        assert mechanism.privacy_profile.rho <= PrivacyProfile(Privacy(1.0)).rho
        least = statistic.steps(grid)
        for n in [2, 3, 10, 1000, *(2**k + d for k in (20, 31, 32, 33, 41, 42) for d in (-1, 0))]:
            assert mechanism.scale(n) >= least
        for n in (2**43, 2**60):
            if mechanism.scale(n) < least:
                with pytest.raises(ValueError, match="at most 2\\*\\*42 records"):
                    mechanism.plan(n)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    @pytest.mark.parametrize("steps", [1, 2, 3, 10, 31])
    def test_laplace_of_a_little_more_epsilon_dominates_discrete_laplace(self, epsilon, steps):
        """At every loss t; the control: Laplace of the same epsilon does not."""
        scale = steps / Fraction(epsilon)
        z = np.arange(-int(40 * scale) - steps, int(40 * scale) + 2 * steps, dtype=float)
        p, q = (np.exp(DiscreteLaplace(scale).logpmf(z - shift)) for shift in (0, steps))
        t = np.linspace(-epsilon, epsilon, 401)
        found = np.maximum(p - np.exp(t)[:, None] * q, 0).sum(axis=1)
        assert (found <= -np.expm1((t - epsilon - (epsilon / steps) ** 2 / 4) / 2) + 1e-12).all()
        assert (found > -np.expm1((t - epsilon) / 2) + 1e-7).any()

    @EVERY
    def test_out_of_bounds_records_equal_clipped_ones(self, statistic):
        mechanism = GlobalSensitivity(statistic, grid=Grid(-1, 1, step=2.0**-20), epsilon=1.0)
        x = np.random.default_rng(3).normal(0, 3, 1000)
        assert mechanism(x, rng=PCG64(1)) == mechanism(np.clip(x, -1, 1), rng=PCG64(1))
        assert mechanism([np.nan, np.inf], rng=PCG64(1)) == mechanism([-1.0, 1.0], rng=PCG64(1))

    @EVERY
    def test_order_strides_dtype_and_workers_do_not_matter(self, statistic):
        mechanism = GlobalSensitivity(statistic, grid=Grid(0, 1000, step=1), epsilon=1.0)
        x = np.random.default_rng(4).integers(0, 1000, 600_000)
        first = mechanism(x, rng=PCG64(1))
        for y in (x[::-1], x.astype(np.float32), x.repeat(2)[::2], np.sort(x)):
            assert mechanism(y, rng=PCG64(1), workers=2) == first

    @EVERY
    def test_releases_stay_in_the_public_range(self, statistic):
        grid = Grid(-2, 6, step=0.25)
        mechanism = GlobalSensitivity(statistic, grid=grid, epsilon=1e-6)
        ends = {"mean": (-2, 6), "sum": (-20, 60), "variance": (0, 16)}[str(statistic)]
        values = mechanism.release(np.zeros(10), size=200, rng=PCG64(1))
        assert (values.min(), values.max()) == ends

    @EVERY
    def test_is_a_value(self, statistic):
        m = GlobalSensitivity(statistic, grid=Grid(0, 9, step=1), epsilon=0.5)
        assert m.privacy == m.privacy_map(1) == Privacy(0.5)
        for twin in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
            assert twin == m
            assert hash(twin) == hash(m)
            assert twin([3, 4], rng=PCG64(1)) == m([3, 4], rng=PCG64(1))
        assert f"of the {statistic} of records on 10 points" in repr(m)

    def test_bad_parameters(self):
        grid = Grid(0, 9, step=1)
        with pytest.raises(TypeError, match="statistic must be a MomentStatistic, such as"):
            GlobalSensitivity(Median(), grid=grid, epsilon=1.0)
        with pytest.raises(TypeError, match=r"grid must be a dpfast\.Grid"):
            GlobalSensitivity(Mean(), grid=(0, 9), epsilon=1.0)
        with pytest.raises(
            ValueError, match="noise must be one of 'auto', 'discrete-laplace', 'staircase', not 'laplace'"
        ):
            GlobalSensitivity(Mean(), grid=grid, epsilon=1.0, noise="laplace")
        with pytest.raises(ValueError, match="epsilon must be positive"):
            GlobalSensitivity(Mean(), grid=grid, epsilon=0)
        with pytest.raises(ValueError, match=r"noise of more than 2\*\*56 steps of the grid"):
            GlobalSensitivity(Mean(), grid=Grid(0, 2.0**52 - 1, step=1), epsilon=0.01)
        with pytest.raises(ValueError, match=r"must be below 2\*\*63"):
            GlobalSensitivity(Sum(), grid=Grid(0, 2.0**52 - 1, step=1), epsilon=1.0)(np.zeros(3000))
        for statistic, bound in ((Sum(), 1e308), (Variance(), 1e160)):
            with pytest.raises(ValueError, match="beyond the range of float64"):
                GlobalSensitivity(statistic, grid=Grid(0, bound), epsilon=1.0)(np.zeros(9))

    def test_functions(self):
        x = np.random.default_rng(5).random(1000)
        for statistic, call in ((Mean(), dpf.mean), (Sum(), dpf.sum), (Variance(), dpf.variance)):
            expected = GlobalSensitivity(statistic, grid=Grid(0, 1), epsilon=0.5)(x, rng=PCG64(6))
            assert call(x, bounds=(0, 1), epsilon=0.5, rng=PCG64(6)) == expected
            assert call(x, grid=Grid(0, 1), epsilon=0.5, rng=PCG64(6)) == expected
        assert dpf.std(x, bounds=(0, 1), epsilon=0.5, rng=PCG64(6)) == math.sqrt(expected)
        assert_array_equal(dpf.variance([3], bounds=(0, 9), epsilon=1.0), 0.0)
        with pytest.raises(
            ValueError,
            match="method must be 'auto' or 'global-sensitivity' or 'private-bounds' or 'moments', not",
        ):
            dpf.variance(x, bounds=(0, 1), epsilon=1.0, method="inverse-sensitivity")
        with pytest.raises(ValueError, match="delta must be 0 for method='global-sensitivity'"):
            dpf.mean(x, bounds=(0, 1), epsilon=1.0, delta=1e-6, method="global-sensitivity")

    @pytest.mark.parametrize("bounds", [(0, 9), (0.5, 8.5), (-0.25, 9.75), (0, 0.5)])
    def test_integers_get_step_1(self, bounds):
        """Also within bounds that are not integers, which widen to integers."""
        x, grid = np.random.default_rng(7).integers(0, 10, 50), Grid(*bounds, step=1)
        every = [x, x.astype(np.uint8), x[::-1], dpf.Chunks([x[:20], x[20:].astype(np.int8)]), dpf.Chunks(lambda: [x])]
        for statistic, call in ((Mean(), dpf.mean), (Sum(), dpf.sum), (Variance(), dpf.variance)):
            expected = GlobalSensitivity(statistic, grid=grid, epsilon=0.5)(x, rng=PCG64(6))
            for y in every:
                assert call(y, bounds=bounds, epsilon=0.5, rng=PCG64(6)) == expected
            bits = GlobalSensitivity(statistic, grid=Grid(0, 1, step=1), epsilon=0.5)(x > 4, rng=PCG64(6))
            assert call(x > 4, bounds=(0, 1), epsilon=0.5, rng=PCG64(6)) == bits
            assert call(x.astype(float), bounds=bounds, epsilon=0.5, rng=PCG64(6)) != expected  # has a finer step

    @pytest.mark.host
    def test_integer_columns_get_step_1(self):
        x = np.random.default_rng(7).integers(0, 10, 50)
        expected = dpf.mean(x, bounds=(0, 9), epsilon=0.5, rng=PCG64(6))
        for module, column in (
            ("pandas", lambda pandas: pandas.Series(x)),
            ("pandas", lambda pandas: pandas.Series(x, dtype="Int64")),
            ("pyarrow", lambda pyarrow: pyarrow.array(x)),
            ("pyarrow", lambda pyarrow: pyarrow.chunked_array([x[:9], x[9:]])),
            ("polars", lambda polars: polars.Series(x)),
        ):
            with contextlib.suppress(ImportError):
                assert (
                    dpf.mean(column(importlib.import_module(module)), bounds=(0, 9), epsilon=0.5, rng=PCG64(6))
                    == expected
                )

    def test_groups_have_the_noise_of_the_mechanism(self):
        x, labels = np.random.default_rng(8).integers(0, 11, 90_000), np.repeat(np.arange(30_000), 3)
        for epsilon in (0.5, 4.0):
            mechanism = GlobalSensitivity(Sum(), grid=Grid(0, 10, step=1), epsilon=epsilon)
            found = dpf.by_group(mechanism, np.full(x.size, 5), labels=labels, num_groups=30_000, rng=PCG64(1))
            law = mechanism.law([5, 5, 5])
            assert not chi_square_rejects(np.bincount(found.astype(int), minlength=31), law.pmf(np.arange(31)))

    def test_variance_is_numpys(self):
        x = np.random.default_rng(6).random(10_000)
        law = GlobalSensitivity(Variance(), grid=Grid(0, 1), epsilon=1.0).law(x)
        assert law.value(law.center) == pytest.approx(x.var(), rel=1e-8)
