"""Estimates with intervals: exact laws of what they cover, simulated coverage, charges, errors."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import beta, binom

import dpfast as dpf
from bench.intervals import CONFIDENCE, SETTINGS, Setting
from dpfast.laws import DiscreteLaplace, RoundedLaplace, Staircase
from dpfast.mechanisms import Plan, intervals
from dpfast.mechanisms.intervals import _Beyond, certified_count, interval_for
from dpfast.statistics import Count, Mean, Median, Quantile, Sum, TrimmedMean, Variance

GRID = dpf.Grid(0, 20, step=1)
X = np.random.default_rng(5).integers(0, 21, 3000).astype(float)


def rng(seed=1):
    return Generator(PCG64(seed))


# ---- the noise ----


@pytest.mark.parametrize("noise", [DiscreteLaplace(2.5), DiscreteLaplace(Fraction(1, 9)), Staircase(4, 10)])
@pytest.mark.parametrize("confidence", [1e-3, 0.5, 0.95, 1 - 1e-12])
def test_magnitude_is_the_least(noise, confidence):
    m, z = noise.magnitude(confidence), np.arange(-3000, 3001)
    mass = np.exp(noise.logpmf(z.astype(float)))
    assert mass[np.abs(z) <= m].sum() >= confidence - 1e-14
    assert m == 0 or mass[np.abs(z) <= m - 1].sum() < confidence


@pytest.mark.parametrize("noise", [DiscreteLaplace(2.5), Staircase(4, 10), RoundedLaplace(3.0)])
def test_cdf(noise):
    z = np.arange(-400.0, 401)
    assert np.allclose(noise.cdf(z), np.cumsum(np.exp(noise.logpmf(z))), atol=1e-12)


def _mechanisms():
    for noise in ("discrete-laplace", "staircase"):
        for epsilon in (0.3, 2.0):
            for statistic in (Mean(), Sum(), Variance()):
                yield dpf.GlobalSensitivity(statistic, grid=dpf.Grid(-2, 3, step=0.5), epsilon=epsilon, noise=noise)


@pytest.mark.parametrize("mechanism", list(_mechanisms()), ids=str)
@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_noise_intervals_cover_exactly(mechanism, confidence):
    """For every exact statistic of 3 records, the probability of the releases whose interval contains it."""
    n, reach, least = 3, [], 1.0
    for x in ([-2, -2, -2], [-2, -2, 3], [-1, 0, 1.5], [3, -2, 3], [3, 3, 3]):
        exact = {"mean": np.mean, "sum": np.sum, "variance": np.var}[str(mechanism.statistic)](x)
        law = mechanism.law(x)
        last = law.support[1]
        k = np.unique(np.clip(np.rint(float(law.noise.scale) * np.linspace(-60, 60, 4001)) + law.center, 0, last))
        k = np.arange(last + 1) if last < 10_000 else k.astype(np.int64)
        ends = np.array([mechanism.noise_interval(value, confidence, n=n) for value in law.value(k).tolist()])
        inside = (ends[:, 0] <= exact + 1e-12) & (exact - 1e-12 <= ends[:, 1])
        covered = law.cdf(k[inside].max()) - (law.cdf(k[inside].min() - 1) if k[inside].min() else 0.0)
        assert covered >= confidence - 0.02 * (last >= 10_000)  # every 300th code only
        reach.append(covered)
        least = min(least, covered)
    assert min(reach) == least


def test_a_smaller_reach_is_rejected():
    """The control: with the reach of a smaller confidence the probability is below the stated one."""
    mechanism = dpf.GlobalSensitivity(Sum(), grid=GRID, epsilon=1.0, noise="discrete-laplace")
    law = mechanism.law([10.0] * 20)
    k = np.arange(law.support[1] + 1)
    for confidence, claimed, holds in ((0.95, 0.95, True), (0.93, 0.95, False)):
        ends = np.array([mechanism.noise_interval(float(code), confidence, n=20) for code in k])
        inside = (ends[:, 0] <= 200) & (ends[:, 1] >= 200)
        assert (law.pmf(k[inside]).sum() >= claimed) == holds


def test_noise_intervals_of_private_numbers_of_records():
    count = dpf.GlobalSensitivity(Count(), grid=GRID, epsilon=0.5, neighbors="add-remove")
    m = DiscreteLaplace(2).magnitude(0.9)
    assert count.noise_interval(100.0, 0.9) == (100 - m, 100 + m)
    assert count.noise_interval(0.0, 0.9) == (0, m)
    total = dpf.GlobalSensitivity(Sum(), grid=dpf.Grid(-4, 8, step=0.25), epsilon=0.5, neighbors="add-remove")
    low, high = total.noise_interval(10.25)
    assert high - 10.25 == 10.25 - low == 0.25 * total._noise(2).magnitude(0.95)
    assert total.noise_interval(2.0**59)[1] == 2.0**59  # clamped to 2**61 steps


def test_codes_finer_than_doubles():
    fine = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(2.0**30, 2.0**30 + 1, step=2.0**-22), epsilon=20.0)
    for seed in range(20):
        x = 2.0**30 + rng(seed).random(1000)
        exact = sum(map(Fraction, fine.grid.decode(fine.grid.encode(x)).tolist())) / 1000
        low, high = fine.noise_interval(fine(x, rng=rng(seed)), 1 - 1e-9, n=1000)
        assert Fraction(low) <= exact <= Fraction(high)


@pytest.mark.parametrize("grid", [dpf.Grid(2.0**53 - 8, 2.0**53, step=1), dpf.Grid(-(2.0**53), 8 - 2.0**53, step=1)])
@pytest.mark.parametrize("statistic", [Mean(), Sum()], ids=str)
def test_ends_of_noise_intervals_are_rounded_outward(statistic, grid):
    """The exact statistic is not a double, and almost all of the noise is 0."""
    mechanism, codes = dpf.GlobalSensitivity(statistic, grid=grid, epsilon=400.0), [1, 4, 5]
    x = grid.decode(codes)
    exact = sum(map(Fraction, x.tolist())) / (3 if isinstance(statistic, Mean) else 1)
    assert Fraction(float(exact)) != exact
    low, high = mechanism.noise_interval(mechanism(x, rng=rng(0)), n=3)
    assert Fraction(low) < exact < Fraction(high)
    assert high <= np.nextafter(np.nextafter(low, np.inf), np.inf)


def test_bad_arguments_of_noise_intervals():
    mean = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)
    with pytest.raises(TypeError, match="n is public"):
        mean.noise_interval(3.0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        mean.noise_interval(3.0, n=0)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="release must be finite"):
            mean.noise_interval(bad, n=3)
    with pytest.raises(ValueError, match="confidence must be strictly between 0 and 1"):
        mean.noise_interval(3.0, 1.0, n=3)
    with pytest.raises(TypeError, match="n is private"):
        dpf.GlobalSensitivity(Count(), grid=GRID, epsilon=1.0, neighbors="add-remove").noise_interval(3.0, n=3)
    with pytest.raises(TypeError, match="no noise interval is known"):
        dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0, neighbors="add-remove").noise_interval(3.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0),
        dpf.Quantiles([0.5], grid=GRID, epsilon=1.0),
        dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0),
    ],
)
def test_a_spread_that_depends_on_data_has_no_noise_interval(mechanism):
    with pytest.raises(TypeError, match=r"depends on the data: dpfast\.interval"):
        mechanism.noise_interval(3.0)


# ---- the limits of counts and ranks ----


@pytest.mark.parametrize("n", [1, 7, 60, 3000])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scale", [0.3, 6.0])
def test_certified_counts_are_the_largest(n, p, scale):
    noise, allowed = DiscreteLaplace(scale), 0.02
    b, z = np.arange(n + 1), np.arange(-400, 401)
    both = np.convolve(binom.pmf(b, n, p), np.exp(noise.logpmf(z.astype(float))))
    wrong = np.cumsum(both)[400:]  # from 0 on
    k = certified_count(n, p, noise.cdf, allowed)
    assert k < 0 or wrong[k] <= allowed * (1 + 1e-9)
    assert wrong[k + 1] > allowed * (1 - 1e-9)


def test_the_error_state_of_a_caller_does_not_decide_about_limits():
    for n, q, epsilon in ((5000, 0.0, 1.0), (300, 0.3, 100.0), (5000, 1.0, 0.7)):
        with np.errstate(all="raise"):
            interval_for(Quantile(q), dpf.FloatGrid(missing="drop"), epsilon, 0.912).plan(n)


def test_certified_counts_of_many_records_are_rounded_down():
    n, scale = 10**9, 5.0
    k = certified_count(n, 0.5, DiscreteLaplace(scale).cdf, 0.025)
    exact = binom.ppf(0.025, n, 0.5)
    assert exact - 0.01 * math.sqrt(n) < k <= exact


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("r", [1, 3, 5])
def test_the_bound_of_the_exponential_mechanism_holds_for_all_records(epsilon, r):
    """P(release above theta) <= min(1, M exp(-epsilon / 2 (B - r + 1))), on all sorted records of a small grid."""
    n, size = 6, 5
    grid = dpf.Grid(0, size - 1, step=1)
    mechanism = dpf.InverseSensitivity(Quantile((r - 0.5) / n), grid=grid, epsilon=epsilon)
    tight = False
    for x in np.ndindex(*(size,) * n):
        if list(x) == sorted(x):
            pmf = mechanism.law(np.array(x, float)).pmf(np.arange(size))
            for theta in range(size):
                below = np.count_nonzero(np.array(x) <= theta)
                bound = min(1.0, size * math.exp(-epsilon / 2 * (below - r + 1)))
                assert pmf[theta + 1 :].sum() <= bound + 1e-12
                tight |= pmf[theta + 1 :].sum() > bound / size / 2
    assert tight


# ---- coverage ----


def lower_limit(hits, count):
    """Clopper and Pearson's lower 95 % confidence limit of a probability."""
    return beta.ppf(0.05, hits, count - hits + 1) if hits else 0.0


def samples(setting):
    """More for intervals whose coverage is nominal, not above it, so that the limit is sharp enough."""
    nominal = setting.statistic in ("mean", "count")
    if setting.n > 100_000:
        return 1500
    return 800 if not nominal else 12_000 if setting.epsilon < 1 else 4000


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_coverage(setting):
    count = samples(setting)
    assert lower_limit(setting.covered(setting.estimates(count)), count) >= CONFIDENCE - 0.01


def naive(setting, count):
    """Intervals without the noise terms: order statistics at binomial ranks, or the normal interval of a noisy mean."""
    source, n, rows = np.random.default_rng(2), setting.n, []
    bounds = (0.0, 500_000.0)
    for _ in range(count):
        x = setting.sample(source)
        if setting.statistic == "mean":
            center = dpf.mean(x, bounds=bounds, epsilon=setting.epsilon, rng=source)
            half = 1.96 * x.std(ddof=1) / math.sqrt(n)
            rows.append((center, center - half, center + half))
        else:
            ranks = binom.ppf([0.025, 0.975], n, setting.statistic)
            low, high = dpf.quantile(x, ranks / n, bounds=bounds, epsilon=setting.epsilon, rng=source)
            rows.append((low, low, high))
    return np.array(rows)


@pytest.mark.parametrize("statistic", [0.5, "mean"])
def test_intervals_without_the_noise_are_rejected(statistic):
    setting = Setting("lognormal", statistic, 1000, 0.1)
    hits, of_naive = setting.covered(setting.estimates(300)), setting.covered(naive(setting, 300))
    assert binom.cdf(hits, 300, CONFIDENCE - 0.01) > 1e-9
    assert binom.cdf(of_naive, 300, CONFIDENCE - 0.01) < 1e-9


def test_few_records_give_the_whole_range():
    for options in ({"bounds": (0, 20)}, {}):
        estimate = dpf.interval("median", X[:5], epsilon=0.1, rng=rng(), **options)
        assert estimate.high - estimate.low == (20 if options else math.inf)
    mean = dpf.interval("mean", X[:1], bounds=(0, 20), epsilon=0.1, rng=rng())
    assert (mean.low, mean.high) == (0, 20)
    std = dpf.interval("std", X[:1], bounds=(0, 20), epsilon=5.0, rng=rng())
    assert (std.value, std.low, std.high) == (0, 0, 10)


# ---- the call ----

CALLS = [
    ("median", {"grid": GRID}),
    (Quantile(0.3), {"grid": GRID}),
    ("median", {}),
    ("mean", {"grid": GRID}),
    ("variance", {"grid": GRID}),
    ("std", {"grid": GRID}),
    ("sum", {"grid": GRID}),
    ("sum", {"grid": GRID, "neighbors": "add-remove"}),
    ("count", {}),
    (Count((2.0, 9.0)), {}),
]


@pytest.mark.parametrize(("statistic", "options"), CALLS, ids=str)
def test_chunks_and_containers_give_the_same(statistic, options):
    expected = dpf.interval(statistic, X, epsilon=1.0, rng=rng(), **options)
    assert expected.low <= expected.value <= expected.high
    chunks = dpf.Chunks([X[:1000], X[1000:1001], X[1001:]])
    for x in (chunks, X.tolist(), X[::-1], np.repeat(X, 2)[::2], X.astype(np.float32)):
        assert dpf.interval(statistic, x, epsilon=1.0, rng=rng(), workers=2, **options) == expected


@pytest.mark.parametrize(("statistic", "options"), CALLS, ids=str)
def test_one_charge_with_its_profile(statistic, options):
    hidden = "count" in str(statistic) or "neighbors" in options
    ledger = dpf.Ledger(epsilon=1.0, neighbors="add-remove" if hidden else "replace-one")
    with ledger:
        dpf.interval(statistic, X, epsilon=0.75, **options)
    [charge] = ledger.charges
    assert charge.profile.privacy.epsilon == 0.75
    parts = [part[1] * part[2] for part in charge.profile.parts]
    assert sum(map(Fraction, parts)) <= Fraction(0.75) * (1 + Fraction(1, 2**16))
    assert charge.profile.rho <= dpf.PrivacyProfile(dpf.Privacy(0.75)).rho


def test_estimates():
    estimate = dpf.interval("mean", X, grid=GRID, epsilon=1.0, confidence=0.9)
    value, low, high = estimate
    assert (value, low, high, 0.9) == (estimate.value, estimate.low, estimate.high, estimate.confidence)
    assert pickle.loads(pickle.dumps(estimate)) == estimate
    assert "(90 % interval " in str(estimate)
    assert "epsilon = 1 " in repr(estimate)
    assert "<b>" in estimate._repr_html_()
    assert str(dpf.Estimate(1.0, 1.0, 1.0, 0.95, dpf.Privacy(1.0))).startswith("1 (95 % interval 1 to 1); ")
    wide = dpf.Estimate(0.0, -1.8e302, 1.7e308, 0.95, dpf.Privacy(1.0))
    assert str(wide).startswith("0 (95 % interval -1.8e+302 to 1.7e+308); ")


def test_integers_have_step_1():
    value, low, high = dpf.interval("median", X.astype(np.int16), bounds=(0, 30), epsilon=1.0, rng=rng())
    assert all(number == int(number) for number in (value, low, high))


@pytest.mark.parametrize("statistic", [TrimmedMean(0.1), dpf.statistics.InterquartileRange()])
def test_statistics_without_an_interval(statistic):
    with pytest.raises(TypeError, match=r"no interval is known for .*: use a median, quantile, mean, variance, sum or"):
        dpf.interval(statistic, X, bounds=(0, 20), epsilon=1.0)


@pytest.mark.parametrize("statistic", [3, None, np.mean, np.arange(5.0)])
def test_an_object_that_is_not_a_statistic_is_refused_by_its_type(statistic):
    name = getattr(statistic, "__name__", type(statistic).__name__)
    with pytest.raises(TypeError, match=f"or an object of dpfast.statistics, not {name}"):
        dpf.interval(statistic, np.zeros(9), epsilon=1.0)


@pytest.mark.parametrize("statistic", ["std", "sum"])
def test_missing_records_are_not_dropped_from_a_public_number_of_records(statistic):
    with pytest.raises(ValueError, match=r"'lower' or 'half' for the interval of the .* with .*, not 'drop'"):
        dpf.interval(statistic, np.zeros(9), bounds=(0, 1), epsilon=1.0, missing="drop")
    with pytest.raises(ValueError, match="not 'drop'"):
        dpf.interval(statistic, np.zeros(9), grid=dpf.Grid(0, 1, missing="drop"), epsilon=1.0)


@pytest.mark.parametrize(
    ("statistic", "options", "error", "message"),
    [
        ("mode", {"bounds": (0, 1)}, ValueError, "statistic must be"),
        ("mean", {}, TypeError, "bounds"),
        ("mean", {"bounds": (0, 1), "grid": GRID}, TypeError, "bounds"),
        ("mean", {"bounds": (0, 1), "epsilon": 0.0}, ValueError, "epsilon must be positive"),
        ("median", {"epsilon": -1.0}, ValueError, "epsilon must be positive"),
        ("median", {"confidence": 0.0}, ValueError, "confidence must be strictly between 0 and 1"),
        ("count", {"confidence": 1.0}, ValueError, "confidence must be strictly between 0 and 1"),
        ("mean", {"grid": dpf.FloatGrid()}, TypeError, "a FloatGrid is for quantiles"),
        (
            "mean",
            {"bounds": (0, 1), "neighbors": "add-remove", "missing": "half"},
            ValueError,
            "missing='half' needs neighbors='replace-one'",
        ),
        ("count", {"neighbors": "replace-one"}, ValueError, "neighbors must be 'add-remove'"),
        ("count", {"bounds": (0, 1)}, TypeError, "neither bounds nor a grid"),
        ("sum", {"bounds": (0, 1), "neighbors": "local"}, ValueError, "neighbors must be"),
        ("median", {"rng": "seed"}, TypeError, "rng"),
        ("median", {"workers": 0}, ValueError, "workers"),
    ],
)
def test_bad_parameters(statistic, options, error, message):
    with pytest.raises(error, match=message):
        dpf.interval(statistic, X, **{"epsilon": 1.0, **options})


def test_no_records():
    for name in ("median", "mean", "std", "sum"):
        with pytest.raises(ValueError, match=r"at least one record|n must|empty|at least 1"):
            dpf.interval(name, [], bounds=(0, 1), epsilon=1.0)
    assert dpf.interval("count", [], epsilon=1.0, rng=PCG64(1)).low == 0


@pytest.mark.parametrize(
    "grid",
    [
        GRID,
        dpf.Grid(-1, 1),
        dpf.Grid(0, 1, step=0.125, missing=1.0),
        dpf.FloatGrid(missing="lower"),
        dpf.FloatGrid(3, missing="lower"),
        dpf.FloatGrid(8, resolution=1.0, lower=-9.0, upper=1e6, missing=3.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_counts_by_value_are_those_of_codes(grid, dtype):
    """Records at grid points, at midpoints and next to them, infinite and missing, below and above each code."""
    source = rng(3)
    codes = np.unique(np.concatenate([[0, 1, grid.size - 1], grid.encode(source.normal(size=20) * 4)]))
    points = np.array([grid.value(int(code)) for code in codes])
    middles = np.array([grid.value(int(code) - 1) / 2 + grid.value(int(code)) / 2 for code in codes if code])
    x = np.concatenate([points, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), [0.0, -0.0]])
    x = np.append(x, [math.nan, math.inf, -math.inf]) if dtype != np.int64 else np.clip(x, -1e9, 1e9)
    with np.errstate(over="ignore"):
        x = np.tile(x.astype(dtype), 3)
    mapped, fast = grid.encode(x), 0
    for low in codes.tolist():
        for high in [code for code in codes.tolist() if code >= low]:
            counting = _Beyond(Quantile(0.5), grid, low, high, Fraction(1))
            below, above = np.count_nonzero(mapped < low), np.count_nonzero(mapped > high)
            (counts, n) = counting.reading().of(x)
            assert (counts.tolist(), n) == ([below, x.size - below - above, above, 0], x.size)
            fast += counting._values is not None
    assert fast


def test_ends_of_a_quantile_interval_do_not_cross(monkeypatch):
    """A lower end that is released after the upper one may be above it, with a tiny probability: here it always is."""

    class Wrong(intervals._Around):
        def _make_plan(self, n):
            return Fixed(self, n)

    class Fixed(Plan):
        def draw(self, values, source, threads=1):
            return np.full(len(self.mechanism.qs), 8.0 if len(self.mechanism.qs) == 3 else 10.0)

    monkeypatch.setattr(intervals, "_Around", Wrong)
    grid = dpf.Grid(0, 10, step=1)
    assert tuple(dpf.interval("median", np.full(1000, 5.0), grid=grid, epsilon=1.0, rng=rng(0))) == (8, 8, 8)


@pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")
@pytest.mark.parametrize("n", [1, 2])
def test_bounds_near_the_ends_of_doubles(n):
    """Squares that overflow are refused before the charge, also of one record; the least doubles have an interval."""
    with dpf.Ledger(epsilon=9.0) as ledger:
        for statistic in ("mean", "variance", "std"):
            with pytest.raises(ValueError, match="use narrower bounds"):
                dpf.interval(statistic, np.zeros(n), bounds=(-1e300, 1e300), epsilon=1.0)
        assert not ledger.charges
        found = dpf.interval("mean", np.zeros(n), bounds=(0, 5e-324), epsilon=1.0)
    assert found.low <= found.value <= found.high


def test_the_largest_epsilon_gives_an_interval_of_one_point_without_a_warning():
    assert tuple(dpf.interval("count", [1, 2, 3], epsilon=1e308, rng=rng(0))) == (3, 3, 3)
    value, low, high = dpf.interval("median", np.arange(29.0), epsilon=1e308, rng=rng(0))
    assert low <= value == 14 <= high


# ---- by group ----

KEYS = ["b", "a", "none"]
LABELS_OF_X = np.where(np.arange(len(X)) % 3, "a", "b")


@pytest.mark.parametrize(("statistic", "options"), CALLS, ids=str)
def test_estimates_by_group_are_those_of_its_records(statistic, options):
    """At a large epsilon; for one charge, and with the range of the value of each group."""
    hidden = "count" in str(statistic) or "neighbors" in options
    ledger = dpf.Ledger(2e5, neighbors="add-remove" if hidden else "replace-one")
    with ledger:
        found = dpf.interval(statistic, X, labels=LABELS_OF_X, keys=KEYS, epsilon=1e5, rng=rng(), **options)
    assert len(ledger.charges) == 1
    assert found.privacy == ledger.charges[0].profile.privacy
    assert list(found) == KEYS
    assert found.counts is None
    for key in "ab":
        alone = dpf.interval(statistic, X[key == LABELS_OF_X], epsilon=1e5, rng=rng(), **options)
        assert [*found[key]] == pytest.approx([*alone], rel=1e-3, abs=2e-3)
        assert (found[key].privacy, found[key].confidence) == (alone.privacy, 0.95)
        assert found[key].bounds == alone.bounds
    assert np.isnan([*found["none"]]).all() != hidden
    np.testing.assert_array_equal(found.interval(), found.array[:, 1:])
    assert list(found.to_columns()) == ["key", "value", "low", "high"]
    with pytest.raises(ValueError, match=r"confidence must be 0\.95, that of the estimates"):
        found.interval(0.9)


def test_estimates_of_private_keys():
    selection = dpf.PartitionSelection(1.0, 1e-3)
    found = dpf.interval("count", X, labels=LABELS_OF_X, keys="private", partitions=selection, epsilon=1.0, rng=rng())
    assert list(found) == ["a", "b"]
    assert np.abs(found.counts - found.array[:, 0]).max() < 40
    assert found.privacy == dpf.Privacy(2.0, 1e-3, "add-remove")
    with pytest.raises(ValueError, match="needs neighbors='add-remove'"):
        dpf.interval("mean", X, grid=GRID, labels=LABELS_OF_X, keys="private", partitions=selection, epsilon=1.0)


@pytest.mark.parametrize("options", [{"labels": LABELS_OF_X}, {"keys": KEYS}])
def test_labels_need_keys(options):
    with pytest.raises(TypeError, match="labels= and keys= must be given together"):
        dpf.interval("mean", X, grid=GRID, epsilon=1.0, **options)


@pytest.mark.host
def test_a_plot_of_estimates_by_group():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    found = dpf.interval("mean", X, grid=GRID, labels=LABELS_OF_X, keys=KEYS, epsilon=1.0)
    ax = found.plot(Figure().add_subplot(), unit="years")
    assert [label.get_text() for label in ax.get_yticklabels()] == KEYS
    assert "95 % intervals" in ax.get_title(loc="left")
    assert "noise" not in ax.get_title(loc="left")
