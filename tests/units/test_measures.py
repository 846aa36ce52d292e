"""Base measures: weights, draws and laws against their definition, privacy with a control, and the default's cost."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, InverseSensitivity
from dpfast._kernels import _levels
from dpfast._kernels._measures import Measure
from dpfast.core.measures import measure_on
from dpfast.laws import NestedIntervals
from dpfast.random import streams
from dpfast.statistics import Huber, InterquartileRange, Mean, Median, Quantile, TrimmedMean
from tests.cases import every
from tests.reference import measures as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

NAMES = ["auto", "integers", "decimal", "dyadic"]
FINE = Grid(-1.0, 2.5, step=2.0**-7)


def of_each_code(measure):
    codes = np.arange(measure.last + 1)
    return measure.weights(codes, codes)


@st.composite
def measures(draw):
    """Parts with any first spacing, each a multiple of the one before; or a table."""
    last = draw(st.integers(0, 300))
    if draw(st.booleans()):
        table = draw(st.lists(st.integers(1, 9), min_size=last + 1, max_size=last + 1))
        return Measure(last, table=table), table
    spacing, parts = Fraction(draw(st.integers(50, 200)), draw(st.sampled_from([1, 3, 5, 25]))), []
    for ratio in draw(st.lists(st.integers(2, 7), max_size=4)):
        parts.append((draw(st.integers(1, 99)), spacing.denominator, spacing.numerator))
        spacing *= ratio
    unit, offset = draw(st.integers(1, 9)), draw(st.integers(0, 5000))
    return Measure(last, unit, offset, parts), reference.weights(last, unit, offset, parts)


class TestWeights:
    @settings(max_examples=80)
    @given(measures(), st.data())
    def test_weights_are_those_of_the_definition(self, case, data):
        measure, expected = case
        assert of_each_code(measure).tolist() == expected
        assert (measure.total, measure.least <= min(expected)) == (sum(expected), True)
        first = data.draw(st.integers(0, measure.last))
        last = data.draw(st.integers(first, measure.last))
        assert measure.weights(np.array([first]), np.array([last])) == sum(expected[first : last + 1])

    @settings(max_examples=40)
    @given(measures(), st.data())
    def test_every_place_is_a_point(self, case, data):
        """All words of a script, one for each unit of weight: each point is drawn as often as it weighs."""
        measure, expected = case
        first = data.draw(st.integers(0, measure.last))
        last = data.draw(st.integers(first, min(measure.last, first + 60)))
        total, counts = sum(expected[first : last + 1]), np.zeros(measure.last + 1, int)
        for place in range(total):
            source, out = ScriptedBits([0, ((2 * place + 1) << 63) // total], PCG64(0)), np.empty(1, np.int64)
            _levels.fill(source, np.array([first]), np.array([last]), 1e6, measure.last, out, measure)
            counts[out[0]] += 1
        assert counts[first : last + 1].tolist() == expected[first : last + 1]

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("first", [-(2**40) - 12345, 0, 2**52])
    def test_large_grids(self, name, first):
        """Counts far from 0 are exact: weights of single codes next to multiples, as integers give them."""
        last, step = 2**32, 2.0**-20
        measure = measure_on(name, first, last, step)
        rng = np.random.default_rng(1)
        spacings = [Fraction(denominator, numerator) for _, numerator, denominator in measure.parts]
        for spacing in spacings:
            multiples = [int((first + int(k)) / spacing) for k in rng.integers(0, last, 10)]
            near = [-((Fraction(1, 2) - i * spacing) // 1) - first + d for i in multiples for d in (-1, 0, 1)]
            codes = np.array([int(k) for k in near if 0 <= k <= last])
            expected = [
                measure.unit
                + sum(
                    weight
                    for (weight, _, _), s in zip(measure.parts, spacings, strict=True)
                    if -((Fraction(1, 2) - round((first + k) / s) * s) // 1) == first + k
                )
                for k in codes.tolist()
            ]
            assert measure.weights(codes, codes).tolist() == expected

    def test_pickle(self):
        for measure in (measure_on("auto", -5, 2**20, 2.0**-10), Measure(2, table=(3, 1, 2))):
            twin = pickle.loads(pickle.dumps(measure))
            assert of_each_code(twin).tolist() == of_each_code(measure).tolist()


class TestNames:
    def test_integers_have_half_of_the_weight(self):
        measure = measure_on("integers", -128, 448, 2.0**-7)
        [whole] = zip(*reference.round_numbers(-128, 448, 2.0**-7, [1]), strict=True)
        weights = of_each_code(measure)
        assert len(set(weights[np.array(whole)])) == len(set(weights[~np.array(whole)])) == 1
        assert weights[np.array(whole)].sum() / measure.total == pytest.approx(0.5, abs=0.1)

    def test_decimals_are_the_nearest_points(self):
        first, last, step = -128, 16 * 128, 2.0**-7
        measure = measure_on("decimal", first, last, step)
        spacings = [Fraction(1, 10), Fraction(1), Fraction(10)]
        inside = np.array(reference.round_numbers(first, last, step, spacings[:2]))
        assert len(measure.parts) == 2  # 0.01 has less than two steps, 10 less than eight multiples
        weights = [weight for weight, _, _ in measure.parts]
        assert of_each_code(measure).tolist() == (measure.unit + inside @ weights).tolist()

    def test_dyadic_levels_share_half(self):
        measure = measure_on("dyadic", 0, 2**10, 1.0)
        shares = [weight * measure.last * numerator / denominator for weight, numerator, denominator in measure.parts]
        assert [denominator for _, _, denominator in measure.parts] == [2, 4, 8, 16]
        assert shares == pytest.approx([measure.unit * measure.last / 4] * 4)

    def test_auto_favours_round_numbers_at_little_cost(self):
        measure = measure_on("auto", 0, 120 * 2**25, 2.0**-25)
        spacings = [denominator / numerator * 2.0**-25 for _, numerator, denominator in measure.parts]
        assert spacings == pytest.approx([0.01, 0.1, 1, 10])
        shares = [weight * numerator / denominator for weight, numerator, denominator in measure.parts]
        assert shares == pytest.approx([measure.unit / 64] * 4, rel=1e-5)

    def test_auto_is_uniform_where_it_gains_nothing(self):
        for first, last, step in [(0, 120, 1.0), (0, 100, 0.5), (0, 2**41, 2.0**-20), (0, 10**6, 2.0**900)]:
            assert measure_on("auto", first, last, step) is None
        for statistic in (InterquartileRange(), Huber(1.0), TrimmedMean(0.1), Mean()):
            assert InverseSensitivity(statistic, grid=Grid(0, 99), epsilon=1.0).base_measure is None

    @every(
        "measure, error, message",
        [
            (
                "fine",
                ValueError,
                "measure must be one of 'auto', 'uniform', 'dyadic', 'integers', 'decimal', or weights",
            ),
            (1, TypeError, "measure must be a name or a sequence of weights, not int"),
            (None, TypeError, "measure must be a name or a sequence of weights, not NoneType"),
            ([1.0, 2.0], TypeError, "measure must be integers"),
            ([1, 2], ValueError, "measure must have 5 weights, one for each point of the grid, not 2"),
            ([1, 2, 0, 1, 1], ValueError, "measure must have a positive weight for each point"),
            ([2**60] * 5, ValueError, r"measure must have a total weight below 2\*\*62"),
            ("dyadic", ValueError, "measure='dyadic' favours no point of this grid: use 'uniform'"),
            ("decimal", ValueError, "measure='decimal' favours no point of this grid: use 'uniform'"),
        ],
    )
    def test_bad_measures(self, measure, error, message):
        with pytest.raises(error, match=message):
            InverseSensitivity(Median(), grid=Grid(0, 4, step=1), epsilon=1.0, measure=measure)

    def test_measures_that_do_not_fit(self):
        with pytest.raises(ValueError, match=r"needs a grid of at most 2\*\*40 points"):
            InverseSensitivity(Median(), grid=Grid(0, 2.0**21, step=2.0**-20), epsilon=1.0, measure="integers")
        with pytest.raises(ValueError, match="favours no point"):
            InverseSensitivity(Median(), grid=Grid(0, 9, step=2), epsilon=1.0, measure="integers")
        with pytest.raises(ValueError, match="no multiple of the step"):
            InverseSensitivity(TrimmedMean(0.1), grid=Grid(0, 9), epsilon=1.0, measure="integers")
        for statistic in (Median(), InterquartileRange(), Huber(1.0)):
            mechanism = InverseSensitivity(statistic, grid=Grid(0, 9, step=1), epsilon=1.0, measure="integers")
            assert mechanism.base_measure is None  # all points are integers


def definition(law, weights):
    """P of every code, 50 digits."""
    with mp.workdps(50):
        scores = law.score(np.arange(len(weights))).tolist()
        parts = [mp.exp(-mpf(law.epsilon) / 2 * s) * w for s, w in zip(scores, weights, strict=True)]
        total = mp.fsum(parts)
        return [p / total for p in parts]


class TestLaw:
    @settings(max_examples=30)
    @given(
        measures(), st.lists(st.integers(0, 300), min_size=2, max_size=14), st.sampled_from([1e-300, 1e-6, 0.5, 40.0])
    )
    def test_law_matches_its_definition(self, case, points, epsilon):
        measure, weights = case
        last, points = measure.last, sorted(min(p, measure.last) for p in points[: len(points) // 2 * 2])
        middle = len(points) // 2
        lower, upper = np.array(points[:middle][::-1]), np.array(points[middle:])
        law = NestedIntervals(lower, upper, epsilon=epsilon, last=last, grid=FINE, measure=measure)
        p, k = definition(law, weights), np.arange(last + 1)
        np.testing.assert_allclose(law.logpmf(k), [float(mp.log(v)) for v in p], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(law.cdf(k), [float(mp.fsum(p[: i + 1])) for i in k], rtol=1e-12, atol=1e-300)
        assert law.pmf([-1, last + 1]).tolist() == [0, 0]

    @pytest.mark.parametrize("measure", [*NAMES, tuple(range(1, FINE.size + 1))])
    def test_sample_follows_the_law(self, measure):
        """With a power check: the same counts refute epsilon x 0.9 and x 1.1, and the uniform measure."""
        x = np.array([-0.5, 0.1, 0.3, 1.0, 1.0, 1.7])
        mechanism = InverseSensitivity(Median(), grid=FINE, epsilon=0.8, measure=measure)
        counts = np.bincount(mechanism.law(x).sample(200_000, PCG64(1)), minlength=FINE.size)
        weights = of_each_code(mechanism.base_measure).tolist()
        for factor, w, wrong in ((1, weights, False), (0.9, weights, True), (1.1, weights, True), (1, [1] * 449, True)):
            law = InverseSensitivity(Median(), grid=FINE, epsilon=0.8 * factor, measure="uniform").law(x)
            assert chi_square_rejects(counts, [float(p) for p in definition(law, w)]) == wrong

    @pytest.mark.parametrize("measure", NAMES)
    @pytest.mark.parametrize("epsilon", [1e-6, 0.3, 3.0, 1e3])
    def test_fast_and_slow_paths_and_calls_agree(self, measure, epsilon):
        mechanism = InverseSensitivity(Quantile(0.4), grid=Grid(-30, 70), epsilon=epsilon, measure=measure)
        x = np.round(np.random.default_rng(2).normal(20, 9, 60), 1)
        law = mechanism.law(x)
        fast, slow = np.empty(300, np.int64), np.empty(300, np.int64)
        for out, exact in ((fast, False), (slow, True)):
            _levels.fill(PCG64(4), law.lower, law.upper, epsilon, law.support[1], out, law.measure, exact=exact)
        np.testing.assert_array_equal(fast, slow)
        for seed in range(5):
            assert mechanism(x, rng=PCG64(seed)) == law.value(law.sample(rng=PCG64(seed)))

    def test_groups_draw_from_the_same_measure(self):
        x, labels = np.random.default_rng(3).normal(20, 9, 400), np.arange(400) % 20
        for neighbors in ("replace-one", "add-remove"):
            mechanism = InverseSensitivity(
                Median(), grid=Grid(-30, 70), epsilon=0.7, measure="integers", neighbors=neighbors
            )
            released = dpf.by_group(mechanism, x, labels=labels, num_groups=25, rng=PCG64(9))
            [source] = streams(PCG64(9), 1)
            expected = [mechanism(x[labels == g], rng=source) for g in range(20)]
            assert released[:20].tolist() == expected
            assert 0 < np.sum(released == np.round(released)) < 25

    def test_cap_counts_the_weights(self):
        grid = Grid(0, 9, step=1)
        table = (1,) * 9 + (10**6,)
        uniform = InverseSensitivity(Median(), grid=grid, epsilon=1.0)
        assert InverseSensitivity(Median(), grid=grid, epsilon=1.0, measure=table).cap(9) == uniform.cap(9) + 23
        assert uniform.cap(9) == 1 + int(np.ceil(2 * (np.log(10) + 42)))


class OwnPoints(InverseSensitivity):
    """The control: half of the weight on the points of the records."""

    def law_of(self, summary):
        law = super().law_of(summary)
        weights = np.ones(law.support[1] + 1, np.int64)
        weights[np.concatenate(summary.windows)] = 20
        measure = Measure(law.support[1], table=weights.tolist())
        return NestedIntervals(
            law.lower, law.upper, epsilon=law.epsilon, last=law.support[1], grid=law.grid, measure=measure
        )


class TestPrivacy:
    GRID = Grid(-0.5, 1.5, step=2.0**-3)
    WIDE = Grid(-0.5, 1.5, step=2.0**-7)

    @pytest.mark.parametrize(
        ("grid", "measure", "neighbors"),
        [
            (GRID, "integers", "add-remove"),
            (GRID, tuple(range(1, 18)), "replace-one"),
            (GRID, (1,) * 16 + (1000,), "replace-one"),
            (GRID, (1,) * 16 + (1000,), "add-remove"),
            (WIDE, "decimal", "replace-one"),
            (WIDE, "dyadic", "add-remove"),
            (WIDE, "auto", "replace-one"),
        ],
    )
    def test_the_audit_certifies_every_measure(self, grid, measure, neighbors):
        mechanism = InverseSensitivity(Median(), grid=grid, epsilon=1.0, measure=measure, neighbors=neighbors)
        assert mechanism.base_measure is not None
        assert dpf.audit.verify(mechanism, n=4, values=4, ordered=False).holds

    def test_a_measure_of_the_data_is_rejected(self):
        mechanism = OwnPoints(Median(), grid=self.GRID, epsilon=1.0, measure="uniform")
        assert not dpf.audit.verify(mechanism, n=4, values=4, ordered=False).holds

    def test_other_statistics(self):
        for statistic in (InterquartileRange(), Huber(0.5)):
            mechanism = InverseSensitivity(statistic, grid=self.GRID, epsilon=1.0, measure="integers")
            assert dpf.audit.verify(mechanism, n=3, values=4, ordered=False).holds


class TestGain:
    """Expected distances from the exact laws, without draws."""

    @staticmethod
    def noise(x, measure, grid, epsilon, target=None):
        law = InverseSensitivity(Median(), grid=grid, epsilon=epsilon, measure=measure).law(x)
        values = grid.decode(np.linspace(0, grid.size - 1, 40_001).astype(np.int64))
        values = np.unique(np.concatenate([values, np.arange(grid.lower, grid.upper + 1), np.unique(x)]))
        steps = np.diff(law.cdf(grid.encode(values)), prepend=0)
        return steps @ np.abs(values - (np.median(x) if target is None else target))

    def test_ages_gain_by_default_and_more_with_integers(self):
        grid, rng = Grid(0, 120), np.random.default_rng(4)
        x = np.clip(np.rint(rng.normal(40, 14, 1001)), 0, 120)
        errors = {m: self.noise(x, m, grid, 1.0) for m in ("uniform", "auto", "integers")}
        assert errors["auto"] * 1.3 < errors["uniform"]
        assert errors["integers"] * 3 < errors["uniform"]

    def test_continuous_data_lose_at_most_two_percent(self):
        grid = Grid(-20, 20)
        for seed in range(3):
            x = np.random.default_rng(seed).normal(0.3, 1, 200)
            for epsilon in (0.3, 1.0):
                errors = {m: self.noise(x, m, grid, epsilon, target=0.3) for m in ("uniform", "auto", "integers")}
                assert errors["auto"] < 1.02 * errors["uniform"]
