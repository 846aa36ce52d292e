"""Estimates of blocks: the kernels against slow optimisers, biases by simulation, invalid input."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import dpfast as dpf
from dpfast._kernels import _fits
from dpfast.families import (
    Laplace,
    LinearRegression,
    LogisticRegression,
    NegativeBinomial,
    PoissonRegression,
    Ranges,
    Weibull,
    fitted,
)
from dpfast.families.user import family_of
from tests.cases import every
from tests.reference import fits as reference
from tests.statistical import ALPHA

pytestmark = pytest.mark.kernel

MODELS = ("linear", "logistic", "poisson")
Z = stats.norm.isf(ALPHA / 2)
UNTOUCHED = 7.25e77  # no coefficient


def run(kernel, *data, offsets, columns, **options):
    out, counts = np.full((len(offsets) - 1, columns), UNTOUCHED), np.full(len(offsets) - 1, -7)
    kernel(*data, np.asarray(offsets, np.int64), out, counts, **options)
    return out, counts


def regress(model, design, response, *, offsets=None, intercept=False, correct=False, workers=1):
    columns = np.shape(design)[1] + intercept + (model == "linear")
    offsets = [0, len(response)] if offsets is None else offsets
    options = {"model": model, "intercept": intercept, "correct": correct, "workers": workers}
    return run(_fits.regression, np.asarray(design), np.asarray(response), offsets=offsets, columns=columns, **options)


def responses(rng, model, eta):
    if model == "linear":
        return eta + rng.standard_normal(eta.size)
    return rng.random(eta.size) < 1 / (1 + np.exp(-eta)) if model == "logistic" else rng.poisson(np.exp(eta))


def pieces(x, offsets):
    return [x[a:b] for a, b in itertools.pairwise(offsets)]


# ---- agreement with slow twins ----


@pytest.mark.parametrize(("shape", "scale"), [(0.2, 1.0), (1.7, 1e-200), (300.0, 1e250), (1.7, 1.0)])
def test_weibull_agrees_with_bisection_in_forty_digits(shape, scale):
    x, offsets = np.random.default_rng(1).weibull(shape, 47) * scale, [0, 2, 5, 20, 47]
    out, counts = run(_fits.weibull, x, offsets=offsets, columns=2)
    assert_allclose(out, [reference.weibull(part) for part in pieces(x, offsets)], rtol=1e-8)
    assert_array_equal(counts, np.diff(offsets))


@pytest.mark.parametrize("n", [5, 9])
def test_the_scale_of_weibull_may_be_below_the_greatest_record_by_more_than_the_range_of_doubles(n):
    x = np.append(np.full(n - 1, 1e-307), 1.5e308)
    out, _ = run(_fits.weibull, x, offsets=[0, n], columns=2)
    assert_allclose(out[0], reference.weibull(x), rtol=1e-6)


def test_laplace_is_the_median_and_the_mean_deviation_from_it():
    x, offsets = np.random.default_rng(2).laplace(3.0, 2.0, 3000), [0, 1, 3, 20, 41, 700, 3000]
    out, _ = run(_fits.laplace, x, offsets=offsets, columns=2)
    assert_allclose(out, [reference.laplace(part) for part in pieces(x, offsets)], rtol=1e-13)


@every("times", [1, 10**4, 10**12])  # by a table of the counts, by digammas
@every("r", [0.3, 4.0])
def test_negative_binomial_agrees_with_a_bracketing_solver(r, times):
    x, offsets = np.random.default_rng(3).negative_binomial(r, 0.1, 900) * times, [0, 60, 200, 900]
    out, _ = run(_fits.negative_binomial, x, offsets=offsets, columns=3, correct=False)
    assert_allclose(out, [reference.negative_binomial(part) for part in pieces(x, offsets)], rtol=1e-8)


@pytest.mark.parametrize("size", [10, 10**7])
def test_the_bias_of_r_is_that_of_cox_and_snell(size):
    middles = (np.arange(30000) + 0.5) / 30000
    x = stats.nbinom(2.5, 0.2).ppf(middles) if size == 10 else np.floor(stats.gamma(2.5).ppf(middles) * size)
    fit = {"offsets": [0, x.size], "columns": 3}
    raw, corrected = (run(_fits.negative_binomial, x, **fit, correct=correct)[0][0] for correct in (False, True))
    n = x.size
    assert_allclose((raw[0] - corrected[0]) * n, reference.negative_binomial_bias(x, raw[0]), rtol=0.01)
    if size == 10:
        theta = {"r": raw[0], "p": raw[1], "mean": raw[2]}
        assert_allclose((raw - corrected)[:2] * n, [NegativeBinomial().bias(name, theta) for name in "rp"], rtol=0.01)


def _designs(d):
    """Regressors, a predictor, and where blocks begin."""
    rng = np.random.default_rng(d)
    design = rng.standard_normal((2600, d)) * np.exp(rng.standard_normal(d)) + 0.3
    return rng, design, np.clip(design @ rng.standard_normal(d) / d, -3, 3), [0, 129, 700, 2600] if d < 20 else [0, 700]


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 50])
def test_least_squares_agrees_with_an_orthogonal_factor(d, intercept, correct):
    rng, design, eta, offsets = _designs(d)
    y = responses(rng, "linear", eta)
    out, _ = regress("linear", design, y, offsets=offsets, intercept=intercept, correct=correct)
    for row, X, part in zip(out, pieces(design, offsets), pieces(y, offsets), strict=True):
        beta, sd = reference.linear(X, part, intercept=intercept)
        scale = math.sqrt(len(part) / (len(part) - len(beta))) if correct else 1
        assert_allclose(row, [*beta, sd * scale], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 50])
@pytest.mark.parametrize("model", ["logistic", "poisson"])
def test_regressions_agree_with_plain_newton_to_a_small_part_of_a_standard_error(model, d, intercept):
    rng, design, eta, offsets = _designs(d)
    y, slow = responses(rng, model, eta), getattr(reference, model)
    fit = {"offsets": offsets, "intercept": intercept}
    raw, corrected = (regress(model, design, y, **fit, correct=correct)[0] for correct in (False, True))
    for block, X, part in zip(range(len(raw)), pieces(design, offsets), pieces(y, offsets), strict=True):
        maximum, better = (slow(X, part, intercept=intercept, correct=correct) for correct in (False, True))
        rows = np.column_stack([np.ones(len(X)), X]) if intercept else X
        mean = np.exp(rows @ maximum)
        root = np.sqrt(mean)[:, None] * rows if model == "poisson" else (np.sqrt(mean) / (1 + mean))[:, None] * rows
        assert np.linalg.norm(root @ (raw[block] - maximum)) < 1e-6
        bias = np.linalg.norm(root @ (better - maximum))
        assert np.linalg.norm(root @ (corrected[block] - better)) < 1e-6 + 0.01 * bias


def test_badly_scaled_and_nearly_collinear_columns():
    rng = np.random.default_rng(5)
    design = rng.standard_normal((400, 3))
    design[:, 2] = design[:, 1] + 1e-5 * design[:, 2]
    beta, _ = reference.linear(design, design @ [1, 2, 3] + 1e-3, intercept=False)
    out, _ = regress("linear", design, design @ [1, 2, 3] + 1e-3)
    assert_allclose(out[0, :3], beta, rtol=1e-8)
    for model in MODELS:
        y = responses(rng, model, design[:, 0])
        plain, _ = regress(model, design, y)
        scaled, _ = regress(model, design * [1e-300, 1e300, 1e160], y)
        assert_allclose(scaled[0, :3] * [1e-300, 1e300, 1e160], plain[0, :3], rtol=1e-7)


@pytest.mark.parametrize(
    "case",
    ["close columns", "closer columns", "outliers", "late outliers", "sorted", "rare ones", "scales", "odd tiles"],
)
def test_labels_are_fitted_as_well_where_floats_do_not_tell_columns_apart(case):
    """Shares of columns on both sides of 2^-8, below which doubles are used; more rows than one sum of floats has."""
    rng = np.random.default_rng(6)
    design = rng.standard_normal((4700, 3))
    part = {"close columns": 0.1, "closer columns": 1e-4}.get(case)
    if part:
        design[:, 2] = design[:, 1] + part * design[:, 2]
    if case == "outliers":
        design[::500] *= 30
    if case == "late outliers":
        design[-1] *= 100
    if case == "sorted":
        design = design[np.argsort(abs(design[:, 0]))] * np.linspace(0.01, 1, len(design))[:, None]
    if case == "rare ones":
        design = (design > 2).astype(float)
    y = responses(rng, "logistic", np.clip(design @ [0.5, 1.0, -0.5], -3, 3))
    design = design[: 64 * 41 + 5] if case == "odd tiles" else design
    y = y[: len(design)]
    scales = np.array([1e-150, 1e150, 1e30]) if case == "scales" else np.ones(3)
    for correct in (False, True):
        out = regress("logistic", design * scales, y, correct=correct)[0][0] * scales
        slow = reference.logistic(design, y, correct=correct)
        mean = 1 / (1 + np.exp(-design @ slow))
        root = np.sqrt(mean * (1 - mean))[:, None] * design
        assert np.linalg.norm(root @ (out - slow)) < (1e-3 if correct else 1e-6)


# ---- corrections ----


def test_the_deviation_of_laplace_records_from_their_median():
    sizes = np.array([2, 3, 4, 5, 8, 23])
    assert_allclose(fitted.deviation(sizes), [reference.laplace_factor(n) for n in sizes.tolist()], rtol=1e-12)
    ends = np.array([4096, 4097, 4098, 10**7])
    gap = (1 - fitted.deviation(ends)) * ends
    assert_allclose(gap, 0.5 + math.sqrt(2 / math.pi) / 3 / np.sqrt(ends), atol=1 / 4096)
    assert fitted.deviation(np.array([0, 1])).tolist() == [1.0, 1.0]


def test_the_constants_of_the_weibull_bias():
    """Cox and Snell for the minimum of a Gumbel law, by quadrature of the derivatives of its log-likelihood."""
    first = [lambda z, e: e - 1, lambda z, e: z * e - 1 - z]
    second = {
        (0, 0): lambda z, e: -e,
        (0, 1): lambda z, e: 1 - e - z * e,
        (1, 1): lambda z, e: 1 + 2 * z - 2 * z * e - z * z * e,
    }
    third = {
        (0, 0, 0): lambda z, e: e,
        (0, 0, 1): lambda z, e: 2 * e + z * e,
        (0, 1, 1): lambda z, e: -2 + 2 * e + 4 * z * e + z * z * e,
        (1, 1, 1): lambda z, e: -2 - 6 * z + 6 * z * e + 6 * z * z * e + z**3 * e,
    }

    def mean(f):
        return mp.quad(lambda z: f(z, mp.exp(z)) * mp.exp(z - mp.exp(z)), [-40, -15, -5, -1, 1, 2, 4.5])

    two = range(2)
    inverse = mp.matrix(2, 2)
    for i in two:
        for j in two:
            inverse[i, j] = -mean(second[min(i, j), max(i, j)])
    inverse = inverse**-1
    bias = [0, 0]
    for i in two:
        for j in two:
            for k in two:
                a, b = second[min(i, j), max(i, j)], first[k]
                joint = mean(third[tuple(sorted((i, j, k)))]) / 2 + mean(lambda z, e, a=a, b=b: a(z, e) * b(z, e))
                bias = [bias[s] + inverse[s, i] * inverse[j, k] * joint for s in two]
    assert_allclose(float(bias[0]), fitted._LOCATION_BIAS, rtol=1e-10)
    assert_allclose(float(inverse[0, 0]), fitted._LOCATION_VARIANCE, rtol=1e-10)
    assert_allclose(float(inverse[1, 1]), fitted._SCALE_VARIANCE, rtol=1e-10)
    assert_allclose(float(inverse[1, 1] - bias[1]), fitted._SHAPE_BIAS, rtol=1e-10)
    assert_allclose(fitted._SHAPE_BIAS, 18 * (math.pi**2 - 2 * float(mp.zeta(3))) / math.pi**4, rtol=1e-12)


def _labels(rng, n):
    X = rng.standard_normal((n, 2))
    return X, rng.random(n) < 1 / (1 + np.exp(-(0.3 + X @ [0.8, -0.5])))


def _counts(rng, n):
    X = rng.standard_normal((n, 2))
    return X, rng.poisson(np.exp(-0.5 + X @ [0.5, -0.3]))


def _line(rng, n):
    X = rng.standard_normal((n, 2))
    return X, 0.3 + X @ [0.8, -0.5] + 0.7 * rng.standard_normal(n)


SLOPES = {"intercept": 0.3, "x0": 0.8, "x1": -0.5}

# family, truth, records, size of a block, the parameters whose bias is corrected
SIMULATIONS = {
    "weibull": (Weibull(), {"shape": 1.5, "scale": 2.0}, lambda rng, n: (2 * rng.weibull(1.5, n),), 30, ["shape"]),
    "weibull of small shape": (
        Weibull(),
        {"shape": 0.5, "scale": 2.0},
        lambda rng, n: (2 * rng.weibull(0.5, n),),
        60,
        ["shape", "scale"],
    ),
    "laplace": (
        Laplace(),
        {"location": 1.0, "scale": 2.0},
        lambda rng, n: (rng.laplace(1, 2, n),),
        21,
        ["scale"],
    ),
    "negative binomial": (
        NegativeBinomial(),
        {"r": 2.0, "p": 0.2, "mean": 8.0},
        lambda rng, n: (rng.negative_binomial(2, 0.2, n),),
        80,
        ["r", "p"],
    ),
    "logistic": (LogisticRegression(2), SLOPES, _labels, 80, ["x0", "x1"]),
    "poisson": (PoissonRegression(2), {"intercept": -0.5, "x0": 0.5, "x1": -0.3}, _counts, 60, ["intercept"]),
    "linear": (LinearRegression(2), {**SLOPES, "sd": 0.7}, _line, 20, ["sd"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATIONS)
def test_the_bias_after_correction_is_of_second_order_and_before_it_is_not(name):
    """|bias| b**2 below 12 |b1| and 2 / sqrt(I); without correction the bias is b1 / b, and that bound fails."""
    family, theta, draw, b, biased = SIMULATIONS[name]
    k = 12_000
    data = draw(np.random.default_rng(7), k * b)
    box = Ranges(family.names, (-1e3,) * len(family.names), (1e3,) * len(family.names))
    corrected, raw = (
        np.clip(family.estimates(data, k, box, corrected=correct, workers=1), -1e3, 1e3) for correct in (True, False)
    )
    assert np.isfinite(corrected).all()
    for j, parameter in enumerate(family.names):
        truth, b1 = theta[parameter], family.bias(parameter, theta)
        error = Z * corrected[:, j].std() / math.sqrt(k)
        second = (12 * abs(b1) + 2 * family.information(parameter, theta) ** -0.5) / b**2
        assert abs(corrected[:, j].mean() - truth) <= error + second, parameter
        if parameter in biased:
            assert abs(raw[:, j].mean() - truth) > error + second, parameter
            assert_allclose(raw[:, j].mean() - truth, b1 / b, atol=error + (12 * abs(b1)) / b**2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATIONS)
def test_the_variance_is_that_of_the_information_and_the_second_order(name):
    family, theta, draw, _, _ = SIMULATIONS[name]
    b, k = 400, 2500
    data = draw(np.random.default_rng(8), k * b)
    box = Ranges(family.names, (-1e3,) * len(family.names), (1e3,) * len(family.names))
    estimates = family.estimates(data, k, box, corrected=True, workers=1)
    for parameter, column in zip(family.names, estimates.T, strict=True):
        efficiency = column.var() * b * family.information(parameter, theta)
        v2 = family.second_order(parameter, theta)[0] * family.information(parameter, theta) / b
        assert 1 - Z * math.sqrt(2 / k) < efficiency < 1 + 2.5 * v2 + 0.02 + Z * math.sqrt(3 / k), parameter


def test_the_second_order_of_a_poisson_regression():
    """Rows whose weights differ by orders of magnitude: v2 I is 11, not the 4 of a linear regression."""
    rng, b, k = np.random.default_rng(18), 100, 20_000
    family, slopes = PoissonRegression(2, spread=0.5), np.array([1.0, -1.0])
    X = rng.normal(size=(k * b, 2)) * 0.5
    data = X, rng.poisson(np.exp(0.5 + X @ slopes)).astype(float)
    box = Ranges(("x0", "x1"), (-9.0,) * 2, (9.0,) * 2)
    estimates = family.estimates(data, k, box, corrected=True, workers=1)
    theta = {"intercept": 0.5, "x0": 1.0, "x1": -1.0}
    information, chance = family.information("x0", theta), Z * math.sqrt(1 / k) * b  # of the mean of two
    simulated = (estimates.var(axis=0).mean() * b * information - 1) * b
    told = family.second_order("x0", theta)[0] * information
    assert abs(simulated - told) < 0.5 * chance
    assert abs(simulated - 4) > 0.5 * chance


# ---- data of every kind ----


@every("dtype", ["f8", "f4", "f2", "i8", "i2", "u1", "?"])
def test_any_dtype_stride_and_order_gives_the_same(dtype):
    rng = np.random.default_rng(9)
    base = rng.integers(0, 2 if dtype == "?" else 9, (300, 4)).astype(dtype)
    y = rng.integers(0, 2, 300).astype(dtype)
    expected = {m: regress(m, base.astype(float), y.astype(float), offsets=[0, 140, 300])[0] for m in MODELS}
    wide = np.zeros((600, 8), dtype)
    wide[::2, ::2] = base
    for design in (base, np.asfortranarray(base), wide[::2, ::2], base[::-1][::-1]):
        design.flags.writeable = False
        before = design.copy()
        for model in MODELS:
            assert_array_equal(regress(model, design, y, offsets=[0, 140, 300])[0], expected[model])
        assert_array_equal(design, before)
    for kernel, options, columns in ((_fits.weibull, {}, 2), (_fits.laplace, {}, 2)):
        x = base[:, 0]
        assert_array_equal(
            run(kernel, x, offsets=[0, 140, 300], columns=columns, **options)[0],
            run(kernel, x.astype(float), offsets=[0, 140, 300], columns=columns, **options)[0],
        )
    with pytest.raises(TypeError, match="complex128"):
        run(_fits.weibull, np.ones(3, complex), offsets=[0, 3], columns=2)


def _everything(rng, n):
    """Every kernel on records of its kind: a function of offsets and workers."""
    X, x = rng.standard_normal((n, 4)), rng.gamma(2.0, size=n)
    counts, labels = rng.negative_binomial(2, 0.2, n), rng.random(n) < 0.5
    data = [x, counts, X, labels]

    def estimates(offsets, workers=1):
        fits = [
            run(_fits.weibull, data[0], offsets=offsets, columns=2, workers=workers)[0],
            run(_fits.laplace, data[0], offsets=offsets, columns=2, workers=workers)[0],
            run(_fits.negative_binomial, data[1], offsets=offsets, columns=3, correct=True, workers=workers)[0],
            *(
                regress(m, data[2], y, offsets=offsets, correct=True, intercept=True, workers=workers)[0]
                for m, y in (("linear", data[0]), ("logistic", data[3]), ("poisson", data[1]))
            ),
        ]
        return np.concatenate(fits, axis=1)

    return data, estimates


def test_a_block_depends_on_its_own_records_only():
    data, estimates = _everything(np.random.default_rng(10), 1000)
    offsets = [0, 130, 300, 301, 301, 650, 1000]
    whole = estimates(offsets)
    for workers in (2, 3, 50):
        assert_array_equal(estimates(offsets, workers), whole)
    alone = [estimates([a, b])[0] for a, b in itertools.pairwise(offsets)]
    assert_array_equal(whole, alone)
    for part in data:
        part[400] = 1 if part.dtype == bool else 77
    changed = estimates(offsets)
    assert [np.array_equal(new, old, equal_nan=True) for new, old in zip(changed, whole, strict=True)] == [
        j != 4 for j in range(6)
    ]


def test_records_that_are_not_finite_are_left_out():
    rng = np.random.default_rng(11)
    x = rng.gamma(2.0, size=200)
    spoilt = np.insert(x, [3, 50, 50, 120], [math.nan, math.inf, -math.inf, -1.0])
    for kernel, keep in ((_fits.weibull, spoilt > 0), (_fits.laplace, np.isfinite(spoilt))):
        kept = spoilt[keep & np.isfinite(spoilt)]
        (out, counts), (expected, _) = (run(kernel, v, offsets=[0, v.size], columns=2) for v in (spoilt, kept))
        assert_array_equal(out, expected)
        assert counts[0] == kept.size
    X = rng.standard_normal((200, 3))
    for model in MODELS:
        y = responses(rng, model, X[:, 0]).astype(float)
        bad_X, bad_y = np.insert(X, [0, 77, 200], 1.0, axis=0), np.insert(y, [0, 77, 200], 1.0)
        bad_X[0, 1], bad_X[78, 2], bad_y[202] = math.nan, -math.inf, math.nan
        (out, counts), (expected, _) = regress(model, bad_X, bad_y), regress(model, X, y)
        # rows lie in other lanes; some scores of labels are floats
        assert_allclose(out, expected, rtol=1e-9 if model == "logistic" else 1e-12)
        assert counts[0] == 200


def test_an_estimate_without_a_maximum_is_an_end_of_the_box_or_nan():
    assert run(_fits.weibull, np.full(9, 3.0), offsets=[0, 9, 9], columns=2)[0].tolist()[0] == [math.inf, 3.0]
    assert np.isnan(run(_fits.weibull, np.zeros(9), offsets=[0, 9, 9], columns=2)[0]).all()
    assert run(_fits.laplace, np.full(9, 3.0), offsets=[0, 9], columns=2)[0].tolist() == [[3.0, 0.0]]
    for correct in (False, True):
        fit = {"offsets": [0, 9], "columns": 3, "correct": correct}
        assert run(_fits.negative_binomial, np.full(9, 3), **fit)[0].tolist() == [[math.inf, 1.0, 3.0]]
        assert_array_equal(run(_fits.negative_binomial, np.zeros(9), **fit)[0], [[math.nan, 1.0, 0.0]])
        assert np.isnan(run(_fits.negative_binomial, np.full(9, math.nan), **fit)[0]).all()
    x = np.linspace(-1, 1, 50)
    column = x[:, None]
    for correct in (False, True):
        assert regress("logistic", column, x > 0, correct=correct)[0][0, 0] > 20  # separated
        assert regress("logistic", column, x < 0, correct=correct)[0][0, 0] < -20
        assert regress("logistic", column, x < 9, intercept=True, correct=correct)[0][0, 0] > 20  # of one class
        assert regress("poisson", column, 0 * x, intercept=True, correct=correct)[0][0, 0] < -20
        for model in MODELS:
            twice = np.column_stack([column, column * 3])
            assert np.isnan(regress(model, twice, x > 0, correct=correct)[0]).all()  # collinear
            assert np.isnan(regress(model, twice * 0, x > 0, correct=correct)[0]).all()
            assert np.isnan(regress(model, twice[:1], x[:1] > 0, correct=correct)[0]).all()  # fewer than p
            assert np.isnan(regress(model, column * 0 + 4, x > 0, intercept=True, correct=correct)[0]).all()
    exact, _ = regress("linear", np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([1.0, 2.0]), correct=True)
    assert_allclose(exact[0, :2], [-1, 1], rtol=1e-12)
    assert math.isnan(exact[0, 2])


@every("size", [1e-320, 1e-300, 1e-160, 1e160, 1e300, 1.7e308])
def test_tiny_and_huge_records_are_answered(size):
    rng = np.random.default_rng(12)
    x, X = rng.random(60) * size, rng.standard_normal((60, 2))
    shape, scale = run(_fits.weibull, x, offsets=[0, 60], columns=2)[0][0]
    assert 0.5 < shape < 5
    assert 0 < scale <= x.max()
    assert np.isfinite(run(_fits.laplace, x - 0.5 * size, offsets=[0, 60], columns=2)[0]).all()
    assert not np.isposinf(run(_fits.negative_binomial, x, offsets=[0, 60], columns=3, correct=True)[0][0, 2])
    unit = min(max(size, 1e-300), 1e300)
    assert_allclose(regress("linear", X * unit, X @ [1, 2], intercept=True)[0][0, 1:3] * unit, [1, 2], rtol=1e-9)
    assert np.isfinite(regress("linear", X, X @ [0.1, 0.2] * size / 2, intercept=True)[0]).all()


@pytest.mark.parametrize("size", [10**6, 10**15])
def test_huge_counts(size):
    rng = np.random.default_rng(13)
    X = rng.standard_normal((80, 2))
    counts = np.floor(size * np.exp(X @ [0.5, 1.0]))
    assert_allclose(
        regress("poisson", X, counts, intercept=True, correct=True)[0][0], [math.log(size), 0.5, 1.0], rtol=1e-5
    )
    assert np.isfinite(run(_fits.negative_binomial, counts, offsets=[0, 80], columns=3, correct=True)[0]).all()


JUNK = st.one_of(
    st.floats(), st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e-300, 1e300, 1.7e308, -1e308]), st.integers(0, 9)
)


@given(data=st.data(), n=st.integers(0, 40), d=st.integers(1, 5), intercept=st.booleans(), correct=st.booleans())
def test_junk_is_answered(data, n, d, intercept, correct):
    X = data.draw(arrays(float, (n, d), elements=JUNK.map(float)))
    y = data.draw(arrays(float, n, elements=JUNK.map(float)))
    offsets = [0, n // 3, n // 3, n]
    for model in MODELS:
        out, counts = regress(model, X, y, offsets=offsets, intercept=intercept, correct=correct)
        assert not np.any(out == UNTOUCHED)
        assert np.all((counts >= 0) & (counts <= np.diff(offsets)))
    for kernel, columns, options in (
        (_fits.weibull, 2, {}),
        (_fits.laplace, 2, {}),
        (_fits.negative_binomial, 3, {"correct": correct}),
    ):
        out, counts = run(kernel, y, offsets=offsets, columns=columns, **options)
        assert np.all((counts >= 0) & (counts <= np.diff(offsets)))
        if kernel is not _fits.laplace:
            assert not np.any(out < 0)


# ---- the families ----


def test_names_of_coefficients_and_parameter_errors():
    assert LogisticRegression(2).names == ("intercept", "x0", "x1") == LogisticRegression(2).default
    assert LinearRegression(("a", "b"), intercept=False).names == ("a", "b", "sd")
    assert LinearRegression(2).default == ("intercept", "x0", "x1")
    assert hash(LogisticRegression(["a"], spread=[2.0])) == hash(LogisticRegression(("a",), spread=(2,)))
    with pytest.raises(ValueError, match="columns must be at least 1, not 0"):
        LogisticRegression(0)
    with pytest.raises(TypeError, match="columns must be an integer, not str"):
        LogisticRegression("age")
    for columns in ((), ("a", "a"), ("sd",), ("intercept",)):
        with pytest.raises(ValueError, match="columns must be different names"):
            LogisticRegression(columns)
    with pytest.raises(ValueError, match="spread must be one number or 3"):
        LogisticRegression(3, spread=(1, 2))
    with pytest.raises(TypeError, match="pair"):
        LogisticRegression(3).records(np.ones((5, 3)))
    with pytest.raises(ValueError, match="X must have 3 columns, not 2"):
        LogisticRegression(3).records((np.ones((5, 2)), np.ones(5)))
    with pytest.raises(ValueError, match="equally long, not 5 and 4"):
        LogisticRegression(3).records((np.ones((5, 3)), np.ones(4)))


def test_reference_values_hold_all_that_the_theory_needs():
    for family, theta, *_ in SIMULATIONS.values():
        for name in family.names:
            low, high = theta[name] - 0.1, theta[name] + 0.1
            middle = family.reference(Ranges((name,), (low,), (high,)))
            assert family.information(name, middle) > 0
            assert all(map(math.isfinite, (family.bias(name, middle), *family.second_order(name, middle))))
            lower, upper = family.space(name)
            assert lower < low < high < upper
    both = NegativeBinomial().reference(Ranges(("p", "mean"), (0.1, 7.0), (0.4, 9.0)))
    assert_allclose(both["mean"], both["r"] * (1 - both["p"]) / both["p"])


def test_distributions_of_scipy_and_names_become_ours():
    assert family_of(stats.weibull_min) == family_of("weibull") == Weibull()
    assert family_of(stats.nbinom) == family_of("negativebinomial") == NegativeBinomial()
    assert family_of(stats.laplace) == family_of("laplace") == Laplace()
    with pytest.raises(TypeError, match=r"families.LogisticRegression\(columns\)"):
        dpf.SampleAndAggregate("logistic", bounds=(-3, 3), epsilon=1)
    with pytest.raises(TypeError, match="pair"):
        dpf.mle(np.ones((100, 2)), "logistic", bounds=(-3, 3), epsilon=1)


@pytest.mark.host
@pytest.mark.parametrize("name", MODELS)
def test_one_call_of_mle(name):
    rng = np.random.default_rng(14)
    X = rng.standard_normal((60_000, 2))
    y = responses(rng, name, 0.3 + X @ [0.8, -0.5])
    family = "poisson-regression" if name == "poisson" else name
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["age", "dose"])
    first = dpf.mle((X, y), family, bounds=(-2, 2), epsilon=50, rng=np.random.default_rng(1))
    again = dpf.mle((frame, y), family, bounds=(-2, 2), epsilon=50, rng=np.random.default_rng(1), workers=2)
    assert_array_equal(first, again)
    assert_allclose(first, [0.3, 0.8, -0.5], atol=0.12)
    alone = dpf.mle((frame, y), family, bounds={"dose": (-2, 2)}, epsilon=50, rng=np.random.default_rng(2))
    assert abs(alone + 0.5) < 0.1


def test_the_least_blocks_of_a_regression_grow_with_its_coefficients():
    mechanism = dpf.SampleAndAggregate(LogisticRegression(10), bounds=(-3, 3), epsilon=0.01)
    assert mechanism.block_count(130_000) == 1000
    with pytest.raises(ValueError, match="at least 260 records, two blocks of 130, not 259"):
        mechanism.block_count(259)
    with pytest.raises(TypeError, match="whole blocks"):
        mechanism.block_sums(1000)


@pytest.mark.parametrize("family", [Weibull(), LogisticRegression(1, intercept=False)])
def test_one_record_changes_one_block(family):
    rng = np.random.default_rng(15)
    data = (rng.gamma(2.0, size=600),) if isinstance(family, Weibull) else (rng.random((600, 1)), rng.random(600) < 0.5)
    box = Ranges(family.names[:1], (-5.0,), (5.0,))
    before = family.estimates(data, 20, box, corrected=True, workers=1)
    for junk in (math.nan, math.inf, 1e308, -1.0):
        changed = tuple(part.astype(float) for part in data)
        changed[0][37] = junk
        after = family.estimates(changed, 20, box, corrected=True, workers=1)
        assert np.flatnonzero((after != before).any(axis=1)).tolist() in ([], [1])


@pytest.mark.slow
def test_the_release_is_as_efficient_as_predicted():
    """Mean squared error, against 1 / (n I), v2 and noise."""
    rng, n, family = np.random.default_rng(16), 40_000, Weibull()
    mechanism = dpf.SampleAndAggregate(family, bounds={"shape": (0.5, 5)}, epsilon=1.0)
    theta = {"shape": 1.5, "scale": 2.0}
    k, information = mechanism.block_count(n), family.information("shape", theta)
    squares = [(mechanism(rng.weibull(1.5, n) * 2, rng=rng) - 1.5) ** 2 for _ in range(300)]
    excess = family.second_order("shape", theta)[0] * k / n**2 + 2 * (4.5 / k) ** 2
    predicted = 1 / (n * information) + excess
    error = Z * np.std(squares) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - predicted) < error + 0.2 * predicted
