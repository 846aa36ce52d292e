"""Influence functions against their definitions, and bounds and sample sizes against simulation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast import theory
from dpfast.statistics import Huber, LinearQuantile, Mean, Median, Quantile, RankStatistic, Statistic, Sum, Variance
from tests.cases import every
from tests.reference.statistics import CASES, RANK_CASES

ETA = 0.05


def mean(values, weights):
    return float(values @ weights)


def slow_quantile(points, level):
    """inf{t : F(t) >= level} of [(value, exact mass)]."""
    total = Fraction(0)
    for value, mass in sorted(points):
        total += mass
        if mass and total >= level:
            return value
    raise AssertionError


@pytest.mark.parametrize("rho", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("q", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_influence_of_quantiles_is_exact(q, rho):
    statistic = Median() if q == 0.5 else Quantile(q)
    level = Fraction(str(q))
    for n in range(1, 5):
        for data in itertools.combinations_with_replacement([0.0, 1.0, 3.0], n):
            before = slow_quantile([(v, Fraction(1, n)) for v in data], level)
            for at in (-2.0, 0.0, 0.5, 1.0, 2.0, 9.0):
                mixture = [*((v, (1 - rho) / n) for v in data), (at, rho)]
                expected = float((Fraction(slow_quantile(mixture, level)) - Fraction(before)) / rho)
                assert theory.influence_function(statistic, np.array(data), at, rho) == expected


def test_influence_of_the_quantile_starts_from_its_rank():
    x = np.random.default_rng(0).normal(size=101)
    for q in (0.0, 0.25, 0.5, 0.9, 1.0):
        k = Quantile(q).rank(101)
        same = np.sort(x)[k - 1]
        assert theory.influence_function(Quantile(q), x, same, 1e-9) == 0


def test_influence_of_a_linear_functional_is_the_same_at_every_scale():
    x = np.random.default_rng(0).uniform(size=20)
    for rho in (1e-3, 0.1, 1.0):
        assert theory.influence_function(mean, x, 2.0, rho) == pytest.approx(2 - x.mean())
    found = theory.gross_error_sensitivity(mean, x, 0.1, bounds=(0, 1))
    assert found == pytest.approx(max(x.mean(), 1 - x.mean()))


def test_gross_error_sensitivity_is_the_largest_influence():
    x = np.random.default_rng(1).integers(0, 10, 15).astype(float)
    found = theory.gross_error_sensitivity(Quantile(0.3), x, 0.2, bounds=(0, 10))
    assert found == max(abs(theory.influence_function(Quantile(0.3), x, at, 0.2)) for at in np.linspace(0, 10, 201))
    assert theory.gross_error_sensitivity(Quantile(1.0), x, 0.01) == math.inf


def test_a_search_finds_peaks_of_a_callable_inside_the_domain():
    """A peak between points of the mesh, one at a record, and one that only `points` shows."""
    x = np.array([2.0, 3.0, 3.0, 3.0, 8.0])
    for place, width, points in ((5.0337, 0.3, None), (8.0, 1e-6, None), (6.123, 1e-6, [6.123])):
        bump = lambda values, weights, a=place, w=width: float(np.exp(-(((values - a) / w) ** 2)) @ weights)  # noqa: E731
        found = theory.gross_error_sensitivity(bump, x, 0.2, bounds=(0, 10), points=points)
        assert found == pytest.approx(abs(theory.influence_function(bump, x, place, 0.2)), rel=1e-3)
    assert theory.gross_error_sensitivity(bump, x, 0.2, bounds=(0, 10)) < 0.5 * found
    with pytest.raises(ValueError, match="bounds"):
        theory.gross_error_sensitivity(bump, x, 0.2, bounds=(0, math.inf))


def is_functional(statistic):
    return type(statistic).functional is not Statistic.functional


STATISTICS = {name: case.statistic for name, case in CASES.items() if is_functional(case.statistic)}
STATISTICS |= {"huber": Huber(1.5), "wide huber": Huber(100)}
TWINS = {case.statistic: case.twin for case in RANK_CASES.values()}


def records_of(points):
    """A sample with this distribution: masses as numbers of equal records, of a size that every trim divides."""
    size = math.lcm(20, *(mass.denominator for _, mass in points))
    return sorted(value for value, mass in points for _ in range(int(mass * size)))


def slow_value(statistic, points):
    """The statistic as it is defined on a sample, in fractions; Huber's by trying every piece between corners."""
    x = [Fraction(value) for value in records_of(points)]
    n = len(x)
    if isinstance(statistic, Variance):
        return sum(v * v for v in x) / n - (sum(x) / n) ** 2
    if isinstance(statistic, LinearQuantile):  # the limit of many copies, between which there is no gap
        return sorted(x)[max(1, math.ceil(Fraction(str(statistic.q)) * n)) - 1]
    if not isinstance(statistic, Huber):
        return TWINS[statistic](x) / Fraction(statistic.codes_per_step(n))
    k = Fraction(str(statistic.k))
    score = lambda theta: sum(max(-k, min(k, theta - v)) for v in x)  # noqa: E731
    corners = sorted({v + side * k for v in x for side in (-1, 1)})
    high = next(c for c in corners if score(c) >= 0)
    low = max(c for c in corners if c < high)
    return high if score(high) == score(low) else low - score(low) * (high - low) / (score(high) - score(low))


DATASETS = [(1.0,), (0.0, 0.0), (0.0, 1.5), (1.0, 4.0), (0.0, 1.0, 1.5), (0.0, 4.0, 4.0)]


@every("rho", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@every("name", STATISTICS)
def test_influence_of_every_statistic_is_exact(name, rho):
    statistic = STATISTICS[name]
    for data in DATASETS:
        n = len(data)
        before = slow_value(statistic, [(v, Fraction(1, n)) for v in data])
        for at in (-2.0, 0.5, 9.0):
            points = [*((v, (1 - rho) / n) for v in data), (at, rho)]
            expected = float((slow_value(statistic, points) - before) / rho)
            assert theory.influence_function(statistic, np.array(data), at, rho) == expected


@every("rho", [0.1, Fraction(1, 3), 1.0])
@every("name", STATISTICS)
def test_gross_error_sensitivity_of_every_statistic_is_the_supremum(name, rho):
    """The supremum over a mesh and the data points is attained; the ends alone do not attain it."""
    statistic = STATISTICS[name]
    for data in DATASETS:
        x = np.array(data)
        for bounds in ((0.0, 4.0), (-1.0, 5.0), (1.0, 2.0)):
            mean = Fraction(x.mean()) if len(data) != 3 else sum(map(Fraction, data)) / 3
            mesh = [*np.linspace(*bounds, 9), *(v for v in data if bounds[0] <= v <= bounds[1])]
            mesh += [min(max(mean, bounds[0]), bounds[1])]
            found = theory.gross_error_sensitivity(statistic, x, rho, bounds=bounds)
            assert found == max(abs(theory.influence_function(statistic, x, at, rho)) for at in mesh)


@every("rho", [0.1, 0.2, 0.3])
@every("name", STATISTICS)
def test_no_place_in_the_middle_is_worse(name, rho):
    """Among more records than above: the worst place for a statistic that is not monotone may be in the middle."""
    x = np.arange(20.0)
    found = theory.gross_error_sensitivity(STATISTICS[name], x, rho, bounds=(0, 19))
    mesh = [abs(theory.influence_function(STATISTICS[name], x, at, rho)) for at in np.linspace(0, 19, 39)]
    assert found >= max(mesh), "`turns` of the statistic needs the places where its influence turns"


@pytest.mark.parametrize(("name", "x"), [("variance", [0.0, 19.0]), ("iqr", np.arange(20.0))])
def test_the_ends_alone_are_not_the_worst_places(name, x):
    """Control of the above: mass in the middle takes more spread away than mass at the ends adds."""
    ends = [abs(theory.influence_function(STATISTICS[name], x, at, 0.2)) for at in (0.0, 19.0)]
    assert theory.gross_error_sensitivity(STATISTICS[name], x, 0.2, bounds=(0, 19)) > max(ends)


def test_gross_error_sensitivity_on_the_whole_line():
    x = np.arange(20.0)
    for name, rho, finite in [
        ("mean", 0.01, False),
        ("variance", 0.01, False),
        ("trimmed 0.2", 0.2, True),
        ("trimmed 0.2", 0.21, False),
        ("winsorized 0.2", 0.19, True),
        ("winsorized 0.2", 0.21, False),
        ("huber", 0.49, True),
        ("huber", 0.51, False),
        ("iqr", 0.24, True),
        ("iqr", 0.3, False),
        ("iqr", 0.8, True),
    ]:
        found = theory.gross_error_sensitivity(STATISTICS[name], x, rho)
        assert math.isfinite(found) == finite
        wide = [theory.gross_error_sensitivity(STATISTICS[name], x, rho, bounds=(-w, w)) for w in (1e3, 1e6)]
        assert (wide[0] == wide[1] == found) if finite else wide[0] < wide[1]


@every("name", STATISTICS)
def test_influence_is_exact_where_doubles_cancel(name):
    """A change of 1e-9 of the mass of data near 1e15, and data from 1e-300 to 1e300."""
    x = np.array([1e15, 1e15 + 0.125, 1e15 + 0.25, 1e15 + 2.0])
    found = theory.influence_function(STATISTICS[name], x, 1e15 + 1, Fraction(1, 10**9))
    near = theory.influence_function(STATISTICS[name], x - 1e15, 1.0, Fraction(1, 10**9))
    assert found == near
    assert math.isfinite(theory.influence_function(STATISTICS[name], [1e-300, -1e100, 1e150], 5e-324, 0.25))


def test_functionals_match_releases():
    """T(F) of a sample is the statistic that the mechanisms release, where trim n is whole; not between two records."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1000, 40) / 4.0
    grid = dpf.Grid(0, 250, step=0.25)
    for statistic in (each for each in STATISTICS.values() if not isinstance(each, LinearQuantile)):
        release = dpf.InverseSensitivity if isinstance(statistic, RankStatistic) else dpf.GlobalSensitivity
        released = release(statistic, grid=grid, epsilon=1e6)(x, rng=rng)
        moved = theory.influence_function(statistic, x, 100.0, Fraction(1))  # all mass: T(delta) - T(F)
        tolerance = {Huber: 0.25, Variance: 1e-6 * released}.get(type(statistic), 1e-9)  # of the grid, of the code
        far = slow_value(statistic, [(100.0, Fraction(1))])
        assert float(far) - moved == pytest.approx(released, abs=tolerance)


def test_the_sum_is_not_a_functional():
    with pytest.raises(TypeError, match="the sum is not a functional"):
        theory.influence_function(Sum(), [1.0], 0.0, 0.1)
    with pytest.raises(ValueError, match="x must be finite"):
        theory.influence_function(Mean(), [1.0, math.nan], 0.0, 0.1)


def test_inputs_are_not_modified():
    def rude(values, weights):
        values[:] = 0
        return 0.0

    x = np.array([3.0, 1.0, 2.0])
    x.flags.writeable = False
    assert theory.influence_function(rude, x, 1.0, 0.5) == 0
    theory.influence_function(Median(), x, 1.0, 0.5)
    assert x.tolist() == [3, 1, 2]


def test_influence_rejects():
    x = [1.0, 2.0]
    for rho in (0, -0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="contamination must be"):
            theory.influence_function(Median(), x, 0.0, rho)
    with pytest.raises(ValueError, match="at must be"):
        theory.influence_function(Median(), x, math.nan, 0.1)
    with pytest.raises(ValueError, match="at must be finite"):
        theory.influence_function(mean, x, math.inf, 0.1)
    with pytest.raises(ValueError, match="x is empty"):
        theory.influence_function(Median(), [], 0.0, 0.1)
    with pytest.raises(TypeError, match="statistic must be"):
        theory.influence_function("median", x, 0.0, 0.1)
    with pytest.raises(TypeError, match="give bounds"):
        theory.gross_error_sensitivity(mean, x, 0.1)
    with pytest.raises(ValueError, match="bounds must be in order"):
        theory.gross_error_sensitivity(mean, x, 0.1, bounds=(1, 0))


def expected_error(mechanism, x, target):
    law = mechanism.law(np.asarray(x, dtype=float))
    codes = np.arange(law.support[0], law.support[1] + 1)
    return float(law.pmf(codes) @ np.abs(np.asarray(law.value(codes)) - target))


@every("epsilon", [0.1, 0.5, 1.0, 3.0])
@every("n", [1, 2, 5])
def test_pure_lower_bound_holds_for_point_masses(epsilon, n):
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 64, step=1), epsilon=epsilon)
    worst = max(expected_error(mechanism, [tau] * n, tau) for tau in range(0, 65, 8))
    assert 0 < theory.pure_lower_bound(64, epsilon=epsilon, n=n) <= worst


def test_pure_lower_bound_values():
    assert theory.pure_lower_bound(8.0, epsilon=1.0, n=3) == pytest.approx(2 / (2 + math.exp(3)))
    assert theory.pure_lower_bound(1.0, epsilon=1e-9, n=1) == pytest.approx(1 / 12)
    assert theory.pure_lower_bound(1.0, epsilon=10, n=10**6) == 0  # underflow, not overflow
    falling = [theory.pure_lower_bound(1.0, epsilon=0.1, n=n) for n in range(1, 50)]
    assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize(("width", "epsilon", "n"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (math.inf, 1, 1)])
def test_pure_lower_bound_rejects(width, epsilon, n):
    with pytest.raises(ValueError, match=r"width|epsilon|n must"):
        theory.pure_lower_bound(width, epsilon=epsilon, n=n)


@pytest.mark.parametrize(("epsilon", "n"), [(0.34, 2), (0.2, 4), (0.1, 8), (0.1, 4)])
def test_lower_bound_holds_for_bernoulli_medians(epsilon, n):
    """F all at 0; G = (1 - rho) F + rho delta_1; T the mean or the median: the exact law of all samples."""
    rho = theory.lower_bound_scale(epsilon=epsilon, n=n)
    assert rho == Fraction(math.ceil(math.log(2) / 2 / epsilon), n)
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 1, step=2**-4), epsilon=epsilon)
    zeros = np.zeros(n)
    p = float(rho)
    for target_g in (p, float(theory.influence_function(Median(), zeros, 1.0, rho) * p)):  # the mean; the median
        error_f = expected_error(mechanism, zeros, 0.0)
        error_g = sum(
            math.comb(n, k) * p**k * (1 - p) ** (n - k) * expected_error(mechanism, [1] * k + [0] * (n - k), target_g)
            for k in range(n + 1)
        )
        assert theory.lower_bound(target_g / p, epsilon=epsilon, n=n) <= max(error_f, error_g)


def test_lower_bound_is_not_vacuous():
    """A constant answer is private: its error is |T(G) - T(F)| / 2 at best, eight times the bound."""
    assert 8 * theory.lower_bound(2.0, epsilon=0.1, n=100) == pytest.approx(2.0 * 0.04 / 2)


def test_proof_constants_of_theorem_1():
    for epsilon in np.linspace(1e-3, math.log(2) / 2, 200):
        assert math.ceil(math.log(2) / (2 * epsilon)) <= math.log(2) / epsilon
        assert epsilon / 23 < -math.expm1(-epsilon) / 16


@pytest.mark.parametrize("epsilon", [0.0, math.log(2) / 2, 1.0])
def test_lower_bound_rejects_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be strictly between"):
        theory.lower_bound(1.0, epsilon=epsilon, n=100)


def test_lower_bound_rejects():
    with pytest.raises(ValueError, match=r"delta must be below epsilon / 23"):
        theory.lower_bound(1.0, epsilon=0.23, delta=0.0101, n=100)
    theory.lower_bound(1.0, epsilon=0.23, delta=0.0099, n=100)
    with pytest.raises(ValueError, match="n must be at least 4, not 3"):
        theory.lower_bound(1.0, epsilon=0.1, n=3)
    with pytest.raises(ValueError, match="gross_error_sensitivity must be"):
        theory.lower_bound(-1.0, epsilon=0.1, n=30)


def smooth_sensitivity(x, beta, upper):
    """Of the lower median, replace-one, records in [0, upper]: equation (G)."""
    n = len(x)
    k = (n + 1) // 2
    padded = np.concatenate([np.zeros(1), np.sort(x), np.full(1, upper)])
    u, v = np.arange(n + 2 - k), np.arange(k + 1)
    gaps = padded[k + u][:, None] - padded[k - v][None, :]
    weights = np.exp(-beta * (u[:, None] + v[None, :] - 1.0))
    weights[0, 0] = 0
    return float((weights * gaps).max())


def test_lemma_1_holds_for_the_mean_and_fails_for_the_median_of_example_3():
    beta, n = 0.0362, 2001
    bound = theory.smooth_sensitivity_bound(1.0, width=1.0, beta=beta, n=n)
    assert 1 / n <= bound
    assert bound == pytest.approx(math.exp(-beta * (math.sqrt(n * math.log(40) / 2) - 1)))
    n = 100_001
    rng = np.random.default_rng(0)
    claimed = theory.smooth_sensitivity_bound(0.5, width=20.0, beta=beta, n=n)
    window = np.sort(rng.uniform(9, 11, n))[n // 2 - 500 : n // 2 + 501]  # farther terms weigh less than exp(-18)
    assert claimed * n == pytest.approx(1.0)
    assert (
        15 < smooth_sensitivity(window, beta, 20.0) * n < 50
    )  # 2 ln(1 / delta) / (e epsilon f) = 20.3, or a little more
    radius = math.sqrt(2 * math.log(2 / ETA) / n)
    honest = theory.smooth_sensitivity_bound(4 * n * radius, width=20.0, beta=beta, n=n)
    assert smooth_sensitivity(window, beta, 20.0) < honest


@pytest.mark.parametrize(("n", "least"), [(100, 109), (10**4, 1086), (10**6, 10865)])
def test_example_3_gross_error_sensitivity_in_the_ball(n, least):
    """U[-1, 1] with its distribution function flat at 1/2 on (-2r, 2r): one record moves the median across."""
    radius = math.sqrt(2 * math.log(2 / ETA) / n)
    points = np.array([-2 * radius, 2 * radius])  # half of the mass at or below the first, half at or above the second
    found = theory.gross_error_sensitivity(Median(), points, Fraction(1, n))
    assert found == pytest.approx(4 * n * radius)
    assert round(found) == least


@pytest.mark.parametrize("exponent", [0, 0.25, 0.5])
def test_appendix_e_holds_for_the_mean_and_the_median_in_its_ball(exponent):
    """For the mean of records in [0, 1] every Gamma is at most 1; for the median of U[9, 11] it is n times the gap."""
    beta, n = 0.0362, 2001
    assert theory.smooth_sensitivity_bound(1.0, width=1.0, beta=beta, n=n, exponent=exponent) >= 1 / n
    x = np.random.default_rng(0).uniform(9, 11, n)
    radius = math.sqrt(math.log(2 / ETA) / (2 * n)) + n**-exponent
    gap = 20.0 if radius >= 0.5 else min(20.0, 4 * radius)  # one record moves the median across
    honest = theory.smooth_sensitivity_bound(n * gap, width=20.0, beta=beta, n=n, exponent=exponent)
    assert smooth_sensitivity(x, beta, 20.0) <= honest
    if exponent < 0.5:  # Example 3's Gamma; with 1/2 the second term is still large here
        claimed = theory.smooth_sensitivity_bound(0.5, width=20.0, beta=beta, n=n, exponent=exponent)
        assert smooth_sensitivity(x, beta, 20.0) > claimed


def test_appendix_e_replaces_the_radius_of_lemma_1():
    settings = {"width": 3.0, "beta": 0.1, "n": 400}
    found = [theory.smooth_sensitivity_bound(0.0, exponent=p, **settings) for p in (0, 0.25, 0.5)]
    assert found == pytest.approx([3 * math.exp(-0.1 * (power - 1)) for power in (400, 400**0.75, 20)])
    upper = theory.smooth_upper_bound(1.0, width=1.0, epsilon=1.0, delta=1e-6, n=400, exponent=0.25)
    beta = 1 / (2 * math.log(1e6))
    lemma = theory.smooth_sensitivity_bound(1.0, width=1.0, beta=beta, n=400, confidence=0.975, exponent=0.25)
    assert upper == pytest.approx(2 * math.log(40) * lemma)
    with pytest.raises(ValueError, match="exponent must be at most 1/2"):
        theory.smooth_sensitivity_bound(1.0, exponent=0.6, **settings)
    with pytest.raises(ValueError, match="exponent must be at least 0"):
        theory.smooth_sensitivity_bound(1.0, exponent=-0.1, **settings)


def test_smooth_sensitivity_bound_rejects():
    for bad in ({"width": 0}, {"beta": -1}, {"n": 1}, {"confidence": 1.0}, {"confidence": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            theory.smooth_sensitivity_bound(1.0, **{"width": 1.0, "beta": 0.1, "n": 10, **bad})


def test_smooth_upper_bound_covers_the_mean():
    n, epsilon, delta = 400, 1.0, 1e-2
    rng = np.random.default_rng(0)
    bound = theory.smooth_upper_bound(1.0, width=1.0, epsilon=epsilon, delta=delta, n=n, confidence=0.9)
    eta = 0.05
    lemma = theory.smooth_sensitivity_bound(
        1.0, width=1.0, beta=epsilon / (2 * math.log(1 / delta)), n=n, confidence=1 - eta
    )
    assert bound == pytest.approx(2 * math.log(1 / eta) / epsilon * lemma)
    assert np.mean(np.abs(rng.laplace(0, 2 / (n * epsilon), 10_000)) <= bound) > 0.9


@every(
    "delta, limit",
    [(0.3, 4.6), (0.1, 6.7), (1e-2, 8.5), (1e-3, 9.4), (1e-4, 10.1), (1e-6, 11.2), (1e-8, 12.0), (1e-12, 13.1)],
)
def test_proposition_1_ends_where_the_specification_says(delta, limit):
    settings = {"width": 1.0, "delta": delta, "n": 100}
    theory.smooth_upper_bound(1.0, epsilon=limit - 0.1, **settings)
    with pytest.raises(ValueError, match="Proposition 1 fails"):
        theory.smooth_upper_bound(1.0, epsilon=limit + 0.1, **settings)


def test_proposition_1_by_integration():
    """The divergence of the two Laplace laws of the docstring, on a fine mesh, against delta."""
    delta = 1e-2
    for epsilon, holds in ((8.3, True), (8.7, False)):
        ratio = math.exp(-epsilon / (2 * math.log(1 / delta)))
        z = np.linspace(-30, 30, 600_001)
        wide = np.exp(-np.abs(z)) / 2
        narrow = np.exp(-np.abs(z - epsilon / 2 * ratio) / ratio) / (2 * ratio)
        divergence = np.maximum(wide - math.exp(epsilon) * narrow, 0).sum() * (z[1] - z[0])
        assert bool(divergence <= delta) is holds


def test_smooth_upper_bound_rejects():
    for bad in ({"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"confidence": 0.5}, {"n": 1}, {"width": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            theory.smooth_upper_bound(1.0, **{"width": 1.0, "epsilon": 1.0, "delta": 1e-3, "n": 10, **bad})


M_ESTIMATOR = {
    "epsilon": 1.0,
    "bound": 1.0,
    "derivative": 0.5,
    "distribution_radius": 1.0,
    "parameter_radius": 1.0,
    "distribution_lipschitz": 0.5,
    "parameter_lipschitz": 0.5,
    "plug_in_sample_size": 100,
}


def test_m_estimator_sample_size_values():
    eta = ETA / 3
    n = theory.m_estimator_sample_size(0.1, width=10.0, **M_ESTIMATOR)
    assert n == math.ceil(8 * 2 / (0.5 * 0.1) * math.log(60 / (0.1 * eta)))
    published = theory.m_estimator_sample_size(0.1, width=10.0, corrected=False, **M_ESTIMATOR)
    assert published == pytest.approx(n / 2, abs=1)
    e2 = min(0.5, 0.5 / 3)
    cauchy = theory.m_estimator_sample_size(0.1, location=-3.0, **M_ESTIMATOR)
    mass = math.pi / eta * ((2 * (3 + e2) ** 2 + 1) / (0.1 / 3) + 0.1 / 6)
    assert cauchy == math.ceil(8 * 2 / (0.5 * 0.1) * math.log(mass))
    assert theory.m_estimator_sample_size(0.1, width=10.0, **{**M_ESTIMATOR, "plug_in_sample_size": 10**6}) == 10**6
    sharp = theory.m_estimator_sample_size(0.1, width=10.0, **{**M_ESTIMATOR, "distribution_radius": 1e-3})
    assert sharp == math.ceil(math.log(2 / eta) / 2e-6)


def test_m_estimator_lemmas_on_prior_mass():
    for theta, reach in itertools.product((0.0, 0.3, 5.0), (0.01, 0.5)):
        mass = (math.atan(theta + reach / 6) - math.atan(theta - reach / 6)) / math.pi
        assert 1 / mass <= math.pi * ((2 * theta**2 + 1) / (reach / 3) + reach / 6)


def test_m_estimator_mechanism_concentrates():
    """psi = theta - x clipped to [-1, 1], records all at 0: Psi' = 1, the mass of the density outside error."""
    setting = {**M_ESTIMATOR, "derivative": 1.0, "distribution_lipschitz": 1e-3, "parameter_lipschitz": 1e-3}
    n = theory.m_estimator_sample_size(0.2, width=8.0, **{**setting, "plug_in_sample_size": 1})
    theta = np.linspace(-4, 4, 80_001)
    density = np.exp(-n / 4 * np.abs(np.clip(theta, -1, 1)))
    assert density[np.abs(theta) > 0.2].sum() / density.sum() <= ETA / 3


def test_m_estimator_rejects():
    for name in (*M_ESTIMATOR, "width"):
        with pytest.raises(ValueError, match=name):
            theory.m_estimator_sample_size(0.1, **{"width": 10.0, **M_ESTIMATOR, name: 0})
    with pytest.raises(ValueError, match=r"error must be strictly between 0 and 0\.166667"):
        theory.m_estimator_sample_size(0.17, width=10.0, **M_ESTIMATOR)
    for priors in ({}, {"width": 1.0, "location": 0.0}):
        with pytest.raises(TypeError, match="either width"):
            theory.m_estimator_sample_size(0.1, **priors, **M_ESTIMATOR)


@pytest.mark.parametrize("corrected", [True, False])
def test_linear_upper_bound_covers(corrected):
    n, p, epsilon, trials = 200, 0.1, 0.5, 20_000
    rng = np.random.default_rng(0)
    influence = 1 - p
    scale = (1 if corrected else 2) * 2 * influence / n / epsilon
    errors = np.abs(rng.binomial(n, p, trials) / n - p + rng.laplace(0, scale, trials))
    bound = theory.linear_upper_bound(
        influence, variance=p * (1 - p), epsilon=epsilon, n=n, confidence=0.9, corrected=corrected
    )
    assert np.mean(errors <= bound) > 0.9


def test_linear_upper_bound_values_and_regimes():
    log = math.log(2 / 0.025)
    found = theory.linear_upper_bound(2.0, variance=1.0, epsilon=0.5, n=100, corrected=False)
    assert found == pytest.approx(math.sqrt(2 * log / 100) + (2 / 3 + 8) * 2 * log / 100)
    better = theory.linear_upper_bound(2.0, variance=1.0, epsilon=0.5, n=100)
    assert found - better == pytest.approx(4 * 2 * log / 100)
    for bad in ({"variance": 4.1}, {"variance": -1.0}, {"epsilon": 0}, {"n": 0}, {"confidence": 1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            theory.linear_upper_bound(2.0, **{"variance": 1.0, "epsilon": 1.0, "n": 10, **bad})


@pytest.mark.parametrize(("epsilon", "n", "q"), [(0.1, 2000, 0.5), (1.0, 200, 0.5), (1.0, 400, 0.25), (8.0, 100, 0.5)])
def test_quantile_error_matches_simulation(epsilon, n, q):
    """Uniform records on [0, 1] in bounds [-4, 4]: the density is 1 at every quantile."""
    rng = np.random.default_rng(0)
    mechanism = dpf.InverseSensitivity(Quantile(q), grid=dpf.Grid(-4, 4), epsilon=epsilon)
    errors = np.abs([mechanism(rng.uniform(size=n), rng=rng) - q for _ in range(4000)])
    for confidence in (0.5, 0.9, 0.99):
        predicted = theory.quantile_error(n, q, density=1.0, width=8.0, epsilon=epsilon, confidence=confidence)
        assert predicted == pytest.approx(np.quantile(errors, confidence), rel=0.15)


def test_sum_of_normal_and_laplace():
    rng = np.random.default_rng(0)
    for deviation, scale in ((1.0, 0.01), (1.0, 1.0), (0.01, 1.0), (1.0, 0.2)):
        errors = np.abs(rng.normal(0, deviation, 200_000) + rng.laplace(0, scale, 200_000))
        for t in (0.1, 1.0, 3.0):
            assert theory.quantiles._normal_plus_laplace_tail(t, deviation, scale) == pytest.approx(
                np.mean(errors > t), abs=0.006
            )
    assert theory.quantiles._normal_plus_laplace_tail(1.0, 1.0, 1e-9) == pytest.approx(math.erfc(math.sqrt(0.5)))
    assert theory.quantiles._normal_plus_laplace_tail(1.0, 1e-9, 1.0) == pytest.approx(math.exp(-1))


@every("epsilon", [0.01, 0.5, 4.0])
@every("q", [0.1, 0.5])
@every("error", [0.3, 0.01, 1e-5])
def test_sample_size_inverts_the_error(epsilon, q, error):
    setting = {"q": q, "density": 0.4, "width": 40.0, "epsilon": epsilon}
    n = theory.sample_size(error, **setting)
    assert theory.quantile_error(n, **setting) <= error < theory.quantile_error(n - 1, **setting)


def test_sample_size_limits():
    setting = {"density": 0.4, "width": 40.0}
    tiny = theory.sample_size(0.1, epsilon=1e-5, **setting)
    assert tiny == pytest.approx(2 * math.log(20) / (1e-5 * 0.4 * 0.1), rel=0.01)
    large = theory.sample_size(1e-4, epsilon=10.0, **setting)
    assert large == pytest.approx(0.25 * (1.959964 / (0.4 * 1e-4)) ** 2, rel=0.01)
    needed = [theory.sample_size(0.1, epsilon=epsilon, **setting) for epsilon in (0.01, 0.1, 1, 10)]
    assert needed == sorted(needed, reverse=True)
    wide = theory.sample_size(30.0, density=0.4, width=1e12, epsilon=1.0)
    assert wide > 2 * theory.sample_size(30.0, density=0.4, width=1e3, epsilon=1.0)
    assert theory.quantile_error(3, density=0.4, width=40.0, epsilon=0.1) == 40.0


def test_sample_size_rejects():
    good = {"q": 0.5, "density": 0.4, "width": 40.0, "epsilon": 1.0, "confidence": 0.95}
    for bad in ({"q": 0}, {"q": 1}, {"density": 0}, {"width": 0}, {"epsilon": 0}, {"confidence": 1}):
        for function, first in ((theory.sample_size, 0.1), (theory.quantile_error, 10)):
            with pytest.raises(ValueError, match=next(iter(bad))):
                function(first, **{**good, **bad})
    for error in (0, 40.0, math.nan):
        with pytest.raises(ValueError, match="error must be"):
            theory.sample_size(error, **good)
    with pytest.raises(ValueError, match=r"more than 2\*\*62"):
        theory.sample_size(1e-12, **good)
    with pytest.raises(ValueError, match="n must be at least 1"):
        theory.quantile_error(0, **good)
