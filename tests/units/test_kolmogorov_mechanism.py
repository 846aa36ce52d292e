"""KolmogorovSmirnov: the contract of a mechanism, parameters, and the theory of its error."""

import doctest
import math
import pickle
import threading
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

import dpfast as dpf
from dpfast.densities import KolmogorovSmirnov, KolmogorovSmirnovLaw
from dpfast.densities import kolmogorov as module
from tests.cases import every
from tests.reference import kolmogorov as reference

pytestmark = pytest.mark.kernel


def tied(n=400):
    """A tie of a third of the records, next to a tie of a tenth, and a cluster: bands of thousands of binary orders."""
    rng = np.random.default_rng(3)
    ties = np.repeat([0.25, 0.25 + 2.0**-31], [n // 3, n // 10])
    return np.concatenate([ties, rng.random(n // 4) * 1e-7, rng.random(n // 3)])


class TestMechanism:
    def test_examples(self):
        assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE) == (0, 6)

    def test_default_number_is_public(self):
        mechanism = KolmogorovSmirnov(grid=dpf.Grid(0, 1), epsilon=1.0)
        assert [mechanism.records(n) for n in (1, 100, 1000, 10**4, 10**7)] == [1, 11, 50, 232, 1024]
        assert KolmogorovSmirnov(5, grid=dpf.Grid(0, 1), epsilon=1.0).records(10) == 5
        for x in (np.zeros(100), np.linspace(0, 1, 100), np.full(100, np.nan)):
            assert mechanism(x).shape == (11,)

    @every("epsilon", [5e-324, 1e-3, 1.0, 20.0, 1e3, 1e308])
    @every("n", [1, 2, 30])
    def test_extremes(self, epsilon, n):
        mechanism = KolmogorovSmirnov(6, grid=dpf.Grid(0, 1), epsilon=epsilon)
        for x in (np.full(n, 0.5), np.zeros(n), np.ones(n), np.linspace(0, 1, n)):
            z = mechanism(x, rng=PCG64(1))
            assert z.shape == (6,)
            assert np.all((z >= 0) & (z <= 1))
        assert np.isfinite(mechanism.law(x).logpmf([0] * 6))

    def test_an_epsilon_that_decides_everything(self):
        x = np.linspace(0, 1, 30)
        mechanism = KolmogorovSmirnov(30, grid=dpf.Grid(0, 1), epsilon=1e308)
        assert_array_equal(
            np.sort(mechanism(x, rng=PCG64(1))), mechanism.grid.decode(np.sort(mechanism.grid.encode(x)))
        )

    def test_many_ties(self):
        z = KolmogorovSmirnov(300, grid=dpf.Grid(0, 1), epsilon=1000.0)(tied(), rng=PCG64(1))
        assert abs(np.mean(z == 0.25) - 1 / 3) < 0.05

    def test_bad_input_is_mapped_record_by_record(self):
        mechanism = KolmogorovSmirnov(8, grid=dpf.Grid(0, 1, step=2.0**-10), epsilon=1.0)
        x = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 2.0, 0.3])
        clean = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.3])
        assert_array_equal(mechanism(x, rng=PCG64(1)), mechanism(clean, rng=PCG64(1)))

    @every("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
    def test_types_strides_and_read_only(self, dtype):
        x = np.random.default_rng(1).integers(0, 2, 40).astype(dtype)
        kept = x.copy()
        x.flags.writeable = False
        mechanism = KolmogorovSmirnov(8, grid=dpf.Grid(0, 1, step=1), epsilon=1.0)
        assert_array_equal(mechanism(x[::-2], rng=PCG64(1)), mechanism(x[::-2].tolist(), rng=PCG64(1)))
        assert_array_equal(x, kept)

    def test_sizes(self):
        mechanism = KolmogorovSmirnov(3, grid=dpf.Grid(0, 1), epsilon=1.0)
        assert mechanism.release([0.5, 0.6], size=(2, 4), rng=PCG64(1)).shape == (2, 4, 3)
        assert mechanism.release([0.5, 0.6], size=0).shape == (0, 3)
        assert mechanism.release([0.5, 0.6]).dtype == np.float64

    def test_frozen_hashable_picklable(self):
        mechanism = KolmogorovSmirnov(3, grid=dpf.Grid(0, 1), epsilon=Fraction(1, 3))
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert {mechanism: 1}[KolmogorovSmirnov(np.int64(3), grid=dpf.Grid(0, 1), epsilon=Fraction(1, 3))] == 1
        assert Fraction(mechanism.epsilon) <= Fraction(1, 3)
        assert mechanism.privacy_map(2).epsilon >= 2 * mechanism.epsilon
        with pytest.raises(FrozenInstanceError):
            mechanism.epsilon = 2.0

    @every(
        "arguments, error, match",
        [
            ({"k": 0}, ValueError, "k must be at least 1"),
            ({"k": 8192}, ValueError, "k must be at most 8191"),
            ({"k": 2.0}, TypeError, "k must be an integer"),
            ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
            ({"epsilon": math.nan}, ValueError, "epsilon must be finite"),
            ({"grid": (0, 1)}, TypeError, "grid must be a dpfast.Grid"),
        ],
    )
    def test_wrong_parameters(self, arguments, error, match):
        with pytest.raises(error, match=match):
            KolmogorovSmirnov(**({"grid": dpf.Grid(0, 1), "epsilon": 1.0} | arguments))

    @pytest.mark.parametrize("x", [0.5, np.zeros((2, 2)), [[0.5]]])
    def test_wrong_shapes(self, x):
        mechanism = KolmogorovSmirnov(3, grid=dpf.Grid(0, 1), epsilon=1.0)
        for reader in (mechanism, mechanism.law, mechanism.release):
            with pytest.raises(ValueError, match="x must be one-dimensional, not of shape"):
                reader(x)

    def test_no_records(self):
        with pytest.raises(ValueError, match="x is empty"):
            KolmogorovSmirnov(3, grid=dpf.Grid(0, 1), epsilon=1.0)([])

    def test_threads_share_a_law(self):
        law = KolmogorovSmirnov(20, grid=dpf.Grid(0, 1), epsilon=1.0).law(np.linspace(0, 1, 50))
        alone = [KolmogorovSmirnovLaw(law._codes, 20, epsilon=1.0, grid=law.grid).sample(9, PCG64(s)) for s in range(4)]
        results = [None] * 4

        def run(i):
            results[i] = law.sample(9, PCG64(i))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert_array_equal(results, alone)

    def test_bands_are_forgotten_when_they_fill_the_memory(self, monkeypatch):
        monkeypatch.setattr(module, "_MOST_STATES", 1)
        law = KolmogorovSmirnov(20, grid=dpf.Grid(0, 1), epsilon=1.0).law(np.linspace(0, 1, 50))
        kept = KolmogorovSmirnovLaw(law._codes, 20, epsilon=1.0, grid=law.grid)
        forgetful = law.sample(9, PCG64(1))
        monkeypatch.undo()
        assert len(law._bands) == 1
        assert_array_equal(forgetful, kept.sample(9, PCG64(1)))


class TestTheory:
    @every("k", [1, 2, 3, 7, 12])
    def test_small_balls(self, k):
        """Against determinants of rationals, from the least distance there is to 1."""
        radii = [Fraction(i, 60) for i in range(61)]
        exact = [float(reference.small_ball(k, radius)) for radius in radii]
        found = [dpf.theory.small_ball_probability(k, float(radius)) for radius in radii]
        assert_allclose(found, exact, rtol=1e-11)
        assert exact[0] == 0 < exact[math.ceil(30 / k) + 1]
        assert exact[-1] == 1

    def test_small_balls_are_volumes_around_evenly_spread_data(self):
        law = KolmogorovSmirnov(40, grid=dpf.Grid(0, 2**14 - 1, step=1), epsilon=1.0).law(np.arange(2**14))
        for rho in (0.05, 0.1, 0.2):
            log_volume = law.log_volume(math.floor(rho * law.last))
            assert_allclose(log_volume, math.log(dpf.theory.small_ball_probability(40, rho)), rtol=0.01)

    def test_small_balls_of_many_draws(self):
        k, radius = 10**5, 0.1 / math.sqrt(10**5)
        log_probability = math.log(dpf.theory.small_ball_probability(k, radius))
        assert log_probability == pytest.approx(-(math.pi**2) / (8 * k * radius**2), rel=0.05)

    def test_theorem_11(self):
        """The bound: its formula, and that it holds where it says something."""
        n, k, peak = 20_000, 30, 16 / 9  # of Beta(2, 3)
        for distance in (0.1, 0.15, 0.25):
            bound = dpf.theory.exponential_tail(distance, n=n, k=k, epsilon=1.0, peak=peak)
            ball = float(dpf.theory.small_ball_probability(k, distance / 2))
            far = 1 - dpf.theory.small_ball_probability(n, distance / 16)
            assert bound == pytest.approx(min(1, peak**k * math.exp(-3 * n * distance / 16) / ball + far), rel=1e-6)
        rng, law = np.random.default_rng(3), beta(2, 3)
        mechanism, found = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0), []
        for _ in range(50):
            values = law.cdf(np.sort(mechanism(rng.beta(2, 3, n), rng=rng)))
            found.append(max((np.arange(1, k + 1) / k - values).max(), (values - np.arange(k) / k).max()))
        assert bound < 1e-3
        assert max(found) < 0.25
        assert dpf.theory.exponential_tail(0.01, n=n, k=k, epsilon=1.0, peak=peak) == 1  # no 30 records are so near

    def test_theorem_12(self):
        """Its orders, and that its constants make the bound of Theorem 11 grow, while an eighth of k does not."""
        n, peak = 10**9, 3.53
        root = (1.5 * n / math.log(peak)) ** (1 / 3)
        for part, bound in ((1, 1.0), (1 / 10, 1e-9)):
            k = round(part * root**2)
            assert dpf.theory.exponential_tail(2 / root, n=n, k=k, epsilon=0.5, peak=peak) == pytest.approx(
                bound, abs=1e-9
            )

    def test_the_distance_is_predicted_and_falls_faster_than_theorem_12_says(self):
        distances = []
        for n, k in ((1000, 50), (8000, 200), (64_000, 800)):
            mechanism = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0)
            law = mechanism.law(beta(2, 3).ppf((np.arange(n) + 0.5) / n))
            distances.append(
                law.mean_distance()
                if n <= 8000
                else float(np.mean([law.level(z) / law.last for z in law.sample(200, PCG64(1))]))
            )
            assert distances[-1] == pytest.approx(mechanism.error(n), rel=0.15)
        slope = np.polyfit(np.log([1000, 8000, 64_000]), np.log(distances), 1)[0]
        assert slope == pytest.approx(-5 / 9, abs=0.05)
        assert slope < -1 / 3 - 0.1

    @every(
        "call, match",
        [
            (lambda t: t.small_ball_probability(0, 0.5), "k must be at least 1"),
            (lambda t: t.small_ball_probability(3, 1.5), "radius must be between 0 and 1"),
            (lambda t: t.exponential_tail(0.1, n=9, k=3, epsilon=1.0, peak=0.5), "peak must be at least 1"),
            (lambda t: t.exponential_distance(9, k=0, epsilon=1.0), "k must be at least 1"),
            (lambda t: t.exponential_distance(9, k=1, epsilon=0.0), "epsilon must be positive"),
        ],
    )
    def test_bad_parameters(self, call, match):
        with pytest.raises(ValueError, match=match):
            call(dpf.theory)


@every("n, k", [(40, 7), (1000, 90), (5000, 64)])
@every("epsilon", [0.01, 1.0, 20.0])
def test_the_blocks_are_those_of_a_plan_made_anew_after_each_cut(n, k, epsilon):
    """The masses of blocks that a cut does not touch are kept: the same ends as without that, so the same draws."""
    x = np.sort(np.random.default_rng(n).integers(0, 500, n))
    law = KolmogorovSmirnovLaw(x, k, epsilon=epsilon, grid=dpf.Grid(0, 499, step=1))
    ends = law._ends()
    assert ends == sorted(set(ends))
    remade = [end for end in ends if end in (ends[0], ends[-1])]
    step, most = law._k, max(law.log_volume(e) - float(law._rate) * e for e in remade)
    while remade[-2] + step < law.last and -float(law._rate) * remade[-2] > most - 3:
        remade.insert(-1, remade[-2] + step)
        most = max(most, law.log_volume(remade[-2]) - float(law._rate) * remade[-2])
        step *= 2
    while True:
        blocks = list(zip([ends[0] - 1, *remade[:-1]], remade, strict=True))
        logs = np.array([law._log_masses(*block) for block in blocks]).T
        proposed, kept = np.exp(logs - logs[0].max())
        before, end = blocks[int((proposed - kept).argmax())]
        if proposed.sum() <= module._ROUNDS * kept.sum() or end == before + 1:
            break
        remade = sorted([*remade, (before + end) // 2])
    assert remade == ends
