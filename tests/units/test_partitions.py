import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy import stats

import dpfast as dpf
from dpfast.laws.keyed import DomainCounts, KeyedCounts, StepNoise, TruncatedNoise, UnboundedNoise, loss, steps
from dpfast.streaming import State
from tests.cases import every
from tests.reference.partitions import excess, law, optimal, ratio_down, ratio_up, together
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA, chi_square_rejects

PAIRS = [
    (float(2.0 ** rng.uniform(-4, 4)), float(10.0 ** -rng.uniform(0.1, 12)))
    for rng in [Generator(PCG64(1))]
    for _ in range(200)
]


def made(epsilon, delta):
    one = Fraction(epsilon), Fraction(delta)
    return steps(one, one)


def satisfied(thresholds, whole, ratio, delta):
    """Whether probabilities thresholds / whole of release satisfy all inequalities of neighbours."""
    pairs = list(itertools.pairwise(thresholds))
    return all(
        b <= ratio * a + delta * whole and whole - a <= ratio * (whole - b) + delta * whole and a <= b for a, b in pairs
    )


def outcomes(table, n):
    """The law of a key with n records, whose release in spite of its noise has an outcome of its own, -1."""
    return law(table, 5, -1, n)


class TestTables:
    @every("start", range(0, 200, 20))
    def test_every_row_satisfies_the_inequalities_as_rationals(self, start):
        for epsilon, delta in PAIRS[start : start + 20]:
            weights, chances, bits = made(epsilon, delta)
            assert sum(weights) == chances[-1] == 2**bits
            assert satisfied(chances, 2**bits, ratio_down(epsilon), Fraction(delta))

    def test_control_thresholds_rounded_to_nearest(self):
        rejected = 0
        for epsilon, delta in PAIRS[:50]:
            chances = optimal(epsilon, delta)
            thresholds = [int(mpmath.nint(p * 2**53)) for p in chances]
            rejected += not satisfied(thresholds, 2**53, ratio_up(epsilon), Fraction(delta))
        assert rejected > 40

    @pytest.mark.parametrize("start", range(0, 200, 50))
    def test_the_probabilities_are_the_best(self, start):
        with mpmath.workdps(40):
            for epsilon, delta in PAIRS[start : start + 50]:
                _, chances, bits = made(epsilon, delta)
                for found, best in zip(chances[1:], optimal(epsilon, delta)[1:], strict=False):
                    assert best * (1 - mpmath.mpf(2) ** -50) <= mpmath.mpf(found) / 2**bits <= best + 1e-30

    @pytest.mark.parametrize("start", range(0, 60, 20))
    def test_noisy_counts_cost_nothing(self, start):
        """Neighbours differ by one record of a key: the loss of the pair (released, count), for every count."""
        for epsilon, delta in PAIRS[start : start + 20 : 2]:
            table = made(epsilon, delta)
            if len(table.weights) > 60:
                continue
            ratio = ratio_down(epsilon)
            for n in range(len(table.weights) + 2):
                one, other = outcomes(table, n), outcomes(table, n + 1)
                assert min(one.values()) >= 0
                assert sum(one.values()) == 1
                assert max(excess(one, other, ratio), excess(other, one, ratio)) <= Fraction(delta)

    def test_the_noise_of_counts_is_discrete_laplace(self):
        """For many records, with ends of at most delta."""
        for epsilon, delta in PAIRS[:60]:
            table = made(epsilon, delta)
            noise = StepNoise(table)
            x = np.arange(len(table.weights)) - noise.center
            shape = np.exp(-epsilon * np.abs(x))
            assert np.allclose(noise.pmf(noise.center + x), shape / shape.sum(), rtol=1e-9)
            assert max(shape[0], shape[-1]) / shape.sum() <= delta * (1 + 1e-9)

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.5, 1e-2), (2.0, 1e-6)])
    def test_control_noisy_counts_of_other_noise(self, epsilon, delta):
        """Two records at once, and tables that differ a little in a weight or in a chance."""
        table = made(epsilon, delta)
        ratio = ratio_up(epsilon)
        assert excess(outcomes(table, 1), outcomes(table, 0), ratio) <= Fraction(delta)
        assert excess(outcomes(table, 2), outcomes(table, 0), ratio) > Fraction(delta)
        bits, chances, weights = table.bits, table.chances, table.weights
        limit = int(Fraction(delta) * 2**bits) << bits
        ratios = (int(ratio * 2**bits),) * 2
        for other in (
            table._replace(chances=(0, chances[1] + 1, *chances[2:])),
            table._replace(chances=(*chances[:-1], chances[-1] - (limit >> bits) - 1)),
            table._replace(weights=(weights[0] + (limit >> bits), *weights[1:-1], weights[-1] - (limit >> bits))),
        ):
            assert max(loss(other, ratios)) > limit
        assert max(loss(table, (int(ratio_down(epsilon) * 2**bits),) * 2)) <= limit

    def test_unequal_directions(self):
        for epsilon, delta in PAIRS[:40:4]:
            up, down = (Fraction(epsilon) / 4, Fraction(delta)), (Fraction(epsilon), Fraction(delta) / 3)
            table = steps(up, down)
            if len(table.weights) > 60:
                continue
            for n in range(len(table.weights) + 2):
                one, other = outcomes(table, n), outcomes(table, n + 1)
                assert excess(other, one, ratio_down(up[0])) <= up[1]
                assert excess(one, other, ratio_down(down[0])) <= down[1]

    def test_long_tables_become_truncated_noise(self):
        assert steps(*[(Fraction(1e-7), Fraction(1e-9))] * 2) is None
        noise = TruncatedNoise(Fraction(1, 100), Fraction(1e-6))
        x = np.arange(-noise.center, noise.center + 1)
        chances = noise.pmf(noise.center - x)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        with mpmath.workdps(50):
            total = mpmath.fsum(mpmath.exp(-abs(int(k)) / mpmath.mpf(100)) for k in x)
            top = mpmath.exp(-noise.center / mpmath.mpf(100)) / total
        assert 0.98e-6 < top <= mpmath.mpf(1e-6)
        assert np.allclose(np.cumsum(chances[::-1]), noise.below(np.arange(1, len(x) + 1)), rtol=1e-9)
        flat = TruncatedNoise(Fraction(1e-12), Fraction(1e-7))
        assert flat.epsilon == 0
        assert 2 * flat.center + 1 >= Fraction(1) / Fraction(1e-7)


def neighbours(counts, k, replaced):
    """Counts of keys after k records are added, or one record is replaced."""
    keys = range(len(counts))
    if replaced:
        for a, b in itertools.permutations(keys, 2):
            if counts[a]:
                yield tuple(n - (i == a) + (i == b) for i, n in enumerate(counts))
    for chosen in itertools.combinations_with_replacement(keys, k):
        yield tuple(n + chosen.count(i) for i, n in enumerate(counts))


CASES = {
    "one record": ({}, 1, False),
    "two records of a unit": ({"contributions": 2}, 2, False),
    "one of two records": ({"contributions": 2}, 1, False),
    "a replaced record": ({"neighbors": "replace-one"}, 1, True),
}


@pytest.mark.parametrize("case", CASES)
def test_all_small_multisets_of_two_keys(case):
    """T26: the released keys and counts of neighbours are within epsilon and delta of each other."""
    options, k, replaced = CASES[case]
    mechanism = dpf.PartitionSelection(1.5, 0.05, **options)
    noise = mechanism._noise()
    one = {n: law(noise.table, noise.center, noise.other, n) for n in range(9)}
    ratio = ratio_down(1.5)
    worst = Fraction()
    for counts in itertools.product(range(5), repeat=2):
        for other in neighbours(counts, k, replaced):
            first, second = (together([one[n] for n in each]) for each in (counts, other))
            worst = max(worst, excess(first, second, ratio), excess(second, first, ratio))
    assert worst <= Fraction(0.05)
    assert worst > Fraction(0.01)


def test_control_two_records_of_a_unit():
    noise = dpf.PartitionSelection(1.5, 0.05)._noise()
    one = {n: law(noise.table, noise.center, noise.other, n) for n in range(9)}
    first, second = (together([one[n] for n in counts]) for counts in [(0, 0), (1, 1)])
    assert excess(second, first, ratio_up(1.5)) > Fraction(0.05)


@every("options", [{"delta": 0.05}, {"domain": 5}, {"domain": (0, 1, 2)}])
@every("neighbors", ["add-remove", "replace-one"])
def test_laws_of_neighbours(options, neighbors):
    """By the laws that the audit reads, up to the rounding of doubles."""
    mechanism = dpf.PartitionSelection(1.0, neighbors=neighbors, **options)
    pairs = [([0, 0, 1], [0, 0, 1, 1]), ([0, 0, 0, 1], [0, 0, 0])] if neighbors == "add-remove" else [([0, 0], [0, 1])]
    for x, y in pairs:
        laws = [mechanism.law([*z, 0, 1]) for z in (x, y)]
        top = np.arange(-8, 12) if options == {"domain": (0, 1, 2)} else np.append(0, np.arange(1, 30))
        size = len(laws[0].counts) if hasattr(laws[0], "counts") else 3
        k = np.stack([np.repeat(top, len(top)), np.tile(top, len(top))], axis=1)
        k = np.concatenate([k, np.zeros((len(k), size - 2), np.int64)], axis=1)
        p, q = (np.exp(each.logpmf(k)) for each in laws)
        limit = mechanism.delta + 1e-12
        assert np.maximum(p - np.e * q, 0).sum() <= limit
        assert np.maximum(q - np.e * p, 0).sum() <= limit
        if mechanism.domain is None:
            assert p.sum() == pytest.approx(1)


class TestDraws:
    def test_steps(self):
        noise = StepNoise(made(0.7, 1e-3))
        out = np.empty(200_000, np.int64)
        noise.fill(PCG64(1), out, np.full(out.size, 10**6))
        cells = np.bincount(out, minlength=len(noise.table.weights))
        chances = noise.pmf(np.arange(len(cells)))
        assert not chi_square_rejects(cells, chances)
        assert chi_square_rejects(cells, np.roll(chances, 1))

    def test_released_counts(self):
        noise = StepNoise(made(3.0, 1e-3))
        for n in (noise.center - 1, noise.center, noise.center + 1, 50):
            counts = np.full(200_000, n)
            cells = np.bincount(noise.release(PCG64(n), counts))
            support = np.flatnonzero(noise.chance(np.arange(n + 20), np.array(n)) > 1e-4)
            chances = noise.chance(support, np.array(n))
            kept = np.append(cells[support], counts.size - cells[support].sum())
            exact = np.append(chances, 1 - chances.sum())
            assert not chi_square_rejects(kept, exact)
            assert chi_square_rejects(kept, 0.98 * exact + 0.02 / len(exact))

    def test_a_word_equal_to_that_of_a_threshold(self):
        noise = StepNoise(made(1.0, 1e-6))
        assert noise.table.bits == 128

        def drawn(number, n, release):
            source = ScriptedBits([number >> 64, number & (2**64 - 1)], PCG64(1))
            if release:
                return noise.release(source, np.array([n]))[0]
            out = np.empty(1, np.int64)
            noise.fill(source, out, np.array([n]))
            return out[0]

        for j in (0, 3, 20):
            edge = noise.thresholds[j]
            for number, expected in ((edge, j + 1), (edge - 1, j)):
                assert drawn(number, 1000, release=False) == expected
        for n in (1, 10, 14):
            edge = noise.table.chances[n]
            assert drawn(edge, n, release=True) == 0
            assert drawn(edge - 1, n, release=True) == noise.other

    @pytest.mark.parametrize("epsilon", [0.05, 1e-9])
    def test_truncated_noise(self, epsilon):
        noise = TruncatedNoise(Fraction(epsilon), Fraction(0.01))
        out = np.empty(100_000, np.int64)
        noise.fill(PCG64(2), out, np.zeros(out.size, np.int64))
        cells = np.bincount(out, minlength=2 * noise.center + 1)
        assert not chi_square_rejects(cells, noise.pmf(np.arange(len(cells))))

    def test_keys_without_records(self):
        """Their number, places and counts, against the binomial, the uniform and the geometric law."""
        noise, last, draws = UnboundedNoise(Fraction(2), 14), 9999, 400
        sparse = DomainCounts(np.array([7]), np.array([50]), last=last, noise=noise, decode=list)
        found = [sparse.sample(rng=PCG64(seed)) for seed in range(draws)]
        p = float(np.exp(-15 / 2) / (1 + np.exp(-0.5)))
        empty = np.concatenate([draw[draw[:, 0] != 7] for draw in found])
        assert stats.binomtest(len(empty), draws * last, p).pvalue > ALPHA
        assert stats.binomtest(len(empty), draws * last, 1.4 * p).pvalue < ALPHA
        assert stats.kstest(empty[:, 0], stats.uniform(0, last + 1).cdf).pvalue > ALPHA
        cells = np.bincount(empty[:, 1] - 15, minlength=60)
        geometric = (1 - np.exp(-0.5)) * np.exp(-np.arange(len(cells)) / 2)
        assert not chi_square_rejects(cells, geometric)
        assert all(np.all(np.diff(draw[:, 0]) > 0) for draw in found)
        counts = np.array([draw[draw[:, 0] == 7, 1][0] for draw in found])
        assert abs(counts.mean() - 50) < 1

    def test_the_law_of_a_draw_from_a_domain(self):
        noise = UnboundedNoise(Fraction(2), 14)
        sparse = DomainCounts(np.array([7]), np.array([50]), last=9999, noise=noise, decode=list)
        p = float(noise.below(np.array(0)))
        assert sparse.logpmf([[7, 51]]) == pytest.approx(float(np.log(noise.pmf(np.array(13)))) + 9999 * np.log1p(-p))


def containers(x):
    """The same keys in several containers, in groups of equal types of released keys."""
    text = [None if key == 3 else f"key {key}" for key in x.tolist()]
    yield [
        text,
        np.array(text, object),
    ]
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    yield [
        pd.Series(text, dtype="str"),
        pd.Series(text, dtype="str").astype("category"),
        pl.Series(text),
        pl.Series(text).cast(pl.Categorical),
        pa.array(text),
        pa.chunked_array([text[:10], text[10:]]),
        pa.array(text).dictionary_encode(),
        np.ma.array([key or "" for key in text], mask=[key is None for key in text]),
    ]
    yield [x, x.astype(np.int16), pl.Series(x), pd.Series(x).astype("Int64"), x.astype(np.float64), pa.array(x)]


def equal(a, b):
    return np.array_equal(a.keys, b.keys) and np.array_equal(a.counts, b.counts)


@pytest.mark.host
@pytest.mark.parametrize("options", [{"delta": 1e-3}, {"domain": 10**9}, {"domain": 30}])
def test_the_release_depends_on_the_multiset_only(options):
    rng = Generator(PCG64(5))
    x = rng.geometric(0.2, 500)
    mechanism = dpf.PartitionSelection(1.0, **options)
    for group in containers(x):
        first = mechanism(group[0], rng=PCG64(3))
        assert "domain" in options or len(first) > 3
        for other in group:
            assert equal(first, mechanism(other, rng=PCG64(3)))
    permuted = rng.permutation(x)
    first = mechanism(x, rng=PCG64(3))
    assert equal(first, mechanism(permuted, rng=PCG64(3)))
    pieces = np.array_split(permuted, 7)
    assert equal(first, mechanism(dpf.Chunks(pieces), rng=PCG64(3)))
    states = [mechanism.start() for _ in pieces]
    for state, piece in zip(states, pieces, strict=True):
        state.update(piece)
    merged = states[0]
    for state in states[1:]:
        merged.merge(State.from_bytes(state.to_bytes(), mechanism))
    assert equal(first, State.from_bytes(merged.to_bytes(), mechanism).release(rng=PCG64(3)))


def test_wide_noise_is_not_cut_off():
    """Counts are limited, not the noise: a threshold above 2**61 is reached, and no count is the last of its key."""
    mechanism = dpf.PartitionSelection(2.0**-56, domain=2**63)
    center = mechanism.threshold - 1
    assert center > 2**61
    law = DomainCounts(np.array([5]), np.array([1]), last=2**63 - 1, noise=mechanism._noise(), decode=list)
    drawn = np.empty(2, np.int64)
    law.noise.noise.fill = lambda source, out: out.__setitem__(slice(None), [2**63 - 1, -(2**63) + 1])
    law.noise.fill(PCG64(1), drawn, np.array([1, 1]))
    assert (drawn < 1).tolist() == [True, False]
    law = KeyedCounts(np.array([1, 10, 1]), noise=law.noise, decode=list)
    law.noise.noise.fill = lambda source, out: out.__setitem__(slice(None), [2**62 - 1, 2**62 - 1, 2**62])
    assert law.sample(rng=PCG64(1)).tolist() == [2**62] * 3


@pytest.mark.host
def test_frames():
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    frame = pd.DataFrame({"city": np.repeat(["Rome", "Oslo"], 40), "year": np.tile([2, 1], 40)})
    mechanism = dpf.PartitionSelection(5.0, 1e-3)
    released = mechanism(frame, rng=PCG64(1))
    assert released.keys[0].tolist() == ["Oslo", "Oslo", "Rome", "Rome"]
    assert released.keys[1].tolist() == [1, 2, 1, 2]
    assert np.abs(released.counts - 20).max() < 8
    for same in (pl.DataFrame(frame), pa.table(frame), (frame.city, frame.year)):
        assert equal(released, mechanism(same, rng=PCG64(1)))
    state = mechanism.start()
    state.update(frame[:30])
    other = State.from_bytes(state.to_bytes(), mechanism)
    state = mechanism.start()
    state.update(frame[30:])
    other.merge(state)
    assert equal(released, State.from_bytes(other.to_bytes(), mechanism).release(rng=PCG64(1)))


def test_nothing_to_release():
    mechanism = dpf.PartitionSelection(1.0, 1e-9)
    for x in ([], [None] * 5, ["a", "b"]):
        released = mechanism(x)
        assert len(released) == 0
        assert released.keys.dtype == object
        assert released.counts.dtype == np.int64
    assert mechanism(np.zeros(0, np.int16)).keys.dtype == np.int16


def test_a_listed_domain():
    released = dpf.partitions(["a", "b", "b", None, "z"], epsilon=1e3, domain=["c", "b", "a"])
    assert released.keys.tolist() == ["c", "b", "a"]
    assert released.counts.tolist() == [0, 2, 1]
    pairs = dpf.partitions((["x", "y"], [1, 2]), epsilon=1e3, domain=[("y", 2), ("x", 2)])
    assert pairs.counts.tolist() == [1, 0]


def test_a_numbered_domain_leaves_out_other_keys():
    x = np.repeat([-1, 3, 2**62], 1000)
    released = dpf.partitions(x, epsilon=50.0, domain=10)
    assert released.keys.tolist() == [3]
    assert dpf.partitions([3, "3", -1, 2**70] * 100, epsilon=50.0, domain=2**63).keys.tolist() == [3]


def test_guarantees():
    unit = dpf.PartitionSelection(1.0, 1e-6, contributions=3)
    assert unit.privacy == dpf.Privacy(1.0, 1e-6, "add-remove")
    assert unit.privacy.per_unit == 3
    assert dpf.PartitionSelection(1.0, 1e-6).privacy.per_unit is None
    with dpf.Ledger(1.0, 1e-6, neighbors="add-remove") as ledger:
        dpf.partitions([1, 2], epsilon=1.0, delta=1e-6)
    assert len(ledger.charges) == 1
    assert ledger.spent == dpf.Privacy(1.0, 1e-6, "add-remove")


@every(
    "options, message",
    [
        ({}, "delta must be positive unless"),
        ({"delta": 0.1, "domain": 5}, "delta must be 0 with domain"),
        ({"delta": 0.1, "contributions": 0}, "contributions must be at least 1"),
        ({"delta": 0.1, "contributions": 2, "neighbors": "replace-one"}, "contributions above 1 need"),
        ({"delta": 0.1, "neighbors": "local"}, "neighbors must be one of 'replace-one', 'add-remove'"),
        ({"domain": 0}, "domain must be at least 1"),
        ({"domain": 2**63 + 1}, "domain must be at most"),
        ({"domain": []}, "at least one key"),
        ({"domain": ["a", "a"]}, "must be distinct"),
        ({"domain": ["a", None]}, "must not be missing"),
        ({"epsilon": 1e-300, "delta": 1e-300}, "more than 2\\*\\*56 records"),
        ({"epsilon": 1e-300, "domain": 5}, "more than 2\\*\\*56 records"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        dpf.PartitionSelection(**{"epsilon": 1.0, **options})
