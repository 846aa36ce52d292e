"""Errors of `dpfast.SampleAndAggregate` relative to the best estimator: sections of ``bench.pages efficiency``."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, polygamma

import dpfast as dpf
from bench import pages
from bench.pages.tables import paragraph, size, table

try:
    from diffprivlib.models import LogisticRegression
except ImportError:  # not installed, or not for this scikit-learn
    LogisticRegression = None

EPSILONS = (0.1, 1.0, 4.0)
RECORDS = (10**4, 10**5, 10**6, 10**7)
BLOCKS = 500_000  # simulated per entry, or as many as 1e7 records give
MOST_AT_ONE_MILLION = 1.15  # at epsilon 1


@dataclass(frozen=True)
class Setting:
    """A family, the released parameter and its bounds, the truth, how to draw records, and a naive estimate.

    `influence` is the influence function of the MLE at the truth, whose mean over a block is the error of its estimate
    to first order.
    """

    family: str
    parameter: str
    truth: float
    bounds: tuple[float, float]
    draw: Callable
    influence: Callable
    records: tuple[float, float] | None = None  # public bounds of the records, for the naive estimate
    naive: Callable | None = None  # from a noisy mean, or variance, to the parameter

    @property
    def name(self):
        return f"{self.family} {self.parameter}"


def _gamma_influence(x, k=2.0):
    return (k * (np.log(x) - digamma(k)) + k - x) / (k * polygamma(1, k) - 1)


def _inverse(mean):
    return 1 / np.maximum(mean, 1e-9)


SETTINGS = (
    Setting(
        "exponential", "rate", 1.0, (0.2, 5), lambda rng, n: rng.standard_exponential(n),
        lambda x: 1 - x, (0, 50), _inverse,
    ),
    Setting(
        "geometric", "p", 0.3, (0.01, 0.99), lambda rng, n: rng.geometric(0.3, n),
        lambda x: 0.3 - 0.09 * x, (1, 1000), _inverse,
    ),
    Setting(
        "normal", "sd", 1.0, (0.1, 5), lambda rng, n: rng.standard_normal(n),
        lambda x: (x**2 - 1) / 2, (-20, 20), np.sqrt,
    ),
    Setting("gamma", "shape", 2.0, (0.1, 10), lambda rng, n: rng.standard_gamma(2.0, n), _gamma_influence),
    Setting(
        "Poisson", "mean", 2.0, (0.1, 10), lambda rng, n: rng.poisson(2.0, n),
        lambda x: x - 2.0, (0, 40), lambda mean: mean,
    ),
    Setting(
        "Bernoulli", "p", 0.3, (0, 1), lambda rng, n: rng.random(n) < 0.3,
        lambda x: x - 0.3, (0, 1), lambda mean: mean,
    ),
)  # fmt: skip


def mechanism(setting, epsilon, factor=1.0, **options):
    low, high = setting.bounds
    bounds = {setting.parameter: (low / factor, high * factor)}
    return dpf.SampleAndAggregate(setting.family.lower(), bounds=bounds, epsilon=epsilon, **options)


def information(setting, release):
    theta = release.family.reference(release.box, {setting.parameter: setting.truth})
    return release.family.information(setting.parameter, theta)


def scale_of(setting, release):
    """The truth on the scale on which estimates are averaged, and the value of one unit of that scale."""
    return (np.log(setting.truth), setting.truth) if release.box.logs else (setting.truth, 1.0)


def efficiency(setting, release, n, rng, quick):
    """n I times the mean squared error: variance and bias of simulated blocks, and the variance of the noise.

    Blocks are independent, so a mean of k of them has their bias and 1/k of their variance: this varies much less
    than the errors of whole releases. The bias is that of the remainder of the estimates beyond the first order.
    """
    k, [grid] = release.block_count(n), release.grids(n)
    blocks = 20_000 if quick else min(BLOCKS, 10**7 * k // n)
    x = setting.draw(rng, n * blocks // k)
    t = release.family.estimates((x,), blocks, release.box, corrected=True, workers=1)[:, 0]
    at, unit = scale_of(setting, release)
    t = (np.clip(t, grid.lower, grid.upper) - at) * unit
    starts = -(-x.size * np.arange(blocks) // blocks)
    left = t - np.add.reduceat(setting.influence(x), starts) / np.diff(np.append(starts, x.size))
    bias_squared = left.mean() ** 2 - left.var() / blocks
    noise = 2 * ((grid.upper - grid.lower) * unit / (k * release.epsilon)) ** 2
    return n * information(setting, release) * (t.var() / k + bias_squared + noise)


def naive(setting, epsilon, n, rng):
    """The same for an estimate from a noisy mean or variance of clipped records; None if there is no such estimate."""
    if setting.naive is None:
        return None
    statistic = dpf.statistics.Variance() if setting.family == "normal" else dpf.statistics.Mean()
    noisy = dpf.GlobalSensitivity(statistic, grid=dpf.Grid(*setting.records), epsilon=epsilon)
    x = setting.draw(rng, n)
    plain = x.var() if setting.family == "normal" else x.mean()
    low, high = setting.bounds
    errors = np.clip(setting.naive(noisy.release(x, size=4000, rng=rng)), low, high) - setting.naive(plain)
    return 1 + n * information(setting, mechanism(setting, epsilon)) * np.mean(errors**2)


def _number(value):
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:,.0f}"


def families(quick):
    """Efficiency against n."""
    rng, rows = np.random.default_rng(20080901), []
    records, least = RECORDS[:2] if quick else RECORDS, mechanism(SETTINGS[0], 1.0).family.least_block
    for setting in SETTINGS:
        for epsilon in EPSILONS:
            release = mechanism(setting, epsilon)
            found = [efficiency(setting, release, n, rng, quick) for n in records]
            if not quick and epsilon == 1:
                assert found[2] <= MOST_AT_ONE_MILLION, (setting.name, found)
            rows.append(
                [setting.name, f"{epsilon:g}", *map(_number, found), _number(naive(setting, epsilon, 10**5, rng))]
            )
    text = f"""
    Mean squared error of the release times n I, where I is the Fisher information of a record: 1 is the value of the
    maximum-likelihood estimate without privacy. The number of blocks is "auto": it depends only on n, epsilon and the
    bounds, with at least {least} records in a block. Variance and bias are those of {BLOCKS:,} simulated blocks (fewer
    where blocks are long); the variance of the noise is exact. The simulation error of an entry is about 0.02, about
    0.05 at n = 1e7, where blocks are few, and more at epsilon 0.1 there. Rate, deviation and shape are geometric means.
    The last column is the obvious approach where one exists: a mean or variance of clipped records with Laplace noise
    (`GlobalSensitivity`), converted to the parameter. It is better for means of counts and waiting times with good
    bounds, and worse if the bounds on the records must be wide; it needs bounds on the records, whereas
    sample-and-aggregate needs bounds on the parameter.
    """
    headings = ["family", "epsilon", *(f"n = {size(n)}" for n in records), "naive, n = 1e5"]
    return f"## Six families\n\n{paragraph(text)}\n{table(headings, rows)}"


def ends(quick):
    """Parameters near an end of their bounds."""
    rng, rows, n = np.random.default_rng(20080902), [], 10**5 if quick else 10**6
    for setting in SETTINGS[:3] + SETTINGS[4:5]:
        for share in (0.02, 0.1, 0.5, 0.9, 0.98):
            low, high = setting.bounds
            truth = low + share * (high - low)
            moved = replace(setting, truth=truth, draw=_DRAWS[setting.family](truth), influence=_no_influence)
            ways = {}, {"combine": "mean", "margin": 0}
            found = [efficiency(moved, mechanism(moved, 1.0, **options), n, rng, quick) for options in ways]
            rows.append([setting.name, f"{truth:.3g} in {setting.bounds}", *map(_number, found)])
    text = f"""
    Mean squared error times n I as above, n = {size(n)}, epsilon 1. By default the estimates of blocks are clamped
    beyond the bounds, and parameters like scales are averaged on a logarithmic scale, so that the noise is proportional
    to the parameter. If estimates are clamped at the bounds, the mean is biased wherever a bound is within a few
    deviations of a block's estimate, which is a wide strip on the side where the deviation is large. (The simulation
    error of these entries is about 0.2.)
    """
    headings = ["family", "truth", "default", 'combine="mean", margin=0']
    return f"## Near an end of the bounds\n\n{paragraph(text)}\n{table(headings, rows)}"


def _no_influence(x):
    return np.zeros(x.shape)


_DRAWS = {
    "exponential": lambda rate: lambda rng, n: rng.exponential(1 / rate, n),
    "geometric": lambda p: lambda rng, n: rng.geometric(p, n),
    "normal": lambda sd: lambda rng, n: rng.normal(0, sd, n),
    "Poisson": lambda mean: lambda rng, n: rng.poisson(mean, n),
}


def wide_ranges(quick):
    """A range of the parameter that is 20 times too wide, each way."""
    rng, rows, setting = np.random.default_rng(20110606), [], SETTINGS[0]
    for n in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
        plain = mechanism(setting, 1.0, 20, combine="mean", margin=0)
        geometric = mechanism(setting, 1.0, 20, combine="geometric")
        better = mechanism(setting, 1.0, 20, combine="winsorized")
        x = setting.draw(rng, n)
        k = better.block_count(n)
        t = better.family.estimates((x,), k, better.box, corrected=True, workers=1)[:, 0]
        errors = better.release(x, size=20 if quick else 200, rng=rng) - t.mean()
        found = n * (t.var() / k + np.mean(errors**2))
        if n == 10**6:
            assert found <= 1.2, found
        used = "yes" if better.winsorizes(n)[0] else "no: too few blocks"
        simple = (efficiency(setting, release, n, rng, quick) for release in (plain, geometric))
        rows.append([size(n), *map(_number, simple), _number(found), used])
    text = """
    The rate of exponential records, bounds 0.01 and 100 instead of 0.2 and 5, epsilon 1; mean squared error times n I.
    The Winsorized mean spends half of epsilon on the quartiles of the estimates; after that only the logarithm of the
    width of the range matters. If the public numbers imply that the quartiles cannot be found, it is the plain mean.
    The noise of a geometric mean, the default here, also depends on the logarithm of upper / lower, whatever the rate
    is.
    """
    headings = ["n", "mean, margin=0", "geometric", "winsorized", "quartiles used"]
    return f"## A range that is far too wide\n\n{paragraph(text)}\n{table(headings, rows)}"


# A logistic regression on two features, uniform in the square, and an intercept; the public bound on the coefficients.
_COEFFICIENTS, _LARGEST = np.array([0.5, 1.0, -1.0]), 3.0


def _people(n, rng):
    X = rng.uniform(-1, 1, (n, 2))
    return X, rng.random(n) < 1 / (1 + np.exp(-_COEFFICIENTS[0] - X @ _COEFFICIENTS[1:]))


def _plain(X, y, epsilon, rng):
    family = dpf.families.LogisticRegression(2)
    mechanism = dpf.SampleAndAggregate(family, bounds=(-_LARGEST, _LARGEST), epsilon=epsilon)
    data = family.records((X, y))
    return family.estimates(data, 1, mechanism.box, corrected=False, workers=1)[0]


def _aggregated(X, y, epsilon, rng, combine):
    return dpf.mle((X, y), "logistic", bounds=(-_LARGEST, _LARGEST), epsilon=epsilon, combine=combine, rng=rng)


def _of_diffprivlib(X, y, epsilon, rng):
    """Fit with almost no penalty; the guarantee is for the same change of the data."""
    seed = int(rng.integers(2**31))
    model = LogisticRegression(epsilon=epsilon, data_norm=np.sqrt(2), C=1e5, max_iter=1000, random_state=seed)
    model.fit(X, y)
    return np.clip(np.append(model.intercept_, model.coef_), -_LARGEST, _LARGEST)


def regression(quick):
    """Coefficients of a logistic regression, and of diffprivlib's model if installed."""
    methods = {
        "not private": _plain,
        "mean": lambda *given: _aggregated(*given, "mean"),
        "winsorized": lambda *given: _aggregated(*given, "winsorized"),
        **({"diffprivlib": _of_diffprivlib} if LogisticRegression else {}),
    }
    rng, rows = np.random.default_rng(20081010), []
    for n in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
        for epsilon in EPSILONS:
            runs = 3 if quick else 30
            errors = {name: [] for name in methods}
            for _ in range(runs):
                X, y = _people(n, rng)
                for name, fit in methods.items():
                    errors[name].append(fit(X, y, epsilon, rng) - _COEFFICIENTS)
            root = [f"{np.sqrt(np.mean(np.square(found))):.2g}" for found in errors.values()]
            rows.append([size(n), f"{epsilon:g}", *root])
    text = """
    Root mean squared error of a coefficient of a logistic regression with two features in [-1, 1] and an intercept; all
    coefficients are between -3 and 3.
    """
    if LogisticRegression:
        wins = sum(float(row[-1]) <= min(map(float, row[3:-1])) for row in rows)
        text += f"""diffprivlib perturbs the objective, and its guarantee assumes real numbers and an exact minimum: it
        has the least error of the private methods in {wins} of {len(rows)} rows."""
    return f"## Logistic regression\n\n{paragraph(text)}\n{table(['n', 'epsilon', *methods], rows)}"


def predicted_excess(setting, release, n):
    """n I times the excess over 1 / (n I) that theory predicts."""
    theta = release.family.reference(release.box, {setting.parameter: setting.truth})
    terms = release.family.log_second_order if release.box.logs else release.family.second_order
    v2, b2 = terms(setting.parameter, theta)
    [grid], (_, unit) = release.grids(n), scale_of(setting, release)
    width = grid.upper - grid.lower
    excess = dpf.theory.block_excess(n, release.block_count(n), width=width, epsilon=release.epsilon, v2=v2, b2=b2)
    return n * information(setting, release) * unit**2 * excess


def figure(quick, path):
    """The predicted excess against n at epsilon 1."""
    canvas, axes = pages.pyplot().subplots(figsize=(5.6, 5.0))
    n = np.unique(np.round(10 ** np.linspace(4, 8, 30)).astype(int))
    for marker, setting in zip(pages.MARKERS, SETTINGS, strict=False):
        release = mechanism(setting, 1.0)
        excess = [predicted_excess(setting, release, int(records)) for records in n]
        axes.loglog(n, excess, marker=marker, markevery=4, label=setting.name)
    axes.loglog(n, 10.0 * n ** (-1 / 3), "k:", label="slope of n^(-1/3)")
    axes.set_title("Excess of n I MSE over 1: epsilon = 1, one record replaced")
    axes.set(xlabel="number of records n", ylabel="excess, by theory")
    pages.legend(canvas, axes)
    pages.save(canvas, path)
