"""Selection: exact laws, equal choices on the fast and the slow path, privacy by enumeration, kinds of scores."""

import itertools
import math
import pickle
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import Privacy, Selection, audit
from dpfast._kernels import _choice
from dpfast.core import containers
from tests.cases import every
from tests.reference import selection as reference
from tests.reference.divergences import exact
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

FILLS = {"exponential": _choice.fill_choice, "permute-and-flip": _choice.fill_permute_and_flip}
LAWS = {"exponential": reference.exponential, "permute-and-flip": reference.permute_and_flip}
METHODS = list(LAWS)
HUGE = 10**400

SCORES = {
    "one": [0.0],
    "ties": [1.5] * 6,
    "spread": [0.0, -1.0, -2.5, 3.0, -700.0, 2.999999],
    "a million apart": [0.0, -1e6, -1.0, -1e6 + 1],
    "1e300 apart": [1e300, -1e300, 0.0, 1e300],
    "beyond the doubles apart": [1.7e308, -1.7e308, 0.0],
    "huge offset": [1e6, 1e6 + 1, -1e6],
    "subnormal": [5e-324, 0.0, -5e-324, 1e-310],
    "-inf": [-math.inf, 0.0, -math.inf, 1.0],
    "all -inf": [-math.inf] * 3,
    "+inf": [math.inf, 0.0, math.inf, -math.inf],
    "NaN": [math.nan, 0.0, 1.0, -2.0],
    "extreme integers": [2**63 - 1, -(2**63), 2**63 - 2, 2**63 - 3],
    "unsigned": [2**64 - 1, 0, 2**64 - 2],
    "fractions": [Fraction(1, 3), Fraction(2, 3), 1, 0.25],
    "large integers": [HUGE, HUGE + 1, -HUGE, None],
}


def arguments(scores, **options):
    """What the kernels take."""
    return Selection(**{"epsilon": 1.0} | options)._exponents(containers.scores(scores))


def choices(method, scores, draws, source, *, exact=False, **options):
    out = np.empty(draws, np.int64)
    FILLS[method](source, *arguments(scores, **options), out, exact=exact)
    return out


@every("epsilon", [1e-6, 0.3, 2.0, 1e3])
@every("method", METHODS)
@every("name", SCORES)
def test_law(name, method, epsilon):
    scores = SCORES[name]
    law = Selection(epsilon=epsilon, sensitivity=Fraction(3, 2), selection=method).law(scores)
    expected = LAWS[method](scores, Fraction(epsilon) / 3)
    k = np.arange(len(scores))
    np.testing.assert_allclose(law.pmf(k), [float(p) for p in expected], rtol=1e-12, atol=0)
    assert law.support == (0, len(scores) - 1)
    np.testing.assert_allclose(law.cdf(k), np.cumsum(law.pmf(k)), rtol=1e-14)
    assert law.cdf(-1) == 0
    assert law.cdf(len(scores)) == law.cdf(k[-1]) == 1
    assert (law.logpmf([-1, len(scores)]) == -np.inf).all()


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_frequencies(method, monotone):
    scores, sensitivity = [1.0, 3.0, 2.5, 3.0, -9.0], Fraction(7, 4)
    mechanism = Selection(epsilon=2.0, sensitivity=sensitivity, monotone=monotone, selection=method)
    draws = mechanism.release(scores, size=100_000, rng=PCG64(1))
    counts = np.bincount(draws, minlength=5)
    rate = 2 / sensitivity if monotone else 1 / sensitivity
    for factor, wrong in ((1, False), (Fraction(9, 10), True), (Fraction(11, 10), True)):
        assert chi_square_rejects(counts, LAWS[method](scores, factor * rate)) == wrong


@pytest.mark.parametrize("method", METHODS)
def test_methods_differ(method):
    other = next(name for name in METHODS if name != method)
    counts = np.bincount(dpf.select([0, 1, 1], epsilon=2.0, selection=method, size=100_000, rng=PCG64(1)))
    assert chi_square_rejects(counts, LAWS[other]([0, 1, 1], Fraction(1)))


@every("epsilon", [1e-6, 1.0, 1e3])
@every("method", METHODS)
@every("name", SCORES)
def test_fast_path_is_the_slow_path(name, method, epsilon):
    fast, slow = (choices(method, SCORES[name], 40, PCG64(3), exact=e, epsilon=epsilon) for e in (False, True))
    np.testing.assert_array_equal(fast, slow)
    single = [choices(method, SCORES[name], 1, source, epsilon=epsilon)[0] for source in [PCG64(3)] * 40]
    np.testing.assert_array_equal(fast, single)


def edges(scores, rate):
    """The cumulative probabilities, 60 digits."""
    with mp.workdps(60):
        return list(itertools.accumulate(reference.exponential(scores, rate)))


def allowed(word, cumulative):
    """The candidates that numbers which start with this word can belong to."""
    with mp.workdps(60):
        low, high = mpf(word) / 2**64, mpf(word + 1) / 2**64
        return range(bisect_right(cumulative, low), min(bisect_left(cumulative, high), len(cumulative) - 1) + 1)


@pytest.mark.parametrize("count", [5, 1025, 2060])
def test_words_next_to_edges(count):
    """Also where a block of candidates ends; the naive doubles decide some of these words wrongly."""
    scores = np.random.default_rng(count).normal(size=count) * 4
    with mp.workdps(60):
        cumulative = edges(scores.tolist(), Fraction(1, 2))
        near = {0, 1022, 1023, 1024, 2047, count - 2} & set(range(count - 1))
        words = [int(mp.floor(cumulative[i] * 2**64)) + d for i in near for d in (-1, 0, 1)]
    expected = [allowed(word, cumulative) for word in words]
    fast = choices("exponential", scores, len(words), ScriptedBits(words, PCG64(1)))
    single = [choices("exponential", scores, 1, ScriptedBits([word], PCG64(1)))[0] for word in words[::3]]
    assert all(i in candidates for i, candidates in zip(fast, expected, strict=True))
    assert all(i in candidates for i, candidates in zip(single, expected[::3], strict=True))
    naive_edges = np.cumsum(np.exp((scores - scores.max()) / 2))
    naive = np.searchsorted(naive_edges, np.array(words, dtype=np.uint64) * 2.0**-64 * naive_edges[-1], side="right")
    assert not all(i in candidates for i, candidates in zip(naive, expected, strict=True))


def test_random_words_over_many_blocks():
    scores = np.random.default_rng(1).integers(0, 12, 5000)
    cumulative = edges(scores.tolist(), Fraction(1, 2))
    words = PCG64(2).random_raw(300).tolist()
    fast = choices("exponential", scores, 300, ScriptedBits(words))
    assert all(i in allowed(word, cumulative) for i, word in zip(fast, words, strict=True))


def test_an_edge_that_is_dyadic_takes_another_word():
    """Two equal halves: the word 2**63 starts exactly at the edge, which no precision separates; more words do."""
    source = ScriptedBits([2**63, 5])
    assert choices("exponential", [0, 1, 0, 1], 1, source)[0] == 2
    assert source.used == 2


def test_coins_next_to_edges():
    """Words around exp(-y): heads below, tails above, and the one that holds the edge asks for more."""
    with mp.workdps(60):
        edge = mp.exp(mpf(-1) / 3) * 2**64
        middle = int(mp.floor(edge))
        further = int(mp.floor((edge - middle) * 2**64))
    options = {"epsilon": 1.0, "sensitivity": Fraction(3, 2)}
    for word, heads, more in (
        (middle - 1, 1, []),
        (middle + 1, 0, []),
        (middle, 1, [further - 1]),
        (middle, 0, [further + 1]),
    ):
        # candidate 1 is kept whenever its coin falls heads: the last word chooses the last of the heads
        source = ScriptedBits([0, word, *more, 2**64 - 1])
        assert choices("permute-and-flip", [1, 0], 1, source, **options)[0] == heads
        assert source.used == 3 + len(more)


@given(
    st.lists(st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.fractions(), st.none()), min_size=1, max_size=6),
    st.sampled_from([1e-6, 0.7, 1e3]),
    st.sampled_from(METHODS),
    st.integers(0, 99),
)
def test_any_scores(scores, epsilon, method, seed):
    fast, slow = (choices(method, scores, 3, PCG64(seed), exact=e, epsilon=epsilon) for e in (False, True))
    np.testing.assert_array_equal(fast, slow)
    law = Selection(epsilon=epsilon, selection=method).law(scores)
    expected = [float(p) for p in LAWS[method](scores, Fraction(epsilon) / 2)] if len(scores) < 6 else None
    if expected:
        np.testing.assert_allclose(law.pmf(np.arange(len(scores))), expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("method", METHODS)
def test_extreme_rates(method):
    """A rate that is no normal double: the exponents are rounded one by one."""
    for epsilon, sensitivity, scores, gap in (
        (1e-6, HUGE, [0, HUGE * 10**6], Fraction(1e-6) * 10**6 / 2),
        (5e-324, Fraction(1, HUGE), [0.0, 1.0], None),
        (1.0, 5e-324, np.array([0.0, 5e-324]), Fraction(1, 2)),
        (1e3, 1.7e308, np.array([0.0, 1.7e308]), 500),
        (1e-300, 1.7e308, np.array([-1.7e308, 1.7e308]), Fraction(1e-300)),
    ):
        options = {"epsilon": epsilon, "sensitivity": sensitivity}
        rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
        expected = LAWS[method](scores if isinstance(scores, list) else scores.tolist(), rate)
        law = Selection(**options, selection=method).law(scores)
        np.testing.assert_allclose(law.pmf([0, 1]), [float(p) for p in expected], rtol=1e-12)
        if gap is not None:
            assert math.isclose(law.logpmf(0), float(mp.log(LAWS[method]([0, gap], Fraction(1))[0])), rel_tol=1e-12)
        fast, slow = (choices(method, scores, 200, PCG64(1), exact=e, **options) for e in (False, True))
        np.testing.assert_array_equal(fast, slow)


def test_100_000_candidates():
    """diffprivlib 107: 80,000 of 100,000 scores are equal, and the best."""
    scores = np.full(100_000, 7.0)
    scores[::5] = np.random.default_rng(1).integers(0, 7, 20_000)
    for epsilon in (1e-6, 1.0, 1e3):
        values, sizes = np.unique(scores, return_counts=True)
        weights = sizes * np.exp(epsilon / 2 * (values - 7))
        draws = dpf.select(scores, epsilon=epsilon, size=50_000, rng=PCG64(2))
        assert not chi_square_rejects([(scores[draws] == v).sum() for v in values], weights / weights.sum())
        assert not chi_square_rejects(np.bincount(draws[scores[draws] == 7] // 10_000, minlength=10), [0.1] * 10)


@pytest.mark.parametrize("method", METHODS)
def test_1491_zeros_against_1492(method):
    """smartnoise-sdk 572: counts of zeros of two neighbours."""
    for epsilon in (1e-6, 1.0, 1e3):
        law = Selection(epsilon=epsilon, selection=method).law([1491, 1492])
        expected = [float(p) for p in LAWS[method]([0, 1], Fraction(epsilon) / 2)]
        np.testing.assert_allclose(law.pmf([0, 1]), expected, rtol=1e-13)
        assert not chi_square_rejects(np.bincount(law.sample(50_000, PCG64(1)), minlength=2), expected)


# ---- privacy, by enumeration ----


def log_pairs(mechanism, changes, spread):
    """The logarithms of the laws of all pairs of neighbours."""
    k, laws = np.arange(3), {}

    def logs(scores):
        gaps = tuple(score - max(scores) for score in scores)
        if gaps not in laws:
            laws[gaps] = mechanism.law(gaps).logpmf(k)
        return laws[gaps]

    for scores in itertools.product(spread, repeat=3):
        for change in changes:
            yield logs(scores), logs(tuple(map(sum, zip(scores, change, strict=True))))


def largest_loss(mechanism, changes, spread):
    return max(np.abs(p - q).max() for p, q in log_pairs(mechanism, changes, spread))


ANY = list(itertools.product((-1, 0, 1), repeat=3))
UP = list(itertools.product((0, 1), repeat=3))
SPREAD = (-8, -1, 0, 1)


@every("epsilon", [0.1, 1.0, 4.0])
@every("monotone, changes", [(False, ANY), (True, UP)])
@every("method", METHODS)
def test_privacy(method, monotone, changes, epsilon):
    mechanism = Selection(epsilon=epsilon, monotone=monotone, selection=method)
    largest = largest_loss(mechanism, changes, (*SPREAD, -round(100 / epsilon)))
    assert 0.999 * epsilon < largest <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_exponent_for_monotone_scores_is_refuted_on_others(method):
    assert largest_loss(Selection(epsilon=1.0, monotone=True, selection=method), ANY, SPREAD) > 1.5


def renyi(p, q, alpha):
    """D_alpha(P || Q); Kullback-Leibler at 1."""
    return (
        np.sum(p * (np.log(p) - np.log(q))) if alpha == 1 else np.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)
    )


def concentration(mechanism, monotone):
    """The largest D_alpha / alpha, over neighbours and alphas, and the largest range of a loss."""
    worst, widest = 0.0, 0.0
    for logs in log_pairs(mechanism, UP if monotone else ANY, (-3, 0, 1)):
        widest = max(widest, np.ptp(logs[0] - logs[1]))
        for p, q in (np.exp(logs), np.exp(logs[::-1])):
            worst = max(worst, *(renyi(p, q, alpha) / alpha for alpha in (1, 1.5, 8)))
    return worst, widest


@every("monotone", [False, True])
@every("epsilon", [0.1, 1.0, 3.0])
def test_concentrated_privacy(epsilon, monotone):
    """T11: eps**2 / 8 for the exponential mechanism only: permute-and-flip has more, and no range of epsilon."""
    mechanism = Selection(epsilon=epsilon, monotone=monotone)
    worst, widest = concentration(mechanism, monotone)
    assert 0.9 * min(epsilon, 1) ** 2 / 8 < worst <= mechanism.rho < epsilon**2 / 8
    assert widest <= epsilon * (1 + 1e-12)
    flip = Selection(epsilon=epsilon, monotone=monotone, selection="permute-and-flip")
    worst, widest = concentration(flip, monotone)
    assert epsilon**2 / 8 < worst <= flip.rho == pytest.approx(epsilon * math.tanh(epsilon / 2))
    assert widest > 1.05 * epsilon


def test_rho_is_that_of_the_family_rounded_up_and_at_most_epsilon():
    for epsilon, method in itertools.product((0.1, 1.9), METHODS):
        mean = exact("bounded-range" if method == "exponential" else "pure", epsilon, (1,), 1)
        assert mean <= Selection(epsilon=epsilon, selection=method).rho <= mean * (1 + 1e-15)
    assert Selection(epsilon=1e-170).rho == Selection(epsilon=1e-170, selection="permute-and-flip").rho == 5e-324
    assert Selection(epsilon=100).rho < Selection(epsilon=100, selection="permute-and-flip").rho == 100


@pytest.mark.parametrize("method", METHODS)
def test_permute_and_flip_is_never_worse(method):
    mechanisms = [Selection(epsilon=1.0, selection=name) for name in METHODS]
    for scores in itertools.product((0, 1, 4), repeat=3):
        plain, flip = (np.dot(m.law(scores).pmf([0, 1, 2]), scores) for m in mechanisms)
        assert flip >= plain - 1e-12


# ---- types of scores ----

VALUES = [3, 0, 1, 3, 2]
KINDS = {
    **{np.dtype(code).name: np.array(VALUES, dtype=code) for code in "bhilqBHILQefdg"},
    "list": VALUES,
    "tuple of floats": tuple(map(float, VALUES)),
    "numpy scalars": [np.float64(3), np.int32(0), np.float32(1), np.uint64(3), True + np.int8(1)],
    "fractions": [Fraction(v) for v in VALUES],
    "objects": np.array([3, Fraction(0), 1.0, np.float32(3), 2], dtype=object),
    "big-endian floats": np.array(VALUES, dtype=">f8"),
    "big-endian integers": np.array(VALUES, dtype=">i8"),
    "stride 2": np.repeat(np.array(VALUES, dtype=float), 2)[::2],
    "reversed": np.array(VALUES[::-1])[::-1],
    "unaligned": np.frombuffer(b"x" + np.array(VALUES, dtype=float).tobytes(), dtype=np.uint8)[1:].view(np.float64),
    "masked": np.ma.masked_array([3, 9, 1, 3, 2], mask=[0, 1, 0, 0, 0]),
    "NaN": [3.0, math.nan, 1.0, 3.0, 2.0],
    "None": [3, None, 1, 3, 2],
}


@every("name", KINDS)
def test_kinds_of_scores(name):
    scores = KINDS[name]
    before = repr(scores)
    for method in METHODS:
        mechanism = Selection(epsilon=1.5, selection=method)
        k = np.arange(5)
        np.testing.assert_array_equal(mechanism.law(scores).logpmf(k), mechanism.law(VALUES).logpmf(k))
        for seed in range(5):
            assert mechanism(scores, rng=PCG64(seed)) == mechanism(VALUES, rng=PCG64(seed))
    assert repr(scores) == before


@pytest.mark.host
def test_series_and_arrow():
    """A null is 0, and integers stay exact whether or not there are any."""
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    law, k = Selection(epsilon=2.0).law, np.arange(5)
    for scores in (
        pandas.Series(VALUES),
        pandas.Series([3, None, 1, 3, 2], dtype="Int64"),
        pandas.Series([3, None, 1, 3, 2], dtype="UInt8"),
        pandas.Series([3, None, 1, 3, 2], dtype="Float64"),
        arrow.array([3, None, 1, 3, 2]),
        arrow.chunked_array([[3.0, None], [1.0, 3.0, 2.0]]),
    ):
        np.testing.assert_array_equal(law(scores).logpmf(k), law(VALUES).logpmf(k))
    for large in (arrow.array([2**62, 2**62 + 1]), pandas.Series([2**62, 2**62 + 1], dtype="Int64")):
        np.testing.assert_array_equal(law(large).logpmf([0, 1]), law([0, 1]).logpmf([0, 1]))
    for flags in (arrow.array([True, None]), pandas.array([True, None], "boolean")):
        np.testing.assert_array_equal(law(flags).logpmf([0, 1]), law([1, 0]).logpmf([0, 1]))
    with pytest.raises(TypeError, match="not Arrow's string"):
        law(arrow.array(["a"]))


def test_booleans():
    law = Selection(epsilon=2.0).law
    for scores in ([True, False], np.array([True, False])):
        np.testing.assert_array_equal(law(scores).logpmf([0, 1]), law([1, 0]).logpmf([0, 1]))


@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**62, 2**62 + 1]),
        np.array([2**64 - 2, 2**64 - 1], dtype=np.uint64),
        [2**80, 2**80 + 1],
        np.array([1, np.longdouble(1) + np.finfo(np.longdouble).eps]),
    ],
    ids=["int64", "uint64", "list", "longdouble"],
)
def test_no_score_is_rounded(scores):
    """As doubles these would be equal, or differ by 2."""
    unit = Fraction(*np.finfo(np.longdouble).eps.as_integer_ratio()) if np.asarray(scores).dtype.kind == "f" else 1
    law = Selection(epsilon=2.0, sensitivity=unit).law(scores)
    assert law.pmf(1) == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-13)


def test_a_law_keeps_its_scores():
    scores = np.array([0.0, 5.0])
    law = Selection(epsilon=1.0).law(scores)
    scores[:] = 0
    assert law.pmf(1) > 0.9


# ---- calls ----


@every("special", [0.5, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1.8e308, 1e308, -1e308])
@every("method", METHODS)
def test_only_the_index_depends_on_scores(method, special):
    """No warning, error, type, shape or number of words depends on a score."""
    for scores in ([special] * 4, np.array([special, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0, special])):
        index = dpf.select(scores, epsilon=1.0, selection=method)
        assert type(index) is int
        assert 0 <= index < 4
        indices = dpf.select(scores, epsilon=1.0, selection=method, size=(2, 3))
        assert (indices.shape, indices.dtype) == ((2, 3), np.int64)
        source = ScriptedBits(rest=PCG64(7))
        choices(method, scores, 1, source)
        assert source.used == (1 if method == "exponential" else 5)


@pytest.mark.parametrize("method", METHODS)
def test_rng(method):
    scores = np.zeros(1000)
    first = dpf.select(scores, epsilon=1.0, selection=method, rng=PCG64(5))
    assert first == dpf.select(scores, epsilon=1.0, selection=method, rng=Generator(PCG64(5)))
    assert len({dpf.select(scores, epsilon=1.0, selection=method) for _ in range(20)}) > 10
    assert len(set(dpf.select(scores, epsilon=1.0, selection=method, size=20).tolist())) > 10
    assert dpf.select(scores, epsilon=1.0, selection=method, size=0).shape == (0,)


def test_mechanism():
    mechanism = Selection(epsilon=0.5, sensitivity=2, monotone=True, neighbors="add-remove")
    assert mechanism.privacy == Privacy(0.5, 0.0, "add-remove")
    assert mechanism.privacy_map(3).epsilon == 1.5
    assert mechanism.rate == Fraction(1, 4)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(Selection(epsilon=0.5, sensitivity=2.0, monotone=True, neighbors="add-remove"))
    assert mechanism.law([0, 1]).value(1) == 1
    assert audit.distinguish(Selection(epsilon=1.0), [0, 3], [1, 2], trials=20_000, rng=PCG64(1)) <= 1
    wrong = Selection(epsilon=1.0, monotone=True)
    assert audit.distinguish(wrong, [0, 3], [1, 2], trials=20_000, rng=PCG64(1)) > 1


@every(
    "error, match, options",
    [
        (ValueError, "epsilon must be positive", {"epsilon": 0}),
        (TypeError, "epsilon must be a real number", {"epsilon": True}),
        (ValueError, "sensitivity must be positive, not 0", {"sensitivity": 0}),
        (ValueError, "sensitivity must be finite", {"sensitivity": math.inf}),
        (ValueError, "sensitivity must be finite", {"sensitivity": math.nan}),
        (ValueError, "sensitivity must be a number, such as", {"sensitivity": "one"}),
        (TypeError, "monotone must be True or False", {"monotone": 1}),
        (ValueError, "selection must be 'exponential' or 'permute-and-flip'", {"selection": "gumbel"}),
        (ValueError, "selection must be 'exponential' or 'permute-and-flip'", {"selection": ["exponential"]}),
        (TypeError, "epsilon must be a real number, not list", {"epsilon": [1.0]}),
        (TypeError, "sensitivity must be a real number, not ndarray", {"sensitivity": np.array(1.0)}),
        (TypeError, "size must be an integer", {"size": 2.5}),
        (TypeError, "rng must be None", {"rng": 1}),
        (ValueError, "scores is empty", {"scores": []}),
        (ValueError, "scores is empty", {"scores": np.empty(0, np.int64)}),
        (ValueError, "scores must be one-dimensional", {"scores": np.zeros((2, 2))}),
        (ValueError, "scores must be one-dimensional", {"scores": 3.0}),
        (TypeError, "scores must hold numbers, not dtype", {"scores": np.array(["1"])}),
        (TypeError, "scores must hold numbers, not dtype complex128", {"scores": np.array([1j])}),
    ],
)
def test_errors(error, match, options):
    with pytest.raises(error, match=match):
        dpf.select(**{"scores": [0.0, 1.0], "epsilon": 1.0} | options)


def test_bad_relations_of_neighbors():
    with pytest.raises(ValueError, match="neighbors must be 'replace-one' or 'add-remove'"):
        Selection(epsilon=1.0, neighbors="local")


# ---- audit.lipschitz ----


def test_lipschitz_of_a_score():
    def score(data):
        """How many records to replace to move the median of three to each of the candidates."""
        return [-min(sum(a != b for a, b in zip(data, other, strict=True)) for other in reach[c]) for c in range(3)]

    reach = {c: [d for d in itertools.product(range(3), repeat=3) if sorted(d)[1] == c] for c in range(3)}
    found = audit.lipschitz(score, range(3), 3)
    assert (found.largest, found.holds, found.monotone, found.pairs) == (1, True, False, 27 * 3 * 2 // 2)


def test_lipschitz_refutes():
    found = audit.lipschitz(lambda data: np.array([data.sum(), 0.0]), np.array([0.0, 1.0, 5.0]), 2)
    assert not found.holds
    assert found.monotone
    assert found.largest == 5
    assert found.worst == ((0.0, 0.0), (5.0, 0.0))
    assert audit.lipschitz(lambda data: data[0] * Fraction(1, 3), [0, 1], 2, sensitivity=Fraction(1, 3)).holds
    assert not audit.lipschitz(lambda data: data[0] * Fraction(1, 3), [0, 1], 2, sensitivity=0.33).holds


def test_lipschitz_of_infinite_scores():
    found = audit.lipschitz(lambda data: -math.inf if data == (1, 1) else 0, [0, 1], 2)
    assert (found.largest, found.holds) == (math.inf, False)
    assert audit.lipschitz(lambda data: [-math.inf, HUGE], [0, 1], 2).largest == 0


def test_lipschitz_of_rows():
    rows = np.array([[0, 0], [0, 1], [1, 1]])
    found = audit.lipschitz(lambda data: data.max(axis=0), rows, 2)
    assert (found.largest, found.holds) == (1, True)
    assert len(found.worst[0]) == 2


def test_lipschitz_errors():
    with pytest.raises(ValueError, match="domain must have at least 2 records"):
        audit.lipschitz(len, [1], 2)
    with pytest.raises(ValueError, match="at most 2\\*\\*20"):
        audit.lipschitz(len, range(100), 4)
    with pytest.raises(ValueError, match="the same number of entries"):
        audit.lipschitz(lambda data: [0] * sum(data), [1, 2], 2)
