"""Joint quantiles whose runs have more outputs than doubles can weigh: the wide chain, and draws that end."""

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
from dpfast._kernels import _balls
from dpfast._kernels._chain import Chain, WideChain
from dpfast._kernels._multisets import weight_of_all
from dpfast.mechanisms import quantiles
from tests.cases import every
from tests.joint import measures, stage, vectors, weights_of
from tests.reference import quantiles as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore::dpfast.errors.PrivacyWarning")]

LAST = 2**52 - 1


@pytest.fixture
def always_wide(monkeypatch):
    monkeypatch.setattr(quantiles, "_FAST_ROUNDS", 0)


@st.composite
def cases(draw, records=6, codes=6, targets=4):
    n, last = draw(st.integers(1, records)), draw(st.integers(1, codes))
    data = draw(st.lists(st.integers(0, last), min_size=n, max_size=n))
    ranks = sorted(draw(st.sets(st.integers(1, n), min_size=1, max_size=min(n, targets))))
    measure = draw(st.none() | measures(last))
    pins = {j: draw(st.integers(0, last)) for j in range(len(ranks)) if draw(st.integers(0, 3)) == 0}
    pins = dict(zip(pins, sorted(pins.values()), strict=True))
    return data, ranks, last, draw(st.sampled_from([0.25, 1.0, 4.0, 900.0])), measure, pins


class TestLaw:
    @settings(max_examples=100)
    @given(cases())
    def test_the_total_and_every_proposal(self, case):
        """In windows of all records: the total is the sum over all outputs, and each is proposed with its weight."""
        data, ranks, last, epsilon, measure, pins = case
        law, source = stage(data, ranks, last, epsilon, len(data), pins, measure), PCG64(1)
        weights = [1] * (last + 1) if measure is None else weights_of(measure)
        logs = [
            sum(math.log(weights[code]) for code in o) - epsilon / 2 * reference.score(data, ranks, o)
            for o in vectors(last, len(ranks))
            if all(o[j] == code for j, code in pins.items())
        ]
        assert_allclose(law._wide.log_total, np.logaddexp.reduce(logs), rtol=1e-13, atol=1e-12)
        for _ in range(3):
            chain = law._wide.chain
            o = chain.draw(source)
            odds, runs = chain.odds()
            counts = [weight_of_all(measure, start, start + w - 1, r) for start, w, r in runs]
            proposed = _balls.proposed_weight(odds, counts, law._wide.total)
            with _balls.working_bits(200):
                ratio = float(proposed() * _balls.arb(epsilon / 2 * int(law.scores(o[np.newaxis])[0])).exp())
            assert chain.certain
            assert 1 - 1e-12 < ratio < 1 + 4 * chain.margin + 1e-12

    @given(st.integers(0, 2**32), st.sampled_from([0.05, 0.3, 2.0]), st.integers(2, 12))
    @settings(max_examples=30)
    def test_agrees_with_the_fast_chain(self, seed, epsilon, m):
        rng = np.random.default_rng(seed)
        data = np.sort(rng.integers(0, 1000, 200)) if seed % 2 else np.repeat(np.sort(rng.integers(0, 1000, 8)), 25)
        ranks = np.sort(rng.choice(np.arange(1, 201), m, replace=False))
        pins = {m // 2: int(data[ranks[m // 2] - 1])} if seed % 3 else {}
        law = stage(data, ranks, 1000, epsilon, 60, pins)
        fast, wide = law._fast, law._wide
        assert abs(fast.log_total - wide.log_total) < 2 * fast.chain.margin + 1e-13 * abs(fast.log_total)
        one, other = (p.chain.draw(PCG64(seed)) for p in (fast, wide))
        assert_array_equal(one, other)

    @pytest.mark.usefixtures("always_wide")
    @pytest.mark.parametrize(
        ("data", "epsilon", "reach", "pins"),
        [
            ([0, 3, 3, 5], 1.0, 4, {}),
            ([1, 1, 4, 6], 3.0, 1, {}),
            ([1, 1, 4, 6], 1.0, 1, {2: 5}),
            ([0, 0, 0, 0, 0, 0, 6], 0.5, 2, {1: 6}),  # no walk in the windows has these pins
        ],
    )
    def test_draws_of_the_wide_chain(self, data, epsilon, reach, pins):
        """Chi-square against the enumerated law; rejected for epsilon x 0.7 and x 1.3."""
        ranks = [1, 2, 4]
        law, source = stage(data, ranks, 6, epsilon, reach, pins), PCG64(7)
        draws = Counter(tuple(law.draw(source).tolist()) for _ in range(8000))
        exact = reference.law(data, ranks, 6, epsilon, reach + 1, pins)
        counts = [draws[o] for o in exact]
        assert sum(counts) == draws.total()
        assert not chi_square_rejects(counts, exact.values())
        if not pins:
            for factor in (0.7, 1.3):
                wrong = reference.law(data, ranks, 6, epsilon * factor, reach + 1, pins)
                assert chi_square_rejects(counts, wrong.values())

    @given(cases(), st.integers(0, 2**32))
    @settings(max_examples=40)
    def test_exact_arithmetic_gives_the_same_output(self, case, seed):
        data, ranks, last, epsilon, measure, pins = case
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quantiles, "_FAST_ROUNDS", seed % 2)
            law = stage(data, ranks, last, epsilon, min(3, len(data)), pins, measure)
            sources = [ScriptedBits(rest=PCG64(seed)) for _ in range(2)]
            fast, slow = (law.draw(source, exact=exact) for source, exact in zip(sources, (False, True), strict=True))
        assert_array_equal(fast, slow)
        assert sources[0].used == sources[1].used

    @pytest.mark.parametrize("kind", [Chain, WideChain])
    @given(codes=st.lists(st.integers(0, 30), min_size=12, max_size=60), seed=st.integers(0, 5))
    @settings(max_examples=20)
    def test_messages_that_are_computed_again_are_the_same(self, kind, codes, seed):
        n, ranks = len(codes), np.array([2, 4, 5, 7, 9, 11])
        pin = np.sort(codes)[4]
        law = stage(codes, ranks, 30, 1.0, n, {2: int(pin)})
        few, whole = (kind(*law._windows, 0.25, n, held=held) for held in (0, 10**6))
        assert (few.total, few.exponent) == (whole.total, whole.exponent)
        one, other = PCG64(seed), PCG64(seed)
        for _ in range(5):
            assert_array_equal(few.draw(one), whole.draw(other))


def at_one_point(law, code, m):
    """The log of the weight of so many targets below and above records that are all equal."""
    logs = {}
    for below, above in itertools.product(range(m + 1), repeat=2):
        if below + above > m or (below and not code) or (above and code == law._last):
            continue
        o = np.repeat([code - 1, code, code + 1], [below, m - below - above, above])[np.newaxis]
        places = math.comb(max(code + below - 1, 0), below) * math.comb(max(law._last - code + above - 1, 0), above)
        logs[below, above] = math.log(places) - law._epsilon / 2 * int(law.scores(o)[0])
    return logs


class TestRange:
    @every("code", [0, LAST, 2**51])
    @every("n, m, epsilon", [(200, 20, 5.0), (200, 20, 8.0), (2000, 63, 0.39), (2000, 63, 3.0)])
    def test_the_total_of_records_at_one_point(self, n, m, epsilon, code):
        """Against its closed form."""
        grid = dpf.Grid(0, LAST, step=1)
        qs = np.linspace(0.4, 0.6, m)
        law = dpf.Quantiles(qs, grid=grid, epsilon=epsilon, stages=1, measure="uniform").law(np.full(n, float(code)))
        logs = at_one_point(law._first, code, m)
        assert_allclose(law._first._wide.log_total, np.logaddexp.reduce(list(logs.values())), rtol=1e-12)

    @pytest.mark.parametrize(
        ("data", "epsilon", "total", "exponent", "codes"),
        [
            (
                np.arange(300) * 2.0**43,
                9.0,
                "0x1.ca69a5c0664f9p-1",
                764,
                [1173598629189216, 1350451752727999, 1450903664424597],
            ),
            (
                np.full(300, 2.0**51),
                0.01,
                "0x1.b24dc5e7d51e3p-1",
                977,
                [301835068887220, 2165459489521193, 4387968462001500],
            ),
        ],
    )
    def test_the_same_bits_on_every_machine(self, data, epsilon, total, exponent, codes):
        grid = dpf.Grid(0, LAST, step=1)
        qs = np.linspace(0.45, 0.55, 20)
        law = dpf.Quantiles(qs, grid=grid, epsilon=epsilon, stages=1, measure="uniform").law(data)
        chain = law._first._wide.chain
        assert (chain.total.hex(), chain.exponent) == (total, exponent)
        assert chain.draw(PCG64(1))[[0, 10, 19]].tolist() == codes

    def test_messages_without_exponents_of_their_own_are_rejected(self):
        """The control: the fast chain, whose floors have more outputs than all others."""
        law = dpf.Quantiles(
            np.linspace(0.9, 0.92, 63), grid=dpf.Grid(0, LAST, step=1), epsilon=0.39, stages=1, measure="uniform"
        ).law(np.full(10_000, float(LAST)))
        exact = np.logaddexp.reduce(list(at_one_point(law._first, LAST, 63).values()))
        assert_allclose(law._first._wide.log_total, exact, rtol=1e-12)
        assert law._first._fast.log_total > exact + 100

    def test_draws_follow_the_closed_form(self):
        """The number of targets on each side of records at one point; rejected for epsilon x 0.9975 and x 1.0025."""
        m, code, n, epsilon = 40, 2**51, 500, 9.482

        def law_at(epsilon):
            return dpf.Quantiles(
                np.linspace(0.45, 0.55, m), grid=dpf.Grid(0, LAST, step=1), epsilon=epsilon, stages=1, measure="uniform"
            ).law(np.full(n, float(code)))

        draws = law_at(epsilon).sample(1000, PCG64(3))
        counts = Counter(zip((draws < code).sum(axis=1).tolist(), (draws > code).sum(axis=1).tolist(), strict=True))
        for factor, rejected in ((1, False), (0.9975, True), (1.0025, True)):
            logs = at_one_point(law_at(epsilon * factor)._first, code, m)
            p = np.exp(np.array(list(logs.values())) - np.logaddexp.reduce(list(logs.values())))
            assert chi_square_rejects([counts[key] for key in logs], p) == rejected


class TestEnds:
    """Draws that the fast chain alone would repeat without end."""

    @every("data", ["lower", "upper", "middle", "ends", "uniform"])
    @every(
        "m, bits, stages, epsilon, span",
        [
            (63, 52, None, 0.39, (0.9, 0.92)),
            (63, 52, 1, 5.0, (0.4, 0.6)),
            (16, 52, 2, 0.5, (0.0, 1.0)),
            (99, 40, 1, 1.0, (0.01, 0.99)),
            (99, 52, 2, 0.1, (0.01, 0.99)),
            (300, 52, None, 0.2, (0.0, 1.0)),
            (120, 52, 1, 30.0, (0.5, 0.55)),
        ],
    )
    def test_uniform_measure(self, m, bits, stages, epsilon, span, data):
        grid, n = dpf.Grid(0, 2**bits - 1, step=1), 2000
        mechanism = dpf.Quantiles(np.linspace(*span, m), grid=grid, epsilon=epsilon, stages=stages, measure="uniform")
        self.check(mechanism, self.data(data, n, grid.lower, grid.upper))

    @every("data", ["lower", "upper", "middle", "ends", "uniform"])
    @every("m, stages, epsilon", [(60, 1, 4.0), (60, 1, 0.5), (100, 2, 0.3)])
    @every("measure", ["integers", "dyadic"])
    def test_other_measures(self, measure, m, stages, epsilon, data):
        grid = dpf.Grid(-(2**35), 2**35, step=0.125)
        mechanism = dpf.Quantiles(np.linspace(0.3, 0.8, m), grid=grid, epsilon=epsilon, stages=stages, measure=measure)
        assert mechanism.base_measure is not None
        self.check(mechanism, self.data(data, 500, grid.lower, grid.upper))

    @every("data", ["lower", "upper", "middle", "ends", "uniform"])
    @every("m, stages", [(40, 1), (80, None)])
    def test_float_grid(self, m, stages, data):
        mechanism = dpf.Quantiles(np.linspace(0.1, 0.9, m), grid=dpf.FloatGrid(), epsilon=0.5, stages=stages)
        self.check(mechanism, self.data(data, 1000, -1e300, 1e300))

    def data(self, name, n, lower, upper):
        middle = lower + (upper - lower) / 2
        return {
            "lower": np.full(n, float(lower)),
            "upper": np.full(n, float(upper)),
            "middle": np.full(n, middle),
            "ends": np.repeat([float(lower), float(upper)], n // 2),
            "uniform": np.random.default_rng(1).uniform(lower, upper, n),
        }[name]

    def check(self, mechanism, x):
        law = mechanism.law(x)
        for seed in range(2):
            o = law.sample(rng=PCG64(seed))
            assert np.all(np.diff(o) >= 0)
            assert np.isfinite(law.logpmf(o))
