"""Joint quantiles with a base measure: sums and draws of sorted vectors, the law, privacy with a control, the gain."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal

import dpfast as dpf
from dpfast._kernels import _balls, _multisets
from dpfast._kernels._chain import MOST_FREE
from dpfast._kernels._measures import Measure
from dpfast._kernels._samplers import next_word
from dpfast.mechanisms.quantiles import _log_vectors, _Stages
from tests.cases import every
from tests.joint import measures, stage, vectors, weights_of
from tests.reference import measures as measures_reference
from tests.reference import quantiles as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = dpf.Grid(-0.5, 0.5, step=2.0**-3)


def weight(weights, o):
    return math.prod(weights[code] for code in o)


def definition(data, ranks, weights, epsilon, cap, pins=None):
    """P of each output: q**min(S, cap) times the weights of its entries."""
    law = reference.law(data, ranks, len(weights) - 1, epsilon, cap, pins or {})
    law = {o: p * weight(weights, o) for o, p in law.items()}
    total = math.fsum(law.values())
    return {o: p / total for o, p in law.items()}


@st.composite
def cases(draw, records=6, codes=6, targets=4):
    n, last = draw(st.integers(1, records)), draw(st.integers(1, codes))
    data = draw(st.lists(st.integers(0, last), min_size=n, max_size=n))
    ranks = sorted(draw(st.sets(st.integers(1, n), min_size=1, max_size=min(n, targets))))
    return data, ranks, draw(st.sampled_from([0.25, 1.0, 4.0])), draw(measures(last))


class TestMultisets:
    @given(st.integers(0, 9).flatmap(measures), st.integers(0, 4), st.data())
    def test_sums_count_every_vector(self, measure, length, data):
        first = data.draw(st.integers(0, measure.last))
        last = data.draw(st.integers(first, measure.last))
        weights = weights_of(measure)
        assert measure.kinds(first, last) == sorted(Counter(weights[first : last + 1]).items())
        expected = sum(weight(weights, o) for o in vectors(last, length, first))
        assert _multisets.weight_of_all(measure, first, last, length) == expected
        assert _multisets.weight_of_all(None, first, last, length) == len(vectors(last, length, first))

    @every("measure", [Measure(6, table=[1, 5, 1, 2, 1, 1, 40]), Measure(6, 2, 1, [(9, 1, 2), (30, 1, 4)])])
    @every("length", [1, 2, 3])
    def test_draws_follow_the_weights(self, measure, length):
        source, weights = PCG64(length), weights_of(measure)
        draws = Counter(
            tuple(_multisets.draw(measure, 1, 6, length, lambda: next_word(source)).tolist()) for _ in range(4000)
        )
        outputs = vectors(6, length, 1)
        p = np.array([weight(weights, o) for o in outputs], float)
        counts = [draws[o] for o in outputs]
        assert sum(counts) == 4000
        assert not chi_square_rejects(counts, p / p.sum())
        assert chi_square_rejects(counts, np.full(len(p), 1 / len(p)))


class TestLaw:
    @given(cases(), st.integers(1, 6))
    def test_matches_its_definition(self, case, reach):
        """In windows of all records: the chain's total is the sum over all outputs."""
        data, ranks, epsilon, measure = case
        law = stage(data, ranks, measure.last, epsilon, len(data), {}, measure)
        exact = definition(data, ranks, weights_of(measure), epsilon, len(data) + 1)
        found = law.logpmf(np.array([*exact]))
        assert_allclose(found, [math.log(p) for p in exact.values()], rtol=0, atol=1e-12)

    @settings(max_examples=40)
    @given(cases(), st.integers(1, 3), st.randoms(use_true_random=False))
    def test_every_proposal_dominates(self, case, reach, rng):
        """Proposed weight over q**S in (1, 1 + 4 margin), also with pins, for the weights of values and of runs."""
        data, ranks, epsilon, measure = case
        reach = min(reach, len(data))
        o = sorted(rng.randint(0, measure.last) for _ in ranks)
        pins = {j: o[j] for j in range(len(ranks)) if rng.random() < 0.3}
        law, source = stage(data, ranks, measure.last, epsilon, reach, pins, measure), PCG64(1)
        for _ in range(3):
            o = law._fast.chain.draw(source)
            if o is None:
                continue
            odds, runs = law._fast.chain.odds()
            counts = [_multisets.weight_of_all(measure, start, start + w - 1, r) for start, w, r in runs]
            proposed = _balls.proposed_weight(odds, counts, law._fast.total)
            ratio = float(proposed()) / math.exp(-epsilon / 2 * reference.score(data, ranks, o))
            if law._fast.chain.certain:
                assert 1 - 1e-14 < ratio < 1 + 4 * law._fast.chain.margin + 1e-14

    @pytest.mark.parametrize(
        ("stages", "measure"),
        [
            (1, "integers"),
            (1, tuple(range(1, 10))),
            (1, (1,) * 8 + (30,)),
            (2, (1,) * 8 + (30,)),
            pytest.param(2, "integers", marks=pytest.mark.slow),
            pytest.param(2, tuple(range(1, 10)), marks=pytest.mark.slow),
        ],
    )
    def test_the_mechanism_draws_its_law(self, measure, stages):
        """With a power check: the same counts refute epsilon x 0.7 and the uniform measure."""
        x, qs = [-0.5, -0.125, 0.0, 0.0, 0.375, 0.5, 0.5], (0.2, 0.5, 0.8)
        options = {"grid": GRID, "measure": measure, "stages": stages}
        law = dpf.Quantiles(qs, epsilon=1.0, **options).law(x)
        outputs = np.array(vectors(GRID.size - 1, 3))
        assert np.exp(law.logpmf(outputs)).sum() == pytest.approx(1, abs=1e-12)
        draws = Counter(map(tuple, law.sample(9000, PCG64(2)).tolist()))
        counts = [draws[tuple(o)] for o in outputs.tolist()]
        assert not chi_square_rejects(counts, np.exp(law.logpmf(outputs)))
        for wrong in ({**options, "measure": "uniform", "epsilon": 1.0}, {**options, "epsilon": 0.5}):
            assert chi_square_rejects(counts, np.exp(dpf.Quantiles(qs, **wrong).law(x).logpmf(outputs)))

    @pytest.mark.parametrize(
        ("data", "reach", "pins"),
        [([0, 3, 3, 5], 4, {}), ([1, 1, 4, 6], 1, {}), ([0, 0, 0, 0, 6], 2, {1: 6}), ([2, 2, 2, 2], 1, {2: 5})],
    )
    def test_capped_and_pinned(self, data, reach, pins):
        """Where "anywhere" and the coin matter."""
        measure = Measure(6, 1, 0, [(3, 1, 2), (20, 1, 6)])
        law, source = stage(data, [1, 2, 4], 6, 1.0, reach, pins, measure), PCG64(7)
        draws = Counter(tuple(law.draw(source).tolist()) for _ in range(4000))
        exact = definition(data, [1, 2, 4], weights_of(measure), 1.0, reach + 1, pins)
        assert not chi_square_rejects([draws[o] for o in exact], list(exact.values()))

    @given(cases(), st.integers(0, 2**32))
    @settings(max_examples=30)
    def test_exact_arithmetic_gives_the_same_output(self, case, seed):
        data, ranks, epsilon, measure = case
        law = stage(data, ranks, measure.last, epsilon, min(3, len(data)), {}, measure)
        sources = [ScriptedBits(rest=PCG64(seed)) for _ in range(2)]
        fast, slow = (law.draw(source, exact=exact) for source, exact in zip(sources, (False, True), strict=True))
        assert_array_equal(fast, slow)
        assert sources[0].used == sources[1].used

    def test_exact_arithmetic_on_many_records(self):
        x = np.rint(np.random.default_rng(1).normal(40, 14, 2000))
        for stages in (1, 2):
            mechanism = dpf.Quantiles(np.linspace(0.1, 0.9, 9), grid=dpf.Grid(0, 120), epsilon=1.0, stages=stages)
            assert mechanism.base_measure is not None
            law = mechanism.law(x)
            for seed in range(3):
                fast, slow = (law._draw(PCG64(seed), exact=exact) for exact in (False, True))
                assert_array_equal(fast, slow)

    def test_few_records_on_a_fine_grid(self):
        """Runs of many quantiles in one gap: the sums of the chain against those in integers."""
        law = dpf.Quantiles(np.linspace(0.01, 0.99, 60), grid=dpf.Grid(0, 120), epsilon=0.01, stages=1).law([3.0] * 60)
        source = PCG64(5)
        for _ in range(3):
            o = law.sample(rng=source)
            assert np.all(np.diff(o) >= 0)
        chain = law._first._fast.chain
        assert chain.total > 0


class Doubled(dpf.Quantiles):
    """The control: the measure has half of its weight on the points of the records."""

    def law_of(self, windows):
        law = super().law_of(windows)
        weights = np.ones(self.grid.size, np.int64)
        weights[windows.codes[(windows.codes >= 0) & (windows.codes < self.grid.size)]] = 20
        measure = Measure(self.grid.size - 1, table=weights.tolist())
        return type(law)(windows, law._stages, places=law._places, grid=self.grid, measure=measure)


class TestPrivacy:
    @pytest.mark.parametrize("measure", ["integers", tuple(range(1, 10)), (1,) * 8 + (1000,)])
    @pytest.mark.parametrize("stages", [1, 2])
    def test_the_audit_certifies_every_measure(self, measure, stages):
        mechanism = dpf.Quantiles((0.3, 0.7), grid=GRID, epsilon=1.0, measure=measure, stages=stages)
        assert mechanism.base_measure is not None
        assert dpf.audit.verify(mechanism, n=3, values=4, ordered=False).holds

    def test_a_measure_of_the_data_is_rejected(self):
        mechanism = Doubled((0.3, 0.7), grid=GRID, epsilon=1.0, measure="uniform")
        assert not dpf.audit.verify(mechanism, n=3, values=4, ordered=False).holds


class TestParameters:
    def test_one_quantile_has_the_measure_of_inverse_sensitivity(self):
        grid = dpf.Grid(-30, 70)
        for measure in ("auto", "integers", "decimal", "dyadic"):
            joint = dpf.Quantiles((0.5,), grid=grid, epsilon=1.0, measure=measure)
            one = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0, measure=measure)
            assert joint.base_measure is one.base_measure is not None

    def test_auto_is_uniform_where_no_measure_fits(self):
        for grid, (m, stages) in itertools.product((dpf.FloatGrid(), dpf.Grid(0, 120)), ((129, 1), (129**2, 2))):
            qs = np.linspace(0, 1, m)
            assert dpf.Quantiles(qs, grid=grid, epsilon=1.0, stages=stages).base_measure is None
            with pytest.raises(ValueError, match="measure must be 'auto' or 'uniform'"):
                dpf.Quantiles(qs, grid=grid, epsilon=1.0, stages=stages, measure="integers")
        with pytest.raises(ValueError, match="measure must have 9 weights"):
            dpf.Quantiles((0.5,), grid=GRID, epsilon=1.0, measure=[1, 2])

    def test_repr(self):
        assert "step 0.125, measure integers: " in repr(
            dpf.Quantiles((0.5,), grid=GRID, epsilon=1.0, measure="integers")
        )

    def test_functions_take_a_measure(self):
        x = np.rint(np.random.default_rng(2).normal(40, 14, 500))
        for q in (0.5, [0.25, 0.75]):
            released = [
                dpf.quantile(x, q, epsilon=1.0, bounds=(0, 120), measure="integers", rng=PCG64(seed))
                for seed in range(20)
            ]
            assert np.mean(np.equal(released, np.round(released))) > 0.9
        assert dpf.median(x, epsilon=1.0, bounds=(0, 120), measure="integers", rng=PCG64(1)).is_integer()
        with pytest.raises(ValueError, match="measure must be 'auto' for method='smooth-sensitivity'"):
            dpf.median(x, epsilon=1.0, bounds=(0, 120), measure="integers", method="smooth-sensitivity")
        with pytest.raises(ValueError, match="measure must be 'auto' or 'uniform' on a FloatGrid"):
            dpf.median(x, epsilon=1.0, measure="integers")


def test_quartiles_of_ties_gain():
    """Three quartiles of ages on a fine grid: mean distance over draws, "auto" and "integers" against "uniform"."""
    x = np.clip(np.rint(np.random.default_rng(4).normal(40, 14, 1000)), 0, 120)
    exact = np.quantile(x, [0.25, 0.5, 0.75], method="inverted_cdf")
    errors = {}
    for measure in ("uniform", "auto", "integers"):
        mechanism = dpf.Quantiles((0.25, 0.5, 0.75), grid=dpf.Grid(0, 120), epsilon=2.0, measure=measure)
        errors[measure] = np.abs(mechanism.release(x, size=400, rng=PCG64(1)) - exact).mean()
    assert errors["auto"] * 1.15 < errors["uniform"]
    assert errors["integers"] * 2 < errors["uniform"]


def test_the_reference_agrees_on_round_numbers():
    measure = dpf.Quantiles((0.5,), grid=GRID, epsilon=1.0, measure="integers").base_measure
    [whole] = zip(*measures_reference.round_numbers(-4, 8, 2.0**-3, [1]), strict=True)
    assert [w > measure.unit for w in weights_of(measure)] == list(whole)


class TestMany:
    """More than 128 quantiles: two stages, of which neither has more between pins."""

    LEVELS = np.arange(1, 151) / 151

    @every("m, stages, known", [(129, None, 1), (129, 2, 1), (129, 1, 0), (128, 1, 1)])
    @every("grid", [pytest.param(dpf.FloatGrid(), id="floats"), pytest.param(dpf.Grid(0, 100), id="bounds")])
    def test_which_have_a_measure(self, m, stages, known, grid):
        qs = np.arange(1, m + 1) / (m + 1)
        mechanism = dpf.Quantiles(qs, grid=grid, epsilon=1.0, stages=stages)
        assert (mechanism.base_measure is not None) == known
        if not known and grid.size < 2**32:
            with pytest.raises(ValueError, match="for more than 128 quantiles"):
                dpf.Quantiles(qs, grid=grid, epsilon=1.0, measure="integers", stages=stages)

    def test_the_most(self):
        for m, known in ((16_640, True), (16_641, False)):
            mechanism = dpf.Quantiles(np.arange(1, m + 1) / (m + 1), grid=dpf.FloatGrid(), epsilon=1.0)
            assert (mechanism.base_measure is not None) == known

    @pytest.mark.parametrize("m", [129, 300, 16_640])
    def test_no_stage_has_too_many(self, m):
        coarse = _Stages.of(m, 10**6, 2**20, 1.0, None).coarse
        between = np.diff([-1, *coarse, m]) - 1
        assert max(len(coarse), between.max()) <= MOST_FREE

    def test_the_weight_of_long_vectors_is_bounded(self):
        measure = Measure(5, table=[1, 5, 1, 2, 1, 40])
        for length in (129, 256, 300):
            exact = math.log(_multisets.weight_of_all(measure, 0, 5, length))
            assert exact <= _log_vectors(5, length, measure) <= 1.05 * exact + 20

    def test_the_law(self):
        """On two points, where a vector is the number of its zeros; the uniform measure is refuted."""
        x, options = np.repeat([0.0, 1.0], [80, 80]), {"grid": dpf.Grid(0, 1, step=1), "epsilon": 0.1}
        law = dpf.Quantiles(self.LEVELS, measure=(1, 3), **options).law(x)
        outputs = np.array([[0] * zeros + [1] * (150 - zeros) for zeros in range(151)])
        p, tens = np.exp(law.logpmf(outputs)), np.arange(0, 151, 10)
        assert p.sum() == pytest.approx(1, abs=1e-9)
        counts = np.bincount(150 - law.sample(300, PCG64(1)).sum(axis=1), minlength=151)
        assert not chi_square_rejects(np.add.reduceat(counts, tens), np.add.reduceat(p, tens))
        uniform = np.exp(dpf.Quantiles(self.LEVELS, measure="uniform", **options).law(x).logpmf(outputs))
        assert chi_square_rejects(np.add.reduceat(counts, tens), np.add.reduceat(uniform, tens))

    def test_ratings_without_bounds(self):
        """The control: equal weights send some of them far away."""
        x = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 3000)
        releases = {
            measure: dpf.Quantiles(self.LEVELS, grid=dpf.FloatGrid(), epsilon=1.0, measure=measure).release(
                x, size=3, rng=PCG64(1)
            )
            for measure in ("auto", "uniform")
        }
        assert np.abs(releases["auto"]).max() < 100
        assert np.abs(releases["uniform"]).max() > 1e6
