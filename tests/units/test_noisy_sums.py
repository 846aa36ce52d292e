"""``NoisySums``: laws of all small datasets, sensitivities, releases; `dpf.mean` and `dpf.sum` of rows."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid
from dpfast.core.divergences import gaussian_mu_down
from dpfast.domains import Ball, Box
from dpfast.laws import DiscreteLaplace, Independent, RoundedBall, RoundedBox, RoundedGaussian, RoundedGaussians
from dpfast.mechanisms.sums import better_noise
from dpfast.statistics import Count, Mean, Median, Sum
from tests.cases import every
from tests.reference.rows import delta, loss
from tests.untouchable import Untouchable

X = np.random.default_rng(0).normal(size=(4001, 3)) * [1, 2, 3]


def sums(domain, **options):
    return dpf.NoisySums(Sum(), domain=domain, **{"epsilon": 1.0, **options})


# ---- every pair of neighbouring small datasets ----

# Rows that are as far apart as the domain allows, and one in the middle.
CASES = {
    "box": (Box((Grid(0, 12, step=1), Grid(-3, 3, step=1))), [(0, -3), (12, 3), (0, 3), (5, 0)]),
    "ball": (Ball(10.0, step=1.0), [(10, 0), (-10, 0), (6, 8), (0, 0)]),
}
OPTIONS = {"pure": {"epsilon": 1.0}, "gaussian": {"epsilon": 1.0, "delta": 0.05, "noise": "gaussian"}}


def pairs(rows, neighbors):
    """Ordered pairs of neighbouring datasets of up to two rows."""
    if neighbors == "add-remove":
        found = [([], [a]) for a in rows] + [([b], [b, a]) for a, b in itertools.product(rows, rows)]
        return found + [(two, one) for one, two in found]
    return [([a, c], [b, c]) for a, b, c in itertools.product(rows, rows, rows) if a != b]


def largest(law_of, case, neighbors, epsilon, every=1, enough=(math.inf, math.inf)):
    """The largest log-ratio and divergence of the laws before clamping, over every so many outcomes of a square.

    Of a broken mechanism, those of the first pair that has enough of each.
    """
    _, rows = CASES[case]
    axis = np.arange(-110, 140, every)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    kept, worst = {}, [-math.inf, 0.0]
    for data, other in pairs(rows, neighbors):
        laws = [kept.setdefault(tuple(d), None) for d in (data, other)]
        for i, dataset in enumerate((data, other)):
            if laws[i] is None:
                laws[i] = kept[tuple(dataset)] = law_of(np.array(dataset, dtype=float).reshape(-1, 2), points)
        worst = [max(worst[0], loss(*laws)), max(worst[1], delta(*laws, epsilon))]
        if worst[0] >= enough[0] and worst[1] > enough[1]:
            break
    return worst


def law_of(mechanism):
    return lambda x, points: mechanism.law(x).logpmf(points)


def scaled(mechanism, factor):
    """A broken copy: the noise is `factor` times as large."""

    def law(x, points):
        made = mechanism.law(x)
        noise = made.noise
        if isinstance(noise, RoundedGaussians):
            made.noise = RoundedGaussians([factor * scale for scale in noise.scales])
        elif isinstance(noise, Independent):
            made.noise = Independent(type(noise.noise)(factor * noise.noise.scale), noise.dimension)
        else:
            made.noise = type(noise)(factor * noise.scales)
        return made.logpmf(points)

    return law


def clamped(mechanism, most):
    """A broken copy: the noise is clamped before it is added."""

    def law(x, points):
        made = mechanism.law(x)
        outside = np.abs(points - made.center).max(axis=1) > most
        return np.where(outside, -np.inf, made.logpmf(points))

    return law


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", CASES)
def test_pure_laws_of_all_small_datasets(case, neighbors):
    mechanism = sums(CASES[case][0], neighbors=neighbors, epsilon=1.5)
    every = 13 if case == "ball" else 1  # those probabilities take long
    found, _ = largest(law_of(mechanism), case, neighbors, 1.5, every)
    assert 1.3 < found <= 1.5 + 1e-9
    half = scaled(mechanism, 0.5)  # as with the sensitivity R in place of 2 R
    assert largest(half, case, neighbors, 1.5, every, enough=(2.1, 0))[0] > 2
    assert largest(clamped(mechanism, 30), case, neighbors, 1.5, every, enough=(math.inf, 0))[0] == math.inf


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", CASES)
def test_gaussian_laws_of_all_small_datasets(case, neighbors):
    mechanism = sums(CASES[case][0], neighbors=neighbors, **OPTIONS["gaussian"])
    assert mechanism.privacy.delta == 0.05
    _, found = largest(law_of(mechanism), case, neighbors, 1.0)
    assert 0.045 < found <= 0.05 + 1e-12
    for broken in (scaled(mechanism, 0.5), scaled(mechanism, 0.95), clamped(mechanism, 20)):
        assert largest(broken, case, neighbors, 1.0, enough=(0, 0.05))[1] > 0.05


def test_two_percent_less_noise_is_rejected():
    """On a fine lattice, where rounding hides nothing; in one dimension, along the largest change."""
    ball = Ball(1000.0, step=1.0, center=(0.0,))
    mechanism = sums(ball, **OPTIONS["gaussian"])
    points = np.arange(-20_000, 20_000)[:, None]
    ends = [np.array([[end]]) for end in (-1000.0, 1000.0)]
    for law, holds in ((law_of(mechanism), True), (scaled(mechanism, 0.98), False)):
        assert (delta(*(law(x, points) for x in ends), 1.0) <= 0.05) == holds


# ---- sensitivities and scales, exact ----


@every("epsilon, privacy_delta", [(1.0, 1e-6), (0.1, 1e-9), (7.0, 0.3), (1e-3, 1e-9)])
@every("d", [2, 3, 20, 120])
def test_gaussian_scales_keep_mu_exactly(epsilon, privacy_delta, d):
    options = {"epsilon": epsilon, "delta": privacy_delta, "noise": "gaussian"}
    for neighbors in ("replace-one", "add-remove"):
        box = Box([Grid(-(j % 5), 1 + j, step=2.0**-20) for j in range(d)])
        mechanism = sums(box, neighbors=neighbors, **options)
        noise = mechanism.law(np.zeros((1, d))).noise
        widths = box.distances if neighbors == "add-remove" else box.widths
        changes = zip(widths.tolist(), noise.scales, strict=True)
        total = sum((Fraction(width) / Fraction(scale)) ** 2 for width, scale in changes)
        assert Fraction(1 - 2.0**-40) < total / Fraction(mechanism.gaussian_mu) ** 2 <= 1

        ball = Ball(1.0)
        mechanism = sums(ball, neighbors=neighbors, **options)
        noise = mechanism.law(np.zeros((1, d))).noise
        assert isinstance(noise.noise, RoundedGaussian)
        square = ball.most * (4 if neighbors == "replace-one" else 1)
        assert Fraction(1 - 2.0**-40) < square / Fraction(noise.noise.scale * mechanism.gaussian_mu) ** 2 <= 1


def test_pure_scales_are_at_least_the_sensitivity_over_epsilon():
    for epsilon in (1.0, 0.3, 1e-6):
        box = Box([Grid(0, 1 + j) for j in range(5)])
        noise = sums(box, epsilon=epsilon).law(np.zeros((1, 5))).noise
        assert isinstance(noise, RoundedBox)
        for width, scale in zip(box.widths.tolist(), noise.scales.tolist(), strict=True):
            assert 1 <= Fraction(scale) * Fraction(epsilon) / width < 1 + 2**-50
        ball = Ball(3.0)
        noise = sums(ball, epsilon=epsilon).law(np.zeros((1, 5))).noise
        assert isinstance(noise, RoundedBall)
        for scale in noise.scales.tolist():
            assert 1 <= (Fraction(scale) * Fraction(epsilon)) ** 2 / (4 * ball.most) < 1 + 2**-50


def test_one_column_has_discrete_laplace_noise():
    for domain, change in ((Box([Grid(0, 9, step=1)]), 9), (Ball(2.7, step=1.0, center=[0.0]), 4)):
        mechanism = sums(domain, epsilon=0.5)
        noise = mechanism.law([[1.0]]).noise
        assert isinstance(noise.noise, DiscreteLaplace)
        assert noise.noise.scale == Fraction(change) / Fraction(1, 2)
        assert mechanism.privacy_profile.parts == (("discrete-laplace", 0.5, 1, change),)


def test_error_against_the_analytic_gaussian_mechanism():
    """At d = 120 and (1, 1e-6): one coordinate has sqrt(d) 4.224678889 times its width (mechanisms-d, section 1)."""
    grid = Grid(0, 1)
    noise = sums(Box([grid] * 120), delta=1e-6).law(np.zeros((1, 120))).noise
    assert isinstance(noise.noise, RoundedGaussian)
    assert noise.noise.scale / ((grid.size - 1) * math.sqrt(120)) == pytest.approx(4.224678889, rel=1e-8)


def test_error_against_splitting_epsilon():
    x = np.random.default_rng(0).random((10_000, 20))
    together = dpf.NoisySums(Mean(), domain=Box([Grid(0, 1)] * 20), epsilon=1.0)
    split = dpf.GlobalSensitivity(Mean(), grid=Grid(0, 1), epsilon=1 / 20)
    error = np.abs(together.release(x, size=2000, rng=PCG64(0)) - x.mean(axis=0)).mean()
    of_split = np.abs(split.release(x[:, 0], size=20_000, rng=PCG64(0)) - x[:, 0].mean()).mean()
    assert of_split / error > 1.8


def test_the_better_noise():
    for domain in (Box(Grid(0, 1)), Ball(1.0)):
        found = [better_noise(domain, d, 1.0, 1e-6) for d in (1, 2, 10, 100, 1000)]
        assert found[0] == "k-norm"
        assert found[-1] == "gaussian"
        assert better_noise(domain, 1000, 1.0, 0.0) == "k-norm"
        assert better_noise(domain, None, 1.0, 1e-6) == "gaussian"
    box = Box([Grid(0, 1)] * 2)
    assert sums(box, delta=1e-6).noise == "k-norm"
    assert sums(box, delta=1e-6).privacy.delta == 0
    assert sums(box, delta=1e-6, noise="gaussian").privacy_profile.parts[0][0] == "gaussian"


@every("domain", [Box([Grid(-8, 8), Grid(0, 900)] * 3), Ball(50.0, center=[0.0] * 6)], ids=str)
@every("options", [pytest.param(case, id=label) for label, case in OPTIONS.items()])
@every("neighbors", ["replace-one", "add-remove"])
def test_the_predicted_deviation_and_error(domain, options, neighbors):
    mechanism = dpf.NoisySums(Sum(), domain=domain, neighbors=neighbors, **options)
    x = np.random.default_rng(0).normal(4, 1, size=(10_000, 6))
    predicted = mechanism.noise_deviation(len(x))
    found = np.std(mechanism.release(x, size=20_000, rng=PCG64(0)), axis=0)
    assert found == pytest.approx(predicted, rel=0.06)
    assert mechanism.error(400, deviation=2.0) == pytest.approx(np.hypot(predicted, 40.0))
    mean = dpf.NoisySums(Mean(), domain=domain, **options)
    assert mean.error(400, deviation=2.0) == pytest.approx(np.hypot(mean.noise_deviation(400), 0.1))
    size = mean.sample_size(2.0, deviation=3.0)
    assert mean.error(size, deviation=3.0).max() <= 2.0 < mean.error(size - 1, deviation=3.0).max()


def test_predictions_need_the_number_of_columns():
    with pytest.raises(TypeError, match="give dimension=, the number of columns"):
        sums(Ball(1.0)).noise_deviation(10)
    with pytest.raises(ValueError, match="X must have 2 columns"):
        sums(Ball(1.0, center=[0, 0])).noise_deviation(10, dimension=3)
    assert sums(Ball(1.0), delta=1e-6).noise_deviation(10, dimension=3) == pytest.approx([2 * 4.224678889] * 3)


# ---- releases ----


def exact_sums(mechanism, x):
    return mechanism.law(x).center


@pytest.mark.parametrize(
    "domain", [Box((Grid(-2, 2), Grid(0, 4), Grid(-9, 9, step=1))), Ball(9.0), Ball(9.0, center=1)]
)
def test_without_noise_it_is_the_mean_and_the_sum(domain):
    x = X / 4 if isinstance(domain, Ball) else np.clip(X, -2, 2)
    for statistic in (Mean(), Sum()):
        mechanism = dpf.NoisySums(statistic, domain=domain, epsilon=1e9)
        codes = domain.encode(x)
        if isinstance(domain, Box):
            points = np.stack([grid.decode(codes[:, j]) for j, grid in enumerate(domain.grids)], axis=1)
        else:
            points = codes * domain.step + domain.center_of(3)
        wanted = points.mean(axis=0) if statistic == Mean() else points.sum(axis=0)
        assert mechanism(x) == pytest.approx(wanted, rel=1e-7, abs=1e-7)


def test_values_are_rounded_once():
    box = Box((Grid(2.0**40, 2.0**41, step=2.0**-11), Grid(-3, 5)))
    n, rng = 999, np.random.default_rng(0)
    codes = rng.integers(0, n * box.widths, (50, 2))
    for j, grid in enumerate(box.grids):
        wanted = [Sum().value(grid, n, code) for code in codes[:, j].tolist()]
        assert box.sums(codes, n)[:, j].tolist() == wanted
        means = [Mean().value(grid, n, code) for code in codes[:, j].tolist()]
        assert np.abs(box.means(codes, n)[:, j] - means).max() <= 2 * np.spacing(max(map(abs, means)))


@pytest.mark.parametrize("statistic", [Mean(), Sum()])
def test_releases_stay_in_the_public_range(statistic):
    n = len(X)
    scale = 1 if statistic == Mean() else n
    box = dpf.NoisySums(statistic, domain=Box((Grid(-1, 2), Grid(3, 4), Grid(-7, -5))), epsilon=1e-6)
    released = box.release(X, size=200, rng=PCG64(0)) / scale
    assert ((released >= [-1, 3, -7]) & (released <= [2, 4, -5])).all()
    assert (np.abs(released - [-1, 3, -7]) < 1e-9).any(axis=0).all()
    ball = dpf.NoisySums(statistic, domain=Ball(2.0, center=(5, 6, 7)), epsilon=1e-6)
    distances = np.linalg.norm(ball.release(X, size=200, rng=PCG64(0)) / scale - [5, 6, 7], axis=1)
    assert distances == pytest.approx(2, rel=1e-9)


def test_moving_into_the_ball_brings_no_mean_closer_to_harm():
    """The distance to any point of the ball does not grow."""
    ball, rng = Ball(1.0), np.random.default_rng(0)
    noisy = rng.normal(size=(500, 4)) * 2.0 ** rng.integers(20, 60, (500, 1))
    truth = ball.encode(rng.normal(size=(500, 4)))
    before = np.linalg.norm(noisy * ball.step - truth * ball.step, axis=1)
    after = np.linalg.norm(ball.means(noisy.astype(np.int64), 1) - truth * ball.step, axis=1)
    assert (after <= before * (1 + 1e-12) + ball.step).all()
    assert (after < before / 2).any()


def test_sums_with_a_private_number_of_rows():
    box = Box((Grid(-1, 3, step=0.5), Grid(0, 2, step=1)))
    mechanism = sums(box, neighbors="add-remove", epsilon=1e6)
    x = np.array([[1.0, 2.0], [-1.0, 1.0], [3.0, 0.0]])
    assert mechanism(x).tolist() == [3.0, 3.0]
    assert mechanism(x[:0]).tolist() == [0.0, 0.0]
    wide = Box(Grid(-(2.0**51), 2.0**51 - 1, step=1))
    many = sums(wide, neighbors="add-remove").law(np.full((5000, 1), -1e300))
    assert many.center.tolist() == [-(2**61)]
    assert sums(Ball(2.0), neighbors="add-remove", epsilon=1e9)(x / 2) == pytest.approx(x.sum(axis=0) / 2, abs=1e-5)
    assert (sums(box, neighbors="add-remove", epsilon=1e-3).release(x, size=100)[:, 1] >= 0).all()


@every("domain", [Box(Grid(-5, 5)), Box([Grid(-5, 5), Grid(0, 3), Grid(-9, 9)]), Ball(4.0)], ids=str)
@every("options", [pytest.param(case, id=label) for label, case in OPTIONS.items()])
def test_streams_pickles_and_threads(domain, options):
    mechanism = dpf.NoisySums(Mean(), domain=domain, **options)
    wanted = mechanism(X, rng=PCG64(1))
    assert wanted.shape == (3,)
    assert np.array_equal(mechanism(X, rng=PCG64(1), workers=3), wanted)
    assert np.array_equal(mechanism(dpf.Chunks([X[:9], X[9:9], X[9:]]), rng=PCG64(1)), wanted)
    one, two, empty = mechanism.start(), mechanism.start(), mechanism.start()
    one.update(X[:100])
    two.update(X[100:].tolist())
    two = pickle.loads(pickle.dumps(two))
    two.merge(empty)
    two.merge(one)
    assert np.array_equal(two.release(rng=PCG64(1)), wanted)
    restored = pickle.loads(pickle.dumps(mechanism))
    assert restored == mechanism
    assert hash(restored) == hash(mechanism)
    assert np.array_equal(mechanism.release(X, size=(), rng=PCG64(1)), mechanism.release(X, size=1, rng=PCG64(1))[0])


def test_states_of_other_columns_do_not_merge():
    mechanism = sums(Ball(1.0))
    one, two = mechanism.start(), mechanism.start()
    one.update(X)
    two.update(X[:, :2])
    with pytest.raises(ValueError, match="states of 3 and 2 columns do not merge"):
        one.merge(two)
    with pytest.raises(ValueError, match="chunks must have 3 columns like the first one, not 2"):
        one.update(X[:, :2])
    with pytest.raises(ValueError, match="number of columns is unknown"):
        sums(Ball(1.0), neighbors="add-remove").start().release()


def test_mu_is_of_gaussian_noise():
    """K-norm noise has no mu, even where delta allows Gaussian noise."""
    noisy = {noise: sums(Ball(1.0), delta=1e-6, noise=noise) for noise in ("gaussian", "k-norm")}
    assert noisy["gaussian"].gaussian_mu == gaussian_mu_down(noisy["gaussian"].epsilon, 1e-6)
    assert noisy["k-norm"].gaussian_mu is None
    assert noisy["k-norm"].privacy == dpf.Privacy(noisy["k-norm"].epsilon)


@every(
    "options, error, message",
    [
        ({"statistic": Median()}, TypeError, r"statistic must be Mean\(\) or Sum\(\) for rows"),
        ({"statistic": Count(), "neighbors": "add-remove"}, TypeError, "statistic must be"),
        ({"domain": Grid(0, 1)}, TypeError, r"domain must be a dpfast\.domains\.Box or Ball, not Grid"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive"),
        ({"delta": 1}, ValueError, "delta must be at least 0 and below 1"),
        ({"noise": "laplace"}, ValueError, "noise must be one of 'auto', 'gaussian', 'k-norm'"),
        ({"noise": "gaussian"}, ValueError, "delta must be positive for Gaussian noise"),
        ({"neighbors": "add-remove"}, ValueError, "release a sum and a count, and divide"),
        (
            {"statistic": Sum(), "neighbors": "add-remove", "domain": Ball(1.0, center=1.0)},
            ValueError,
            "needs a ball around 0",
        ),
        (
            {"statistic": Sum(), "neighbors": "add-remove", "domain": Ball(1e300)},
            ValueError,
            "beyond the range of float64",
        ),
        ({"epsilon": 1e-9}, ValueError, r"noise of more than 2\*\*54 steps: use a larger epsilon or a coarser step"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        dpf.NoisySums(**{"statistic": Mean(), "domain": Box(Grid(0, 1)), "epsilon": 1.0, **options})


def test_public_numbers_of_records_are_checked_before_rows():
    grid = Grid(0, 2.0**52 - 1, step=1)
    with pytest.raises(ValueError, match=r"n times the steps of the domain must be below 2\*\*61"):
        sums(Box(grid))(np.zeros((513, 1)))
    with pytest.raises(ValueError, match="beyond the range of float64"):
        sums(Box(Grid(-1e308, 1e308)))(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="x is empty"):
        sums(Box(grid))(np.zeros((0, 1)))


# ---- dpf.mean and dpf.sum ----


@pytest.mark.parametrize("name", ["mean", "sum"])
def test_functions_are_the_mechanism(name):
    statistic, function = (Mean(), dpf.mean) if name == "mean" else (Sum(), dpf.sum)
    cases = [
        ({"bounds": (-4, 4)}, Box(Grid(-4, 4))),
        ({"bounds": [(-4, 1), (-4, 2), (-4, 3)]}, Box([Grid(-4, 1), Grid(-4, 2), Grid(-4, 3)])),
        ({"bounds": np.column_stack([[-4, -5, -6], [4, 4, 4]])}, Box([Grid(-4, 4), Grid(-5, 4), Grid(-6, 4)])),
        ({"grid": Grid(-1, 1, step=0.5)}, Box(Grid(-1, 1, step=0.5))),
        ({"grid": [Grid(-1, j) for j in (1, 2, 3)]}, Box([Grid(-1, j) for j in (1, 2, 3)])),
        ({"radius": 5}, Ball(5.0)),
        ({"radius": 5, "center": [1, 2, 3]}, Ball(5.0, center=(1, 2, 3))),
    ]
    for given, domain in cases:
        for privacy_delta in (0.0, 1e-3):
            noise = better_noise(domain, 3, 1.0, privacy_delta)
            mechanism = dpf.NoisySums(statistic, domain=domain, epsilon=1.0, delta=privacy_delta, noise=noise)
            release = function(X, epsilon=1.0, delta=privacy_delta, rng=PCG64(5), **given)
            assert np.array_equal(release, mechanism(X, rng=PCG64(5)))
            assert release.shape == (3,)


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:a missing cell counts as the lower bound")
def test_containers():
    pandas, arrow, polars = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    x = np.random.default_rng(0).integers(0, 10, (500, 3))
    names = ["a", "b", "c"]
    columns = dict(zip(names, x.T, strict=True))
    whole = [
        x,
        pandas.DataFrame(x),
        polars.DataFrame(x, schema=names),
        arrow.table(columns),
        dpf.Chunks([x[:7], x[7:]]),
    ]
    whole += [pandas.DataFrame(x).convert_dtypes(), x.astype(np.uint8)]
    for rows in whole:
        release = dpf.sum(rows, bounds=(0, 9), epsilon=1.0, rng=PCG64(0))
        assert np.array_equal(release, dpf.sum(x, bounds=(0, 9), epsilon=1.0, rng=PCG64(0)))
        assert (release % 1 == 0).all()
    for rows in (x.tolist(), [tuple(row) for row in x], x.astype(float), pandas.DataFrame(x, dtype=float)):
        release = dpf.sum(rows, bounds=(0, 9), epsilon=1.0, rng=PCG64(0))
        assert np.array_equal(release, dpf.sum(x.astype(float), bounds=(0, 9), epsilon=1.0, rng=PCG64(0)))
    assert dpf.mean([[1.0, 2.0], None], radius=3.0, epsilon=1e9) == pytest.approx([0.5, 1.0], abs=1e-6)


def test_numbers_are_released_as_before():
    for x in (X[:, 0], X[:, 0].tolist()):
        release = dpf.mean(x, bounds=(-1, 1), epsilon=1.0, rng=PCG64(0))
        assert type(release) is float
        mechanism = dpf.GlobalSensitivity(Mean(), grid=Grid(-1, 1), epsilon=1.0)
        assert release == mechanism(x, rng=PCG64(0))


@every(
    "x, options, error, message",
    [
        (X, {}, TypeError, "give either bounds="),
        (X, {"bounds": (0, 1), "radius": 1.0}, TypeError, "give radius= for a ball, or bounds= or grid= for a box"),
        (X, {"bounds": (0, 1), "center": 1.0}, TypeError, "center is for radius="),
        (X[:, 0], {"bounds": (0, 1), "center": 1.0}, TypeError, "center is for radius="),
        (dpf.Chunks([]), {"radius": 1.0}, ValueError, "x has no pieces"),
        (X, {"bounds": "private"}, ValueError, r"bounds must be a pair \(lower, upper\), or one pair for each column"),
        (X, {"bounds": [(0, 1), (0, 2)]}, ValueError, "X must have 2 columns"),
        (X, {"bounds": ("a", 1)}, TypeError, "the lower end of bounds must be a real number"),
        (X, {"grid": [Grid(0, 1)]}, ValueError, "X must have 1 columns"),
        (X, {"radius": 1.0, "center": [1, 2]}, ValueError, "X must have 2 columns"),
        (
            X,
            {"bounds": (0, 1), "method": "inverse-sensitivity"},
            ValueError,
            "method must be 'auto' or 'global-sensitivity' for rows",
        ),
        (X[:, 0], {"radius": 1.0}, ValueError, "x must be two-dimensional, a record in each row, for a radius"),
        (
            X[:, 0],
            {"bounds": (0, 1), "delta": 1e-6, "method": "global-sensitivity"},
            ValueError,
            "delta must be 0 for method='global-sensitivity'",
        ),
        (X[:0], {"bounds": (0, 1)}, ValueError, "x is empty"),
        (Untouchable(), {"bounds": (1, 0)}, ValueError, "lower must be below upper"),
        (X, {"bounds": (0, 1), "epsilon": -1}, ValueError, "epsilon must be positive"),
    ],
)
def test_bad_arguments(x, options, error, message):
    for function in (dpf.mean, dpf.sum):
        if function is dpf.sum and "method" in message and np.ndim(x) < 2:
            continue
        with pytest.raises(error, match=message):
            function(x, **{"epsilon": 1.0, **options})
