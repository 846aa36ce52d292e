"""The attacks of docs/threats.md, one class per number, each with a naive control that the same test catches.

T18 is in test_proofs.py, T23 and T24 in test_threats_estimators.py, T5, T10, T25 of all mechanisms in test_central.py.
"""

import itertools
import json
import math
import os
import threading
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast
from dpfast import Grid, InverseSensitivity, Privacy, Quantiles, Selection, audit, cli, noise
from dpfast._kernels import _levels, _samplers, _select, _sources
from dpfast.random import SecureBitGenerator
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.reference import laws as reference
from tests.reference import selection as selection_reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

INPUTS = [0.0, 1.0, 1024.0, 2.0**40, 1e-300]


def off_the_lattice(values, step):
    """Share of values that are no integer multiple of step."""
    return np.mean([(Fraction(v) / Fraction(step)).denominator != 1 for v in np.asarray(values).tolist()])


def median(epsilon=1.0, grid=None, **options):
    return InverseSensitivity(Median(), grid=grid or Grid(0, 1), epsilon=epsilon, **options)


def window_of(mechanism, x):
    """The order statistics that a mechanism reads."""
    rank, reach = mechanism.statistic.rank(len(x)), mechanism._levels(len(x)) - 1
    return _select.window(x, rank - reach, rank + reach, **mechanism.grid.kernel)


class TestT1:
    """T1: every float output is an integer multiple of a public granularity that depends on parameters only."""

    GRID = Grid(-(2.0**41), 2.0**41)

    @pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")  # the step is coarse, so that other values show
    @every("x", INPUTS)
    def test_noise(self, x):
        values = noise.add_laplace(np.full(2000, x), scale=1.0, grid=self.GRID, rng=PCG64(1))
        assert off_the_lattice(values, self.GRID.step) == 0

    @every("x", INPUTS)
    def test_releases(self, x):
        for statistic in (Median(), Quantile(0.9)):
            mechanism = InverseSensitivity(statistic, grid=self.GRID, epsilon=0.01)
            assert off_the_lattice(mechanism.release([x] * 9, size=500, rng=PCG64(2)), self.GRID.step) == 0
            assert off_the_lattice([mechanism([x] * 9, rng=PCG64(seed)) for seed in range(50)], self.GRID.step) == 0

    def test_control(self):
        """Numpy's Laplace on floats: the share off the lattice of 2**-53 separates 0 from 1."""
        draws = Generator(PCG64(1)).laplace(size=4000)
        assert off_the_lattice(0.0 + draws, 2.0**-53) > 0.2
        assert off_the_lattice(1.0 + draws, 2.0**-53) == 0


class TestT2:
    """T2: on small lattices the outputs of both neighbours are the same set."""

    def test_supports_are_equal(self):
        mechanism = median(0.5, Grid(0, 4, step=1))
        supports = set()
        for data in itertools.product(range(5), repeat=3):
            supports.add(frozenset(np.unique(mechanism.release(data, size=4000, rng=PCG64(1))).tolist()))
        assert supports == {frozenset(range(5))}

    def test_every_point_of_a_wide_grid_is_possible(self):
        mechanism = median(1.0, Grid(0, 1, step=2.0**-12))
        for data in ([0.5], [0.0] * 9, [0.25, 0.75] * 50):
            assert np.isfinite(mechanism.law(data).logpmf(np.arange(mechanism.grid.size))).all()

    def test_control(self):
        """Noise cut to three points: the supports differ."""
        supports = {frozenset((data + np.array([-1, 0, 1])).tolist()) for data in (2, 3)}
        assert len(supports) == 2


class TestT3:
    """T3: outputs under the data [0.1] are possible under [0.3] (preimage of the last step of a quantile)."""

    def test_outputs_lie_on_a_public_grid(self):
        mechanism = median(1.0, Grid(0, 1))
        k = mechanism.law([0.1]).sample(20_000, PCG64(1))
        ratio = mechanism.law([0.1]).logpmf(k) - mechanism.law([0.3]).logpmf(k)
        assert np.abs(ratio).max() <= 1 + 1e-12
        assert off_the_lattice(mechanism.law([0.1]).value(k[:500]), mechanism.grid.step) == 0

    def test_control(self):
        """a + u (b - a), u a multiple of 2**-53: many outputs from 0.1 on have no preimage from 0.3 on."""
        u = Generator(PCG64(1)).random(2000)
        impossible = 0
        for value in (0.1 + u * (1 - 0.1)).tolist():
            if value > 0.3:
                near = round((value - 0.3) / 0.7 * 2**53)
                impossible += all(0.3 + (w * 2.0**-53) * (1 - 0.3) != value for w in range(near - 4, near + 5))
        assert impossible > 100


class TestT4:
    """T4: spreads of 1e6, ties, one candidate, epsilon 1e-6..1e3: no NaN, exact frequencies."""

    SCORES: ClassVar = {
        "spread": [0.0, -1e6, -1.0, -2.0, -1e6 + 1],
        "ties": [3.0] * 5,
        "one": [-7.5],
        "equal but the last": [0.0] * 8 + [1.0],
        "huge offset": [1e6, 1e6 + 1, 1e6 - 1],
    }

    @every("epsilon", [1e-6, 1e-2, 1.0, 30.0, 1e3])
    @every("name", SCORES)
    def test_choice(self, name, epsilon):
        scores = self.SCORES[name]
        draws = dpfast.select(scores, epsilon=epsilon, size=100_000, rng=PCG64(1))
        assert not chi_square_rejects(np.bincount(draws, minlength=len(scores)), self.exact(scores, epsilon))

    @staticmethod
    def exact(scores, epsilon):
        return selection_reference.exponential(scores, Fraction(epsilon) / 2)

    def test_the_frequencies_have_power(self):
        scores = [0.0, -1.0, -2.0]
        counts = np.bincount(dpfast.select(scores, epsilon=2.0, size=100_000, rng=PCG64(1)), minlength=3)
        for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
            assert chi_square_rejects(counts, self.exact(scores, 2.0 * factor)) == wrong

    @every("epsilon", [1e-6, 1e-2, 1.0, 30.0, 1e3])
    @every("value", [0.0, 50.0, 100.0])
    def test_equal_records(self, epsilon, value):
        """diffprivlib 107 (80 k of 100 k equal) and smartnoise 572 (1491 of 1492 zeros)."""
        mechanism = median(epsilon, Grid(0, 100, step=1))
        x = np.full(1492, value)
        x[0] = 1.0
        k = np.arange(101)
        law = mechanism.law(x)
        assert np.isfinite(law.logpmf(k)).all()
        assert math.fsum(law.pmf(k)) == pytest.approx(1, abs=1e-12)
        assert not chi_square_rejects(np.bincount(law.sample(20_000, PCG64(3)), minlength=101), law.pmf(k))

    def test_control(self):
        """A softmax in plain doubles: NaN without the shift; with it, a score that 1 is lost beside is no better."""
        with np.errstate(all="ignore"):
            weights = np.exp(np.array([-1e6, -1e6 + 1]))
            assert np.isnan(weights / weights.sum()).all()
        scores = [2**60, 2**60 + 2]
        weights = np.exp(np.array(scores, dtype=float) - max(scores))
        counts = (dpfast.select(scores, epsilon=1.0, size=100_000, rng=PCG64(1)) == k for k in (0, 1))
        counts = [np.count_nonzero(hits) for hits in counts]
        assert chi_square_rejects(counts, weights / weights.sum())
        assert not chi_square_rejects(counts, self.exact(scores, 1.0))


class TestT6:
    """T6: a draw takes two words for all data; the rare further ones are documented."""

    def test_words(self):
        used = set()
        for data in ([0.0] * 11, [0.5] * 11, np.linspace(0, 1, 11), [math.nan] * 11):
            window, grid = window_of(median(), np.asarray(data)), median().grid
            for seed in range(100):
                source = ScriptedBits(rest=PCG64(seed))
                arguments = (grid.lower, grid.upper, grid.step, grid.first, grid.size - 1)
                _levels.RankDraw(1.0, 0, *arguments).draw(source, window)
                used.add(source.used)
        assert used == {2}

    def test_documented(self):
        assert "timing" in noise.laplace.__doc__
        assert "further ones with" in " ".join(_levels.RankDraw.__doc__.split())

    def test_control(self):
        """A discrete sampler that counts up uses more words the larger the noise is."""

        def geometric(source):
            count = 0
            while _samplers.next_word(source) < 2**63:
                count += 1
            return count

        sources = [ScriptedBits(rest=PCG64(seed)) for seed in range(50)]
        draws = [geometric(source) for source in sources]
        assert [source.used - 1 for source in sources] == draws


class TestT7:
    """T7: degenerate parameters: noise still present, or an error that does not depend on data."""

    def test_equal_bounds_and_no_records(self):
        for data in ([0.0], [5.0], [math.nan]):
            with pytest.raises(ValueError, match="lower must be below upper"):
                dpfast.median(data, bounds=(3, 3), epsilon=1)
        with pytest.raises(ValueError, match="x is empty"):
            dpfast.median([], bounds=(0, 1), epsilon=1)

    @pytest.mark.parametrize("epsilon", [1e-300, 1.0])
    def test_one_record_and_two_points(self, epsilon):
        """n = 1 on two points is randomised response: exp(-epsilon / 2) for the other point."""
        grid = Grid(0, 1, step=1)
        p = median(epsilon, grid, selection="exponential").law([1.0]).pmf([0, 1])
        np.testing.assert_allclose(p, np.array([math.exp(-epsilon / 2), 1]) / (1 + math.exp(-epsilon / 2)), rtol=1e-14)

    def test_scales(self):
        assert np.count_nonzero(noise.laplace(2.0**56, 1000, rng=PCG64(1))) > 990
        for scale in (0, math.inf, 2.0**56 * 2):
            with pytest.raises(ValueError, match="scale must be"):
                noise.laplace(scale)

    def test_control(self):
        """Noise scaled by the width of the bounds vanishes when they are equal (smartnoise 318)."""
        width = 3.0 - 3.0
        assert (Generator(PCG64(1)).laplace(scale=width, size=10) == 0).all()


class TestT8:
    """T8: samplers at fixed points, symmetry, tails, and exhaustively with a scripted source."""

    def test_symmetry_and_tails(self):
        x = noise.laplace(5.0, 400_000, rng=PCG64(1))
        for draws, wrong in ((x, False), (np.where(x > 0, x + (x % 37 == 1), x), True)):
            edges = [*range(-60, 61)]
            counts = [np.count_nonzero(draws == z) for z in edges]
            p = [float(reference.rounded_laplace(z, 5.0)) for z in edges]
            observed, expected = [*counts, len(x) - sum(counts)], [*p, max(0.0, 1 - math.fsum(p))]
            assert chi_square_rejects(observed, expected) == wrong

    @every("last", [0, 1, 2, 4, 6, 9])
    def test_uniform_exhaustively(self, last):
        """Words at the middle of equal parts: each outcome gets its share to one part."""
        parts = 900
        out = np.empty(parts, np.uint64)
        _samplers.fill_uniform(ScriptedBits([((2 * i + 1) << 63) // parts for i in range(parts)], PCG64(1)), last, out)
        counts = np.bincount(out.astype(int), minlength=last + 1)
        assert np.abs(counts - parts / (last + 1)).max() <= 1

    def test_bernoulli_exhaustively(self):
        """All three-digit fractions of a coarse script, exact rationals."""
        parts = 128
        for numerator, denominator in ((1, 3), (5, 7), (1, 128), (127, 128)):
            out = np.empty(parts, np.uint8)
            words = [((2 * i + 1) << 63) // parts for i in range(parts)]
            _samplers.fill_bernoulli(ScriptedBits(words, PCG64(1)), numerator, denominator, out)
            expected = sum(Fraction(2 * i + 1, 2 * parts) < Fraction(numerator, denominator) for i in range(parts))
            assert out.sum() == expected

    def test_control(self):
        """The modulo of a word, the usual bias: words 0..9 modulo 7 favour 0, 1, 2."""
        assert np.ptp(np.bincount(np.arange(10) % 7)) == 1
        assert chi_square_rejects(np.bincount(np.arange(10_000) % 10 % 7), [1 / 7] * 7)


class TestT10:
    """T10: shape, dtype and errors depend on public arguments only."""

    DATA = (0.5, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e308, -1e308)

    def test_types_and_shapes(self):
        for data in self.DATA:
            with np.errstate(over="ignore"):
                short = np.array([data, 0.5]).astype(np.float32)
            for x in ([data] * 3, np.array([data, 0.5, 1.0]), short):
                assert type(median()(x)) is float
                values = median().release(x, size=(2, 3))
                assert (values.shape, values.dtype) == ((2, 3), np.float64)

    def test_no_error_reveals_a_value(self):
        for data in (*self.DATA, None, 10**400, True, Fraction(1, 3), np.longdouble("1e4000")):
            median()([data, 0.5])
            noise.add_laplace([data, 0.5], scale=1.0, grid=Grid(0, 1))

    def test_control(self):
        """The plain conversion does fail on a value."""
        with pytest.raises(OverflowError):
            np.asarray([10**400, 0.5], dtype=np.float64)


class TestT11:
    """T11: the law of two candidates matches the declared mechanism; epsilon**2 / 8 for the exponential one only."""

    GAPS = range(-6, 7)

    @staticmethod
    def two_candidates(method, epsilon, gap):
        """P(1) for the scores 0 and `gap`, by the formula of the mechanism."""
        coin = math.exp(-epsilon / 2 * abs(gap))
        better = 1 / (1 + coin) if method == "exponential" else 1 - coin / 2
        return better if gap > 0 else 1 - better

    @every("method", ["exponential", "permute-and-flip"])
    @every("epsilon", [1e-3, 0.5, 2.0])
    def test_two_candidates(self, method, epsilon):
        mechanism = Selection(epsilon=epsilon, selection=method)
        other = "exponential" if method != "exponential" else "permute-and-flip"
        for gap in self.GAPS:
            p = mechanism.law([0, gap]).pmf(1)
            assert p == pytest.approx(self.two_candidates(method, epsilon, gap), rel=1e-12)
            if gap:
                assert abs(p - self.two_candidates(other, epsilon, gap)) > 1e-8
        draws = mechanism.release([0, 2], size=50_000, rng=PCG64(1))
        p = self.two_candidates(method, epsilon, 2)
        assert not chi_square_rejects(np.bincount(draws, minlength=2), [1 - p, p])

    def divergence(self, method, epsilon):
        """The largest Kullback-Leibler divergence between neighbours, whose gaps differ by at most 2."""
        laws = {gap: Selection(epsilon=epsilon, selection=method).law([0, gap]).logpmf([0, 1]) for gap in self.GAPS}
        pairs = [(p, laws[g + d]) for g, p in laws.items() for d in (-2, -1, 1, 2) if g + d in laws]
        return max(float(np.sum(np.exp(p) * (p - q))) for p, q in pairs)

    @pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0])
    def test_concentration(self, epsilon):
        assert self.divergence("exponential", epsilon) <= Selection(epsilon=epsilon).rho <= epsilon**2 / 8 * (1 + 1e-15)
        flip = Selection(epsilon=epsilon, selection="permute-and-flip")
        assert self.divergence(flip.selection, epsilon) <= flip.rho <= epsilon**2 / 2 * (1 + 1e-15)

    @pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0])
    def test_control(self, epsilon):
        """Permute-and-flip charged as bounded-range."""
        assert self.divergence("permute-and-flip", epsilon) > 1.2 * epsilon**2 / 8


class TestT14:
    """T14: NaN, infinities, -0.0 and subnormals become a public value first; n stays; no warning, no exception."""

    @every("special", TestT10.DATA)
    @every("missing", [0.0, 0.25, 1.0])
    def test_a_special_record_is_its_clamped_twin(self, special, missing):
        grid = Grid(0, 1, step=2.0**-10, missing=missing)
        twin = missing if math.isnan(special) else min(max(special, 0.0), 1.0)
        rest = np.random.default_rng(1).random(200)
        for q in (0, 0.3, 1):
            mechanism = InverseSensitivity(Quantile(q), grid=grid, epsilon=0.3)
            one, other = np.append(rest, special), np.append(rest, twin)
            for seed in range(5):
                assert mechanism(one, rng=PCG64(seed)) == mechanism(other, rng=PCG64(seed))
            k = np.arange(grid.size)
            np.testing.assert_array_equal(mechanism.law(one).logpmf(k), mechanism.law(other).logpmf(k))

    def test_control(self):
        """One NaN poisons numpy's median."""
        with np.errstate(invalid="ignore"):
            assert math.isnan(np.median(np.append(np.ones(9), math.nan)))


def traced(mechanism, x, seed=1):
    """All public parts of a run: the arguments of the kernels, and the words they draw."""
    source = ScriptedBits(rest=PCG64(seed))
    grid = mechanism.grid
    window = window_of(mechanism, np.asarray(x, dtype=float))
    steps = mechanism._radius_codes(len(x))
    arguments = (mechanism.epsilon, steps, grid.lower, grid.upper, grid.step, grid.first, grid.size - 1)
    value = _levels.RankDraw(*arguments).draw(source, window)
    law = mechanism.law(x)
    shapes = (window.shape, window.dtype, law.lower.shape, law.upper.shape, law.lower.dtype, law.support, law.epsilon)
    return {"arguments": arguments, "shapes": shapes, "words": source.used, "type": type(value)}


class TestT15:
    """T15: run D and D' with the same words: all metadata equal; budgets add up to the declared one.

    Here the median in detail; test_central.py tests every central mechanism, also for T5, T10 and T25.
    """

    @every("epsilon", [0.01, 1.0, 8.0])
    @every("statistic", [Median(), Quantile(0.0), Quantile(0.9)], ids=str)
    def test_metadata(self, statistic, epsilon):
        mechanism = InverseSensitivity(statistic, grid=Grid(0, 1), epsilon=epsilon)
        n = 101
        data = [np.zeros(n), np.ones(n), np.full(n, math.nan), np.linspace(0, 1, n), np.full(n, 1e308)]
        data += [np.append(np.zeros(n - 1), value) for value in (0.5, math.inf, math.nan)]
        traces = [traced(mechanism, x) for x in data]
        assert all(trace == traces[0] for trace in traces)

    def test_quantiles_of_the_command_line_spend_the_stated_epsilon(self, monkeypatch, capsys, tmp_path):
        spent = []
        release = Quantiles.__call__
        monkeypatch.setattr(Quantiles, "__call__", lambda m, *a, **k: spent.append(m.epsilon) or release(m, *a, **k))
        (tmp_path / "x.csv").write_text("pay\n1\n2\n")
        arguments = ["--bounds", "0", "9", "--epsilon", "0.1", "--json", "-q", "0.1", "0.5", "0.9"]
        assert cli.main(["quantiles", str(tmp_path / "x.csv"), *arguments]) == 0
        assert json.loads(capsys.readouterr().out)["epsilon"] == 0.1
        assert spent == [math.nextafter(0.1, 0)]  # 1/10

    def test_control(self):
        """A window that ends at the data's extremes has a length that depends on them."""
        lengths = {np.unique(x).size for x in (np.zeros(5), np.arange(5.0))}
        assert len(lengths) == 2


class TestT16:
    """T16: black box: events chosen on half of the draws, Clopper-Pearson on the other half."""

    def test_median(self):
        mechanism = median(1.0, Grid(0, 3, step=0.25))
        for x, y in (([0, 0, 3], [0, 3, 3]), ([1, 1, 1], [1, 1, 3]), ([1], [2])):
            assert audit.distinguish(mechanism, x, y, trials=200_000, rng=PCG64(1)) <= 1

    def test_add_laplace(self):
        class Added:
            privacy = Privacy(1.0)

            def release(self, x, size, rng):
                return noise.add_laplace(np.full(size, x[0]), scale=1.0, grid=Grid(0, 1, step=2.0**-20), rng=rng)

        bound = audit.distinguish(Added(), [0.0], [1.0], trials=200_000, rng=PCG64(1))
        assert 0.9 < bound <= 1

    # The controls (half noise, a factor of two, numpy Laplace on floats) are in test_audit.py.


class TestT17:
    """T17: every dataset over a four-value domain with n <= 5, all neighbours."""

    def test_median(self):
        for n in (1, 2, 3, 4, 5):
            assert audit.verify(median(1.0, Grid(0, 3, step=1)), n=n, values=4, ordered=False).holds

    # The controls are TestRejects in test_audit.py.


class TestT21:
    """T21: the outcomes of two neighbours differ in the released value only."""

    def test_the_result_is_a_plain_float(self):
        for x in ([0.1] * 5, [0.9] * 5, [math.nan] * 5):
            value = median()(x, rng=PCG64(1))
            assert type(value) is float
        mechanism = median()
        mechanism([0.1])  # a mechanism keeps public numbers for the last n
        before = repr(mechanism), vars(mechanism).copy()
        mechanism([0.9])
        mechanism([math.nan])
        assert (repr(mechanism), vars(mechanism)) == before

    def test_state_of_the_generator(self):
        """The next words after a release are those after its neighbour's."""
        after = set()
        for x in ([0.1] * 5, [0.9] * 5, [math.nan] * 5):
            source = PCG64(1)
            median()(x, rng=source)
            after.add(source.random_raw())
        assert len(after) == 1

    def test_control(self):
        """A standard error beside the release would differ."""
        assert np.std([0.1] * 4 + [0.2]) != np.std([0.1] * 5)


class TestT25:
    """T25: forks, threads, lack of entropy, reuse of a stream: here on mechanisms; more in test_random.py."""

    def test_threads_differ(self):
        mechanism, drawn = median(1e-9), []

        def draw():  # several times, because two draws are equal, at a round number, once in a thousand
            drawn.append(tuple(mechanism([0.5]) for _ in range(8)))

        threads = [threading.Thread(target=draw) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(drawn)) == 8

    def test_no_entropy_no_release(self, monkeypatch):
        source = SecureBitGenerator()
        source.random_raw(2**21, output=False)  # at the end of its key
        monkeypatch.delattr(_sources.local, "source", raising=False)  # array fills use the thread's generator
        monkeypatch.setattr(os, "urandom", lambda size: (_ for _ in ()).throw(OSError("no entropy")))
        with pytest.raises(dpfast.EntropyError):
            median()([0.5], rng=source)
        with pytest.raises(dpfast.EntropyError):
            median().release([0.5], size=10, rng=source)
        with pytest.raises(dpfast.EntropyError):
            noise.laplace(1.0, 10, rng=source)

    def test_one_stream_is_not_used_twice(self):
        source = Generator(PCG64(1))
        uniform = median(1e-9, measure="uniform")
        assert len({uniform([0.5], rng=source) for _ in range(100)}) == 100
        releases = [noise.laplace(1e9, 10, rng=source).tolist() for _ in range(20)]
        assert len({tuple(release) for release in releases}) == 20

    def test_a_list_of_quantiles_is_reproducible(self, tmp_path, capsys):
        from dpfast.cli import main

        (tmp_path / "x.csv").write_text("pay\n1\n2\n")
        outputs = []
        for _ in range(2):
            arguments = ["--bounds", "0", "9", "--epsilon", "0.1", "--seed", "3", "--json"]
            assert main(["quantiles", str(tmp_path / "x.csv"), *arguments]) == 0
            outputs.append(capsys.readouterr().out)
        assert outputs[0] == outputs[1]

    def test_control(self):
        """A seed for each call, used again: the releases repeat."""
        assert len({median(1e-9)([0.5], rng=PCG64(1)) for _ in range(5)}) == 1
