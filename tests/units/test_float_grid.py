"""Grids of floats: all doubles become codes in order; order statistics and their laws on them, without bounds."""

import copy
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import FloatGrid, Grid
from dpfast._kernels import _select
from dpfast.audit import verify
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    TrimmedMean,
    WinsorizedMean,
)
from tests.cases import every
from tests.reference import grid as reference

pytestmark = pytest.mark.kernel

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SPECIAL = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
GRIDS = [
    FloatGrid(),
    FloatGrid(20, resolution=0.0),
    FloatGrid(1, resolution=0.0),
    FloatGrid(2, resolution=0.0, missing=1.5),
    FloatGrid(40, resolution=2.0**-900),
    FloatGrid(40, resolution=2.0**1023),
    FloatGrid(1, resolution=1.0, lower=-8, upper=3),
    FloatGrid(53 - 13, resolution=2.0**60),
    FloatGrid(7, resolution=1.0, lower=0.0, upper=1e9),
]
EVERY = every("grid", GRIDS)


@st.composite
def grids(draw):
    resolution = draw(st.just(0.0) | st.integers(-1074, 1023).map(lambda k: math.ldexp(1.0, k)))
    digits = draw(st.integers(1, 40) | st.integers(1, 2))
    lower, upper = sorted([draw(st.floats(allow_nan=False)), draw(st.floats(allow_nan=False))])
    ends = {} if lower == upper or draw(st.booleans()) else {"lower": lower, "upper": upper}
    missing = draw(st.just("lower") | st.floats(allow_nan=False, allow_infinity=False))
    return FloatGrid(digits, resolution=resolution, missing=missing, **ends)


def near(grid):
    """Values at points, at the middle of two points, and beside those."""

    def value(code, halves):
        first = min(code, grid.size - 2)
        low, high = Fraction(grid.value(first)), Fraction(grid.value(first + 1))
        return float(low + (high - low) * Fraction(halves, 2))

    ways = (lambda x: x, lambda x: math.nextafter(x, math.inf), lambda x: math.nextafter(x, -math.inf))
    values = st.builds(value, st.integers(0, grid.size - 1), st.integers(0, 1))
    return st.builds(lambda x, way: way(x), values, st.sampled_from(ways))


class TestCodes:
    @given(st.data(), grids())
    def test_doubles_are_exact(self, data, grid):
        x = data.draw(st.lists(near(grid) | st.sampled_from(SPECIAL) | st.floats(), max_size=12))
        expected = [reference.float_code(v, grid) for v in x]
        assert grid.encode(np.array(x, np.float64)).tolist() == expected
        assert grid.encode(x).tolist() == expected

    @given(st.data(), grids(), st.sampled_from(FLOATS))
    def test_short_floats_are_exact(self, data, grid, dtype):
        with np.errstate(over="ignore"):
            x = np.array(data.draw(st.lists(near(grid) | st.floats(), max_size=12)), np.float64).astype(dtype)
        assert grid.encode(x).tolist() == [reference.float_code(float(v), grid) for v in x]
        assert grid.encode(np.repeat(x, 2)[::-2]).tolist() == grid.encode(x)[::-1].tolist()

    @given(st.data(), grids(), st.sampled_from(INTEGERS))
    def test_integers_are_exact(self, data, grid, dtype):
        info = np.iinfo(dtype)
        least, most = int(info.min), int(info.max)
        nearby = near(grid).map(lambda x: min(max(int(x), least), most) if math.isfinite(x) else most)
        beside = st.builds(lambda v, d: min(max(v + d, least), most), nearby, st.integers(-2, 2))
        x = data.draw(st.lists(st.integers(least, most) | beside, max_size=12))
        assert grid.encode(np.array(x, dtype)).tolist() == [reference.float_code(v, grid) for v in x]

    def test_a_conversion_to_float64_would_round_twice(self):
        """Positive control: 2**62 + 2**41 is a tie on 21 bits, and one more is not."""
        grid = FloatGrid(21, resolution=0.0)
        x = np.array([2**62 + 2**41, 2**62 + 2**41 + 1])
        assert np.diff(grid.encode(x)).tolist() == [1]
        assert np.diff(grid.encode(x.astype(np.float64))).tolist() == [0]

    @EVERY
    def test_all_doubles_are_in_order(self, grid):
        """Every exponent, random and extreme fractions, both signs: monotone, and of the stated relative error."""
        rng = np.random.default_rng(0)
        exponents = np.arange(2047, dtype=np.uint64)[:, None]
        fractions = np.concatenate([rng.integers(0, 2**52, 200), 2**52 - 1 - np.arange(3), np.arange(3)])
        magnitudes = np.sort((exponents << np.uint64(52)).repeat(206, 1) | fractions.astype(np.uint64)).view(np.float64)
        positive = np.append(np.sort(magnitudes.reshape(-1)), math.inf)
        x = np.concatenate([-positive[::-1], positive])
        codes = grid.encode(x)
        assert codes[0] == 0
        assert codes[-1] == grid.size - 1
        assert np.all(np.diff(codes) >= 0)
        points = grid.decode(codes)
        assert np.array_equal(grid.encode(points), codes)
        assert np.all((points >= grid.lower) & (points <= grid.upper))
        inside = (x >= grid.lower) & (x <= grid.upper)
        normal = inside & (np.abs(x) >= max(grid.resolution, 2.0**-1022))
        assert np.all(np.abs(points - x)[normal] <= np.abs(x[normal]) * 2.0**-grid.digits)
        even = max(grid.resolution, 2.0**-1022) * 2.0**-grid.digits
        assert np.all(np.abs(points - x)[inside & ~normal] <= max(even, 0.0))

    @EVERY
    def test_decode_is_exact_and_inverts(self, grid):
        rng = np.random.default_rng(1)
        ends = np.arange(min(3000, grid.size))
        codes = np.unique(np.concatenate([ends, grid.size - 1 - ends, rng.integers(0, grid.size, 3000)]))
        values = grid.decode(codes)
        assert np.all(np.diff(values) > 0)
        assert np.array_equal(grid.encode(values), codes)
        assert grid.size <= 2**52
        some = codes[:: max(1, len(codes) // 200)].tolist()
        options = {"digits": grid.digits, "resolution": grid.resolution}
        exact = [reference.float_point(code + grid.first, **options) for code in some]
        assert [Fraction(v) for v in grid.decode(some).tolist()] == exact
        assert [grid.value(code) for code in some] == grid.decode(some).tolist()
        assert (values[0], values[-1]) == (grid.lower, grid.upper)

    def test_zeros_are_one_point(self):
        for grid in GRIDS:
            assert np.unique(grid.encode([0.0, -0.0])).size == 1

    def test_every_nan_is_missing(self):
        words = np.array([0x7FF0000000000001, 0x7FF8000000000000, 0xFFF0000000000001], np.uint64).view(np.float64)
        assert np.unique(FloatGrid(missing=7.0).encode(words)).tolist() == FloatGrid().encode([7.0]).tolist()
        assert FloatGrid(missing="lower").encode([math.nan, None]).tolist() == [0, 0]
        assert FloatGrid().encode([math.nan, None]).tolist() == []

    def test_below_the_resolution_points_are_evenly_spaced(self):
        grid = FloatGrid(4, resolution=8.0)
        inner = grid.decode(np.arange(-16, 17) - grid.first)
        assert inner.tolist() == list(range(-16, 17))
        assert grid.decode(np.array([17, 18, 24, 25]) - grid.first).tolist() == [18, 20, 32, 36]

    @given(st.data(), grids(), st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.int8]))
    def test_grid_and_window_kernels_agree(self, data, grid, dtype):
        """Encoding the window is the window of the encoded records: a double of a large integer is rounded to odd."""
        if np.dtype(dtype).kind == "f":
            with np.errstate(over="ignore"):
                x = np.array(data.draw(st.lists(near(grid), min_size=1, max_size=9)), np.float64).astype(dtype)
        else:
            info = np.iinfo(dtype)
            least, most = int(info.min), int(info.max)
            nearby = near(grid).map(lambda v: min(max(int(v), least), most) if math.isfinite(v) else most)
            beside = st.builds(lambda v, d: min(max(v + d, least), most), nearby, st.integers(-2, 2))
            x = np.array(data.draw(st.lists(beside, min_size=1, max_size=9)), dtype)
        window = _select.window(x, 0, len(x) + 1, **grid.kernel)
        assert grid.encode(window).tolist() == [0, *sorted(grid.encode(x).tolist()), grid.size - 1]


class TestValue:
    @settings(max_examples=100)
    @given(grids())
    def test_a_grid_is_a_value(self, grid):
        for other in (eval(repr(grid)), pickle.loads(pickle.dumps(grid)), copy.deepcopy(grid)):
            assert other == grid
            assert hash(other) == hash(grid)
            assert other.size == grid.size
        assert grid != FloatGrid(grid.digits % 40 + 1)

    @settings(max_examples=100)
    @given(st.integers(1, 40), st.floats(allow_nan=False), st.floats(allow_nan=False))
    def test_bounds_widen_outward(self, digits, a, b):
        lower, upper = min(a, b), max(a, b)
        if lower == upper:
            return
        grid, most = FloatGrid(digits, lower=lower, upper=upper), FloatGrid(digits).upper
        assert grid.lower <= max(lower, -most)
        assert grid.upper >= min(upper, most)
        assert grid.size >= 2
        if grid.size > 4 and abs(lower) < most and abs(upper) < most:
            assert grid.value(1) > lower
            assert grid.value(grid.size - 2) < upper

    @every(
        "arguments, error, message",
        [
            ({"digits": 0}, ValueError, "digits must be at least 1, not 0"),
            ({"digits": 41}, ValueError, "digits must be at most 40, not 41"),
            ({"digits": 2.5}, TypeError, "digits must be an integer, not float"),
            ({"resolution": 3.0}, ValueError, "resolution must be 0 or a power of two, not 3.0"),
            ({"resolution": -1.0}, ValueError, "resolution must be at least 0"),
            ({"resolution": math.inf}, ValueError, "resolution must be finite"),
            ({"lower": 1, "upper": 1}, ValueError, "lower must be below upper"),
            ({"lower": 2, "upper": 1}, ValueError, "lower and upper must be in order"),
            ({"lower": math.nan}, ValueError, "lower and upper must be in order"),
            ({"lower": "0"}, TypeError, "lower and upper must be a pair of numbers"),
            ({"missing": math.nan}, ValueError, "missing must be finite"),
        ],
    )
    def test_refused_parameters(self, arguments, error, message):
        with pytest.raises(error, match=message):
            FloatGrid(**arguments)


TINY = [
    FloatGrid(1, resolution=0.5, lower=-4, upper=4),
    FloatGrid(2, resolution=1.0, lower=-2, upper=3),
    FloatGrid(1, resolution=0.0, lower=2.0**-5, upper=16.0, missing=1.0),
]
ON_TINY = every("grid", TINY)


class TestLaws:
    @ON_TINY
    def test_the_law_is_the_definition(self, grid):
        """A point g has weight exp(-epsilon / 2 t) if t records must be replaced for it to be the median."""
        x = [-3.0, 0.1, 0.7, 1.4, 30.0]
        options = {"measure": "uniform", "selection": "exponential"}
        mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.3, **options)
        points, ordered = grid.decode(range(grid.size)), np.sort(grid.decode(grid.encode(x)))
        below, above = np.searchsorted(ordered, points), 5 - np.searchsorted(ordered, points, side="right")
        scores = np.maximum(np.maximum(below - 2, above - 2), 0)
        weights = np.exp(-0.65 * scores)
        law = mechanism.law(x)
        assert law.pmf(range(grid.size)) == pytest.approx(weights / weights.sum(), rel=1e-12)
        assert law.value(range(grid.size)).tolist() == points.tolist()

    @ON_TINY
    @pytest.mark.parametrize(
        "make",
        [
            lambda grid: dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0),
            lambda grid: dpf.InverseSensitivity(Quantile(0.9), grid=grid, epsilon=1.0),
            lambda grid: dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0, neighbors="add-remove"),
            lambda grid: dpf.InverseSensitivity(Quantile(0.0), grid=grid, epsilon=1.0, neighbors="add-remove"),
        ],
    )
    def test_verified(self, grid, make):
        assert verify(make(grid), n=4, values=4, ordered=False).holds

    @ON_TINY
    def test_joint_quantiles_are_verified(self, grid):
        """By enumeration of all pairs of codes: the law of `Quantiles` has no list of outcomes."""
        mechanism, last = dpf.Quantiles([0.25, 0.75], grid=grid, epsilon=1.0), grid.size - 1
        pairs = np.array([(i, j) for i in range(last + 1) for j in range(i, last + 1)])
        values = grid.decode([0, last // 2, last])
        logs = {}
        for data in np.stack(np.meshgrid(values, values, values), -1).reshape(-1, 3).tolist():
            logs[tuple(sorted(data))] = mechanism.law(data).logpmf(pairs)
        assert all(math.fsum(np.exp(log)) == pytest.approx(1, abs=1e-12) for log in logs.values())
        losses = [
            np.max(log - logs[tuple(sorted([*data[:i], value, *data[i + 1 :]]))])
            for data, log in logs.items()
            for i in range(3)
            for value in values.tolist()
        ]
        assert max(losses) <= 1 + 1e-12

    def test_controls_are_rejected(self):
        """A grid that ends where the data end, and twice the exponent."""

        class OwnPoints(dpf.InverseSensitivity):
            def law(self, x, *, workers=1):
                narrow = FloatGrid(1, resolution=0.5, lower=float(np.min(x)) - 1, upper=float(np.max(x)) + 1)
                return dpf.InverseSensitivity(Median(), grid=narrow, epsilon=self.epsilon).law(x)

        assert not verify(OwnPoints(Median(), grid=TINY[0].with_missing("lower"), epsilon=1.0), n=3, values=4).holds

        class TwiceTheExponent(dpf.InverseSensitivity):
            def law(self, x, *, workers=1):
                return dpf.InverseSensitivity(Median(), grid=self.grid, epsilon=2 * self.epsilon).law(x)

        assert not verify(TwiceTheExponent(Median(), grid=TINY[0], epsilon=1.0), n=3, values=4).holds


class TestReleases:
    X = np.random.default_rng(3).lognormal(10.5, 0.6, 20_000)

    def test_a_call_draws_from_its_law(self):
        """A call and its law take the same words, on arrays, chunks and groups."""
        for neighbors in ("replace-one", "add-remove"):
            for q in (0.0, 0.3, 1.0):
                options = {"grid": FloatGrid(), "epsilon": 0.5, "neighbors": neighbors}
                mechanism = dpf.InverseSensitivity(Quantile(q), **options)
                for n in (1, 5, 700, 20_000):
                    law = mechanism.law(self.X[:n])
                    for seed in range(5):
                        drawn = law.value(law.sample(rng=PCG64(seed)))
                        assert mechanism(self.X[:n], rng=PCG64(seed)) == drawn
                        assert mechanism(dpf.Chunks.slices(self.X[:n], 3001), rng=PCG64(seed)) == drawn

    @every("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
    def test_groups(self, dtype):
        x, labels = (self.X[:9000] % 200).astype(dtype), np.arange(9000) % 7
        mechanism = dpf.InverseSensitivity(Median(), grid=FloatGrid(), epsilon=50.0)
        expected = [np.sort(x[labels == g].astype(float))[(len(x[labels == g]) + 1) // 2 - 1] for g in range(7)]
        assert dpf.by_group(mechanism, x, labels=labels, rng=PCG64(0)) == pytest.approx(expected, rel=0.02)
        joint = dpf.Quantiles([0.5], grid=FloatGrid(), epsilon=50.0)
        assert dpf.by_group(joint, x, labels=labels, rng=PCG64(0))[:, 0] == pytest.approx(expected, rel=0.02)
        large = dpf.by_group(mechanism, x, labels=np.zeros(9000, int), rng=PCG64(0))
        assert large == pytest.approx([np.sort(x.astype(float))[4499]], rel=0.02)

    def test_quantiles_of_many_ranks(self):
        """One, two and many stretches of ranks, from arrays and from chunks."""
        for qs in ([0.5], [0.1, 0.9], list(np.arange(1, 10) / 10), list(np.arange(1, 40) / 40)):
            mechanism = dpf.Quantiles(qs, grid=FloatGrid(), epsilon=50.0)
            for x in (self.X, -self.X, np.where(self.X > 4e4, math.inf, self.X), self.X * 1e290):
                drawn = mechanism(x, rng=PCG64(1))
                assert np.array_equal(mechanism(dpf.Chunks.slices(x, 4096), rng=PCG64(1)), drawn)
                exact = np.clip(np.sort(x)[[math.ceil(q * len(x)) - 1 for q in qs]], *ends())
                assert drawn == pytest.approx(exact, rel=0.05)

    def test_states_travel(self):
        mechanism = dpf.InverseSensitivity(Median(), grid=FloatGrid(), epsilon=1.0)
        state = mechanism.start()
        assert state.passes == 2
        for number in range(2):
            parts = []
            for chunk in np.array_split(self.X, 3):
                part = pickle.loads(pickle.dumps(state))
                part.update(chunk)
                parts.append(pickle.loads(pickle.dumps(part)))
            state = parts[0]
            for part in parts[1:]:
                state.merge(part)
            if not number:
                state.next_pass()
        assert state.release(rng=PCG64(5)) == mechanism(self.X, rng=PCG64(5))

    @every("statistic", [TrimmedMean(0.1), WinsorizedMean(0.1), Mean(), Huber(2.0), InterquartileRange()], ids=str)
    def test_arithmetic_is_refused(self, statistic):
        with pytest.raises(TypeError, match="a FloatGrid is for quantiles, which need only the order"):
            dpf.InverseSensitivity(statistic, grid=FloatGrid(), epsilon=1.0)

    def test_other_mechanisms_refuse_it(self):
        options = {"grid": FloatGrid(), "epsilon": 1.0}
        for make in (
            lambda: dpf.GlobalSensitivity(Mean(), **options),
            lambda: dpf.SmoothSensitivity(Median(), **options),
            lambda: dpf.MEstimator(dpf.psi.Pinball(0.5), **options),
            lambda: dpf.NestedBoxes(**options),
            lambda: dpf.histogram([1.0], 3, **options),
            lambda: dpf.density([1.0], **options),
            lambda: dpf.noise.add_laplace([1.0], scale=1.0, grid=FloatGrid()),
            lambda: dpf.median([1.0], method="smooth-sensitivity", **options),
            lambda: dpf.trimmed_mean([1.0], 0.1, **options),
        ):
            with pytest.raises(TypeError, match=r"a FloatGrid is for quantiles|grid must be a dpfast\.Grid, or one"):
                make()
        with pytest.raises(ValueError, match="radius must be 0 on a FloatGrid"):
            dpf.InverseSensitivity(Median(), radius=1.0, **options)
        with pytest.raises(TypeError, match="a FloatGrid is for quantiles"):
            FloatGrid().step  # noqa: B018


def ends():
    return FloatGrid().lower, FloatGrid().upper


class TestWithoutBounds:
    def test_functions(self):
        x = TestReleases.X
        options = {"epsilon": 1e4, "rng": PCG64(0)}
        ordered = np.sort(x)
        assert dpf.median(x, **options) == pytest.approx(ordered[9999], rel=1e-6)
        assert dpf.quantile(x, 0.9, **options) == pytest.approx(ordered[17_999], rel=1e-6)
        assert dpf.quantile(x, [0.1, 0.9], **options) == pytest.approx(ordered[[1999, 17_999]], rel=1e-6)
        width = ordered[14_999] - ordered[4999]
        assert dpf.iqr(x, **options) == pytest.approx(width, rel=1e-6)
        assert dpf.iqr(x, grid=FloatGrid(), **options) == pytest.approx(width, rel=1e-6)
        assert dpf.median(dpf.Chunks.slices(x, 999), **options) == pytest.approx(ordered[9999], rel=1e-6)

    @every("dtype", [np.int64, np.uint64, np.int8, np.uint16, bool])
    def test_integers_are_released_as_integers(self, dtype):
        x = np.arange(3).astype(dtype)
        released = [dpf.median(x, epsilon=0.1, rng=PCG64(seed)) for seed in range(50)]
        assert all(value == int(value) and -(2**63) <= value <= 2**64 for value in released)
        ages = np.random.default_rng(0).integers(18, 90, 1000)
        assert abs(dpf.median(ages, epsilon=10.0, rng=PCG64(0)) - np.sort(ages)[499]) <= 1

    def test_few_records_give_any_float(self):
        """What the warning says of few records, and that nothing fails."""
        x = np.random.default_rng(0).normal(100, 1, 10)
        with pytest.warns(dpf.UtilityWarning, match="10 records are too few for these quantiles without bounds"):
            released = [dpf.median(x, epsilon=0.1, rng=PCG64(seed)) for seed in range(100)]
        assert np.isfinite(released).all()
        assert np.mean(np.abs(np.array(released) - 100) > 20) > 0.8
        assert dpf.iqr([-math.inf, math.inf] * 500, epsilon=10.0, rng=PCG64(0)) == pytest.approx(1.7976931348623157e308)

    @pytest.mark.parametrize("q", [0.5, 0.1, 0.9])
    def test_a_private_number_of_records(self, q):
        """The explanation says what it takes, and a release is then near."""
        options = {"epsilon": 1.0, "neighbors": "add-remove"}
        mechanism = dpf.InverseSensitivity(Quantile(q), grid=FloatGrid(), **options)
        public = dpf.InverseSensitivity(Quantile(q), grid=FloatGrid(), epsilon=1.0)
        least, most = (
            float(re.search(r"n epsilon is at least ([0-9]+(\.[0-9]+)?)", made.explanation())[1])
            for made in (mechanism, public)
        )
        assert least < max(q, 1 - q) * 1.01 * most
        assert "and a warning presumes 100 records, as n is private" in mechanism.explanation(1000)
        x = np.full(math.ceil(least), 123.0)
        chance = 1 - math.exp(mechanism.law(x).logpmf(mechanism.grid.encode([123.0]))[0])
        assert chance < 0.01
        fewer = 1 - math.exp(mechanism.law(x[: len(x) // 5]).logpmf(mechanism.grid.encode([123.0]))[0])
        assert fewer > 0.05

    def test_smooth_sensitivity_and_arithmetic_need_bounds(self):
        for call in (
            lambda: dpf.median([1.0], epsilon=1.0, method="smooth-sensitivity"),
            lambda: dpf.iqr([1.0], epsilon=1.0, method="smooth-sensitivity"),
            lambda: dpf.trimmed_mean([1.0], 0.1, epsilon=1.0),
            lambda: dpf.mean([1.0], epsilon=1.0),
        ):
            with pytest.raises(TypeError, match="give either bounds="):
                call()


class Assumed:
    """An object with a quantile function: lognormal."""

    def __init__(self, shift=0.0, scale=1.0):
        self.shift, self.scale = shift, scale

    def ppf(self, u):
        from scipy.special import ndtri

        return self.shift + self.scale * ndtri(u)


class TestError:
    def test_it_agrees_with_bounds_where_there_are_enough_records(self):
        for shift, scale in ((100.0, 1.0), (-3e5, 100.0)):
            near = Grid(shift - 50 * scale, shift + 50 * scale)
            for q in (0.5, 0.9):
                without, bounded = (
                    dpf.InverseSensitivity(Quantile(q), grid=grid, epsilon=0.5) for grid in (FloatGrid(), near)
                )
                assumed = Assumed(shift, scale)
                expected = bounded.error(4000, distribution=assumed)
                assert without.error(4000, distribution=assumed) == pytest.approx(expected, rel=0.02)

    def test_it_is_kept(self):
        rng, mechanism = np.random.default_rng(0), dpf.InverseSensitivity(Median(), grid=FloatGrid(), epsilon=0.5)
        error = mechanism.error(300, distribution=Assumed(100.0), confidence=0.8)
        inside = [abs(mechanism(rng.normal(100, 1, 300), rng=PCG64(seed)) - 100) <= error for seed in range(600)]
        assert 0.72 < np.mean(inside) < 0.88

    def test_it_shows_that_records_are_too_few(self):
        mechanism = dpf.InverseSensitivity(Median(), grid=FloatGrid(), epsilon=1.0)
        assert mechanism.error(20, distribution=Assumed(100.0)) > 1e4
        assert mechanism.error(100, distribution=Assumed(100.0)) < 0.5

    def test_quantiles_have_one(self):
        mechanism = dpf.Quantiles([0.25, 0.75], grid=FloatGrid(), epsilon=1.0)
        assert np.all(mechanism.error(2000, distribution=Assumed(100.0)) < 0.2)

    def test_a_density_does_not_do(self):
        mechanism = dpf.InverseSensitivity(Median(), grid=FloatGrid(), epsilon=1.0)
        with pytest.raises(TypeError, match="a density does not determine the error on a FloatGrid"):
            mechanism.error(100, density=1.0)
