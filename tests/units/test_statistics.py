"""Every statistic x mechanism: T, attack ranges, gaps, laws and values against brute force over all datasets."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal

import dpfast as dpf
from dpfast import Grid, InverseSensitivity
from dpfast._kernels import _levels
from dpfast.statistics import (
    Gaps,
    Huber,
    InterquartileRange,
    LinearQuantile,
    Mean,
    Median,
    RankStatistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
    corners,
)
from tests.cases import every
from tests.reference import laws
from tests.reference import statistics as reference
from tests.reference.statistics import FUNCTIONS, TRIMEAN, has_gaps
from tests.reference.statistics import RANK_CASES as CASES
from tests.scripted import ScriptedBits

pytestmark = pytest.mark.kernel

EVERY = pytest.mark.parametrize("name", CASES)
EACH = every("name", CASES)


def codes(last):
    return Grid(0, last, step=1)


def ranges(statistic, x, last, levels=None):
    summary = statistic.reading(codes(last), lambda n: levels or statistic.breakdown(n)).of(np.array(x, float))
    lower, upper = statistic.attack_range(summary)
    return list(zip(lower.tolist(), upper.tolist(), strict=True))


@every("q", [0.0, 0.05, 0.25, 1 / 3, 0.5, 0.9, 0.999, 1.0])
def test_linear_quantiles_are_those_of_numpy(q):
    rng, statistic = np.random.default_rng(4), LinearQuantile(q)
    for n in (1, 2, 3, 10, 51, 1000, 1001):
        x = rng.integers(0, 1000, n)
        [(low, high)] = ranges(statistic, x, 1000, levels=1)
        parts = statistic.codes_per_step(n)
        assert low == high
        assert parts <= 1000
        assert_allclose(low / parts, np.quantile(x, q), rtol=0, atol=1e-9)


def test_the_median_of_numpy_is_a_trimmed_mean():
    """For an even n the mean of the middle two records, as the docs of `dpfast.median` say; for any other trim, not."""
    rng = np.random.default_rng(3)
    for n in (2, 4, 10, 50, 998, 10_000):
        x = rng.integers(0, 1000, n)
        [(low, high)] = ranges(TrimmedMean(0.5 - 1 / n), x, 1000, levels=1)
        assert low == high == 2 * np.median(x)  # the sum of the kept records
        if n > 4:
            assert ranges(TrimmedMean(0.5 - 2 / n), x, 1000, levels=1) != [(low, high)]


class TestAttackRange:
    @EACH
    @pytest.mark.parametrize(("n", "last"), [(1, 3), (2, 3), (3, 3), (4, 2), (6, 1)])
    def test_equals_brute_force_on_all_datasets(self, name, n, last):
        statistic, twin, *_ = CASES[name]
        for x in combinations_with_replacement(range(last + 1), n):
            expected = [reference.attack_range(twin, x, t, last) for t in range(statistic.breakdown(n))]
            assert ranges(statistic, x, last) == expected, x
            assert expected[0] == (twin(x), twin(x)), x

    @EACH
    def test_public_outputs_do_not_depend_on_data(self, name):
        statistic = CASES[name].statistic
        mechanism = InverseSensitivity(statistic, grid=Grid(0, 1), epsilon=0.5)
        n, seen = 101, set()
        for x in (
            np.zeros(n),
            np.ones(n),
            np.full(n, np.nan),
            np.linspace(0, 1, n),
            np.append(np.zeros(n - 1), np.inf),
        ):
            source = ScriptedBits(rest=PCG64(1))
            law = mechanism.law(x)
            _levels.fill(source, law.lower, law.upper, 0.5, law.support[1], np.empty(1, np.int64))
            seen.add((law.lower.shape, law.upper.shape, law.lower.dtype, law.upper.dtype, law.support, source.used))
        assert len(seen) == 1

    @EACH
    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
    def test_the_breakdown_suffices(self, name, n):
        statistic, twin, *_ = CASES[name]
        if reference.is_constant(twin, n, 2):
            return
        for x in combinations_with_replacement(range(3), n):
            t, everything = statistic.breakdown(n), (0, statistic.last(codes(2), n))
            assert reference.attack_range(twin, x, t, 2) == everything, f"{t} replaced records of {x}"

    @EVERY
    @settings(max_examples=40)
    @given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.data())
    def test_nested_one_step_apart_for_neighbours(self, name, x, data):
        """[l_t, u_t] of x lies inside [l_(t+1), u_(t+1)] of a neighbour: the score is 1-Lipschitz."""
        statistic = CASES[name].statistic
        y = [*x]
        y[data.draw(st.integers(0, len(x) - 1))] = data.draw(st.integers(0, 50))
        mine, theirs = ranges(statistic, x, 50), ranges(statistic, y, 50)
        for (lower, upper), (wider_lower, wider_upper) in zip(mine[:-1], theirs[1:], strict=True):
            assert wider_lower <= lower <= upper <= wider_upper
        for inner, outer in pairwise(mine):
            assert outer[0] <= inner[0] <= inner[1] <= outer[1]

    @EACH
    def test_fewer_levels_are_a_prefix(self, name):
        statistic = CASES[name].statistic
        x = np.random.default_rng(1).integers(0, 100, 200)
        full = ranges(statistic, x, 100)
        for levels in (1, 2, 7, 60, 100):
            assert ranges(statistic, x, 100, levels) == full[:levels]

    @EACH
    @pytest.mark.parametrize("kind", ["float64", "float32", "int16", "strided", "shuffled", "missing"])
    def test_large_data(self, name, kind):
        """Many levels and records: the kernels' windows and sums, against the same of all records sorted."""
        statistic, twin, monotone, quick = CASES[name]
        x = np.random.default_rng(2).integers(-20, 1020, 20_000).astype("float64")
        plain = np.clip(x, 0, 1000)
        if kind == "missing":
            plain[::7] = 500.0
            x[::7] = np.nan
        y = {"strided": x.repeat(3)[::3], "shuffled": np.random.default_rng(3).permutation(x), "missing": x}.get(
            kind, x
        )
        y = y if kind not in ("float32", "int16") else y.astype(kind)
        grid = Grid(0, 1000, step=1, missing=500)
        lower, upper = statistic.attack_range(statistic.reading(grid, lambda _: 50).of(y, 2))
        assert lower[0] == upper[0]
        if not quick:
            return
        assert lower[0] == twin(plain.astype(int).tolist())
        n, t, ordered = len(plain), 49, np.sort(plain)
        raised = np.concatenate([ordered[t:], np.full(t, 1000.0)]).astype(int).tolist()
        lowered = np.concatenate([np.zeros(t), ordered[: n - t]]).astype(int).tolist()
        if monotone:
            assert (lower[t], upper[t]) == (twin(lowered), twin(raised))

    def test_wide_interquartile_range(self):
        x = np.sort(np.random.default_rng(4).integers(0, 10**6, 5_000))
        first, last = InterquartileRange().ranks(5_000)
        found = ranges(InterquartileRange(), x, 10**6, 600)
        for t in (0, 1, 17, 599):
            highest = max(x[last - 1 + a] - x[first - 1 - t + a] for a in range(t + 1))
            lowest = min(max(0, x[last - 1 - a] - x[first - 1 + t - a]) for a in range(t + 1))
            assert found[t] == (lowest, highest)

    @pytest.mark.parametrize("cells", [2**3, 2**7, 2**13])
    def test_huber_by_the_codes_near_its_corners(self, monkeypatch, cells):
        """The ranges are those of all codes, wherever the data do not need all; a bracket that is too narrow fails."""
        monkeypatch.setattr(corners, "_FEW", 0)
        monkeypatch.setattr(corners, "_CELLS", cells)
        source, near, wrong = np.random.default_rng(cells), 0, 0
        for last, share, spread in product((2**9 - 1, 2**20, 2**40 - 7), (0.02, 0.1, 0.3), (0.05, 0.3, 3.0)):
            for levels in (1, 5, 40):
                where = source.normal(source.uniform(0.2, 0.8), spread, 600)
                codes = (np.clip(where, 0, 1) * last).astype(np.int64)
                codes[: source.integers(0, 200)] = codes[0]  # ties
                corner, whole, part = (
                    max(1, round(share * last)),
                    np.empty((2, levels), int),
                    np.empty((2, levels), int),
                )
                _levels.huber_ranges(np.sort(codes), corner, last, *whole)
                found = corners.near_corners(codes, corner, last, levels)
                if found is None:
                    continue
                few, rest = found
                near += 1
                _levels.huber_ranges(few, corner, last, *part, rest)
                np.testing.assert_array_equal(part, whole)
                assert len(few) + sum(rest[:3]) == len(codes)
                few, rest = _levels.near_corners(codes, corner, whole[0, 0], whole[1, 0])  # of level 0 alone
                _levels.huber_ranges(few, corner, last, *part, rest)
                wrong += bool((part != whole).any())
        assert near > 5
        assert wrong or cells == 2**3  # where most brackets are too wide for several levels

    @pytest.mark.parametrize("bounds", [(0.0, 1e6), (0.0, 2e5), (-1e9, 1e9)])
    def test_huber_of_many_records_is_that_of_sorted_ones(self, monkeypatch, bounds):
        x = np.random.default_rng(3).lognormal(10.5, 0.6, 20_000)
        few = [dpf.huber(x, 1e4, bounds=bounds, epsilon=e, rng=np.random.default_rng(1)) for e in (0.01, 1.0, 30.0)]
        monkeypatch.setattr(corners, "_FEW", len(x))
        whole = [dpf.huber(x, 1e4, bounds=bounds, epsilon=e, rng=np.random.default_rng(1)) for e in (0.01, 1.0, 30.0)]
        assert few == whole

    def test_huber_by_its_equation(self):
        rng = np.random.default_rng(5)
        for corner in (1, 30, 400):
            x = np.sort(rng.integers(0, 1000, 300))
            for t, (lower, upper) in enumerate(ranges(Huber(corner), x, 999, 40)):
                for theta, y in ((lower, np.r_[np.zeros(t), x[: 300 - t]]), (upper, np.r_[x[t:], np.full(t, 999)])):
                    assert np.clip(theta - y, -corner, corner).sum() >= 0
                    assert theta == 0 or np.clip(theta - 1 - y, -corner, corner).sum() < 0


class TestLaw:
    @EACH
    @pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0])
    def test_equals_definition(self, name, epsilon):
        statistic, twin, *_ = CASES[name]
        n, last = 3, 2
        if reference.is_constant(twin, n, last):
            return  # no dataset has a code above 0: any law of a constant is private
        mechanism = InverseSensitivity(statistic, grid=codes(last), epsilon=epsilon, selection="exponential")
        for x in product(range(last + 1), repeat=n):
            law = mechanism.law(x)
            every = range(statistic.last(codes(last), n) + 1)
            boxes = [reference.attack_range(twin, x, t, last) for t in range(n + 1)]
            score = [next(t for t, (lower, upper) in enumerate(boxes) if lower <= k <= upper) for k in every]
            levels = min(mechanism.cap(n), statistic.breakdown(n))
            single = [lower == upper for lower, upper in boxes[:levels]] + [False]
            score[score.index(0)] -= max(single.index(False) - 1, 0)  # the depth, if only one point has score 0
            expected = laws.inverse_sensitivity(score, epsilon, mechanism.cap(n))
            assert law.support == (0, every[-1])
            assert_allclose(law.pmf(np.array(every)), np.array(expected, float), rtol=1e-12)
            assert_allclose(law.cdf(np.array(every)), np.cumsum(np.array(expected, float)), rtol=1e-12)

    @EACH
    def test_a_call_and_a_sample_are_draws_of_the_law(self, name):
        statistic = CASES[name].statistic
        x = np.random.default_rng(6).integers(0, 40, 1000)
        mechanism = InverseSensitivity(statistic, grid=codes(40), epsilon=0.5, radius=1)
        law = mechanism.law(x)
        for seed in range(5):
            assert mechanism(x, rng=PCG64(seed)) == law.value(law.sample(rng=PCG64(seed)))

    def test_codes_up_to_the_last_of_63_bits(self):
        grid = Grid(0, 2.0**52 - 1, step=1)
        n = 2**11  # n (2**52 - 1) = 2**63 - 2**11
        x = np.random.default_rng(7).integers(0, 2**52, n)
        mechanism = InverseSensitivity(Mean(), grid=grid, epsilon=1.0)
        law = mechanism.law(x)
        assert law.support == (0, n * (2**52 - 1))
        assert law.lower[0] == law.upper[0] == sum(x.tolist())
        assert law.cdf(law.support[1]) == pytest.approx(1)
        draws = law.sample(2000, rng=PCG64(1))
        assert ((draws >= 0) & (draws <= law.support[1])).all()
        assert mechanism(x, rng=PCG64(2)) == reference.mean_value(grid, law.sample(rng=PCG64(2)), n)

    def test_too_many_codes(self):
        grid = Grid(0, 2.0**52 - 1, step=1)
        for statistic in (Mean(), TrimmedMean(0.1), WinsorizedMean(0.1), Huber(3.0)):
            with pytest.raises(ValueError, match=r"must be below 2\*\*63"):
                InverseSensitivity(statistic, grid=grid, epsilon=1.0)(np.zeros(3000))

    def test_statistics_without_ranks(self):
        for statistic in (Sum(), Variance()):
            with pytest.raises(TypeError, match=f"the {statistic} has no attack range .*: use GlobalSensitivity"):
                InverseSensitivity(statistic, grid=codes(9), epsilon=1.0)
        with pytest.raises(TypeError, match=r"the trimean has no attack range .*: use SmoothSensitivity"):
            InverseSensitivity(TRIMEAN, grid=codes(9), epsilon=1.0)


class TestAudit:
    @EACH
    @pytest.mark.parametrize("epsilon", [0.1, 4.0])
    def test_certified(self, name, epsilon):
        mechanism = InverseSensitivity(CASES[name].statistic, grid=codes(12), epsilon=epsilon)
        for n in (1, 2) if epsilon == 0.1 else (3,):
            assert dpf.audit.verify(mechanism, n=n, values=4, ordered=False).holds

    @EACH
    @pytest.mark.parametrize("grid", [Grid(0, 1, step=1), Grid(-0.5, 0.75, step=0.25)])
    def test_certified_on_tiny_grids(self, name, grid):
        for radius in (0, 0.25):
            mechanism = InverseSensitivity(CASES[name].statistic, grid=grid, epsilon=1.0, radius=radius)
            assert dpf.audit.verify(mechanism, n=4, values=2, ordered=False).holds

    @every("name", ["mean", "trimmed 0.2", "winsorized 0.34", "iqr", "huber 2"])
    def test_a_score_of_two_a_replacement_is_rejected(self, name, monkeypatch):
        """Control: a score that grows by 2 with one replaced record."""
        statistic = CASES[name].statistic
        right = type(statistic).attack_range

        def wrong(self, summary):
            return tuple(np.repeat(side, 2) for side in right(self, summary))

        monkeypatch.setattr(type(statistic), "attack_range", wrong)
        mechanism = InverseSensitivity(statistic, grid=codes(40), epsilon=1.0)
        assert dpf.audit.verify(mechanism, n=3, values=3, ordered=False).holds is False

    def test_interquartile_range_attacked_at_one_end_is_rejected(self, monkeypatch):
        """Control: as if all replacements went to the upper quartile."""

        def wrong(self, summary):
            low, high = summary.windows
            center = summary.levels - 1
            return np.maximum(high[center::-1] - low[center], 0), high[center:] - low[center]

        monkeypatch.setattr(InterquartileRange, "attack_range", wrong)
        mechanism = InverseSensitivity(InterquartileRange(), grid=codes(40), epsilon=1.0)
        assert not dpf.audit.verify(mechanism, n=4, values=3, ordered=False).holds


class TestDegenerate:
    @EACH
    @pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0])
    def test_few_equal_or_extreme_records(self, name, epsilon):
        statistic = CASES[name].statistic
        for grid in (Grid(0, 1, step=1), Grid(-3, 5, step=0.5), Grid(0, 1e6)):
            mechanism = InverseSensitivity(statistic, grid=grid, epsilon=epsilon)
            low, high = mechanism.law([0.0]).value(np.array(mechanism.law([0.0]).support))
            for x in ([grid.lower], [grid.upper], [1.0] * 2, [grid.lower] * 50, [grid.upper] * 7, [np.nan] * 3):
                assert low <= mechanism(x, rng=PCG64(1)) <= high
                assert math.fsum(mechanism.law(x).pmf(np.arange(3))) <= 1 + 1e-12

    @every("n", [1, 3, 5, 21])
    @every("statistic", [TrimmedMean, WinsorizedMean])
    def test_all_but_the_median_cut(self, statistic, n):
        """2 m = n - 1: both are the median, on their own grids of codes."""
        trim = math.nextafter(0.5, 0)
        x = np.random.default_rng(n).integers(0, 30, n)
        release = InverseSensitivity(statistic(trim), grid=codes(30), epsilon=50.0)
        assert statistic(trim).cut(n) == (n - 1) // 2
        assert release.law(x).value(release.law(x).lower[0]) == np.median(x)

    @given(st.integers(1, 10**9), st.floats(0, 0.5, exclude_max=True))
    def test_trimming_leaves_a_record(self, n, trim):
        assert 2 * TrimmedMean(trim).cut(n) < n

    @every("trim", [-0.1, 0.5, math.nan, "0.1", None, True])
    @every("statistic", [TrimmedMean, WinsorizedMean])
    def test_bad_trim(self, statistic, trim):
        with pytest.raises((TypeError, ValueError), match="trim must be"):
            statistic(trim)

    @pytest.mark.parametrize("k", [0, -1, math.inf, "1"])
    def test_bad_corner(self, k):
        with pytest.raises((TypeError, ValueError), match="k must be"):
            Huber(k)

    def test_corner_is_a_number_of_steps(self):
        grid = Grid(0, 10, step=0.5)
        assert [Huber(k).corner(grid) for k in (1e-9, 0.5, 0.8, 3.0, 1e300)] == [1, 1, 2, 6, 20]


class TestRelease:
    @given(st.integers(0, 2**40), st.integers(1, 10**7), st.sampled_from([2.0**-1074, 2.0**-60, 0.125, 1.0, 2.0**900]))
    def test_means_are_correctly_rounded(self, code, records, step):
        grid = Grid(-(2**50 + 1) * step, 12345 * step, step=step)
        assert Mean().value(grid, records, code) == reference.mean_value(grid, code, records)
        assert Mean().decode(grid, records, np.array([code]))[0] == reference.mean_value(grid, code, records)

    @given(st.integers(0, 2**60), st.integers(1, 10**6))
    def test_sums_are_correctly_rounded(self, code, n):
        grid = Grid(-1000.5, 7.25, step=0.25)
        assert Sum().value(grid, n, code) == float(n * Fraction(grid.lower) + code * Fraction(grid.step))

    @pytest.mark.parametrize("name", ["mean", "trimmed 0.2", "winsorized 0.2", "huber 2"])
    def test_data_out_of_bounds_are_clipped(self, name):
        statistic = CASES[name].statistic
        mechanism = InverseSensitivity(statistic, grid=Grid(-1, 1, step=2.0**-10), epsilon=1.0)
        x = np.random.default_rng(8).normal(0, 2, 500)
        assert mechanism(x, rng=PCG64(3)) == mechanism(np.clip(x, -1, 1), rng=PCG64(3))

    @EACH
    def test_order_and_workers_do_not_matter(self, name):
        statistic = CASES[name].statistic
        mechanism = InverseSensitivity(statistic, grid=Grid(0, 1), epsilon=1.0)
        x = np.random.default_rng(9).random(2_100_000 if statistic == TrimmedMean(0.2) else 50_000)
        first = mechanism(x, rng=PCG64(4))
        assert first == mechanism(np.random.default_rng(10).permutation(x), rng=PCG64(4), workers=2)

    def test_gaps(self):
        assert list(Median().gaps(9)) == [(5, 5)]
        assert list(Mean().gaps(9)) == [(1, 9)]
        assert list(TrimmedMean(0.25).gaps(9)) == [(3, 7)]
        assert list(InterquartileRange().gaps(9)) == [(3, 3), (7, 7)]
        assert WinsorizedMean(0.25).gaps(9).corners == (2, 2)
        assert LinearQuantile(0.9).gaps(9) == Gaps(((8, 9),), (3, 0))
        with pytest.raises(TypeError, match="no gap form"):
            Huber(1).gaps(9)

    @EACH
    def test_gaps_bound_the_local_sensitivity(self, name):
        """The change by one record is the greatest gap of the ranks, exactly where the corner is 0."""
        statistic, twin, *_ = CASES[name]
        if not has_gaps(statistic):
            return
        last = 3
        for n in (2, 3, 4, 5):
            if reference.is_constant(twin, n, last):
                continue
            gaps = statistic.gaps(n)
            for x in combinations_with_replacement(range(last + 1), n):
                lower, upper = reference.attack_range(twin, x, 1, last)
                padded = {i: 0 if i < 1 else last if i > n else x[i - 1] for i in range(-1, n + 3)}
                inner, (first, final) = gaps.inner, gaps.corners
                rise = {i: padded[i + 1] - padded[i] for i in range(-1, n + 2)}
                bound = max(
                    inner * (padded[b + 1 - down] - padded[a - down]) + first * rise[a - down] + final * rise[b - down]
                    for a, b in gaps
                    for down in (0, 1)
                )
                assert max(upper - twin(x), twin(x) - lower) == bound, (x, gaps)


@every("name", [name for name in FUNCTIONS if isinstance(FUNCTIONS[name][1], RankStatistic)])
def test_functions_are_mechanisms(name):
    x, grid, (arguments, statistic) = np.random.default_rng(11).random(1000), Grid(0, 1), FUNCTIONS[name]
    expected = InverseSensitivity(statistic, grid=grid, epsilon=0.5)(x, rng=PCG64(5))
    for place in ({"grid": grid}, {"bounds": (0, 1)}):
        options = {"method": "inverse-sensitivity", "epsilon": 0.5, **place}
        assert getattr(dpf, name)(x, *arguments, rng=PCG64(5), **options) == expected


def test_functions_of_sums_take_other_methods():
    with pytest.raises(ValueError, match="method must be"):
        dpf.sum([0.5], bounds=(0, 1), epsilon=1.0, method="inverse-sensitivity")


def test_a_large_epsilon_gives_the_statistic():
    assert_array_equal(dpf.median([3, 3, 3], bounds=(0, 9), epsilon=50.0, rng=PCG64(0)), 3.0)
