"""The exponential mechanism under the Kolmogorov-Smirnov distance: volumes, law, privacy, exactness of the draws."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64, Generator
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

import dpfast as dpf
from dpfast._kernels import _ks
from dpfast.densities import KolmogorovSmirnov
from dpfast.densities import kolmogorov as module
from tests.cases import every
from tests.reference import kolmogorov as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

WIDE = KolmogorovSmirnov(25, grid=dpf.Grid(0, 1), epsilon=4.0)
SMALL = dpf.Grid(0, 3, step=1)
FINE = dpf.Grid(0, 1, step=2.0**-50)


def law_of(data, k, size, epsilon):
    return KolmogorovSmirnov(k, grid=dpf.Grid(0, size - 1, step=1), epsilon=epsilon).law(data)


@st.composite
def cases(draw, records=5, synthetic=3, codes=4):
    size, k = draw(st.integers(2, codes)), draw(st.integers(1, synthetic))
    data = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=records))
    return data, k, size, draw(st.sampled_from([0.25, 1.0, 4.0]))


def tied(n=400):
    """A tie of a third of the records, next to a tie of a tenth, and a cluster: bands of thousands of binary orders."""
    rng = np.random.default_rng(3)
    ties = np.repeat([0.25, 0.25 + 2.0**-31], [n // 3, n // 10])
    return np.concatenate([ties, rng.random(n // 4) * 1e-7, rng.random(n // 3)])


class TestVolumes:
    @given(cases())
    def test_every_level(self, case):
        data, k, size, epsilon = case
        law = law_of(data, k, size, epsilon)
        assert law.log_volume(-1) == -math.inf
        for level in range(law.last + 1):
            exact = reference.volume(data, k, size, Fraction(level, law.last))
            assert_allclose(math.exp(law.log_volume(level)), float(exact), rtol=1e-12)

    @given(cases())
    def test_levels_of_vectors(self, case):
        data, k, size, epsilon = case
        law = law_of(data, k, size, epsilon)
        for z in reference.vectors(size, k):
            assert Fraction(law.level(np.array(z)), law.last) == reference.distance(data, z, size)

    @pytest.mark.parametrize(
        ("k", "volumes", "normalizer", "distance"),
        [
            (4, [0, 7107 / 20000, 5543 / 6400, 9983 / 10000, 1], 0.2064609076813715, 0.34975179316738403),
            (
                3,
                [0, 0, 0, 0.0315, 0.066, 0.6285, 0.697625, 0.697625, 0.769625, 0.991, 0.991, 0.991, 1],
                0.1524691432097286,
                0.43707150857044935,
            ),
        ],
    )
    def test_published_small(self, k, volumes, normalizer, distance):
        """For real numbers: a grid of 2**50 points is within 1e-12 of it."""
        law = KolmogorovSmirnov(k, grid=FINE, epsilon=2.0).law([0.1, 0.4, 0.45, 0.8])
        assert_allclose([math.exp(law.log_volume(t)) for t in range(law.last + 1)], volumes, rtol=1e-9, atol=1e-12)
        assert_allclose(math.exp(law.log_normalizer), normalizer, rtol=1e-9)
        assert_allclose(law.mean_distance(), distance, rtol=1e-9)

    def test_published_mode(self):
        law = KolmogorovSmirnov(4, grid=FINE, epsilon=2.0).law([0.1, 0.4, 0.45, 0.8])
        cells = np.array([0.0, 0.1, 0.4, 0.45, 0.8, 1.0])
        counts = [0, 2, 0, 1, 1]
        middles = FINE.encode(np.repeat((cells[1:] + cells[:-1]) / 2, counts))
        spread = math.factorial(4) * math.prod(
            w**j / math.factorial(j) for w, j in zip(np.diff(cells), counts, strict=True)
        )
        probability = math.exp(law.logpmf(middles) + 4 * math.log(FINE.size)) * spread
        assert_allclose(probability, 0.13470678815130688, rtol=1e-9)

    def test_published_medium(self):
        x = beta.ppf((np.arange(200) + 0.5) / 200, 10, 10)
        law = KolmogorovSmirnov(40, grid=FINE, epsilon=1.0).law(x)
        assert_allclose(law.log_normalizer, -25.68474475459855, rtol=1e-9)
        assert_allclose(law.mean_distance(), 0.18478834382046277, rtol=1e-9)
        assert_allclose(law.log_volume(3), -106.2957468576, rtol=1e-9)
        assert law.log_volume(2) < -1000  # only by records on the very codes of the data

    def test_a_tie_that_all_must_follow(self):
        """Level 0 of n tied records: all k at one code of many."""
        for k in (1, 40, 500):
            law = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0).law(np.full(k, 0.5))
            assert_allclose(law.log_volume(0), -k * math.log(law.grid.size), rtol=1e-12)

    def test_largest_level_holds_everything(self):
        for n, k in [(1, 1), (7, 8191), (400, 333)]:
            law = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0).law(np.linspace(0, 1, n))
            assert_allclose(law.log_volume(law.last), 0.0, atol=1e-10)

    @given(cases(records=8, synthetic=4, codes=6))
    def test_first_level(self, case):
        data, k, size, epsilon = case
        law = law_of(data, k, size, epsilon)
        first = law._first_level()
        assert law._feasible(first)
        assert first == 0 or not law._feasible(first - 1)
        least = min(law.level(np.array(z)) for z in itertools.combinations_with_replacement(sorted(set(data)), k))
        assert first == least

    def test_reflection(self):
        x = np.random.default_rng(1).integers(0, 50, 30)
        one, other = law_of(x, 20, 50, 1.0), law_of(49 - x, 20, 50, 1.0)
        levels = range(one._first_level(), one.last + 1)
        assert_allclose([one.log_volume(t) for t in levels], [other.log_volume(t) for t in levels], rtol=1e-11)


class TestLaw:
    @given(cases())
    def test_against_enumeration(self, case):
        data, k, size, epsilon = case
        exact = reference.law(data, k, size, epsilon)
        logpmf = law_of(data, k, size, epsilon).logpmf(list(exact))
        assert_allclose(logpmf, [math.log(p) for p in exact.values()], rtol=0, atol=1e-12)

    @given(cases(records=4, synthetic=4, codes=12))
    @settings(max_examples=30)
    def test_normalizer_against_counts(self, case):
        data, k, size, epsilon = case
        *_, normalizer = reference.counts_law(data, k, size, epsilon)
        assert_allclose(law_of(data, k, size, epsilon).log_normalizer, math.log(normalizer), rtol=0, atol=1e-12)

    @given(cases())
    def test_distances(self, case):
        data, k, size, epsilon = case
        law = law_of(data, k, size, epsilon)
        exact = Counter()
        for z, probability in reference.law(data, k, size, epsilon).items():
            exact[reference.distance(data, z, size)] += probability
        values, probabilities = law.distances()
        assert_allclose(
            probabilities, [float(exact[Fraction(round(v * law.last), law.last)]) for v in values], atol=1e-12
        )
        assert_allclose(law.mean_distance(), float(sum(p * mpf(d.numerator) / d.denominator for d, p in exact.items())))

    def test_outside_the_grid(self):
        law = law_of([0, 1], 2, 3, 1.0)
        assert_array_equal(
            np.isneginf(law.logpmf([[[0, 3], [-1, 0]], [[0, 2], [2, 2]]])), [[True, True], [False, False]]
        )

    def test_values(self):
        law = KolmogorovSmirnov(3, grid=dpf.Grid(-1, 1, step=0.5), epsilon=1.0).law([0.0])
        assert_array_equal(law.value([[0, 2, 4]]), [[-1.0, 0.0, 1.0]])


def largest_loss(law, n, k, size):
    """The largest log-ratio of any vector between neighbours; laws depend on sorted data only."""
    z = reference.vectors(size, k)
    tables = {data: law(data).logpmf(z) for data in itertools.combinations_with_replacement(range(size), n)}
    loss = 0.0
    for data, i, code in itertools.product(tables, range(n), range(size)):
        other = tuple(sorted((*data[:i], code, *data[i + 1 :])))
        loss = max(loss, float(np.max(tables[data] - tables[other])))
    return loss


class Claiming:
    """A mechanism under another claim."""

    def __init__(self, mechanism, claim):
        self.grid, self.law, self.privacy = mechanism.grid, mechanism.law, dpf.Privacy(claim)


class TestPrivacy:
    @every("epsilon", [0.5, 2.0, 20.0])
    @every("n, k, size", [(1, 1, 4), (1, 3, 3), (2, 2, 4), (2, 3, 3), (3, 1, 4), (3, 2, 4), (3, 3, 3)])
    def test_exhaustive(self, n, k, size, epsilon):
        loss = largest_loss(lambda data: law_of(data, k, size, epsilon), n, k, size)
        assert 0.3 * epsilon < loss <= epsilon + 1e-12

    def test_control_exponent_doubled(self):
        loss = largest_loss(lambda data: law_of(data, 2, 4, 4.0), 3, 2, 4)
        assert loss > 2.0 + 0.1

    @pytest.mark.parametrize(("k", "n", "epsilon"), [(1, 3, 1e-3), (2, 3, 2.0), (3, 2, 20.0), (4, 1, 50.0)])
    def test_certificate(self, k, n, epsilon):
        certificate = dpf.audit.verify(KolmogorovSmirnov(k, grid=SMALL, epsilon=epsilon), n=n, values=4)
        assert certificate.holds
        assert certificate.epsilon > 0.3 * epsilon
        assert certificate.pairs == 4**n * 3 * n

    def test_control_twice_the_exponent_is_refused_a_certificate(self):
        eager = Claiming(KolmogorovSmirnov(2, grid=SMALL, epsilon=4.0), 2.0)
        certificate = dpf.audit.verify(eager, n=3, values=4)
        assert not certificate.holds
        assert certificate.epsilon > 2.1

    def test_too_many_outcomes_to_list(self):
        with pytest.raises(ValueError, match="at most 2\\*\\*20 points"):
            law_of((0, 1), 11, 4, 1.0).outcomes()

    def test_sensitivity_is_one_record(self):
        """n rho changes by at most 1, which is attained."""
        for n, k, size in [(2, 3, 4), (3, 2, 4)]:
            moves = {
                abs(reference.distance(data, z, size) - reference.distance((*data[:-1], code), z, size)) * n
                for data in itertools.product(range(size), repeat=n)
                for code in range(size)
                for z in itertools.combinations_with_replacement(range(size), k)
            }
            assert max(moves) == 1

    def test_every_vector_is_possible(self):
        """T3: a value released under [0.1] can be released under [0.3], at most e times less likely."""
        mechanism = KolmogorovSmirnov(2, grid=dpf.Grid(0, 1), epsilon=1.0)
        one, other = mechanism.law([0.1]), mechanism.law([0.3])
        z = one.sample(300, PCG64(1))
        assert np.abs(one.logpmf(z) - other.logpmf(z)).max() <= 1 + 1e-12
        assert_array_equal(one.value(z) / mechanism.grid.step, z)

    def test_control_cells_of_floats(self):
        """Points of float cells, as in the paper: outputs under [0.1] that no u gives under [0.3]."""
        u = Generator(PCG64(1)).random(2000)
        values = (0.1 + u * (1.0 - 0.1)).tolist()
        assert all(reference.has_preimage(value, [0.1]) for value in values[:100])
        assert sum(not reference.has_preimage(value, [0.3]) for value in values) > 100

    def test_order_does_not_matter(self):
        """Positions are exchangeable: each of the six orders of three distinct codes is equally frequent."""
        z = law_of([0, 4, 8], 3, 9, 1.0).sample(6000, PCG64(2))
        z = z[[len(set(row)) == 3 for row in z.tolist()]]
        orders = Counter(map(tuple, np.argsort(z, axis=1).tolist()))
        counts = [orders[order] for order in itertools.permutations(range(3))]
        assert not chi_square_rejects(counts, [1 / 6] * 6)

    def test_permutation_of_the_records(self):
        x = np.random.default_rng(1).integers(0, 9, 50)
        mechanism = KolmogorovSmirnov(7, grid=dpf.Grid(0, 8, step=1), epsilon=1.0)
        assert_array_equal(mechanism(x, rng=PCG64(5)), mechanism(x[::-1], rng=PCG64(5)))


def round_law(law, size):
    """The probability that one round of a draw releases a vector: from the odds, the coins, the blocks."""
    plan = law._planned()
    total = sum(Fraction(block.weight) for block in plan)
    released = {}
    with mp.workdps(60):
        rate = mpf(law._rate.numerator) / law._rate.denominator
        for block in plan:
            band = law._kept_band(block.last)
            for z in itertools.product(range(size), repeat=law.k):
                level = law.level(np.array(z))
                if level > block.last:
                    continue
                path = [sum(c < edge for c in z) for edge in band.edges]
                coin = coin_of(law, block, band, np.array(path))
                assert coin <= 1
                proposal = Fraction(block.weight) / total / math.factorial(law.k)
                for weight, weights in band.odds(np.array(path)):
                    proposal *= Fraction(weight) / sum(map(Fraction, weights))
                for jump, width in zip(np.diff(path).tolist(), np.diff(band.edges).tolist(), strict=True):
                    proposal *= Fraction(math.factorial(jump), width**jump)
                excess = max(level - block.first, 0)
                stays = mp.exp(-rate * excess)
                if block.last < law.last:
                    length = block.last - block.first + 1
                    stays = (stays - mp.exp(-rate * length)) / -mp.expm1(-rate * length)
                p = mpf(proposal.numerator) / proposal.denominator * coin * stays
                released[z] = released.get(z, 0) + p
    return released


def coin_of(law, block, band, path):
    """The probability of the coin, from the definitions."""
    with mp.workdps(60):
        rate = mpf(law._rate.numerator) / law._rate.denominator
        slices = mp.exp(-rate * block.above)
        if block.last < law.last:
            slices *= -mp.expm1(-rate * (block.last - block.first + 1))
        exact = reference.path_weight(band.edges, path, law._intensity)
        for weight, weights in band.odds(path):
            exact *= sum(map(Fraction, weights)) / Fraction(weight)
        exact /= Fraction(block.weight) * Fraction(2) ** block.exponent * (1 + law._margin)
        return slices * exact.numerator / exact.denominator


class TestExactness:
    CASES = ([0, 1, 3], 3, 4, 1.0), ([2, 2, 2, 0], 2, 4, 4.0), ([1], 4, 3, 0.25), ([0, 4, 4, 5, 1], 2, 6, 8.0)

    @every("case", CASES)
    @every("rounds", [1.01, 4.0, 1e9])
    def test_rounds_release_the_law(self, case, rounds, monkeypatch):
        """Proposal, coins and all: proportional to exp(-rate level) to 50 digits, for any blocks."""
        data, k, size, epsilon = case
        monkeypatch.setattr(module, "_ROUNDS", rounds)
        law = law_of(data, k, size, epsilon)
        released, exact = round_law(law, size), reference.law(data, k, size, epsilon)
        assert len(released) == size**k
        with mp.workdps(60):
            ratios = [p / exact[z] for z, p in released.items()]
            assert (max(ratios) - min(ratios)) / min(ratios) < mpf(10) ** -38

    @every(
        "x",
        [
            pytest.param(np.zeros(1000), id="zeros"),
            pytest.param(np.full(1000, np.nan), id="missing"),
            pytest.param(np.where(np.arange(1000) < 800, 0.0, np.linspace(0, 1, 1000)), id="mostly zeros"),
            pytest.param(np.clip(np.linspace(-3, 4, 1000), 0, 1), id="clipped"),
            pytest.param(np.where(np.arange(1000) % 2, 0.0, 1.0), id="two values"),
            pytest.param(np.linspace(0, 1, 1000), id="spread"),
        ],
    )
    @every("k", [7, 60])
    @every("epsilon", [1e-3, 1.0, 100.0])
    def test_a_few_rounds_are_enough_for_any_data(self, x, k, epsilon):
        """What the blocks propose weighs at most `_ROUNDS` times the law: the mean number of rounds of a draw."""
        law = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=epsilon).law(x)
        blocks = law._planned()
        ends = [block.last for block in blocks]
        assert ends == sorted(set(ends))
        proposed = [law._log_slice(block.first - 1, block.last) + law.log_volume(block.last) for block in blocks]
        assert np.logaddexp.reduce(proposed) - law.log_normalizer <= math.log(module._ROUNDS) + 1e-6
        assert law.sample(rng=PCG64(1)).shape == (k,)

    def test_control_of_the_rounds(self):
        """A block that is proposed too rarely: the coin would need more than certainty."""
        law = law_of([0, 1, 3], 3, 4, 1.0)
        plan = law._planned()
        i = max(range(len(plan)), key=lambda i: plan[i].weight)
        plan[i] = replace(plan[i], weight=plan[i].weight * 0.999)
        with pytest.raises(AssertionError):
            round_law(law, 4)

    @pytest.mark.parametrize(("x", "k"), [(tied(), 150), (np.linspace(0, 1, 300) ** 8, 150), (np.full(30, 0.5), 200)])
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
    def test_dominance_far_from_small(self, x, k, epsilon):
        """Every proposal weighs at least its due, and a certain one hardly more: ties, clusters, all blocks."""
        law = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=epsilon).law(x)
        doubt = 4 * float(law._margin)
        source = PCG64(1)
        for block in law._planned()[::6]:
            band = law._kept_band(block.last)
            _, path, certain = band.draw(source)
            coin = float(coin_of(law, block, band, path))
            assert certain
            if block.weight > module._FLOOR:
                assert 1 - doubt <= coin <= 1
            else:
                assert coin <= 1

    def test_a_path_far_below_the_likeliest(self):
        """Steps of 2**-6000 of the likeliest are proposed too often; the coin corrects for it."""
        law = KolmogorovSmirnov(300, grid=dpf.Grid(0, 1, step=2.0**-51), epsilon=1.0).law(np.full(9, 0.5))
        block = law._planned()[-1]
        band = law._band(law.last - 1, keep=True)
        z = law.grid.encode(np.append(np.full(299, 0.5), 0.0))
        path = np.searchsorted(np.sort(z), band.edges)
        assert min(weight for weight, _ in band.odds(path)) == 2.0**-990
        assert coin_of(law, block, band, path) < mpf(2) ** -3000
        assert not law._corrected(ScriptedBits([1], PCG64(1)), block, band, path, False)

    @pytest.mark.parametrize(
        "law", [law_of(*case) for case in [*CASES, ([0, 1, 3], 4, 5, 1e308)]] + [WIDE.law(tied(60))]
    )
    def test_fast_and_slow_path_agree(self, law):
        for seed in range(20):
            fast, slow = ScriptedBits(rest=PCG64(seed)), ScriptedBits(rest=PCG64(seed))
            assert_array_equal(law._draw(fast), law._draw(slow, exact=True))
            assert fast.used == slow.used

    def test_words_on_the_edge(self):
        """A word that leaves two equal weights open is decided by the next ones."""
        for following, expected in [(0, 1), (2**64 - 1, 1)]:
            assert _ks.choose(ScriptedBits([2**63, following]), np.array([1.0, 1.0])) == expected
        assert _ks.choose(ScriptedBits([2**63 - 1, 0]), np.array([1.0, 1.0])) == 0

    def test_a_coin_that_doubles_leave_open(self):
        """The words at the threshold of the last coin: decided as by the definition."""
        law = law_of([0, 1, 3], 3, 4, 1.0)
        block = law._planned()[0]
        band = law._kept_band(block.last)
        _, path, _ = band.draw(PCG64(1))
        with mp.workdps(60):
            edge = int(mp.floor(coin_of(law, block, band, path) * 2**64))
        for word, expected in [(edge - 5, True), (edge + 5, False), (2**64 - 1, False), (0, True)]:
            for certain in (True, False):
                assert law._corrected(ScriptedBits([word]), block, band, path, certain) is expected

    @pytest.mark.parametrize(("rate", "length"), [(Fraction(1, 3), 2), (Fraction(1, 7), 20), (Fraction(2), 5)])
    def test_slices(self, rate, length):
        source = PCG64(4)
        draws = [module._slice(source, rate, length) for _ in range(20_000)]
        weights = np.exp(-float(rate) * np.arange(length))
        counts = np.bincount(draws, minlength=length)
        assert not chi_square_rejects(counts, weights / weights.sum())
        steeper = np.exp(-1.5 * float(rate) * np.arange(length))
        assert chi_square_rejects(counts, steeper / steeper.sum())

    def test_log_2(self):
        with mp.workdps(100):
            assert abs(mpf(module._LOG2.numerator) / module._LOG2.denominator - mp.log(2)) < mpf(2) ** -256


class TestSampler:
    DRAWS = 12_000

    @pytest.mark.parametrize(
        ("data", "k", "size", "epsilon"), [([0, 1, 3, 3], 3, 4, 3.0), ([2], 2, 5, 4.0), ([0, 5, 5, 1, 2], 2, 6, 2.0)]
    )
    def test_against_all_vectors(self, data, k, size, epsilon):
        law = law_of(data, k, size, epsilon)
        z = law.sample(self.DRAWS, PCG64(11))
        counts = np.bincount(z @ size ** np.arange(k), minlength=size**k)

        def probabilities(epsilon):
            p = np.zeros(size**k)
            for vector, probability in reference.law(data, k, size, epsilon).items():
                p[np.array(vector) @ size ** np.arange(k)] = probability
            return p

        assert not chi_square_rejects(counts, probabilities(epsilon))
        assert chi_square_rejects(counts, probabilities(epsilon * 0.8))
        assert chi_square_rejects(counts, probabilities(epsilon * 1.25))

    def test_against_all_counts(self):
        """Vectors of counts in the cells between and at the records of a wide grid."""
        data, k, size = [100, 400, 450, 800], 4, 1001
        law = law_of(data, k, size, 2.0)
        z = law.sample(self.DRAWS, PCG64(12))

        def frequencies(epsilon):
            edges, exact, _ = reference.counts_law(data, k, size, epsilon)
            cells = np.searchsorted(edges, z, side="right") - 1
            seen = Counter(map(tuple, np.apply_along_axis(np.bincount, 1, cells, minlength=len(edges) - 1).tolist()))
            return [seen[counts] for counts in exact], list(exact.values())

        assert not chi_square_rejects(*frequencies(2.0))
        assert chi_square_rejects(*frequencies(2.0 * 0.8))
        assert chi_square_rejects(*frequencies(2.0 * 1.25))

    def test_distance_of_larger_samples(self):
        x = beta.ppf((np.arange(200) + 0.5) / 200, 10, 10)
        law = KolmogorovSmirnov(40, grid=dpf.Grid(0, 1), epsilon=1.0).law(x)
        levels = np.bincount([law.level(z) for z in law.sample(2000, PCG64(13))], minlength=law.last + 1)
        probabilities = np.zeros(law.last + 1)
        values, masses = law.distances()
        probabilities[np.rint(values * law.last).astype(int)] = masses
        assert not chi_square_rejects(levels, probabilities)
        assert chi_square_rejects(np.roll(levels, 2), probabilities)

    def test_uniform_inside_a_cell(self):
        z = law_of([0, 100], 1, 101, 1.0).sample(8000, PCG64(14))[:, 0]
        inside = z[(z > 0) & (z < 100)]
        assert not chi_square_rejects(np.bincount(inside, minlength=100)[1:], np.full(99, 1 / 99))
