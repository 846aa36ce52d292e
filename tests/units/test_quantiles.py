"""Joint quantiles: the score, the chain, the law of draws, privacy by enumeration, exactness, selection."""

import itertools
import math
import pickle
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dpfast as dpf
from dpfast._kernels import _balls, _chain, _windows
from dpfast.laws import NestedIntervals, score_cap
from dpfast.mechanisms.quantiles import _Stages
from tests.cases import every
from tests.joint import stage, vectors
from tests.reference import quantiles as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel


def rank_qs(ranks, n):
    """Quantiles with these ranks."""
    return [(k - 0.5) / n for k in ranks]


def mechanism(ranks, n, last, epsilon, stages=1):
    return dpf.Quantiles(rank_qs(ranks, n), grid=dpf.Grid(0, last, step=1), epsilon=epsilon, stages=stages)


@st.composite
def cases(draw, records=6, codes=6, targets=4):
    n, last = draw(st.integers(1, records)), draw(st.integers(1, codes))
    data = draw(st.lists(st.integers(0, last), min_size=n, max_size=n))
    ranks = sorted(draw(st.sets(st.integers(1, n), min_size=1, max_size=min(n, targets))))
    return data, ranks, last, draw(st.sampled_from([0.25, 1.0, 4.0]))


class TestScore:
    @given(cases(records=5, codes=4))
    def test_the_twin_counts_the_fewest_replacements(self, case):
        data, ranks, last, _ = case
        for o in vectors(last, len(ranks)):
            assert reference.score(data, ranks, o) == reference.least_replacements(data, ranks, o, last)

    @given(cases(), st.integers(1, 6))
    def test_kernel_side_equals_the_twin(self, case, reach):
        data, ranks, last, epsilon = case
        reach = min(reach, len(data))
        law = stage(data, ranks, last, epsilon, reach)
        for o in vectors(last, len(ranks)):
            assert law.scores(np.array([o]))[0] == min(reference.score(data, ranks, o), reach + 1)

    @every("ranks", [(1,), (2,), (1, 3), (2, 3), (1, 2, 3)])
    def test_lipschitz(self, ranks):
        for data, other in reference.neighbors(3, 3):
            for o in vectors(3, len(ranks)):
                assert abs(reference.score(data, ranks, o) - reference.score(other, ranks, o)) <= 1


class TestLaw:
    @given(cases())
    def test_one_stage(self, case):
        data, ranks, last, epsilon = case
        exact = reference.law(data, ranks, last, epsilon, len(data) + 1)
        law = mechanism(ranks, len(data), last, epsilon).law(data)
        assert_allclose(law.logpmf(list(exact)), [math.log(p) for p in exact.values()], rtol=0, atol=1e-12)

    @given(cases())
    def test_two_stages(self, case):
        data, ranks, last, epsilon = case
        coarse = _Stages.of(len(ranks), len(data), last, epsilon, 2).coarse
        if not coarse:
            return
        exact = reference.two_stages(data, ranks, last, epsilon, coarse, [len(data) + 1] * 2)
        law = mechanism(ranks, len(data), last, epsilon, stages=2).law(data)
        assert_allclose(law.logpmf(list(exact)), [math.log(p) for p in exact.values()], rtol=0, atol=1e-12)

    @given(cases(), st.integers(1, 3), st.randoms(use_true_random=False))
    def test_pinned_chain_in_windows(self, case, reach, rng):
        """The total of the chain is the sum of q**S over the outputs whose walk stays in the windows."""
        data, ranks, last, epsilon = case
        reach = min(reach, len(data))
        o = sorted(rng.randint(0, last) for _ in ranks)
        pins = {j: o[j] for j in range(len(ranks)) if rng.random() < 0.5}
        law = stage(data, ranks, last, epsilon, reach, pins)
        total = sum(
            math.exp(-epsilon / 2 * reference.score(data, ranks, o))
            for o in vectors(last, len(ranks))
            if all(o[j] == code for j, code in pins.items()) and _largest_error(data, ranks, o) <= reach
        )
        for chain in (law._fast.chain, law._wide.chain):
            assert_allclose(math.ldexp(chain.total, chain.exponent), total, rtol=1e-13, atol=1e-200)

    @given(cases(targets=1))
    def test_one_quantile_is_inverse_sensitivity(self, case):
        data, (rank,), last, epsilon = case
        (q,) = rank_qs([rank], len(data))
        grid = dpf.Grid(0, last, step=1)
        one = dpf.InverseSensitivity(dpf.statistics.Quantile(q), grid=grid, epsilon=epsilon).law(data)
        one = NestedIntervals(one.lower, one.upper, epsilon=epsilon, last=last, grid=grid)  # depth does not count
        joint = dpf.Quantiles([q], grid=grid, epsilon=epsilon).law(data)
        points = np.arange(last + 1)
        assert_allclose(joint.logpmf(points[:, None]), one.logpmf(points), rtol=0, atol=1e-12)

    @every("epsilon", [1e-6, 0.1, 1.0, 50.0])
    @every("size", [2, 1000, 2**52])
    def test_the_same_cap_as_inverse_sensitivity(self, epsilon, size):
        cap = score_cap(epsilon, math.log(size))
        assert _Stages.of(1, 2**62, size - 1, epsilon, None).reach + 1 == min(cap, 2**62 + 1)

    @given(cases())
    def test_reflection(self, case):
        """Data and targets read from the other end."""
        data, ranks, last, epsilon = case
        n = len(data)
        law = mechanism(ranks, n, last, epsilon).law(data)
        mirror = mechanism([n + 1 - k for k in ranks[::-1]], n, last, epsilon).law([last - x for x in data])
        o = np.array(vectors(last, len(ranks)))
        assert_allclose(law.logpmf(o), mirror.logpmf(last - o[:, ::-1]), rtol=0, atol=1e-12)

    def test_permutation_of_the_records(self):
        x = np.random.default_rng(1).integers(0, 9, 50)
        m = mechanism([10, 25, 40], 50, 8, 1.0)
        a, b = (m(data, rng=np.random.default_rng(5)) for data in (x, x[::-1]))
        assert_array_equal(a, b)

    def test_order_of_the_qs_and_repetition(self):
        x = np.random.default_rng(1).integers(0, 100, 500)
        law = dpf.Quantiles([0.9, 0.1, 0.9, 0.5], grid=dpf.Grid(0, 99, step=1), epsilon=1.0).law(x)
        sample = law.sample(20, np.random.default_rng(2))
        assert np.all((sample[:, 1] <= sample[:, 3]) & (sample[:, 3] <= sample[:, 0]) & (sample[:, 0] == sample[:, 2]))
        assert np.all(np.isfinite(law.logpmf(sample)))
        assert_array_equal(law.logpmf([[90, 10, 91, 50], [10, 90, 10, 50]]), [-np.inf, -np.inf])

    @pytest.mark.parametrize("last", [40, 2**32])
    def test_great_scales(self, last):
        """Messages over thousands of binary orders, without a floor met."""
        rng = random.Random(3)
        data = sorted(rng.choice([0, last, rng.randint(0, last)]) for _ in range(70))
        law = dpf.Quantiles(rank_qs(range(1, 71), 70), grid=dpf.Grid(0, last, step=1), epsilon=0.01, stages=1).law(data)
        o = law.sample(rng=np.random.default_rng(4))
        assert np.all(np.diff(o) >= 0)
        assert law._first._fast.chain.certain


def _largest_error(data, ranks, output):
    worst, i, previous = 0, 0, 0
    for k, o in zip(ranks, output, strict=True):
        z, previous = i + k - previous, k
        below, not_above = sum(x < o for x in data), sum(x <= o for x in data)
        i = min(max(z, below + 1), not_above) if not_above > below else below
        worst = max(worst, abs(i - k))
    return worst


class TestPrivacy:
    @every(
        "n, ranks, last, epsilon",
        [(3, (1, 3), 3, 1.0), (3, (2, 3), 4, 4.0), (4, (1, 2, 4), 2, 0.5), (4, (1, 2, 3, 4), 2, 1.0)],
    )
    @every("stages", [1, 2])
    def test_exhaustive(self, n, ranks, last, epsilon, stages):
        m = mechanism(ranks, n, last, epsilon, stages)
        outputs = vectors(last, len(ranks))
        laws = {data: m.law(data).logpmf(outputs) for data in vectors(last, n)}
        loss = max(np.max(laws[data] - laws[other]) for data, other in reference.neighbors(n, last))
        assert 0.4 * epsilon < loss <= epsilon + 1e-12
        assert_allclose([np.exp(law).sum() for law in laws.values()], 1)

    @pytest.mark.parametrize("reach", [1, 2])
    def test_any_cap(self, reach):
        outputs = vectors(4, 2)
        laws = {data: reference.law(data, [1, 3], 4, 1.0, reach + 1) for data in vectors(4, 3)}
        assert reference.loss(laws, 3, 4) <= 1 + 1e-12
        assert len(outputs) == len(laws[0, 0, 0])

    def test_the_constant_of_add_and_remove_is_rejected(self):
        """Positive control: epsilon / 2 for each unit of sum |gap difference| loses nearly 2 epsilon."""
        outputs, epsilon = vectors(12, 1), 1.0
        laws = {}
        for data in vectors(12, 2):
            weights = {o: reference.gap_difference(data, [1], o, epsilon) for o in outputs}
            laws[data] = {o: weight / sum(weights.values()) for o, weight in weights.items()}
        assert reference.loss(laws, 2, 12) > 1.3 * epsilon

    def test_statement(self):
        m = mechanism([1, 2], 3, 5, 0.7)
        assert m.privacy == dpf.Privacy(0.7)
        assert m.privacy_map(0).epsilon == 0
        assert 2.1 <= m.privacy_map(3).epsilon < 2.1001


class TestDraws:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("data", "ranks", "last", "epsilon", "reach", "pins"),
        [
            ([0, 3, 3, 5], [1, 3, 4], 5, 1.0, 4, {}),
            ([0, 3, 3, 5], [1, 2, 3, 4], 5, 0.5, 4, {1: 3}),
            ([1, 1, 4, 6], [1, 2, 4], 6, 1.0, 4, {1: 2}),
            ([1, 1, 4, 6], [1, 2, 4], 6, 3.0, 1, {}),  # capped at 2: "anywhere" and the coin matter
            ([1, 1, 4, 6], [1, 2, 4], 6, 0.5, 1, {2: 5}),
            ([0, 0, 0, 0, 0, 0, 6], [2, 4, 6], 6, 0.5, 2, {1: 6}),  # pins the chain cannot reach in its windows
        ],
    )
    def test_law(self, data, ranks, last, epsilon, reach, pins):
        """Chi-square against the enumerated law; rejected for epsilon x 0.7 and x 1.3."""
        law = stage(data, ranks, last, epsilon, reach, pins)
        source = np.random.PCG64(7)
        draws = Counter(tuple(law.draw(source).tolist()) for _ in range(10_000))
        exact = reference.law(data, ranks, last, epsilon, reach + 1, pins)
        counts = [draws[o] for o in exact]
        assert sum(counts) == draws.total()
        assert not chi_square_rejects(counts, exact.values())
        if epsilon > 0.5:
            for factor in (0.7, 1.3):
                wrong = reference.law(data, ranks, last, epsilon * factor, reach + 1, pins)
                assert chi_square_rejects(counts, wrong.values())

    @given(cases(), st.booleans(), st.integers(0, 2**32))
    @settings(max_examples=40)
    def test_exact_arithmetic_gives_the_same_output(self, case, two, seed):
        data, ranks, last, epsilon = case
        law = mechanism(ranks, len(data), last, epsilon, stages=2 if two else 1).law(data)
        sources = [ScriptedBits(rest=np.random.PCG64(seed)) for _ in range(2)]
        fast, slow = (law._draw(source, exact=exact) for source, exact in zip(sources, (False, True), strict=True))
        assert_array_equal(fast, slow)
        assert sources[0].used == sources[1].used

    def test_exact_arithmetic_on_many_records(self):
        x = np.random.default_rng(1).lognormal(10, 1, 2000)
        law = dpf.Quantiles(np.linspace(0.05, 0.95, 19), grid=dpf.Grid(0, 1e6), epsilon=1.0, stages=2).law(x)
        fast, slow = (law._draw(np.random.PCG64(3), exact=exact) for exact in (False, True))
        assert_array_equal(fast, slow)

    @given(cases(), st.integers(1, 6))
    def test_proposals_dominate_their_weights(self, case, reach):
        """Proposed weight / q**S in (1, 1 + 4 margin): the coin of the proof note is one, and nearly always heads."""
        data, ranks, last, epsilon = case
        law = stage(data, ranks, last, epsilon, min(reach, len(data)))
        source = np.random.PCG64(1)
        for _ in range(3):
            o = law._fast.chain.draw(source)
            odds, runs = law._fast.chain.odds()
            counts = [math.comb(width + length - 1, length) for _, width, length in runs]
            proposed = _balls.proposed_weight(odds, counts, law._fast.total)
            score = reference.score(data, ranks, o)
            ratio = float(proposed()) / math.exp(-epsilon / 2 * score)
            assert 1 - 1e-14 < ratio < 1 + 4 * law._fast.chain.margin + 1e-14

    def test_choice_is_exact(self):
        """The smallest weights count exactly; a cumulative sum of doubles would lose them."""
        weights = np.array([1.0, 2.0**-70, 1.0])
        half = 2**63  # U = 1/2 starts inside the middle weight's share of 2**-71 around
        assert _balls.choose_weight(half, iter([0]).__next__, weights) == 1
        assert _balls.choose_weight(half - 1, iter([2**64 - 1]).__next__, weights) == 1
        assert _balls.choose_weight(half - 1, iter([0]).__next__, weights) == 0
        assert _balls.choose_weight(half, iter([2**63]).__next__, weights) == 2

    def test_sum_of_choices(self):
        rng = np.random.default_rng(1)
        weights = np.ldexp(rng.random(500) + 0.5, rng.integers(-1019, 1000, 500)) * (rng.random(500) < 0.9)
        exact = sum(Fraction(weight) for weight in weights.tolist())
        proposed = _balls.proposed_weight([(weights.max(), weights)], [3, 2**3000], Fraction(1, 7))
        with _balls.working_bits(3000):
            assert proposed().overlaps(_balls.arb(_balls.rational(Fraction(weights.max()) / exact / 21)) / 2**3000)
            assert proposed().rel_accuracy_bits() > 2900

    def test_coin(self):
        q = math.exp(-0.5)
        words = np.random.default_rng(1).integers(0, 2**64, 2000, dtype=np.uint64).tolist()
        kept = [_balls.keeps(word, lambda: 0, 1.0, 1, 3, lambda: _balls.arb(7) / 10) for word in words]
        expected = [word * 2.0**-64 < (q - q**3) / 0.7 for word in words]
        assert kept == expected
        anywhere = [_balls.goes_anywhere(word, lambda: 0, 1.0, 4, 3, Fraction(1)) for word in words]
        assert anywhere == [word * 2.0**-64 < 3 * q**4 / (1 + 3 * q**4) for word in words]

    @pytest.mark.parametrize(("width", "length"), [(1, 3), (3, 1), (3, 3), (2, 4)])
    def test_multisets(self, width, length):
        source, out = np.random.PCG64(1), np.empty(length, np.int64)
        counts = dict.fromkeys(vectors(width - 1, length), 0)
        for _ in range(20_000):
            _chain.fill_multiset(source, 5, width, out)
            counts[tuple((out - 5).tolist())] += 1
        assert len(counts) == reference.multisets(width, length)
        assert len(counts) == 1 or not chi_square_rejects(list(counts.values()), [1 / len(counts)] * len(counts))


class TestMechanism:
    def test_shapes_and_types(self):
        m = mechanism([1, 3], 4, 9, 1.0)
        x = [1, 2, 3, 9]
        rng = np.random.default_rng(1)
        assert m(x, rng=rng).shape == (2,)
        assert m(x).dtype == np.float64
        assert m.release(x, rng=rng).shape == (2,)
        assert m.release(x, size=3, rng=rng).shape == (3, 2)
        assert m.release(x, size=(2, 5), rng=rng).shape == (2, 5, 2)
        assert m.release(x, size=0, rng=rng).shape == (0, 2)
        assert m.law(x).logpmf([[1, 2], [3, 4], [5, 6]]).shape == (3,)
        assert m.law(x).logpmf([1, 2]).shape == ()

    def test_dataclass(self):
        m = dpf.Quantiles(np.array([0.5, 0.25]), grid=dpf.Grid(0, 9), epsilon=1)
        assert m == pickle.loads(pickle.dumps(m)) == dpf.Quantiles((0.5, 0.25), grid=dpf.Grid(0, 9), epsilon=1.0)
        assert hash(m) == hash(pickle.loads(pickle.dumps(m)))
        assert "2 quantiles from 0.25 to 0.5" in repr(m)

    @every(
        "arguments, error, message",
        [
            ({"qs": []}, ValueError, "qs must not be empty"),
            ({"qs": [0.5, 1.1]}, ValueError, "between 0 and 1"),
            ({"qs": 0.5}, TypeError, "sequence"),
            ({"qs": ["a"]}, TypeError, "real number"),
            ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
            ({"grid": (0, 1)}, TypeError, "grid must be a dpfast.Grid or FloatGrid"),
            ({"stages": 3}, ValueError, "stages must be"),
        ],
    )
    def test_bad_parameters(self, arguments, error, message):
        arguments = {"qs": [0.5], "grid": dpf.Grid(0, 1), "epsilon": 1.0} | arguments
        with pytest.raises(error, match=message):
            dpf.Quantiles(arguments.pop("qs"), **arguments)

    def test_no_records(self):
        with pytest.raises(ValueError, match="empty"):
            mechanism([1], 1, 5, 1.0)([])

    @pytest.mark.parametrize("stages", [1, 2])
    def test_large_epsilon_gives_the_order_statistics(self, stages):
        x = np.random.default_rng(1).integers(0, 1000, 300)
        qs = np.linspace(0, 1, 21)
        m = dpf.Quantiles(qs, grid=dpf.Grid(0, 999, step=1), epsilon=200.0, stages=stages)
        assert_array_equal(m(x), np.quantile(x, qs, method="inverted_cdf"))

    @every("epsilon", [1e-6, 1.0, 50.0])
    @every("stages", [None, 2])
    @every(
        "x",
        [
            pytest.param([3.0], id="one record"),
            pytest.param([4.0] * 7, id="all equal"),
            pytest.param([np.nan, np.inf, -np.inf], id="not finite"),
            pytest.param(np.arange(40.0), id="a range"),
            pytest.param(np.full(30, np.nan), id="all missing"),
        ],
    )
    def test_degenerate_data(self, x, stages, epsilon):
        qs = [0.0, 1.0, 0.5, 0.1, 0.2, 0.3, 0.31, 0.32, 0.9, 0.99]
        for grid in (dpf.Grid(0, 10), dpf.Grid(3, 4, step=1), dpf.Grid(-1e9, 1e9)):
            values = dpf.Quantiles(qs, grid=grid, epsilon=epsilon, stages=stages)(x, rng=np.random.default_rng(1))
            assert np.all((grid.lower <= values) & (values <= grid.upper))
            assert np.all(np.diff(values[np.argsort(qs, kind="stable")]) >= 0)

    def test_rule_for_the_stages(self):
        def two(m, n, epsilon):
            return bool(_Stages.of(m, n, 1000, epsilon, None).coarse)

        assert two(64, 10**6, 1.0)
        assert not two(63, 10**6, 1.0)
        assert two(33, 2000, 1.0)
        assert not two(33, 2041, 1.0)
        assert not two(15, 100, 0.1)

    def test_quantile_function(self):
        x = np.random.default_rng(1).lognormal(10, 1, 5000)
        together = dpf.quantile(x, [0.25, 0.75], bounds=(0, 1e6), epsilon=1.0, rng=np.random.default_rng(2))
        m = dpf.Quantiles([0.25, 0.75], grid=dpf.Grid(0, 1e6), epsilon=1.0)
        assert_array_equal(together, m(x, rng=np.random.default_rng(2)))
        assert isinstance(dpf.quantile(x, 0.5, bounds=(0, 1e6), epsilon=1.0), float)


def mean_rank_error(x, qs, values):
    """0 where the released value covers the rank."""
    ordered, ranks = np.sort(x), np.maximum(1, np.ceil(np.asarray(qs) * len(x)))
    below, not_above = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.mean(np.maximum(0, np.maximum(below + 1 - ranks, ranks - not_above)))


class TestAccuracy:
    @pytest.mark.slow
    @pytest.mark.parametrize(("m", "gain", "runs"), [(1, 0.7, 200), (2, 0.9, 200), (9, 2.0, 50), (99, 8.0, 4)])
    def test_against_splitting_the_budget(self, m, gain, runs):
        x = np.random.default_rng(1).lognormal(10, 1, 100_000)
        qs, grid, rng = np.arange(1, m + 1) / (m + 1), dpf.Grid(0, 1e6), np.random.default_rng(2)
        joint = dpf.Quantiles(qs, grid=grid, epsilon=1.0).release(x, size=runs, rng=rng)
        parts = [dpf.InverseSensitivity(dpf.statistics.Quantile(q), grid=grid, epsilon=1 / m) for q in qs]
        split = np.transpose([part.release(x, size=runs, rng=rng) for part in parts])
        together, apart = (np.mean([mean_rank_error(x, qs, row) for row in rows]) for rows in (joint, split))
        assert gain * together <= apart
        if m == 9:
            assert 4 <= together <= 7


GRID = {"lower": -1000.0, "upper": 1000.0, "step": 2.0**-20, "missing": 0.0}


class TestWindows:
    def check(self, x, firsts, lasts, workers=1, **changes):
        parameters = GRID | changes
        grid = dpf.Grid(parameters["lower"], parameters["upper"], parameters["step"], parameters["missing"])
        parameters |= {"lower": grid.lower, "upper": grid.upper}
        before = x.copy()
        got = _windows.windows(x, np.asarray(firsts), np.asarray(lasts), workers=workers, **parameters)
        ordered = np.sort(grid.encode(x))
        expected = np.concatenate([ordered[a - 1 : b] for a, b in zip(firsts, lasts, strict=True)])
        assert_array_equal(grid.encode(got), expected)
        assert x.tobytes() == before.tobytes()

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?"])
    def test_dtypes_and_strides(self, dtype, workers):
        n = 1 << 20 if workers > 1 else 50_000
        x = (np.random.default_rng(1).standard_normal(2 * n) * 100).astype(dtype)
        for values in (x[:n], x[::2], x[::-2]):
            self.check(values, [1, 500, n // 2], [3, 600, n // 2 + 40], workers)

    @every("n", [1, 10, 4096, 4097, 70_001])
    def test_sizes(self, n):
        x = np.random.default_rng(n).standard_cauchy(n)
        x[:: max(2, n // 7)] = np.nan
        self.check(x, [1], [n])
        self.check(x, [1], [1])
        self.check(x, [n], [n])

    @pytest.mark.parametrize(
        "x",
        [
            np.full(20_000, 3.0),
            np.r_[np.zeros(10_000), np.linspace(1e-9, 2e-9, 10_000), np.full(10_000, np.inf)],
            np.r_[np.full(15_000, -np.inf), np.linspace(-5, 5, 100), np.full(15_000, np.inf)],
            np.arange(30_000.0) - 15_000,
        ],
        ids=["equal", "crowded", "infinite", "beyond the bounds"],
    )
    def test_hard_data(self, x):
        n = len(x)
        self.check(x, [1, n // 2 - 30], [20, n // 2 + 30])
        self.check(x, [n // 3, n], [n // 3, n], lower=-1e308, upper=1e308, step=2.0**980)

    def test_few_points(self):
        x = np.random.default_rng(1).standard_normal(20_000) * 3
        self.check(x, [1, 5000, 19_990], [9, 5100, 20_000], lower=-3.0, upper=8.0, step=0.5)
        self.check(x, [1, 5000, 19_990], [9, 5100, 20_000], lower=-3.0, upper=8.0, step=1.0)
        self.check(x, [1, 5000], [9, 5100], lower=0.0, upper=4096.0, step=0.25)

    @pytest.mark.parametrize("epsilon", [5e-324, 1.5e-323, 1e-308])
    def test_the_shares_of_the_least_epsilons(self, epsilon):
        plan = _Stages.of(3, 9, 287, epsilon, 2)
        assert plan.coarse
        assert 2 * Fraction(plan.epsilon) <= Fraction(epsilon)
        quantiles = dpf.Quantiles((0.3, 0.5, 0.99), grid=dpf.Grid(0, 287), epsilon=epsilon, stages=2)
        assert quantiles(np.zeros(9)).shape == (3,)

    @pytest.mark.parametrize("step", [5e-324, 1e-310, 2.0**-1022, 2.0**1000])
    def test_few_points_of_extreme_steps(self, step):
        step = 2.0 ** np.frexp(step)[1] / 2  # a power of two
        x = np.random.default_rng(2).integers(-5, 17, 20_000) * step
        self.check(x, [1, 5000, 19_990], [9, 5100, 20_000], lower=-3 * step, upper=11 * step, step=step)
        self.check(x, [1, 5000, 19_990], [9, 5100, 20_000], lower=-3 * step, upper=2.0**20 * step, step=step)

    def test_unsupported_dtype(self):
        with pytest.raises(TypeError, match="complex128"):
            _windows.windows(np.zeros(3, complex), np.array([1]), np.array([1]), **GRID)


@given(
    st.lists(st.integers(0, 30), min_size=12, max_size=60),
    st.sets(st.integers(1, 12), min_size=3, max_size=9).map(sorted),
    st.integers(0, 5),
)
def test_messages_that_are_computed_again_are_the_same(codes, ranks, seed):
    """Between pins at every third target, with all messages in memory and with those of one block at a time."""
    n, ranks = len(codes), np.array(ranks, np.int64)
    x = np.concatenate([[-2, -1], np.sort(codes), [31]]).astype(np.int64)
    index = np.arange(len(ranks))
    pinned = index % 3 == 2
    lowers, uppers = np.zeros_like(index), np.full_like(index, 30)
    for j in np.flatnonzero(pinned):
        lowers[j:] = x[ranks[j] + 1]
    for j in np.flatnonzero(pinned)[::-1]:
        uppers[: j + 1] = x[ranks[j] + 1]
    firsts, lasts, bases = np.zeros_like(index), np.full_like(index, n), np.full_like(index, 1)
    chains = [_chain.Chain(x, bases, ranks, firsts, lasts, lowers, uppers, 0.25, n, held=held) for held in (0, 10**6)]
    assert chains[0].total == chains[1].total
    source, twin = np.random.PCG64(seed), np.random.PCG64(seed)
    for _ in range(5):
        first, second = chains[0].draw(source), chains[1].draw(twin)
        assert first is not None
        assert_array_equal(first, second)
        (few, runs), (whole, same) = chains[0].odds(), chains[1].odds()
        assert runs == same
        for (weight, weights), (other, others) in zip(few, whole, strict=True):
            assert weight == other
            assert_array_equal(weights, others)


class TestRange:
    """Weights that are no doubles."""

    @pytest.mark.parametrize(("n", "epsilon", "m", "bits"), [(100, 39.0, 63, 52), (100, 33.0, 99, 32)])
    def test_the_total_with_runs_whose_cost_is_no_double(self, n, epsilon, m, bits):
        """Half of the records at each bound, so that the best outputs are runs of all targets in the gap between."""
        last, w = 2**bits - 1, 2**bits - 2
        grid = dpf.Grid(0, last, step=1)
        data = np.repeat([0.0, float(last)], n // 2)
        with pytest.warns(dpf.errors.PrivacyWarning):
            mechanism = dpf.Quantiles(
                np.arange(1, m + 1) / (m + 1), grid=grid, epsilon=epsilon, stages=1, measure="uniform"
            )
        law = mechanism.law(data)._first
        logs, m = [], len(law._lowers)  # some ranks may be equal
        for low, inside in itertools.product(range(m + 1), repeat=2):
            if low + inside <= m:
                o = np.repeat([0, 1, last], [low, inside, m - low - inside])
                logs.append(math.log(math.comb(w + inside - 1, inside)) - epsilon / 2 * law.scores(o[None])[0])
        assert_allclose(law._fast.log_total, np.logaddexp.reduce(logs), rtol=0, atol=1e-9)

    def test_pins_that_no_walk_reaches_in_doubles(self):
        """The total falls with epsilon, to the floors and no further."""
        last, totals = 2**52 - 1, []
        for epsilon in (5.5, 5.6, 5.7, 5.8):
            mechanism = dpf.Quantiles(
                np.linspace(0.5, 0.55, 64), grid=dpf.Grid(0, last, step=1), epsilon=epsilon, stages=2, measure="uniform"
            )
            law = mechanism.law(np.full(2000, float(last)))
            totals.append(law._second(np.arange(64)[list(law._stages.coarse)] + 5)._fast.log_total)
        assert np.all(np.abs(np.diff(totals)) < 15)
