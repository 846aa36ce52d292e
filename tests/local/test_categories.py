"""Binary and Categorical: exact laws, kernels against slow twins, tables of the specification, shapes and bytes."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import binom

from dpfast import Privacy, audit, local
from dpfast._kernels import _randomize
from dpfast.core.coin import Coin, coin
from dpfast.local.responses import PRIME
from dpfast.random import BLOCK
from tests.cases import every
from tests.reference import local as reference
from tests.scripted import ScriptedBits, words
from tests.statistical import ALPHA, chi_square_rejects, exceeds
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

METHODS = ("k-rr", "subset", "oue", "olh", "hadamard")
FINITE = ("k-rr", "subset", "oue", "hadamard")
EPSILONS = (0.1, 0.5, 1.0, 3.0)


# ---- exact laws ----


@every("method", FINITE)
@every("k", [2, 3, 4, 6])
@every("epsilon", EPSILONS)
def test_laws_are_private_and_unbiased_exactly(method, k, epsilon):
    survey = local.Categorical(k, epsilon, method)
    laws = [survey.law(x) for x in range(k)]
    for law in laws:
        assert sum(law.pmf) == 1
        np.testing.assert_array_equal(law.reports, laws[0].reports)
        np.testing.assert_allclose(np.exp(law.logpmf(law.outcomes())), [float(p) for p in law.pmf], rtol=1e-14)
    ratio = reference.largest_ratio([law.pmf for law in laws])
    assert ratio == survey.coin.ratio
    assert not exceeds(ratio, epsilon)
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-12)
    supported = survey._method.supported(laws[0].reports)
    p, q = survey.support
    for x, law in enumerate(laws):
        for v in range(k):
            assert sum(z for z, s in zip(law.pmf, supported[:, v], strict=True) if s) == (p if v == x else q)
    mean = [float(z) for z in laws[1].pmf] @ survey.decode(laws[0].reports)
    np.testing.assert_allclose(mean, np.arange(k) == 1, atol=1e-12 / epsilon**2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_binary_is_private_and_unbiased_exactly(epsilon):
    survey = local.Binary(epsilon)
    laws = [survey.law(x) for x in (0, 1, math.nan, 7.5, -3, None)]
    assert [law.pmf for law in laws] == [laws[i].pmf for i in (0, 1, 0, 1, 0, 0)]
    ratio = reference.largest_ratio([laws[0].pmf, laws[1].pmf])
    assert ratio == survey.coin.ratio
    assert not exceeds(ratio, epsilon)
    values = survey.decode(laws[0].reports)
    for x in (0, 1):
        assert [float(p) for p in laws[x].pmf] @ values == pytest.approx(x, abs=1e-13 / epsilon)
        second = [float(p) for p in laws[x].pmf] @ (values - x) ** 2
        assert survey.variance(x) == survey.variance() == pytest.approx(second, rel=1e-12)
    big = math.exp(epsilon)
    assert survey.variance() == pytest.approx(big / (big - 1) ** 2, rel=1e-12)


@pytest.mark.parametrize(("prime", "edge"), [(7, 2), (11, 5), (5, 1)])
def test_lines_over_a_small_field(prime, edge):
    """The family of "olh": the ratio equals that of the coin; another category is below the edge with probability q."""
    made = coin(1.0, Fraction(edge, prime - edge))
    laws = [reference.line_law(x, prime, edge, made.probability) for x in range(prime)]
    assert reference.largest_ratio([law.values() for law in laws]) == made.ratio
    for x, v in itertools.product(range(prime), repeat=2):
        below = sum(p for (a, b), p in laws[x].items() if (a * v + b) % prime < edge)
        assert below == (made.probability if v == x else Fraction(edge, prime))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 50, 2**20])
def test_the_coin_of_lines_is_private(epsilon, k):
    survey = local.Categorical(k, epsilon, "olh")
    p, q = survey.support
    assert q.denominator == PRIME
    assert survey.coin.ratio == p / (1 - p) * (1 - q) / q
    assert not exceeds(survey.coin.ratio, epsilon)


class TestControls:
    """Naive versions that the exact check rejects."""

    def test_a_threshold_rounded_up(self):
        for k, odds in ((2, Fraction(1)), (5, Fraction(1, 4))):
            made = coin(1.0, odds)
            wrong = Coin(made.threshold + 1, odds).probability
            laws = [[wrong if z == x else (1 - wrong) / (k - 1) for z in range(k)] for x in range(k)]
            assert exceeds(reference.largest_ratio(laws), 1.0)

    def test_the_probability_of_two_categories_for_five(self):
        p = coin(1.0).probability
        laws = [[p if z == x else (1 - p) / 4 for z in range(5)] for x in range(5)]
        assert exceeds(reference.largest_ratio(laws), 1.0)

    @pytest.mark.parametrize(("factor", "wrong"), [(1, False), (Fraction(999, 1000), True)])
    def test_unary_encoding_with_a_small_q(self, factor, wrong):
        q = factor * (1 - coin(1.0).probability)
        laws = [reference.unary_law(x, 4, Fraction(1, 2), q).values() for x in range(4)]
        assert exceeds(reference.largest_ratio(laws), 1.0) == wrong


# ---- kernels against slow twins, bit for bit ----


@pytest.mark.parametrize(("size", "width"), [(2, 1), (100, 1), (16, 7), (300, 299)])
def test_windows_twin(size, width):
    threshold = coin(1.0).threshold
    script = words(1, threshold)
    starts = np.random.default_rng(2).integers(0, size - width + 1, 200, dtype=np.uint32)
    out = np.empty(len(starts), np.uint32)
    source = ScriptedBits(script)
    _randomize.fill_windows(source, starts, width, size, threshold, out)
    twin = reference.Words(script)
    assert out.tolist() == reference.windows(twin, starts.tolist(), width, size, threshold)
    assert twin.one() == script[source.used]


@pytest.mark.parametrize("bits", [1, 5, 12])
def test_rows_twin(bits):
    threshold = coin(0.5).threshold
    script = words(3, threshold)
    x = np.random.default_rng(4).integers(0, 2**bits, 300, dtype=np.uint32)
    out = np.empty(len(x), np.uint16)
    _randomize.fill_rows(ScriptedBits(script), x, 2**bits - 1, threshold, out)
    assert out.tolist() == reference.rows(reference.Words(script), x.tolist(), 2**bits, threshold)


def unpacked(rows, k):
    return [[int(row[v // 64]) >> (v % 64) & 1 for v in range(64 * len(row))][:k] for row in rows]


@pytest.mark.parametrize("k", [2, 63, 64, 65, 130])
@pytest.mark.parametrize("threshold", [1, 2**63, 2**64 - 2**40, 0x12_3456_789A_BCDE_F0, 2**64 - coin(1.0).threshold])
def test_unary_twin(k, threshold):
    script = words(5, threshold, 60_000)
    x = np.random.default_rng(6).integers(0, k, 70, dtype=np.uint32)
    out = np.zeros((70, -(-k // 64)), np.uint64)
    source = ScriptedBits(script)
    _randomize.fill_unary(source, x, threshold, k, out)
    twin = reference.Words(script)
    assert unpacked(out, k) == reference.unary(twin, x.tolist(), k, threshold)
    assert twin.one() == script[source.used]
    if k % 64:
        assert int((out[:, -1] >> np.uint64(k % 64)).max()) == 0


SUBSETS = {
    "few": (_randomize.fill_subsets, reference.subsets),
    "large": (_randomize.fill_large_subsets, reference.large_subsets),
}


@pytest.mark.parametrize("kind", SUBSETS)
@pytest.mark.parametrize(("k", "width"), [(2, 1), (5, 2), (5, 4), (64, 17), (130, 60), (130, 128)])
def test_subsets_twin(kind, k, width):
    fill, twin_of = SUBSETS[kind]
    threshold = coin(1.0).threshold
    script = words(7, threshold)
    x = np.random.default_rng(8).integers(0, k, 60, dtype=np.uint32)
    out = np.zeros((60, -(-k // 64)), np.uint64)
    source = ScriptedBits(script)
    fill(source, x, width, k, threshold, out)
    twin = reference.Words(script)
    expected = twin_of(twin, x.tolist(), width, k, threshold)
    assert [{v for v in range(k) if row[v]} for row in unpacked(out, k)] == expected
    assert all(len(members) == width for members in expected)
    assert twin.one() == script[source.used]


@pytest.mark.parametrize(("k", "width"), [(2, 1), (6, 3), (7, 2)])
def test_large_subsets_follow_the_law(k, width):
    """All sets without x, and with it, are equally likely; a law of another coin is rejected."""
    threshold, n, x = coin(1.0).threshold, 200_000, k // 2
    out = np.zeros((n, 1), np.uint64)
    _randomize.fill_large_subsets(PCG64(3), np.full(n, x, np.uint32), width, k, threshold, out)
    sets = [sum(1 << v for v in members) for members in itertools.combinations(range(k), width)]
    counts = [int(np.count_nonzero(out == members)) for members in sets]
    assert sum(counts) == n
    for p, rejected in ((Fraction(threshold, 2**64), False), (Fraction(threshold, 2**64) * Fraction(98, 100), True)):
        inside, outside = p / math.comb(k - 1, width - 1), (1 - p) / math.comb(k - 1, width)
        assert chi_square_rejects(counts, [inside if z >> x & 1 else outside for z in sets]) == rejected


@pytest.mark.parametrize(("k", "epsilon", "kind"), [(64, 1.0, "few"), (1024, 1.0, "large"), (1024, 6.0, "few")])
def test_reports_are_of_the_faster_kernel(k, epsilon, kind):
    survey, x = local.Categorical(k, epsilon, "subset"), np.arange(30)
    expected = np.zeros(x.size, survey.report)
    public = survey._method.width, k, survey.coin.threshold
    SUBSETS[kind][0](PCG64(1), x.astype(np.uint32), *public, expected)
    survey.fill(PCG64(1), x, out := np.zeros(x.size, survey.report))
    np.testing.assert_array_equal(out, expected)


def test_the_words_of_large_sets_do_not_tell_the_coin():
    """For the same words both coins take the same number of words."""
    used = set()
    for first in (0, 2**64 - 1):
        bits = np.random.default_rng(1).integers(0, 2**64, 4000, np.uint64).tolist()
        source, out = ScriptedBits([first, *bits]), np.zeros((1, 4), np.uint64)
        _randomize.fill_large_subsets(source, np.zeros(1, np.uint32), 60, 200, 2**63, out)
        used.add(source.used)
    assert len(used) == 1


@pytest.mark.parametrize("edge", [1, PRIME // 4, PRIME - 1])
def test_lines_twin_and_their_counts(edge):
    threshold = coin(1.0).threshold
    script = words(9, threshold)
    x = np.random.default_rng(10).integers(0, PRIME, 600, dtype=np.uint32)
    x[:300] %= 40
    out = np.empty((600, 2), np.uint32)
    source = ScriptedBits(script)
    _randomize.fill_lines(source, x, edge, threshold, out)
    twin = reference.Words(script)
    assert [tuple(line) for line in out.tolist()] == reference.lines(twin, x.tolist(), edge, threshold)
    assert twin.one() == script[source.used]
    for n in (0, 1, 255, 256, 257, 600):
        counts = np.full(37, 5, np.int64)
        _randomize.count_lines(out[:n], edge, counts)
        heights = [[(a * v + b) % PRIME < edge for v in range(37)] for a, b in out[:n].tolist()]
        assert counts.tolist() == (5 + np.array(heights, int).reshape(n, 37).sum(0)).tolist()


@pytest.mark.kernel
@pytest.mark.parametrize("k", [2, 7, 2**31])
def test_categories_twin(k):
    edges = [0.0, -0.0, 0.5, 1.0, k - 1.0, k - 0.5, k, -1.0, 5e-324, 2.0**32, 2.0**63, 1e308]
    x = np.array([*edges, math.inf, -math.inf, math.nan])
    out = np.empty(x.size, np.uint32)
    _randomize.categories(x, k, out)
    assert out.tolist() == [int(v) if 0 <= v < k and v == int(v) else 0 for v in x.tolist()]
    _randomize.categories(x[::-1], k, out)
    assert out[0] == 0


@pytest.mark.parametrize("method", METHODS)
def test_shares_of_threads_and_blocks_do_not_show(method):
    """More reports than a block, some refused: for any number of threads the counts of what each report supports."""
    survey, n = local.Categorical(60, 1.0, method), 2 * BLOCK + 77
    reports = survey.randomize(np.arange(n) % 60, rng=PCG64(1))
    reports[::9] = np.iinfo(reports.dtype).max
    whole = survey.aggregate(reports)
    assert whole.refused == len(reports[::9])
    assert whole.n == n - whole.refused
    kept = np.delete(reports, np.s_[::9], axis=0)
    np.testing.assert_array_equal(whole.sums, survey._method.supported(kept).sum(axis=0))
    np.testing.assert_array_equal(whole.sums, survey.sums(kept))
    for threads in (2, 3):
        assert survey.aggregate(reports, workers=threads) == whole


def test_chunks_do_not_show():
    """Longer than a chunk of words: the same reports as one chunk after the other."""
    x = np.random.default_rng(1).integers(0, 100, 20_000, dtype=np.uint32)
    whole, parts = np.empty((2, 20_000), np.uint8)
    _randomize.fill_windows(PCG64(1), x, 1, 100, 2**63, whole)
    source = PCG64(1)
    for first in range(0, 20_000, 8192):
        part = slice(first, first + 8192)
        _randomize.fill_windows(source, x[part], 1, 100, 2**63, parts[part])
    np.testing.assert_array_equal(whole, parts)


# ---- samples ----


@pytest.mark.parametrize("method", FINITE)
@pytest.mark.parametrize("k", [3, 7])
def test_samples_follow_the_law(method, k):
    survey = local.Categorical(k, 1.0, method)
    for x in (0, k - 1):
        reports = survey.randomize(np.full(200_000, x), rng=PCG64(k + x))
        law = survey.law(x)
        values, counts = np.unique(reports.reshape(len(reports), -1)[:, 0], return_counts=True)
        observed = np.zeros(len(law.pmf))
        observed[np.searchsorted(law.reports.reshape(-1), values)] = counts
        assert not chi_square_rejects(observed, law.pmf)
        for epsilon in (0.9, 1.1):
            wrong = local.Categorical(k, epsilon, method)
            if wrong._method.report == survey.report and len(wrong.law(x).pmf) == len(law.pmf):
                assert chi_square_rejects(observed, wrong.law(x).pmf)


def test_lines_support_as_they_should():
    """The truth with probability p, another category with q, two others independently."""
    survey = local.Categorical(50, 1.0, "olh")
    p, q = map(float, survey.support)
    reports = survey.randomize(np.full(300_000, 7), rng=PCG64(3)).astype(np.uint64)
    below = sum(((reports[:, 0] * v + reports[:, 1]) % PRIME < q * PRIME) * w for v, w in ((7, 4), (8, 2), (49, 1)))
    counts = np.bincount(below, minlength=8)
    for a, b, wrong in ((p, q, False), (p * 0.98, q, True), (p, q * 1.03, True)):
        pmf = [(a if z & 4 else 1 - a) * (b if z & 2 else 1 - b) * (b if z & 1 else 1 - b) for z in range(8)]
        assert chi_square_rejects(counts, pmf) == wrong


@pytest.mark.parametrize("method", METHODS)
def test_frequencies_and_their_variance(method):
    k, n = 20, 200_000
    survey = local.Categorical(k, 1.0, method)
    x = np.minimum(np.random.default_rng(1).geometric(0.2, n) - 1, k - 1)
    truth = np.bincount(x, minlength=k) / n
    reports = survey.randomize(x, rng=PCG64(11))
    estimate = survey.estimate(reports)
    assert np.abs(estimate - truth).max() < survey.error(n, confidence=1 - 1e-10)
    errors = survey.decode(reports[:50_000]) - np.eye(k)[x[:50_000]]
    # the variance of each row sums to the total, at every record
    spread = (errors**2).sum(1)
    assert abs(spread.mean() - survey.total_variance) < 7 * spread.std() / math.sqrt(len(spread))
    assert survey.variance(3).sum() == pytest.approx(survey.total_variance, rel=1e-12)
    assert survey.variance([3, 4]).shape == (2, k)
    assert survey.variance() == pytest.approx(survey.variance(3).max(), rel=1e-12)


@pytest.mark.slow
def test_error_covers():
    survey = local.Binary(1.0)
    x = np.arange(400) % 3 == 0
    rng = np.random.Generator(PCG64(5))
    half = survey.error(400, confidence=0.9)
    inside = sum(abs(survey.estimate(survey.randomize(x, rng=rng)) - x.mean()) <= half for _ in range(1500))
    assert binom.ppf(ALPHA, 1500, 0.88) <= inside <= binom.isf(ALPHA, 1500, 0.92)


@pytest.mark.parametrize(
    ("k", "epsilon", "table", "hashing"),
    [
        (16, 0.5, (616.53, 251.73, 265.73, 219.44), 254.89),
        (16, 1, (98.747, 59.923, 73.923, 50.976), 60.285),
        (16, 4, (0.64326, 2.2163, 16.216, 0.64326), 2.2240),
        (128, 1, (5653.7, 472.38, 598.38, 463.09), 473.75),
        (1024, 1, (355990, 3772.1, 4794.1, 3762.7), 3781.5),
        (1024, 4, (402.82, 78.846, 1100.8, 76.706), 78.855),
    ],
)
def test_table_of_total_variances(k, epsilon, table, hashing):
    for method, value in zip(("k-rr", "oue", "hadamard", "subset"), table, strict=True):
        assert local.Categorical(k, epsilon, method).total_variance == pytest.approx(value, rel=5e-5)
    # lines need no whole number of cells g = 1 / q; the table has the g of least q (1 - q) / (p - q)^2
    big = math.exp(epsilon)

    def hashed(g):
        p, q = big / (big + g - 1), 1 / g
        return (k * q * (1 - q) + (p - q) * (1 - p - q)) / (p - q) ** 2

    whole = min(math.floor(big + 1), math.ceil(big + 1), key=lambda g: (big + g - 1) ** 2 / (g - 1))
    assert hashed(whole) == pytest.approx(hashing, rel=5e-5)
    lines = local.Categorical(k, epsilon, "olh")
    assert lines.total_variance == pytest.approx(hashed(float(1 / lines.support[1])), rel=1e-9)
    assert lines.total_variance <= min(hashed(g) for g in np.linspace(1.05, 8 * big, 4000)) * (1 + 1e-9)
    assert lines.total_variance < table[1]
    best = local.Categorical(k, epsilon)
    assert best.total_variance == min(local.Categorical(k, epsilon, method).total_variance for method in METHODS)
    assert best.method == ("k-rr" if (k, epsilon) == (16, 4) else "subset")


def test_auto_is_subset_selection_or_its_case_of_one():
    for k in (2, 3, 5, 12, 40, 1000):
        for epsilon in (0.01, 0.3, 1.0, 2.2, 5.0, 9.0):
            survey = local.Categorical(k, epsilon)
            assert survey.method == ("k-rr" if local.Categorical(k, epsilon, "subset")._method.width == 1 else "subset")


# ---- input and output ----


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3, 64, 100, 257])
def test_every_bit_flips_both_ways(method, k):
    """T9: for every record, each possible bit of a report takes both values."""
    survey = local.Categorical(k, 2.0, method)
    seen = []
    for x in (0, k - 1, k // 2):
        reports = np.atleast_2d(survey.randomize(np.full(30_000, x), rng=PCG64(x)).T)
        bits = np.unpackbits(np.ascontiguousarray(reports.T).view(np.uint8), axis=1, bitorder="little")
        seen.append((bits.any(0).tolist(), bits.all(0).tolist()))
    assert all(pattern == seen[0] for pattern in seen)
    ever, always = np.array(seen[0])
    assert not always.any()
    digits = (k - 1).bit_length()
    assert ever.sum() == {"k-rr": digits, "subset": k, "oue": k, "olh": 64, "hadamard": digits + 1}[method]


VALUES = {
    "?": ([True, False], [1, 0]),
    "b": ([-1, 0, 5, 9, 10, 127], [0, 0, 5, 9, 0, 0]),
    "B": ([0, 9, 10, 255], [0, 9, 0, 0]),
    "q": ([-(2**63), 2**63 - 1, 3], [0, 0, 3]),
    "Q": ([2**64 - 1, 2**63, 3], [0, 0, 3]),
    "e": ([math.nan, math.inf, 9.0, 9.5, -0.0, 6e4], [0, 0, 9, 0, 0, 0]),
    "f": ([math.nan, -math.inf, 9.0, 9.5, -0.0, 1e38], [0, 0, 9, 0, 0, 0]),
    "d": ([math.nan, math.inf, 9.0, 9.000001, 1e300, 5e-324], [0, 0, 9, 0, 0, 0]),
    "g": ([math.nan, 9.0, 1e300], [0, 9, 0]),
}


@pytest.mark.parametrize("code", VALUES)
@pytest.mark.parametrize("method", METHODS)
def test_records_are_mapped_one_by_one(code, method):
    given, mapped = VALUES[code]
    survey = local.Categorical(10, 1.0, method)
    x = np.array(given, np.dtype(code))
    x.flags.writeable = False
    before = x.tobytes()
    reports = survey.randomize(x, rng=PCG64(1))
    np.testing.assert_array_equal(reports, survey.randomize(np.array(mapped), rng=PCG64(1)))
    np.testing.assert_array_equal(survey.randomize(np.repeat(x, 2)[::2], rng=PCG64(1)), reports)
    assert x.tobytes() == before


def test_the_last_category_of_very_many():
    """A float next to k is no category: the kernels never see one out of range."""
    k = 2**31 - 64
    survey = local.Categorical(k, 1.0, "olh")
    for x in (np.float32(k), np.float32(2**31), np.float64(k), np.int64(k)):
        np.testing.assert_array_equal(
            survey.randomize(np.array([x]), rng=PCG64(1)), survey.randomize([0], rng=PCG64(1))
        )


def test_binary_is_one_above_zero():
    survey = local.Binary(1.0)
    expected = survey.randomize([0, 1, 0, 1, 0, 0], rng=PCG64(1))
    for x in (
        [math.nan, math.inf, -math.inf, 0.1, -0.0, None],
        np.array([-1, 1, -5, 7, 0, 0]),
        np.array([False, True, False, True, False, False]),
        np.array([0, 1, 0, 255, 0, 0], np.uint8),
        np.array([math.nan, 1, -1, 6e-8, 0, -0.0], np.float16),
    ):
        np.testing.assert_array_equal(survey.randomize(x, rng=PCG64(1)), expected)


@pytest.mark.parametrize("method", METHODS)
def test_shapes_and_types_are_public(method):
    """T10."""
    survey = local.Categorical(100, 1.0, method)
    tail = survey.report.shape
    for one in (3, 3.0, math.nan, None, 10**400, np.int8(3), np.float32(3), Fraction(3), True, np.array(3)):
        report = survey.randomize(one)
        assert (report.shape, report.dtype) == (tail, survey.report.base)
        assert survey.decode(report).shape == (100,)
        assert survey.aggregate(report).n == 1
    for many in ([], [3], [3, None, 10**400], np.empty(0), range(3), (1, 2)):
        report = survey.randomize(np.array(many) if isinstance(many, range) else many)
        assert (report.shape, report.dtype) == ((len(many), *tail), survey.report.base)
        assert survey.decode(report).shape == (len(many), 100)
    assert survey.aggregate(survey.randomize([])).sums.tolist() == [0] * 100
    with pytest.raises(ValueError, match="at least one report"):
        survey.estimate(survey.randomize([]))
    with pytest.raises(ValueError, match="one-dimensional"):
        survey.randomize([[1, 2]])


def test_report_dtypes_are_the_smallest():
    for k, dtype in ((2, "u1"), (256, "u1"), (257, "u2"), (2**16, "u2"), (2**16 + 1, "u4")):
        assert local.Categorical(k, 1.0, "k-rr").report == np.dtype(dtype)
    for k, dtype in ((128, "u1"), (129, "u2"), (2**15, "u2"), (2**31, "u4")):
        assert local.Categorical(k, 1.0, "hadamard").report == np.dtype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("survey", [local.Binary(1.0), *(local.Categorical(100, 1.0, m) for m in METHODS)])
def test_a_million_reports_travel_as_bytes_and_add_up(survey):
    x = np.random.default_rng(1).integers(0, 100, 1_000_000)
    reports = survey.randomize(x)
    sent = survey.to_bytes(reports)
    each = {"k-rr": 1, "subset": 13, "oue": 13, "olh": 8, "hadamard": 1}[getattr(survey, "method", "k-rr")]
    assert len(sent) == each * 1_000_000
    np.testing.assert_array_equal(survey.from_bytes(sent), reports)
    whole = survey.aggregate(reports, workers=2)
    assert whole == survey.aggregate(reports[:300_000]) + survey.aggregate(reports[300_000:])
    assert local.Aggregate.from_bytes(whole.to_bytes()) == whole
    np.testing.assert_array_equal(survey.estimate(whole), survey.estimate(reports))
    if each > 1:
        with pytest.raises(ValueError, match="data must have"):
            survey.from_bytes(sent[:-1])


def test_the_layout_of_bytes():
    assert local.Categorical(300, 1.0, "k-rr").to_bytes(np.array([258], np.uint16)) == b"\x02\x01"
    bits = np.array([[1 | 2**63, 2]], np.uint64)
    assert local.Categorical(70, 1.0, "oue").to_bytes(bits) == b"\x01" + bytes(6) + b"\x80\x02"
    lines = np.array([[258, 3]], np.uint32)
    assert local.Categorical(70, 1.0, "olh").to_bytes(lines) == b"\x02\x01\x00\x00\x03\x00\x00\x00"


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_the_sums_of_supports(method):
    for k in (2, 5, 63, 65, 128):
        survey = local.Categorical(k, 1.0, method)
        for n in (1, 254, 255, 256, 1000):
            reports = survey.randomize(np.arange(n) % k, rng=PCG64(n))
            expected = survey._method.supported(reports).sum(0)
            assert survey.aggregate(reports) == local.Aggregate(n, expected)


@pytest.mark.parametrize("survey", [local.Binary(1.0), *(local.Categorical(9, 1.0, m) for m in METHODS)])
def test_workers_and_blocks_do_not_show(survey):
    x = np.random.default_rng(2).integers(0, 9, 2 * BLOCK + 5)
    reports = survey.randomize(x, rng=PCG64(4))
    for workers in (2, 3, -1):
        np.testing.assert_array_equal(survey.randomize(x, rng=PCG64(4), workers=workers), reports)
        assert survey.aggregate(reports, workers=workers) == survey.aggregate(reports)
    secure = survey.randomize(x)
    assert not np.array_equal(secure, survey.randomize(x))


def test_a_hundred_thousand_categories():
    x = np.array([0, 99_999, 64, 63, 99_998])
    for method in METHODS:
        survey = local.Categorical(100_000, 1.0, method)
        reports = survey.randomize(x)
        assert survey.estimate(reports).shape == (100_000,)
        if method == "subset":
            assert set(np.unpackbits(reports.view(np.uint8), axis=1).sum(1).tolist()) == {survey._method.width}


def test_other_arrays_are_not_reports():
    for survey, wrong in (
        (local.Categorical(5, 1.0, "olh"), np.zeros((3, 3), np.uint32)),
        (local.Categorical(65, 1.0, "oue"), np.zeros((3, 1), np.uint64)),
    ):
        for use in (survey.aggregate, survey.decode, survey.to_bytes, survey.estimate):
            with pytest.raises(ValueError, match="reports"):
                use(wrong)
    with pytest.raises(TypeError, match="reports"):
        local.Binary(1.0).decode(np.array([0, 1]))
    with pytest.raises(ValueError, match="aggregate"):
        local.Binary(1.0).estimate(local.Aggregate(3, np.array([1, 1, 1])))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((1, 1.0), ValueError, "k must be"),
        ((2**31 + 1, 1.0), ValueError, "k must be"),
        ((2.0, 1.0), TypeError, "k must be"),
        ((5, 0.0), ValueError, "epsilon must be"),
        ((5, math.nan), ValueError, "epsilon must be"),
        ((5, 2.0**-41), ValueError, "epsilon must be"),
        ((5, "one"), ValueError, "epsilon must be"),
        ((5, 1.0, "rappor"), ValueError, "method must be"),
    ],
)
def test_parameters_are_checked(arguments, error, match):
    with pytest.raises(error, match=match):
        local.Categorical(*arguments)


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": 1.5}, {"rng": 3}])
def test_arguments_are_checked_before_data(options):
    for survey in (local.Binary(1.0), local.Categorical(5, 1.0), local.Interval(1.0, bounds=(0, 1))):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
            survey.randomize(Untouchable(), **options)


def test_objects_are_values():
    one, other = local.Categorical(5, 1, "auto"), local.Categorical(5, 1.0, "k-rr")
    assert one == other
    assert hash(one) == hash(other)
    for survey in (one, local.Binary(0.5)):
        assert pickle.loads(pickle.dumps(survey)) == survey
        assert survey.privacy == Privacy(survey.epsilon, neighbors="local")
    assert "any change" in str(one.privacy)
    with pytest.raises(ValueError, match="2\\*\\*16"):
        local.Categorical(5, 1.0, "olh").law(1)
    with pytest.raises(ValueError, match="one record"):
        one.law([1, 2])


class TestT16:
    """T16: black box."""

    class Releases:
        privacy = Privacy(1.0)

        def __init__(self, survey):
            self.survey = survey

        def release(self, x, size, rng):
            reports = self.survey.randomize(np.full(size, x[0]), rng=rng)
            return reports.reshape(size, -1).astype(np.float64) @ [1.0, 2.0**32][: reports.size // size]

    @pytest.mark.parametrize("method", METHODS)
    def test_categories(self, method):
        bound = audit.distinguish(
            self.Releases(local.Categorical(3, 1.0, method)), [0], [2], trials=100_000, rng=PCG64(1)
        )
        assert bound <= 1
        assert method == "olh" or bound > 0.6

    def test_control(self):
        bound = audit.distinguish(
            self.Releases(local.Categorical(3, 1.2, "k-rr")), [0], [2], trials=200_000, rng=PCG64(1)
        )
        assert bound > 1
