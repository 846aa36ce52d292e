"""Private gradient descent for generalised linear models: exact bits, the kernel as the protocol, figures, privacy."""

import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.stats import chi2, norm

from dpfast import local
from dpfast._kernels import _bits, _directions, _gradient
from dpfast.core.coin import coin
from dpfast.local import regression
from tests.reference import glm as reference
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA

pytestmark = pytest.mark.kernel


def people(n, d, seed=0, scale=1.0):
    """Rows inside and outside of the unit ball, labels of all models, and every kind of strange value."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)) * scale / math.sqrt(d), rng.normal(size=n) * 2
    X[::7] *= 10
    X[3::50], X[5::50, 0], X[9::50, -1], X[11::50] = 0.0, math.nan, math.inf, 1e300
    y[2::40], y[4::40], y[6::40] = math.nan, math.inf, -math.inf
    return X, y


PROTOCOLS = [
    local.GradientDescent(d, epsilon, model=model, norm=n, intercept=intercept, radius=radius, clip=clip)
    for d, epsilon, model, n, intercept, radius, clip in (
        (3, 1.0, "logistic", "l2", False, 1.0, 1.0),
        (1, 0.7, "logistic", "l2", False, 2.0, 1.0),
        (4, 2.0, "linear", "l2", True, 0.5, 1.5),
        (9, 1.0, "poisson", "l2", False, 1.0, 3.0),
        (3, 1.0, "logistic", "linf", False, 1.0, 1.0),
        (1, 2.0, "linear", "linf", False, 1.0, 1.0),
        (5, 3.0, "linear", "linf", True, 0.5, 1.5),
        (4, 8.0, "poisson", "linf", False, 1.0, 3.0),
        (66, 9.0, "logistic", "linf", True, 1.0, 1.0),
    )
]
NAMES = [f"{p.model} {p.norm} {p.d} {'intercept' * p.intercept} {getattr(p.randomizer, 'k', '')}" for p in PROTOCOLS]
every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=NAMES)


def reports_about(protocol, theta, X, y, source, push=None):
    """The reports of people who are all asked with the same theta, as the kernel makes them."""
    n, theta = len(X), np.array(theta, float)[None]
    reports = np.empty((n, *protocol.randomizer.row[0]), np.uint64)
    push = np.zeros(n) if push is None else push
    public = regression._MODELS.index(protocol.model), protocol.clip, 1 / protocol.radius, protocol.bound
    data = np.ascontiguousarray(X, float), np.ascontiguousarray(y, float), push, theta, np.zeros_like(theta), reports
    if protocol.norm == "l2":
        _gradient.descend_halfspace(source, coin(protocol.epsilon).threshold, *public, *data)
    else:
        _gradient.descend_hypercube(source, *protocol.randomizer.mask_law, *public, *data)
    return reports


# ---- the kernel ----


def sender(protocol, source):
    """The device of the slow twin: the kernel of the randomiser itself, fed with the words of the same source."""
    randomizer = protocol.randomizer

    def send(gradient):
        row, out = gradient[None], np.empty((1, *randomizer.row[0]), np.uint64)
        if protocol.norm == "l2":
            words = np.array([[source._next(None) for _ in range(3)]], np.uint64)
            threshold = coin(protocol.epsilon).threshold
            _directions.randomize_halfspace(words, row, 1 / randomizer.radius, threshold, out)
        elif randomizer.method == "majority":
            _bits.randomize_majority(source, row, 1 / randomizer.radius, randomizer.mask_law[0], out)
        else:
            threshold, k, *classes = randomizer.mask_law
            _bits.randomize_threshold(source, row, 1 / randomizer.radius, threshold, k, _bits.Masks(*classes), out)
        return out[0]

    return send


@every
def test_kernel_is_the_slow_twin(protocol):
    X, y = people(300, protocol.d)
    thetas = reference.descend(protocol, X, y, sender(protocol, ScriptedBits(rest=PCG64(5))))
    units = np.array([protocol.radius] * protocol.d + [1.0] * protocol.intercept)
    np.testing.assert_allclose(protocol(X, y, rng=PCG64(5)) * units, np.mean(thetas[:-1], axis=0), atol=1e-9)
    assert np.abs(thetas[-1]).max() > 1e-3


@every
def test_the_array_and_the_conversation_are_the_same(protocol):
    X, y = people(200, protocol.d, seed=1)
    for options in ({}, {"burn_in": 60}, {"steps": (0.7, 0.5), "bound": 0.4}):
        other = local.GradientDescent(
            protocol.d, protocol.epsilon, **{**_options(protocol), "bound": protocol.bound, **options}
        )
        rng, state = PCG64(3), other.begin()
        for row, label in zip(X, y, strict=True):
            state = other.update(state, other.respond(state.theta, row, label, rng=rng))
        assert np.linalg.norm(state.theta) <= other.bound * (1 + 1e-12)
        assert state.users == 200
        np.testing.assert_array_equal(other(X, y, rng=PCG64(3)), other.estimate(state))


def _options(protocol):
    return {name: getattr(protocol, name) for name in ("model", "radius", "norm", "clip", "intercept")}


@every
def test_neither_blocks_nor_repetitions_change_a_run(protocol, monkeypatch):
    X, y = people(150, protocol.d, seed=2)
    whole = protocol.release(X, y, size=(2, 3), rng=PCG64(1))
    assert whole.shape == (2, 3, protocol.d + protocol.intercept)
    monkeypatch.setattr(regression, "_BLOCK", 7 * protocol.d)
    np.testing.assert_array_equal(protocol.release(X, y, size=(2, 3), rng=PCG64(1)), whole)
    monkeypatch.undo()
    np.testing.assert_array_equal(protocol.release(X, y, size=1, rng=PCG64(4))[0], protocol(X, y, rng=PCG64(4)))
    assert len(np.unique(whole[..., 0])) == 6


def test_a_number_of_ones_that_64_digits_do_not_decide():
    protocol = local.GradientDescent(9, 8.0, norm="linf", model="linear")
    _, k, inside, outside = protocol.randomizer.mask_law
    assert 1 < k <= 9
    edges = inside if len(inside) > 1 else outside
    lanes = (k < 9) + -(-k // 4)
    first = (edges[0] << 64) // edges[-1]
    for further, ones in ((0, 0), (2**64 - 1, 1)):
        words = [2**64 - 1] * lanes + [0 if edges is inside else 2**64 - 1, first, 0, further]
        sources = [ScriptedBits(words, PCG64(1)) for _ in range(2)]
        X, y = np.ones((1, 9)), [5.0]
        report = reports_about(protocol, np.zeros(9), X, y, sources[0])
        np.testing.assert_array_equal(report[0], sender(protocol, sources[1])(np.full(9, -1.0)))
        agreed = (protocol.randomizer.decode(report[0]) < 0).sum()
        assert k - agreed == ones + (0 if edges is inside else len(inside))


# ---- privacy ----

RECORDS = [
    ([1.0, 0.0], 1.0),
    ([-1.0, 0.0], 1.0),
    ([0.0, 0.0], 0.0),
    ([0.3, -0.4], math.nan),
    ([math.nan, 1.0], -math.inf),
    ([math.inf, 7.0], math.inf),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("model", ["logistic", "linear", "poisson"])
def test_a_half_space_depends_on_the_record_by_one_coin(model, intercept):
    """Whatever the seed, the word to round with, theta and the record: the coin decides the bit, at its threshold."""
    protocol = local.GradientDescent(2, 0.7, model=model, intercept=intercept)
    threshold, rng = coin(0.7).threshold, np.random.default_rng(1)
    X, y = [row for row, _ in RECORDS], [label for _, label in RECORDS]
    truths = set()
    for _ in range(60):
        seed, rounding = (int(w) for w in rng.integers(0, 2**64, 2, dtype=np.uint64))
        theta = rng.normal(size=2 + intercept) * rng.choice([0.0, 1.0, 1e100, 1e-300])
        bits = []
        for word in (0, threshold - 1, threshold, 2**64 - 1):
            source = ScriptedBits([seed, word, rounding] * len(RECORDS))
            reports = reports_about(protocol, theta, X, y, source)
            assert source.used == 3 * len(RECORDS)
            np.testing.assert_array_equal(reports & np.uint64(2**64 - 2), seed & ~1)
            bits.append((reports & np.uint64(1)).tolist())
        assert bits[0] == bits[1]
        assert bits[2] == bits[3] == [1 - bit for bit in bits[0]]
        truths.update(enumerate(bits[0]))
    without_gradient = 0 if intercept else 2
    assert len(truths) == 2 * len(RECORDS) - without_gradient  # all others are on either side of some half space
    assert _laws_have_ratio(0.7, coin(0.7).ratio)


def _laws_have_ratio(epsilon, ratio):
    with mpmath.workdps(40):
        loss = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return 0 <= epsilon - loss < 1e-15


def half_space_law(protocol, theta, row, y, seed, *, silent=False):
    """Of the bit, given the seed, in rationals: its own side by (1 + |g| / clip) / 2, kept by the coin."""
    g = reference.gradient(protocol, theta, row, y)
    keep = coin(protocol.epsilon).probability
    if silent and not g.any():
        return {None: Fraction(1)}
    u = protocol.randomizer.decode(np.uint64(seed | 1))
    own = Fraction(min(1.0, float(np.linalg.norm(g)) / protocol.randomizer.radius)) / 2 + Fraction(1, 2)
    p = own if u @ g > 0 else 1 - own
    return {1: p * keep + (1 - p) * (1 - keep), 0: p * (1 - keep) + (1 - p) * keep}


def test_the_law_of_a_half_space_and_its_control():
    protocol = local.GradientDescent(2, 1.0, model="linear")
    for seed in range(0, 40, 2):
        laws = [half_space_law(protocol, np.zeros(2), *record, seed) for record in RECORDS]
        assert 1 < reference.largest_ratio(laws) <= coin(1.0).ratio
    everyone = [half_space_law(protocol, np.zeros(2), row, y, 6) for row in ([1.0, 0], [-1.0, 0]) for y in (9.0,)]
    assert reference.largest_ratio(everyone) == coin(1.0).ratio
    silent = [half_space_law(protocol, np.zeros(2), *record, 6, silent=True) for record in RECORDS]
    assert reference.largest_ratio(silent) == math.inf


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (2, 3.0), (3, 2.0)])
def test_signs_have_the_exact_law(d, epsilon):
    """The kernel's reports about one gradient against the rational law, and the wrong ones of 0.9 and 1.1 epsilon."""
    protocol = local.GradientDescent(d, epsilon, norm="linf", model="linear")
    row, y, n = np.linspace(-1.0, 0.8, d), 0.7, 500_000
    theta = np.full(d, 0.5)
    g = reference.gradient(protocol, theta, row, y)
    reports = reports_about(protocol, theta, np.tile(row, (n, 1)), np.full(n, y), PCG64(1))
    signs = np.sign(protocol.randomizer.decode(reports)).astype(int)
    digits = 3 ** np.arange(d)
    counts = np.bincount((signs + 1) @ digits, minlength=3**d)
    for factor in (1.0, 0.9, 1.1):
        law = dict.fromkeys(itertools.product((-1, 0, 1), repeat=d), 0.0)
        other = local.Hypercube(d, epsilon * factor, method=protocol.randomizer.method)
        if (other.k, other.tau) != (protocol.randomizer.k, protocol.randomizer.tau):
            continue
        law.update(reference.signs_law(other, g))
        p = np.zeros(3**d)
        for z, probability in law.items():
            p[(np.array(z) + 1) @ digits] = probability
        assert (counts[p == 0] == 0).all()
        statistic = np.sum((counts - n * p)[p > 0] ** 2 / (n * p[p > 0]))
        assert (statistic > chi2.isf(ALPHA, (p > 0).sum() - 1)) == (factor != 1)


def datasets(records):
    """All pairs of neighbours among two people, as lists of datasets that differ in one person."""
    for fixed, position in itertools.product(records, (0, 1)):
        yield [[record, fixed] if position == 0 else [fixed, record] for record in records]


TWO = [([1.0, 1.0], 1.0), ([-1.0, 1.0], 1.0), ([0.0, math.nan], 0.0), ([0.5, -0.2], 0.0)]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_privacy_of_the_transcript_by_enumeration(epsilon):
    """d = 2: every sequence of two reports, every neighbour: the ratio equals that of the coin, exactly."""
    protocol = reference.linear(2, epsilon)
    ratio = coin(epsilon).ratio if protocol.randomizer.k == 1 else protocol.randomizer._coin.ratio
    worst = max(
        reference.largest_ratio([reference.transcript_law(protocol, data) for data in neighbours])
        for neighbours in datasets(TWO)
    )
    assert worst == ratio
    assert protocol.privacy == local.MedianDescent(bounds=(0, 1), epsilon=epsilon).privacy


def test_controls_of_the_enumeration():
    """The published majority of two signs loses log(1 + e^epsilon); silence at a zero gradient loses everything."""
    protocol = reference.linear(2, 0.5)
    ratio = protocol.randomizer._coin.ratio
    for law, expected in ((reference.published_even_law, 1 + ratio), (reference.silent_law, math.inf)):
        laws = [reference.transcript_law(protocol, [record], law) for record in TWO]
        assert reference.largest_ratio(laws) == expected


@every
def test_every_bit_of_a_report_flips_both_ways(protocol):
    """T9, for records at the edges of their range."""
    seeds = protocol.norm == "linf" and protocol.randomizer.k < protocol.randomizer.d
    for row, y in ((0.0, 0.0), (1.0, 5.0), (math.nan, math.nan), (-math.inf, -math.inf)):
        X = np.full((20_000, protocol.d), row)
        reports = reports_about(protocol, np.zeros(protocol.d + protocol.intercept), X, np.full(20_000, y), PCG64(2))
        bits = reports[:, None] if protocol.norm == "l2" else reports[:, int(seeds) :]
        count = 1 if protocol.norm == "l2" else protocol.randomizer.k
        for j in range(count):
            values = bits[:, j // 64] >> np.uint64(j % 64) & np.uint64(1)
            assert set(values.tolist()) == {0, 1}


@every
def test_values_change_neither_shapes_nor_errors(protocol):
    """T10, T14: strange records answer like any other, with as many words."""
    strange = [0.0, -0.0, 5e-324, 1e-300, 1e300, -1e308, math.nan, math.inf, -math.inf]
    rng, used = np.random.default_rng(0), set()
    for _ in range(20):
        X, y = rng.choice(strange, (5, protocol.d)), rng.choice(strange, 5)
        before = X.copy(), y.copy()
        found = protocol(X, y, rng=PCG64(1))
        assert found.shape == (protocol.d + protocol.intercept,)
        assert found.dtype == np.float64
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(y, before[1])
        report = protocol.respond(protocol.begin().theta, X[0], y[0], rng=PCG64(2))
        assert report.dtype == np.uint64
        used.add((np.shape(report), str(found.dtype)))
    assert len(used) == 1


@pytest.mark.parametrize("kind", ["l2", "linf"])
def test_records_out_of_range_are_clamped(kind):
    """T13: the same words, the same reports."""
    X = [[3.0, 4.0], [math.nan, 1.0], [math.inf, -2.0], [0.1, -math.inf], [1e300, 1e300]]
    half = math.sqrt(0.5)
    edge = {
        "l2": [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [half, half]],
        "linf": [[1.0, 1.0], [0.0, 1.0], [1.0, -1.0], [0.1, -1.0], [1.0, 1.0]],
    }[kind]
    protocol = local.GradientDescent(2, 1.0, norm=kind)
    labels = [5.0, -3.0, math.nan, math.inf, 0.0]
    found = protocol.release(X * 40, labels * 40, size=3, rng=PCG64(1))
    expected = protocol.release(edge * 40, [1, 0, 0, 1, 0] * 40, size=3, rng=PCG64(1))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not np.allclose(found, protocol.release(edge * 40, [0] * 200, size=3, rng=PCG64(1)), atol=1e-3)


# ---- estimates ----


@every
def test_reports_are_unbiased_for_the_gradient(protocol):
    rng, n = np.random.default_rng(3), 200_000
    columns = protocol.d + protocol.intercept
    theta, row, y = rng.normal(size=columns) / columns, rng.normal(size=protocol.d) / math.sqrt(protocol.d), 1.0
    row *= protocol.radius
    g = reference.gradient(protocol, theta, row, y)
    n = n if columns < 20 else 20_000
    reports = reports_about(protocol, theta, np.tile(row, (n, 1)), np.full(n, y), PCG64(1))
    z = protocol.randomizer.decode(reports)
    deviation = z.std(axis=0) / math.sqrt(n)
    limit = norm.isf(ALPHA / columns / 2)
    assert (np.abs(z.mean(axis=0) - g) < limit * deviation).all()
    assert not (np.abs(z.mean(axis=0) - g - 0.6 * protocol.clip) < limit * deviation).all()
    total = (z**2).sum(axis=1)
    np.testing.assert_allclose(total, protocol.randomizer.variance(), rtol=1e-12)


STAR = np.array([1.0, -0.5, 0.5])


def cube(n, rng):
    """Rows on the corners of a cube of norm 1."""
    return rng.choice([-1.0, 1.0], (n, 3)) / math.sqrt(3)


def labels(X, theta, rng):
    return rng.random(len(X)) < 1 / (1 + np.exp(-X @ theta))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "expected", "error", "limit"), [(2.0, 1439, 63, 1279.8), (1.0, 4776, 205, 3476.0)])
def test_acceptance(epsilon, expected, error, limit):
    """Mechanisms-b 7: n MSE of eta_i = 4 i^(-2/3), bound 5. Its 400 repetitions: bench/glm_accuracy.py."""
    n, runs, rng = 100_000, 50, np.random.default_rng(1)
    published = local.GradientDescent(3, epsilon, bound=5.0, steps=(4 * local.L2Ball(3, epsilon).scale, 2 / 3))
    squares = []
    for _ in range(runs):
        X = cube(n, rng)
        squares.append(n * np.sum((published(X, labels(X, STAR, rng), rng=rng) - STAR) ** 2))
    spread = 4 * math.hypot(np.std(squares) / math.sqrt(runs), error)
    assert abs(np.mean(squares) - expected) < spread
    assert not abs(3 * np.mean(squares) - expected) < spread
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) / math.sqrt(3)
    assert n * np.trace(published.covariance(n, corners, STAR)) == pytest.approx(limit, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["l2", "linf"])
def test_standard_errors_cover(kind):
    """Estimates spread as promised, as far as 120 runs show: half or twice the promise would be refuted."""
    n, runs, rng = 40_000, 120, np.random.default_rng(5)
    protocol = local.GradientDescent(2, 4.0, model="linear", norm=kind, intercept=True, steps=(1.0, 0.55))
    X = rng.uniform(-0.7, 0.7, (n, 2))
    y = X @ [0.5, -1.0] + 0.25 + rng.normal(size=n) * 0.5
    found = protocol.release(X, y, size=runs, rng=PCG64(1))
    promised = protocol.standard_errors(n, X, [0.5, -1.0, 0.25], deviation=0.5)
    np.testing.assert_allclose(protocol.error(n, X, [0.5, -1.0, 0.25], deviation=0.5), 1.959964 * promised, rtol=1e-6)
    ratio = found.var(axis=0) / promised**2
    assert ((ratio > 0.6) & (ratio < 1.7)).all()
    assert (np.abs(found.mean(axis=0) - [0.5, -1.0, 0.25]) < promised).all()


@pytest.mark.slow
@pytest.mark.parametrize(("model", "clip"), [("linear", 0.4), ("poisson", 1.0), ("logistic", 0.5)])
@pytest.mark.parametrize("kind", ["l2", "linf"])
def test_the_estimate_tends_to_the_clipped_target(model, clip, kind):
    rng, n = np.random.default_rng(7), 60_000
    X = rng.uniform(-0.7, 0.7, (n, 2))
    t = X @ [0.8, -0.4]
    y = t + 3 * (rng.random(n) < 0.2) * (X[:, 0] > 0) + 0.1 * rng.normal(size=n) if model == "linear" else None
    if model == "poisson":
        y = rng.poisson(np.exp(t)) * (1 + 4 * (rng.random(n) < 0.2))
    if model == "logistic":
        y = (rng.random(n) < 1 / (1 + np.exp(-t))).astype(float)
    target, unclipped = (reference.clipped_target(model, X, y, c) for c in (clip, 1e9))
    found = local.glm(X, y, epsilon=8.0, model=model, clip=clip, norm=kind, size=40, bound=3.0, rng=PCG64(1))
    error = found.std(axis=0) / math.sqrt(40)
    far = np.linalg.norm(target - unclipped)
    assert np.linalg.norm(found.mean(axis=0) - target) < 0.15 * far + 6 * np.linalg.norm(error)
    assert np.linalg.norm(found.mean(axis=0) - unclipped) > 0.5 * far


def test_what_residuals_are_expected_to_be():
    """`covariance` uses the mean slope and square of clipped residuals: against simulation."""
    rng, n = np.random.default_rng(0), 400_000
    for model, clip, t in itertools.product(("logistic", "linear", "poisson"), (0.6, 0.9, 2.5), (-1.2, 0.4, 1.5)):
        if model == "logistic" and clip > 1:
            continue
        mean = {"logistic": 1 / (1 + math.exp(-t)), "linear": t, "poisson": math.exp(t)}[model]
        y = {
            "logistic": lambda p=mean: rng.random(n) < p,
            "linear": lambda m=mean: rng.normal(m, 0.8, n),
            "poisson": lambda m=mean: rng.poisson(m, n),
        }[model]()
        slope = {"logistic": mean * (1 - mean), "linear": 1.0, "poisson": mean}[model]
        inside = np.abs(mean - y) < clip
        found = regression._moments(model, np.array([t]), clip, 0.8)
        assert found[0][0] == pytest.approx(slope * inside.mean(), abs=0.01)
        assert found[1][0] == pytest.approx(np.mean(np.clip(mean - y, -clip, clip) ** 2), abs=0.02)


def test_signs_of_a_report_correlate_as_stated():
    for d, epsilon, method in ((3, 2.0, "majority"), (4, 3.0, "majority"), (5, 6.0, "subset")):
        randomizer = local.Hypercube(d, epsilon, method=method)
        g = np.where(np.arange(d) % 2, -1.0, 1.0)
        law = reference.signs_law(randomizer, g)
        pairs = sum(float(p) * z[0] * z[1] for z, p in law.items()) * g[0] * g[1]
        k = randomizer.k
        assert pairs == pytest.approx(randomizer.mask_correlation() * k * (k - 1) / (d * (d - 1)), rel=1e-12)


# ---- inputs ----


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 4), st.sampled_from(["l2", "linf"]), st.integers(0, 99))
def test_dtypes_and_layouts_do_not_matter(n, d, kind, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (n, d)), rng.integers(0, 3, n)
    protocol = local.GradientDescent(d, 1.0, norm=kind, model="poisson", radius=2.0)
    expected = protocol(X.astype(float), y.astype(float), rng=PCG64(seed))
    frozen = X.astype(np.float32)
    frozen.flags.writeable = False
    wide = np.repeat(np.repeat(X.astype(float), 2, axis=0), 3, axis=1)[::2, ::3]
    for other in (X, X.astype(np.int8), frozen, np.asfortranarray(X, dtype=float), wide, X.tolist()):
        for label in (y, y.astype(np.float32), np.repeat(y, 2)[::2], y.tolist()):
            np.testing.assert_array_equal(protocol(other, label, rng=PCG64(seed)), expected)


def test_booleans_are_labels():
    X = cube(50, np.random.default_rng(0))
    y = X[:, 0] > 0
    found = [local.glm(X, label, epsilon=1.0, rng=PCG64(1)) for label in (y, y.astype(int), np.where(y, 7.0, -7.0))]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_units_of_features_and_labels_do_not_matter():
    X, y = people(100, 3)
    one = local.glm(X, y, epsilon=1.0, model="linear", intercept=True, rng=PCG64(1))
    other = local.glm(8 * X, 4 * y, epsilon=1.0, model="linear", radius=8.0, clip=4.0, intercept=True, rng=PCG64(1))
    np.testing.assert_allclose(other, one * [0.5, 0.5, 0.5, 4.0], rtol=1e-12)


def test_threads_do_not_disturb_each_other():
    X, y = people(2000, 5)
    protocol = local.GradientDescent(5, 1.0)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: protocol(X, y, rng=PCG64(seed)), range(8)))
    for seed, theta in enumerate(found):
        np.testing.assert_array_equal(theta, protocol(X, y, rng=PCG64(seed)))


@every
def test_protocols_are_values(protocol):
    other = pickle.loads(pickle.dumps(protocol))
    assert other == protocol
    assert hash(other) == hash(protocol)
    X, y = people(20, protocol.d)
    np.testing.assert_array_equal(other(X, y, rng=Generator(PCG64(1))), protocol(X, y, rng=PCG64(1)))
    assert np.isfinite(protocol(X, y)).all()
    with pytest.raises(AttributeError):
        other.epsilon = 2.0


def test_parameters_are_told_before_data_are_looked_at():
    X, y = [[0.5, 0.5]], [1.0]
    for options, message in (
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 2.0**-41}, "epsilon"),
        ({"epsilon": 1.0, "model": "probit"}, "model"),
        ({"epsilon": 1.0, "norm": "l1"}, "norm"),
        ({"epsilon": 1.0, "radius": -1.0}, "radius"),
        ({"epsilon": 1.0, "clip": 1.5}, "clip"),
        ({"epsilon": 1.0, "clip": 0.0}, "clip"),
        ({"epsilon": 1.0, "bound": 1e80}, "bound"),
        ({"epsilon": 1.0, "bound": 1e10, "radius": 1e-300}, "float64"),
        ({"epsilon": 1.0, "steps": "minimax"}, "steps"),
        ({"epsilon": 1.0, "steps": (0.0, 0.6)}, "scale of steps"),
        ({"epsilon": 1.0, "steps": (1.0, 1.1)}, "decay of steps"),
        ({"epsilon": 1.0, "burn_in": -1}, "burn_in"),
        ({"epsilon": 1.0, "burn_in": 1}, "burn_in"),
    ):
        with pytest.raises(ValueError, match=message):
            local.glm(X, y, **options)
    with pytest.raises(TypeError, match="intercept"):
        local.glm(X, y, epsilon=1.0, intercept=1)
    with pytest.raises(TypeError, match="rng"):
        local.glm(X, y, epsilon=1.0, rng=7)
    for other in ([1.0, 2.0], [[1.0]], []):
        with pytest.raises(ValueError, match=r"X and y|y must|empty"):
            local.glm(X, other, epsilon=1.0)
    with pytest.raises(ValueError, match="empty"):
        local.glm(np.empty((0, 2)), [], epsilon=1.0)
    with pytest.raises(ValueError, match="X must"):
        local.GradientDescent(3, 1.0)(X, y)


def test_messages_that_do_not_fit_are_refused():
    protocol = local.GradientDescent(2, 1.0)
    state = protocol.begin()
    for theta in ([0.0], [0.0, math.nan], [0.0, math.inf], [0.0, 11.0]):
        with pytest.raises(ValueError, match="theta"):
            protocol.respond(theta, [0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="x must"):
        protocol.respond(state.theta, [0.0], 1.0)
    with pytest.raises(TypeError, match="uint64"):
        protocol.update(state, 3)
    with pytest.raises(ValueError, match="one report"):
        protocol.update(state, np.zeros(2, np.uint64))
    with pytest.raises(ValueError, match="burn_in"):
        protocol.estimate(state)


def test_covariance_refuses_unsupported_arguments():
    protocol = local.GradientDescent(2, 1.0)
    with pytest.raises(ValueError, match="singular"):
        protocol.covariance(10, [[1.0, 1.0], [0.5, 0.5]], [0.0, 0.0])
    with pytest.raises(ValueError, match="design"):
        protocol.covariance(10, [[1.0]], [0.0, 0.0])
    with pytest.raises(ValueError, match="decay"):
        local.GradientDescent(2, 1.0, steps=(1.0, 0.5)).covariance(10, np.eye(2), [0.0, 0.0])


@pytest.mark.parametrize("kind", ["l2", "linf"])
def test_a_state_of_another_protocol_is_refused(kind):
    """The kernels write into the state: its shape is checked first."""
    protocol, other = local.GradientDescent(3, 1.0, norm=kind), local.GradientDescent(2, 1.0, norm=kind)
    report = protocol.respond(protocol.begin().theta, [0.1, 0.2, 0.3], 1.0)
    with pytest.raises(ValueError, match="the state must hold 3 coefficients"):
        protocol.update(other.begin(), report)
    with pytest.raises(ValueError, match="the state must hold 3 coefficients"):
        protocol.update(protocol.begin()._replace(total=np.zeros(2)), report)
    with pytest.raises(ValueError, match="y must be one number"):
        protocol.respond(protocol.begin().theta, [0.1, 0.2, 0.3], [1.0, 2.0])


def test_hardly_noisy_labels():
    """A deviation far below the clip counts as 0, without 0 times infinity."""
    protocol = local.GradientDescent(1, 1.0, model="linear")
    tiny, none = (protocol.covariance(100, [[1.0]], [0.0], deviation=s) for s in (1e-200, 0.0))
    np.testing.assert_array_equal(tiny, none)
