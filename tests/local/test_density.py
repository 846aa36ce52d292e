"""Densities under local privacy: the window on the circle exactly, errors against formulas, shapes, bytes, threats."""

import doctest
import importlib
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.integrate import trapezoid
from scipy.stats import beta, norm

import dpfast as dpf
from dpfast import Grid, audit, local
from dpfast.core.coin import coin
from dpfast.local.waves import Circle, best_method, circle
from tests.reference import circle as reference
from tests.reference import local as words_reference
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA, chi_square_rejects, kolmogorov_rejects

UNIT = Grid(0, 1)
LIMIT = norm.isf(ALPHA / 2)
METHODS = ("one-frequency", "halfspace", "majority", "subset")
EVERY = [local.SeriesReports(4, 1.0, grid=UNIT, method=method, basis="trigonometric") for method in METHODS] + [
    local.SeriesReports(3, 2.0, grid=Grid(-5, 20, step=0.25), basis="cosine"),
    local.SeriesReports(70, 1.0, grid=UNIT, method="majority", basis="cosine"),
]
every = pytest.mark.parametrize("survey", EVERY, ids=lambda s: f"{s.terms} {s.method} {s.basis}")


def exceeds(ratio, epsilon):
    with mpmath.workdps(60):
        return bool(mpmath.mpf(ratio.numerator) / ratio.denominator > mpmath.exp(mpmath.mpf(epsilon)))


def waves(u, terms, basis="trigonometric"):
    """phi_1..phi_terms by definition."""
    u = np.asarray(u)
    if basis == "cosine":
        return np.sqrt(2) * np.cos(np.pi * np.outer(u, np.arange(1, terms + 1)))
    angles = 2 * np.pi * np.outer(u, np.arange(1, terms // 2 + 1))
    return np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(u), terms)


def beta_coefficients(terms=60):
    u = (np.arange(20_000) + 0.5) / 20_000
    return beta(10, 10).pdf(u) @ waves(u, terms) / u.size


# ---- the window on the circle ----


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("directions", [4, 8, 32])
def test_the_circle_is_private_and_unbiased_by_enumeration(directions, epsilon):
    """All directions, and angles between them: the ratio over all pairs equals that of the coin, exactly."""
    window = Circle(epsilon, directions)
    p = window.coin.probability
    parts = (Fraction(0), Fraction(1, 2**20), Fraction(1, 2), Fraction(7, 8))
    laws = {}
    for i, part in itertools.product(range(directions), parts):
        turns = (i + part) / directions
        laws[turns] = window.pmf(int(turns * 2**64))
        assert laws[turns] == reference.law(turns, directions, window.width, p)
        assert sum(laws[turns]) == 1
    ratio = words_reference.largest_ratio(laws.values())
    assert ratio == window.coin.ratio
    assert not exceeds(ratio, epsilon)
    rho = float(window.shrink)
    for turns, pmf in laws.items():
        along = reference.mean(pmf) * np.exp(-2j * math.pi * float(turns))
        bend = (2 * math.pi / directions) ** 2 / 8 if turns * directions % 1 else 0.0
        assert abs(along / rho - 1) <= 1.3 * bend + 1e-7


@pytest.mark.parametrize("epsilon", [2.0**-40, 0.05, 0.5, 1.0, 2.0, 5.0, 12.0, 40.0])
def test_the_width_is_the_best(epsilon):
    ratio = math.exp(epsilon)
    for directions in (8, 64, 256):
        found = Circle(epsilon, directions).width
        best = max(reference.shrink(directions, w, ratio) for w in range(1, directions // 2 + 2, 2))
        assert reference.shrink(directions, found, ratio) >= best * (1 - 1e-7)
    assert circle(epsilon).width % 2
    assert circle(epsilon).width <= 2**15


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_many_directions_are_privunit(epsilon):
    """16 bits come within 1e-6 of the cap of real arithmetic; 8 bits within 2 %; a half circle stays above."""
    cap = local.L2Ball(2, epsilon, method="privunit").scale
    assert 1 / float(circle(epsilon).shrink) == pytest.approx(cap, rel=1e-6)
    assert 1 / float(Circle(epsilon, 256).shrink) == pytest.approx(cap, rel=0.02)
    assert local.L2Ball(2, epsilon).scale > 1.01 * cap


def test_controls_of_the_same_enumeration():
    """One direction of the window unprotected; an ideal coin's odds forgotten: the ratio shows it."""
    window = Circle(1.0, 16)
    laws = [window.pmf(i * 2**60) for i in range(16)]
    for pmf, i in zip(laws, range(16), strict=True):
        pmf[i], pmf[(i + 8) % 16] = pmf[i] + pmf[(i + 8) % 16], Fraction(0)
    assert words_reference.largest_ratio([[p or Fraction(1, 10**9) for p in pmf] for pmf in laws]) > window.coin.ratio
    p = coin(1.0).probability
    laws = [reference.law(Fraction(i, 16), 16, 5, p) for i in range(16)]
    assert exceeds(words_reference.largest_ratio(laws), 1.0)


@pytest.mark.parametrize("directions", [8, 2**9])
def test_the_sampler_is_its_twin(directions):
    window, n = Circle(1.0, directions), 200
    rng = np.random.default_rng(1)
    turns = rng.integers(0, 2**64, n, dtype=np.uint64)
    turns[:4] = 0, 2**64 - 1, 2**63, 2**48 - 1
    script = [int(w) for w in rng.integers(0, 2**64, 4 * n, dtype=np.uint64)]
    script[0], script[1] = 2**64 - 1, 2**64 - 1
    out = np.empty(n, np.uint32)
    window.fill(ScriptedBits(script), turns, out)
    offsets = words_reference.windows(
        words_reference.Words(script[n:]), [0] * n, window.width, directions, window.coin.threshold
    )
    assert out.tolist() == reference.directions(turns.tolist(), script[:n], offsets, directions, window.width)


@pytest.mark.parametrize(("epsilon", "wrong"), [(1.0, False), (0.9, True), (1.1, True)])
def test_reports_follow_the_law(epsilon, wrong):
    """Two frequencies, directions in cells of 1024, against the exact law and neighbours of it."""
    survey, x, n = local.SeriesReports(4, 1.0, grid=UNIT, basis="trigonometric"), 0.3, 400_000
    reports = survey.randomize(np.full(n, x), rng=PCG64(1))
    counts = np.bincount(reports >> 10, minlength=128)
    pmf = [float(p) for p in local.SeriesReports(4, epsilon, grid=UNIT, basis="trigonometric").law(x).pmf]
    assert chi_square_rejects(counts, np.reshape(pmf, (128, -1)).sum(axis=1)) == wrong


# ---- formulas of the specification ----


@pytest.mark.parametrize(
    ("terms", "majority", "halfspace", "one"),
    [(4, 0.019249, 0.018468, 0.018270), (6, 0.004286, 0.002511, 0.001968), (8, 0.007634, 0.004409, 0.003353)],
)
def test_acceptance_errors(terms, majority, halfspace, one):
    """Mean integrated squared errors of Beta(10, 10), epsilon = 1, n = 1e5."""
    b = beta_coefficients()
    expected = {"majority": majority, "halfspace": halfspace, "one-frequency": one}
    for method, error in expected.items():
        assert local.SeriesReports(terms, 1.0, grid=UNIT, method=method, basis="trigonometric").mise(
            100_000, b
        ) == pytest.approx(error, abs=6e-7)
    assert local.SeriesReports(terms, 1.0, grid=UNIT, basis="trigonometric").method == "one-frequency"


def test_acceptance_second_moments():
    """E|Z|^2 / terms^2 at epsilon = 1, and who is best at others."""
    expected = {
        "majority": {2: 11.08, 8: 11.95, 50: 13.36},
        "halfspace": {2: 5.777, 8: 6.911, 50: 7.282},
        "subset": {2: 9.365, 8: 9.365, 50: 9.365},
        "one-frequency": {2: 5.2609, 8: 5.2609, 50: 5.2609},
    }
    for method, row in expected.items():
        for terms, moment in row.items():
            found = (
                local.SeriesReports(terms, 1.0, grid=UNIT, method=method, basis="trigonometric").second_moment
                / terms**2
            )
            assert found == pytest.approx(moment, abs=6e-3 if method == "majority" else 6e-4)
    assert math.sqrt(
        local.SeriesReports(2, 1.0, grid=UNIT, method="halfspace", basis="trigonometric").second_moment
    ) == pytest.approx(2 * coin(1.0).gain * math.pi / math.sqrt(8))
    assert [best_method(8, epsilon, "trigonometric")[0] for epsilon in (0.1, 1, 4, 8)] == ["one-frequency"] * 3 + [
        "subset"
    ]
    assert best_method(8, 1.0, "cosine")[0] == "subset"


def simulated_mise(survey, n, runs, scale=1.0, seed=1):
    """Per run: the integrated squared error within the terms, by Parseval."""
    records = Generator(PCG64(seed)).beta(10, 10, n * runs)
    vectors = survey.decode(survey.randomize(records, rng=PCG64(seed + 1))) * scale
    b = beta_coefficients()[: survey.terms]
    return np.square(vectors.reshape(runs, n, survey.terms).mean(axis=1) - b).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_simulated_errors_match_the_formula(method):
    survey, n, runs = local.SeriesReports(6, 1.0, grid=UNIT, method=method, basis="trigonometric"), 50, 10_000
    expected = survey.mise(n, beta_coefficients()[:6])

    def rejects(scale):
        errors = simulated_mise(survey, n, runs, scale)
        return abs(errors.mean() - expected) > LIMIT * errors.std() / math.sqrt(runs)

    assert not rejects(1.0)
    assert rejects(0.9)
    assert rejects(1.1)


@every
def test_means_and_variances(survey):
    n, x = 100_000, survey.grid.lower + 0.3 * (survey.grid.upper - survey.grid.lower)
    vectors = survey.decode(survey.randomize(np.full(n, x), rng=PCG64(2)))
    u = (survey.grid.encode([x])[0] + 0.5) / survey.grid.size
    phi = waves([u], survey.terms, survey.basis)[0]

    def rejects(scale):
        z = np.abs(vectors.mean(axis=0) * scale - phi) / (vectors.std(axis=0) / math.sqrt(n))
        return z.max() > LIMIT

    assert not rejects(1.0)
    assert rejects(0.9) or survey.terms == 70
    assert rejects(1.3)
    squares = np.square(vectors).sum(axis=1)
    assert abs(squares.mean() - survey.second_moment) <= LIMIT * squares.std() / math.sqrt(n) + 1e-6 * squares.mean()
    assert survey.variance(x) == pytest.approx(survey.second_moment - phi @ phi)
    assert survey.variance([x, x]).tolist() == [survey.variance(x)] * 2
    assert survey.variance(x) <= survey.variance() * (1 + 1e-12)
    worst = np.square(vectors).mean(axis=0).max()
    assert worst <= n * survey.error(n, 0.6826894921370859) ** 2 * (1 + 6 * math.sqrt(3 / n)) + 0.05 * worst


def test_the_error_of_a_coefficient_is_reached_at_the_worst_record():
    """E Z_1^2 of one frequency at u = 0 is its largest; the half width covers as often as it says."""
    survey, n, runs = local.SeriesReports(2, 2.0, grid=UNIT, basis="trigonometric"), 400, 400
    vectors = survey.decode(survey.randomize(np.zeros(n * runs), rng=PCG64(3)))
    first = np.square(vectors[:, 0])
    moment = n * survey.error(n, 0.6826894921370859) ** 2
    assert abs(first.mean() - moment) < LIMIT * first.std() / math.sqrt(first.size)
    assert abs(first.mean() * 1.1 - moment) > LIMIT * first.std() / math.sqrt(first.size)
    errors = np.abs(vectors[:, 1].reshape(runs, n).mean(axis=1))
    assert np.count_nonzero(errors <= survey.error(n, 0.9)) >= 0.9 * runs - 6.2 * math.sqrt(runs * 0.09)


def test_mise_and_its_bound():
    survey = local.SeriesReports(6, 1.0, grid=Grid(0, 10), basis="trigonometric")
    b = 0.5 * np.arange(1.0, 41) ** -2.5
    width = 10 * (1 + 2.0**-31)
    assert survey.mise(1000, b) * width == pytest.approx(
        (survey.second_moment - b[:6] @ b[:6]) / 1000 + b[6:] @ b[6:], rel=1e-8
    )
    c = math.sqrt(sum((j + 1) ** 4 * v * v for j, v in enumerate(b)))
    assert survey.mise(1000, b) <= survey.mise_bound(1000, smoothness=2, roughness=c)
    assert survey.mise_bound(10**9, roughness=3.0) * width == pytest.approx(9 * 7.0**-4, rel=1e-3)


# ---- privacy, certified and attacked ----


@pytest.mark.parametrize("method", ["one-frequency", "majority", "subset"])
def test_certified(method):
    survey = local.SeriesReports(
        2 if method == "one-frequency" else 4, 1.0, grid=Grid(0, 7, step=1.0), method=method, basis="trigonometric"
    )
    certificate = audit.verify(survey, values=5)
    assert certificate.holds
    assert certificate.epsilon > 0.6
    assert certificate.pairs == 20


def test_the_certificate_is_reached_and_a_wrong_claim_refuted():
    survey = local.SeriesReports(2, 1.0, grid=Grid(0, 3, step=1.0), basis="trigonometric")
    assert audit.verify(survey, values=2).epsilon == pytest.approx(1.0, abs=1e-12)

    class Claimed:
        privacy, grid = dpf.Privacy(0.99, neighbors="local"), survey.grid

        def law(self, x):
            return survey.law(x)

    assert not audit.verify(Claimed(), values=2).holds


@pytest.mark.parametrize("method", METHODS)
def test_nothing_distinguishes_more_than_epsilon(method):
    """T16: u = 0.2 has its window from direction 0 on."""
    make = {"grid": UNIT, "method": method, "basis": "trigonometric"}
    survey = local.SeriesReports(2, 1.0, **make)
    assert audit.distinguish(survey, 0.2, 0.7, trials=100_000, rng=PCG64(1)) <= 1

    class Wrong:
        privacy, randomize = survey.privacy, local.SeriesReports(2, 2.5, **make).randomize

    if method in ("one-frequency", "majority"):
        assert audit.distinguish(Wrong(), 0.2, 0.7, trials=100_000, rng=PCG64(1)) > 1


@every
def test_every_bit_flips_both_ways(survey):
    """T9, for records at the ends, in the middle and without a number."""
    for x in (-math.inf, survey.grid.lower, survey.grid.upper, math.nan):
        reports = survey.randomize(np.full(40_000, x), rng=PCG64(4)).reshape(40_000, -1)
        octets = reports.astype(reports.dtype.newbyteorder("<")).view(np.uint8)
        bits = np.unpackbits(octets, axis=1, bitorder="little").mean(axis=0)
        free = {"one-frequency": 17, "majority": survey.terms}.get(survey.method)
        if survey.method == "subset":
            k = survey._method._vectors.k
            assert np.all((bits > 0.02) == (np.arange(bits.size) < (bits.size - 64 + k if k < survey.terms else k)))
        elif free:
            assert np.all((bits > 0.1) & (bits < 0.9) == (np.arange(bits.size) < free))
            assert np.all(bits[free:] == 0)
        else:
            assert np.all((bits > 0.1) & (bits < 0.9))


AWKWARD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 0.3]


@every
def test_shape_and_type_depend_on_public_things_only(survey):
    """T10, without warnings."""
    seen = set()
    for value in AWKWARD:
        reports = survey.randomize([0.1, value, 0.2], rng=PCG64(1))
        one = survey.randomize(value, rng=PCG64(1))
        decoded = survey.decode(reports)
        assert np.isfinite(decoded).all()
        assert np.isfinite(survey.variance(value))
        seen.add((reports.shape, reports.dtype, decoded.shape, one.shape, survey.decode(one).shape))
    assert len(seen) == 1
    assert survey.decode(survey.randomize([])).shape == (0, survey.terms)


def test_awkward_records_follow_the_docstring():
    grid = Grid(0, 10, missing=4.0)
    for make in ({"method": "one-frequency", "basis": "trigonometric"}, {"basis": "cosine"}):
        survey = local.SeriesReports(2, 1.0, grid=grid, **make)
        for x, twin in ((math.nan, 4.0), (math.inf, 10.0), (-5.0, 0.0), (1e300, 10.0)):
            a, b = (survey.randomize(np.full(100, v), rng=PCG64(1)) for v in (x, twin))
            np.testing.assert_array_equal(a, b)
        low, high = (survey.estimate(survey.randomize(np.full(200_000, v), rng=PCG64(2)))[0] for v in (0.0, 10.0))
        assert abs(low - math.sqrt(2)) < LIMIT * survey.error(200_000, 0.6827)
        assert abs(high - math.sqrt(2) * (1 if "method" in make else -1)) < LIMIT * survey.error(200_000, 0.6827)


# ---- reports: sums, bytes, streams ----


@every
def test_aggregates_merge_and_bytes_come_back(survey):
    x = Generator(PCG64(1)).uniform(survey.grid.lower, survey.grid.upper, 1000)
    reports = survey.randomize(x, rng=PCG64(2))
    whole = survey.aggregate(reports)
    parts = survey.aggregate(reports[:300]) + survey.aggregate(reports[300:], workers=2)
    assert whole.n == parts.n == 1000
    np.testing.assert_allclose(whole.sums, parts.sums, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(survey.estimate(parts), survey.decode(reports).mean(axis=0), atol=1e-9)
    again = local.Aggregate.from_bytes(whole.to_bytes())
    np.testing.assert_array_equal(survey.estimate(again), survey.estimate(reports))
    data = survey.to_bytes(reports)
    assert len(data) == 1000 * survey.report.itemsize
    np.testing.assert_array_equal(survey.from_bytes(data), reports)
    with pytest.raises(ValueError, match="bytes"):
        survey.from_bytes(data + b"x")
    with pytest.raises(ValueError, match="at least one report"):
        survey.estimate(reports[:0])
    with pytest.raises(TypeError, match="array of"):
        survey.decode(reports.astype(np.float32))
    with pytest.raises(ValueError, match="sums"):
        survey.estimate(local.Aggregate(3, np.zeros(survey.terms + 1)))


def test_a_million_reports_travel_as_bytes_and_merge_exactly():
    survey, n = local.SeriesReports(6, 1.0, grid=UNIT, basis="trigonometric"), 1_000_000
    x = Generator(PCG64(1)).beta(10, 10, n)
    reports = survey.randomize(x, rng=PCG64(2), workers=2)
    np.testing.assert_array_equal(reports, survey.randomize(x, rng=PCG64(2)))
    data = survey.to_bytes(reports)
    assert len(data) == 4 * n
    received = survey.from_bytes(data)
    assert np.array_equal(received, reports)
    whole = survey.aggregate(received)
    assert survey.aggregate(received[::-1]) == whole == survey.aggregate(received[:7]) + survey.aggregate(received[7:])
    assert np.abs(survey.estimate(whole) - beta_coefficients()[:6]).max() < LIMIT * survey.error(n, 0.6827)


@every
def test_dtypes_strides_and_inputs_left_alone(survey):
    x = Generator(PCG64(1)).integers(0, 2, 50).astype(float)
    expected = survey.randomize(x, rng=PCG64(2))
    wide = np.zeros(100)
    wide[::2] = x
    locked = x.copy()
    locked.flags.writeable = False
    for other in (x.astype(np.float32), x.astype(np.int8), x.astype(bool), wide[::2], locked, x.tolist()):
        before = np.array(other)
        np.testing.assert_array_equal(survey.randomize(other, rng=PCG64(2)), expected)
        np.testing.assert_array_equal(other, before)
    assert len({row.tobytes() for row in survey.randomize(np.zeros(2000))}) > 10


@every
def test_frozen_hashable_picklable(survey):
    again = pickle.loads(pickle.dumps(survey))
    assert again == survey
    assert hash(again) == hash(survey)
    assert survey.privacy == dpf.Privacy(survey.epsilon, neighbors="local")
    assert eval(repr(survey), {"SeriesReports": local.SeriesReports, "Grid": Grid}) == survey


# ---- the density ----


def test_density_of_a_million():
    x = Generator(PCG64(1)).beta(10, 10, 1_000_000)
    density = local.density(x, bounds=(0, 1), epsilon=1.0, basis="trigonometric", rng=PCG64(2))
    assert density.n == 1_000_000
    assert density.coefficients.size == 14
    u = np.linspace(0, 1, 20_001)
    assert trapezoid(density.pdf(u), u) == pytest.approx(1, abs=1e-6)
    assert np.mean((density.pdf(u) - beta(10, 10).pdf(u)) ** 2) < 2 * density.randomizer.mise(
        1_000_000, beta_coefficients()
    )
    assert not kolmogorov_rejects(density.sample(100_000, PCG64(3)), density.cdf)
    assert kolmogorov_rejects(density.sample(100_000, PCG64(3)) + 0.01, density.cdf)
    assert density.quantile(0.5) == pytest.approx(0.5, abs=0.01)
    assert density.informative
    assert not local.density(x[:20], bounds=(0, 1), epsilon=0.5, terms=6).informative
    assert density.error() == density.randomizer.mise_bound(1_000_000, roughness=6.0)
    again = pickle.loads(pickle.dumps(density))
    assert np.array_equal(again.pdf(u), density.pdf(u))
    assert again.randomizer == density.randomizer
    assert repr(density).startswith("<LocalDensity of 14 trigonometric terms")


def test_evaluation_is_the_sum_of_its_terms():
    coefficients = Generator(PCG64(1)).normal(0, 0.01, 30)
    survey = local.SeriesReports(30, 1.0, grid=Grid(2, 4), basis="trigonometric")
    density = local.LocalDensity(coefficients, survey.grid, 5, survey.privacy, "trigonometric", randomizer=survey)
    x = np.linspace(2, 4, 999)
    u = (x - 2 + survey.grid.step / 2) / (survey.grid.size * survey.grid.step)
    np.testing.assert_allclose(density.pdf(x) * 2, 1 + waves(u, 30) @ coefficients, rtol=1e-8)


@pytest.mark.parametrize("basis", ["trigonometric", "cosine"])
@pytest.mark.parametrize("n", [1, 100, 10_000, 200_000])
def test_the_automatic_number_of_terms_has_the_least_bound(basis, n):
    step = 2 if basis == "trigonometric" else 1
    for epsilon, smoothness, roughness in ((1.0, 2.0, 1.0), (3.0, 1.0, 10.0)):
        options = {"smoothness": smoothness, "roughness": roughness}
        density = local.density(np.zeros(n), bounds=(0, 1), epsilon=epsilon, basis=basis, **options)
        terms = range(step, 81, step)
        bounds = [local.SeriesReports(k, epsilon, grid=UNIT, basis=basis).mise_bound(n, **options) for k in terms]
        assert density.coefficients.size == terms[int(np.argmin(bounds))] < 80


def test_density_takes_a_method_a_basis_and_a_grid():
    x = Generator(PCG64(1)).exponential(3.0, 200_000)
    cosine = local.density(x, bounds=(0, 10), epsilon=2.0, basis="cosine", roughness=4.0, rng=PCG64(1))
    assert cosine.basis == "cosine"
    assert cosine.pdf(0.2) > 3 * cosine.pdf(9.8)
    assert abs(cosine.cdf(3.0) - (1 - math.exp(-1))) < 0.05
    hours = Generator(PCG64(2)).integers(0, 24, 1000)
    density = local.density(hours, bounds=(0, 23), epsilon=1.0, terms=4, method="halfspace", basis="trigonometric")
    assert density.grid == Grid(0, 23, step=1.0)
    assert density.randomizer.method == "halfspace"
    assert set(density.sample(500)) <= set(range(24))
    assert local.density(hours, grid=Grid(0, 23, step=1.0), epsilon=1.0, method="series").grid.size == 24


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_the_default_series_assumes_no_periodicity(n):
    """Exponential records, high at one bound and low at the other; the periodic series, by name, stays wrong."""
    x = np.linspace(0, 1, 2001)
    truth = 1 - np.exp(-x / 0.2)

    def worst(**options):
        records = Generator(PCG64(1)).exponential(0.2, n)
        density = local.density(records, bounds=(0, 1), epsilon=1.0, rng=PCG64(2), **options)
        return density, np.abs(density.cdf(x) - truth)[:-1].max()

    density, error = worst(method="series")
    assert density.basis == density.randomizer.basis == local.SeriesReports(2, 1.0, grid=UNIT).basis == "cosine"
    assert pickle.loads(pickle.dumps(density)).basis == "cosine"
    assert density.pdf(0.0) > 4 * density.pdf(0.9)
    periodic, wrong = worst(basis="trigonometric")
    assert periodic.pdf(0.0) == pytest.approx(periodic.pdf(1.0), rel=1e-6)
    assert error < {10_000: 0.08, 100_000: 0.03}[n] < wrong


def test_parameters():
    make = local.SeriesReports
    for wrong in (0, -1, math.nan, math.inf, 2.0**-41):
        with pytest.raises(ValueError, match="epsilon"):
            make(2, wrong, grid=UNIT)
    with pytest.raises(ValueError, match="even"):
        make(3, 1.0, grid=UNIT, basis="trigonometric")
    with pytest.raises(ValueError, match="terms must be at most 7"):
        make(8, 1.0, grid=Grid(0, 7, step=1.0))
    with pytest.raises(TypeError, match=r"dpfast\.Grid"):
        make(2, 1.0, grid=(0, 1))
    with pytest.raises(ValueError, match="method"):
        make(2, 1.0, grid=UNIT, method="best")
    with pytest.raises(ValueError, match="pairs"):
        make(2, 1.0, grid=UNIT, method="one-frequency")
    with pytest.raises(ValueError, match="basis"):
        make(2, 1.0, grid=UNIT, basis="walsh")
    with pytest.raises(ValueError, match="more than 2"):
        make(2, 1.0, grid=UNIT, method="halfspace", basis="trigonometric").law(0.5)
    with pytest.raises(ValueError, match="2\\*\\*20"):
        make(34, 1.0, grid=UNIT, basis="trigonometric").law(0.5)
    with pytest.raises(ValueError, match="at least 6"):
        make(6, 1.0, grid=UNIT).mise(10, [1.0, 2.0])
    assert make(2, 800.0, grid=UNIT, basis="trigonometric").second_moment == pytest.approx(2.0, rel=1e-6)
    ok = {"bounds": (0, 1), "epsilon": 1.0}
    for wrong, error, match in (
        ({"bounds": None}, TypeError, "either bounds"),
        ({"grid": UNIT}, TypeError, "either bounds"),
        ({"terms": "many"}, ValueError, "terms"),
        ({"terms": 0}, ValueError, "terms"),
        ({"smoothness": 0.5}, ValueError, "smoothness"),
        ({"roughness": 0.0}, ValueError, "roughness"),
        ({"method": "best"}, ValueError, "method"),
        ({"method": "square-wave", "terms": 4}, ValueError, "are of series"),
        ({"method": "square-wave", "basis": "cosine"}, ValueError, "are of series"),
        ({"workers": 0}, ValueError, "workers"),
        ({"rng": 7}, TypeError, "rng"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
    ):
        with pytest.raises(error, match=match):
            local.density([["not read"]], **{**ok, **wrong})
    with pytest.raises(ValueError, match="empty"):
        local.density([], **ok)


def test_docstring_examples():
    tests = doctest.testmod(importlib.import_module("dpfast.local.series"))
    assert tests.attempted > 5
    assert tests.failed == 0
