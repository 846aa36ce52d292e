"""T40: The base measure of floats: modest magnitudes and round numbers. docs/proofs/base-measures.md"""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from numpy.random import PCG64

import dpfast as dpf
from dpfast import FloatGrid, InverseSensitivity, Quantiles
from dpfast._kernels import _levels, _multisets
from dpfast._kernels._measures import Magnitudes, Measure
from dpfast.core.grid import integers_within
from dpfast.core.measures import on_floats
from dpfast.laws import NestedIntervals
from dpfast.random import streams
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.reference import measures as reference
from tests.statistical import chi_square_rejects

WIDE = [
    FloatGrid(),
    FloatGrid(40),
    FloatGrid(12, resolution=0),
    FloatGrid(3, resolution=1),
    FloatGrid(resolution=2.0**-900, lower=-1e100, upper=1e100),
    FloatGrid(lower=-3.0, upper=1e6),
    integers_within(-(2.0**63), 2.0**64),
]
TINY = [FloatGrid(1, resolution=0.5, lower=-4, upper=16), FloatGrid(3, resolution=1, lower=-2, upper=3)]


def of_each(measure, first, last):
    codes = np.arange(first, last + 1)
    return measure.weights(codes, codes)


def stretches(grid, rng):
    """Intervals of codes: near some values, across 0, wide ones, and ends."""
    last, numbers = grid.size - 1, [-1e30, -101.5, -1.0, 0.0, 1.0, 99.9, 4096.0, 1e12]
    for near in grid.encode(numbers).tolist():
        first = max(near - int(rng.integers(0, 300)), 0)
        yield first, min(first + int(rng.integers(0, 600)), last)
    for _ in range(10):
        first, final = sorted(rng.integers(0, grid.size, 2).tolist())
        yield first, final
    yield 0, last
    yield last, last


class TestWeights:
    @pytest.mark.parametrize(
        "grid",
        [FloatGrid(1, resolution=2.0**-10), FloatGrid(3), FloatGrid(3, resolution=0), FloatGrid(4, resolution=8)],
    )
    def test_shares_are_those_of_the_definition(self, grid):
        weights = of_each(on_floats(grid, "auto"), 0, grid.size - 1)
        shares = reference.of_floats(grid)
        np.testing.assert_allclose(weights / weights.sum(), np.array(shares) / sum(shares), rtol=1e-5)

    @pytest.mark.parametrize("grid", WIDE, ids=repr)
    def test_intervals_kinds_and_powers_agree_with_single_points(self, grid):
        measure, rng = on_floats(grid, "auto"), np.random.default_rng(0)
        assert measure.total < 2**62
        for first, last in stretches(grid, rng):
            [weight] = measure.weights(np.array([first]), np.array([last]))
            kinds = measure.kinds(first, last)
            assert sum(codes for _, codes in kinds) == last - first + 1
            assert sum(each * codes for each, codes in kinds) == weight
            assert min(each for each, _ in kinds) >= measure.least > 0
            exact = [Fraction(sum(codes * each**k for each, codes in kinds), int(weight) ** k) for k in range(1, 6)]
            powers = measure.power_sums(first, last, float(weight), 5)
            np.testing.assert_allclose(powers, [float(power) for power in exact], rtol=133 * 2.0**-52)
            if last - first <= 600:
                weights = of_each(measure, first, last)
                assert weights.sum() == weight
                assert kinds == sorted((int(each), int(np.sum(weights == each))) for each in np.unique(weights))

    @pytest.mark.parametrize(("grid", "factor"), [(FloatGrid(), 1), (FloatGrid(28), 1), (FloatGrid(40), 1.5)], ids=repr)
    def test_the_error_of_power_sums(self, grid, factor, monkeypatch):
        """At most (factor k + 128) 2**-52 in ball arithmetic, unless powers underflow; up to 16 of them add tails."""
        measure, zero, last = on_floats(grid, "auto"), -grid.first, grid.size - 1
        worst = 0.0
        monkeypatch.setattr(ctx, "prec", 160)
        for first, final in [(0, last), (zero + 5, last), (zero + (last - zero) // 3, last), (zero // 2, zero + 10**6)]:
            weight = float(measure.weights(np.array([first]), np.array([final]))[0])
            kinds = measure.kinds(first, final)
            shares = [arb(each) / arb(int(weight)) for each, _ in kinds]
            for count in (16, 128):
                powers, terms = measure.power_sums(first, final, weight, count), [arb(codes) for _, codes in kinds]
                for k in range(1, count + 1):
                    terms = [term * share for term, share in zip(terms, shares, strict=True)]
                    exact = sum(terms, arb(0))
                    if exact < 2.0**-1000:
                        break
                    error = abs(arb(float(powers[k - 1])) / exact - 1)
                    assert error < (factor * k + 128) * 2.0**-52
                    worst = max(worst, float(error))
        assert worst > 2.0**-52

    @every("grid", WIDE)
    def test_weights_are_even(self, grid):
        zero = -grid.first
        away = np.unique(np.random.default_rng(1).integers(0, min(zero, grid.size - 1 - zero), 500, endpoint=True))
        measure = on_floats(grid, "auto")
        np.testing.assert_array_equal(
            measure.weights(zero + away, zero + away), measure.weights(zero - away, zero - away)
        )

    @every("grid", WIDE)
    def test_every_place_is_a_point(self, grid):
        measure, rng = on_floats(grid, "auto"), np.random.default_rng(2)
        for first, last in stretches(grid, rng):
            for code in {first, last, *rng.integers(first, last, 20, endpoint=True).tolist()}:
                below, up_to = measure.weights(np.array([first, first]), np.array([code - 1, code])).tolist()
                assert measure.point_at(first, last, below) == code
                assert measure.point_at(first, last, up_to - 1) == code

    @every("grid", WIDE)
    def test_every_code_of_a_kind_has_one_place(self, grid):
        measure, rng = on_floats(grid, "auto"), np.random.default_rng(3)
        for first, last in stretches(grid, rng):
            if last - first > 600:
                continue
            weights = of_each(measure, first, last)
            for kind, codes in measure.kinds(first, last):
                found = [measure.code_of(kind, first, last, lambda n, i=i: i) for i in range(codes)]
                assert sorted(found) == (first + np.flatnonzero(weights == kind)).tolist()

    def test_what_people_use_has_most_of_the_weight(self):
        grid = FloatGrid()
        measure = on_floats(grid, "auto")
        share = lambda *values: [  # noqa: E731
            float(weight) / measure.total for weight in measure.weights(grid.encode(values), grid.encode(values))
        ]
        assert share(0.0) == pytest.approx([1 / 16], rel=1e-3)
        assert min(share(1.0, 3.0, 5.0, 100.0)) > 5e-4
        assert min(share(37.0, 0.25, 1200.0)) > 1e-5
        assert max(share(1e9 / 7, 1e300)) < 1e-10

    def test_pickled_and_copied_mechanisms_are_small_and_draw_alike(self):
        mechanism = InverseSensitivity(Median(), grid=FloatGrid(), epsilon=1.0)
        mechanism(np.arange(200.0))
        held = pickle.dumps(mechanism)
        assert len(held) < 5000
        x = np.random.default_rng(0).normal(size=300)
        assert pickle.loads(held)(x, rng=PCG64(1)) == mechanism(x, rng=PCG64(1))
        measure = pickle.loads(pickle.dumps(mechanism.base_measure))
        assert measure.total == mechanism.base_measure.total

    def test_names(self):
        for kind in (lambda **options: InverseSensitivity(Median(), **options), lambda **o: Quantiles([0.2, 0.7], **o)):
            assert kind(grid=FloatGrid(), epsilon=1.0, measure="uniform").base_measure is None
            assert kind(grid=FloatGrid(), epsilon=1.0).base_measure is on_floats(FloatGrid(), "auto")
            with pytest.raises(ValueError, match="measure must be 'auto' or 'uniform' on a FloatGrid"):
                kind(grid=FloatGrid(), epsilon=1.0, measure="decimal")


class TestRuns:
    @pytest.mark.parametrize("length", [1, 2, 4])
    def test_sorted_vectors_follow_the_product_of_the_weights(self, length):
        """On a few codes around a round number, in doubles; and with every choice in integers."""
        grid = FloatGrid(3, resolution=1)
        measure = on_floats(grid, "auto")
        first = int(grid.encode([1.5])[0])
        weights = of_each(measure, first, first + 3).astype(object)
        vectors, rng = {}, np.random.default_rng(4)
        for exact in (False, True):
            words = iter(rng.integers(0, 2**64, 200_000, np.uint64).tolist())
            if exact:
                monkey = pytest.MonkeyPatch()
                monkey.setattr(_multisets, "_DOUBT", 1.0)
            counts = {}
            for _ in range(2000):
                run = _multisets.draw(measure, first, first + 3, length, words.__next__)
                drawn = tuple((run - first).tolist())
                counts[drawn] = counts.get(drawn, 0) + 1
            if exact:
                monkey.undo()
            vectors = {v: math.prod(weights[i] for i in v) for v in _sorted_vectors(4, length)}
            total = sum(vectors.values())
            observed = np.array([counts.get(v, 0) for v in vectors])
            assert observed.sum() == 2000
            assert not chi_square_rejects(observed, [float(Fraction(w, total)) for w in vectors.values()])
        assert chi_square_rejects(observed, [1 / len(vectors)] * len(vectors)) or length == 1


def _sorted_vectors(size, length):
    import itertools

    return list(itertools.combinations_with_replacement(range(size), length))


class OwnPoints(InverseSensitivity):
    """The control: weights that favour the data's own points."""

    def law_of(self, summary):
        law = super().law_of(summary)
        weights = of_each(self.base_measure, 0, law.support[1])
        weights[np.concatenate(summary.windows)] *= 9
        return with_measure(law, Measure(law.support[1], table=weights.tolist()))


class OwnRange(InverseSensitivity):
    """The control: round numbers that lie in the range of the data weigh more."""

    def law_of(self, summary):
        law = super().law_of(summary)
        weights, values = of_each(self.base_measure, 0, law.support[1]), law.grid.decode(range(law.support[1] + 1))
        low, high = np.min(summary.windows[0]), np.max(summary.windows[0])
        inside = (np.arange(len(values)) >= low) & (np.arange(len(values)) <= high) & (values == np.round(values))
        return with_measure(law, Measure(law.support[1], table=np.where(inside, 5 * weights, weights).tolist()))


def with_measure(law, measure):
    ends = law.lower, law.upper
    return NestedIntervals(*ends, epsilon=law.epsilon, last=law.support[1], grid=law.grid, measure=measure)


class TestPrivacy:
    @pytest.mark.parametrize("grid", TINY, ids=repr)
    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_certified(self, grid, neighbors):
        n = 4 if neighbors == "replace-one" else 3  # an added record makes four
        for q in (0.0, 0.6):
            mechanism = InverseSensitivity(Quantile(q), grid=grid, epsilon=1.0, neighbors=neighbors)
            assert mechanism.base_measure is not None
            assert dpf.audit.verify(mechanism, n=n, values=4, ordered=False).holds

    @pytest.mark.parametrize("control", [OwnPoints, OwnRange])
    def test_controls_are_rejected(self, control):
        assert not dpf.audit.verify(
            control(Median(), grid=TINY[1].with_missing("lower"), epsilon=1.0), n=4, values=4, ordered=False
        ).holds

    def test_each_of_two_stages_has_half_of_epsilon(self, monkeypatch):
        """The control spends all of it in each stage; of three quantiles of two records, its loss is below epsilon."""
        grid = FloatGrid(2, resolution=1, lower=0, upper=3)
        mechanism = Quantiles([0.25, 0.75], grid=grid, epsilon=1.0, stages=2)
        assert mechanism.base_measure is not None
        assert dpf.audit.verify(mechanism, n=4, values=2, ordered=False).holds
        plan = mechanism.plan(4)
        monkeypatch.setattr(plan, "stages", replace(plan.stages, epsilon=1.0))
        assert not dpf.audit.verify(mechanism, n=4, values=2, ordered=False).holds

    @pytest.mark.parametrize(
        ("grid", "stages", "n"),
        [
            (TINY[0], 1, 3),
            (TINY[1], 1, 3),
            pytest.param(TINY[0], 2, 3, marks=pytest.mark.slow),
            pytest.param(TINY[1], 2, 3, marks=pytest.mark.slow),
        ],
        ids=repr,
    )
    def test_joint_quantiles_are_certified(self, grid, stages, n):
        mechanism = Quantiles([0.25, 0.5, 0.75], grid=grid, epsilon=1.0, stages=stages)
        assert dpf.audit.verify(mechanism, n=n, values=3, ordered=False).holds


@pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")
class TestDraws:
    X = np.round(np.random.default_rng(3).lognormal(3, 1.0, 3000), 1)

    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.3, 40.0])
    def test_fast_and_slow_paths_and_calls_agree(self, epsilon):
        for x in (self.X[:60], self.X[:1]):
            mechanism = InverseSensitivity(Quantile(0.4), grid=FloatGrid(), epsilon=epsilon)
            law = mechanism.law(x)
            fast, slow = np.empty(200, np.int64), np.empty(200, np.int64)
            for out, exact in ((fast, False), (slow, True)):
                ends = law.lower, law.upper, epsilon, law.support[1]
                _levels.fill(PCG64(4), *ends, out, law.measure, law.depth, exact=exact)
            np.testing.assert_array_equal(fast, slow)
            released = [mechanism.plan(len(x)).draw(x, PCG64(seed)) for seed in range(5)]
            assert released == [law.value(law.sample(rng=PCG64(seed))) for seed in range(5)]

    def test_groups_draw_alike(self):
        labels = np.arange(3000) % 400
        for neighbors in ("replace-one", "add-remove"):
            mechanism = InverseSensitivity(Median(), grid=FloatGrid(), epsilon=0.7, neighbors=neighbors)
            released = dpf.by_group(mechanism, self.X, labels=labels, num_groups=400, rng=PCG64(9))
            [source] = streams(PCG64(9), 1)
            groups = [self.X[labels == g] for g in range(400)]
            assert released.tolist() == [mechanism.plan(len(x)).draw(x, source) for x in groups]

    @pytest.mark.parametrize("n", [7, 100, 3000])
    def test_joint_quantiles_in_doubles_and_in_exact_arithmetic(self, n):
        mechanism = Quantiles([0.1, 0.5, 0.52, 0.9], grid=FloatGrid(), epsilon=0.5)
        law = mechanism.law(self.X[:n])
        for seed in range(6):
            assert law._draw(PCG64(seed)).tolist() == law._draw(PCG64(seed), exact=True).tolist()


class TestGain:
    """What the issue of real columns is about: ties on floats without bounds."""

    def test_ratings_are_released_exactly(self):
        ratings = np.repeat([1.0, 2, 3, 4, 5], 200)
        for seed in range(50):
            assert dpf.quantile(ratings, [0.1, 0.5, 0.9], epsilon=1.0, rng=PCG64(seed)).tolist() == [1, 3, 5]

    def test_the_uniform_measure_fails_there(self):
        ratings = np.repeat([1.0, 2, 3, 4, 5], 200)
        mechanism = Quantiles([0.1, 0.5, 0.9], grid=FloatGrid(), epsilon=1.0, measure="uniform")
        released = np.array([mechanism.plan(1000).draw(ratings, PCG64(seed)) for seed in range(50)])
        assert np.mean(np.abs(released).max(axis=1) > 1e9) > 0.5

    def test_continuous_records_lose_little(self):
        x = np.random.default_rng(5).lognormal(10.5, 0.6, 10_000)
        errors = []
        for measure in ("auto", "uniform"):
            law = InverseSensitivity(Quantile(0.3), grid=FloatGrid(), epsilon=1.0, measure=measure).law(x)
            values = law.grid.decode(law.sample(20_000, PCG64(6)))
            errors.append(np.abs(np.searchsorted(np.sort(x), values) - 3000).mean())
        assert errors[0] < 1.05 * errors[1]

    def test_magnitudes_are_kept_once(self):
        assert isinstance(on_floats(FloatGrid(), "auto").floats, Magnitudes)
        assert on_floats(FloatGrid(lower=0), "auto").floats is on_floats(FloatGrid(), "auto").floats
