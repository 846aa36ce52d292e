"""Histograms of Wasserman and Zhou (2010): the simulation of figure 1, and the rates of theorems 6 to 8."""

import math
from functools import lru_cache

import numpy as np
from scipy.stats import beta

import dpfast as dpf
from bench import pages
from bench.pages.tables import check, paragraph, slope, table
from dpfast.densities import PerturbedHistogram

BETA, SQUARE = beta(10, 10), 2.5414541452651447  # the density, and the integral of its square
BINS = [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100]
# Mean integrated squared error for BINS: exact without noise; and for (n, epsilon) of the perturbed histogram, as
# (figure, standard error), from an implementation with continuous noise.
PLAIN = {
    100: "1.55145 .25016 .63211 .25710 .25529 .17821 .15535 .15130 .16122 .19534 .23791 .28386 .37981 .47793 .72607 "
    ".97542",
    1000: "1.54245 .24385 .61348 .23290 .22220 .12798 .08751 .06567 .04877 .03803 .03567 .03665 .04264 .05078 .07393 "
    ".09829",
}
PERTURBED = {
    (100, 0.1): "1.7357 .0021 .4976 .0034 1.1303 .0043 .9091 .0052 1.1393 .0059 1.4142 .0068 1.7127 .0073 1.9845 .0075 "
    "2.3154 .0077 2.7461 .0077 3.0463 .0077 3.2690 .0075 3.5566 .0071 3.7472 .0066 4.0015 .0058 4.1350 .0052",
    (
        100,
        0.01,
    ): "2.1291 .0031 2.1964 .0129 2.8084 .0113 3.0435 .0135 3.3281 .0134 3.6363 .0138 3.8229 .0134 3.9203 .0128 "
    "4.0407 .0120 4.1834 .0111 4.2478 .0102 4.2848 .0095 4.3573 .0084 4.4092 .0078 4.4516 .0065 4.4646 .0056",
    (
        1000,
        0.1,
    ): "1.5441 .0000 .2510 .0001 .6212 .0001 .2477 .0001 .2434 .0002 .1637 .0003 .1413 .0003 .1422 .0004 .1635 "
    ".0005 .2321 .0008 .3184 .0010 .4199 .0012 .6373 .0016 .8618 .0018 1.3852 .0023 1.8278 .0025",
    (
        1000,
        0.01,
    ): "1.7263 .0021 .4906 .0034 1.1322 .0044 .9161 .0054 1.1135 .0059 1.4075 .0067 1.7018 .0072 1.9762 .0075 "
    "2.3092 .0076 2.7452 .0078 3.0402 .0076 3.2753 .0075 3.5833 .0071 3.7497 .0067 4.0173 .0058 4.1402 .0052",
}


def figures(text):
    return np.array(text.split(), float)


def plain_mise(m, n):
    shares = np.diff(BETA.cdf(np.arange(m + 1) / m))
    return SQUARE - m * (shares**2).sum() + m / n * (shares * (1 - shares)).sum()


def perturbed_mise(m, n, epsilon, runs, rng):
    """Mean and standard error over data sets of n records, one release each."""
    shares = np.diff(BETA.cdf(np.arange(m + 1) / m))
    counts = rng.multinomial(n, shares, runs) + dpf.noise.discrete_laplace(2 / epsilon, (runs, m), rng=rng)
    weights = np.maximum(counts, 0)
    weights[~weights.any(axis=1)] = 1
    q = weights / weights.sum(axis=1, keepdims=True)
    errors = SQUARE - 2 * m * q @ shares + m * (q**2).sum(axis=1)
    return errors.mean(), errors.std() / math.sqrt(runs)


@lru_cache
def simulation(runs):
    """For each (n, epsilon) the errors for all BINS; checked within four joint standard errors."""
    rng, found = np.random.default_rng(2010), {}
    for (n, epsilon), text in PERTURBED.items():
        published = figures(text).reshape(-1, 2)
        errors = np.array([perturbed_mise(m, n, epsilon, runs, rng) for m in BINS])
        joint = np.hypot(errors[:, 1], published[:, 1]) + 5e-5  # figures are rounded to four digits
        check(f"n = {n}, epsilon = {epsilon}", errors[:, 0], published[:, 0], 4 * joint)
        found[n, epsilon] = errors
    for n, text in PLAIN.items():
        check(f"plain, n = {n}", [plain_mise(m, n) for m in BINS], figures(text), 6e-6)
    return found


def runs(quick):
    return 200 if quick else 20_000


def errors(quick):
    """Mean integrated squared errors of Beta(10, 10)."""
    found = simulation(runs(quick))
    text = paragraph(
        f"""Mean integrated squared error of the perturbed histogram with the paper's independent noise, clipped and
        renormalised, for n records from Beta(10, 10), {runs(quick):,} runs, with standard errors in brackets; the error
        without noise is exact. Up to 64 bins dpfast has less noise. The uniform density, which costs no privacy, has
        {SQUARE - 1:.4f}: it is better where noise dominates, and `Histogram.noise_dominates` reports this."""
    )
    rows = [
        [m, *(f"{plain_mise(m, n):.4f}" for n in PLAIN), *(f"{e[i, 0]:.4f} ({e[i, 1]:.4f})" for e in found.values())]
        for i, m in enumerate(BINS)
    ]
    headings = ["bins", *(f"n = {n}, no noise" for n in PLAIN), *(f"n = {n}, epsilon = {e:g}" for n, e in found)]
    return text + "\n" + table(headings, rows)


def figure(quick, path):
    """Figure 1 of the paper: mean integrated squared error against bins, with and without noise."""
    drawn, panels = pages.pyplot().subplots(2, 2, figsize=(6.4, 5.2), sharex=True, sharey=True)
    for ax, ((n, epsilon), found) in zip(panels.flat, simulation(runs(quick)).items(), strict=True):
        ax.semilogx(BINS, [plain_mise(m, n) for m in BINS], "o-", label="without noise")
        ax.semilogx(BINS, found[:, 0], "s--", label="perturbed")
        ax.axhline(SQUARE - 1, color="gray", ls=":", label="uniform density")
        ax.set_title(f"n = {n}, epsilon = {epsilon:g}")
        pages.ticks(ax.xaxis, [2, 5, 10, 20, 50, 100])
    for ax in panels[1]:
        ax.set_xlabel("bins")
    for ax in panels[:, 0]:
        ax.set_ylabel("mean integrated squared error")
    pages.legend(drawn, panels[0, 0], ncols=3)
    pages.save(drawn, path)


def records(n, rng):
    """Draws from the density 1/2 + x."""
    return (math.sqrt(0.25) * np.sqrt(1 + 8 * rng.random(n))) - 0.5


def squared_error(shares):
    """Squared error of a histogram of the unit interval with these shares, for the density 1/2 + x."""
    m = len(shares)
    edges = np.arange(m + 1) / m
    true = np.diff((edges + edges**2) / 2)
    return 13 / 12 - 2 * m * shares @ true + m * shares @ shares


def perturbed_error(n, runs, rng):
    """Theorem 8: m of order n^(1/3); each run has its own data."""
    mechanism = PerturbedHistogram(round((n / 6) ** (1 / 3)), grid=dpf.Grid(0, 1), epsilon=1.0, consistency="clip")
    releases = (mechanism(records(n, rng), rng=rng) for _ in range(runs))
    return np.mean([squared_error(released.weights / released.weights.sum()) for released in releases])


def smoothed_draws(n, distance, runs, rng):
    """Draws of releases with the m and k of theorem 6 or 7, all from one data set, and m.

    The data set's own error is small: for L2 it is m / n, which is k / n of the draws'.
    """
    m, k = (n ** (1 / 5), n ** (3 / 5)) if distance == "l2" else (n ** (1 / 7), n ** (4 / 7))
    m, k = round(m), round(k)
    options = {"bounds": (0, 1), "epsilon": 1.0, "method": "smoothed", "bins": m, "rng": rng}
    x = records(n, rng)
    return m, (dpf.synthesize(x, k, **options) for _ in range(runs))


def smoothed_error(n, runs, rng):
    """Theorem 7."""
    m, draws = smoothed_draws(n, "l2", runs, rng)
    return np.mean([squared_error(np.histogram(z, m, (0, 1))[0] / z.size) for z in draws])


def kolmogorov_distance(z, cdf):
    """The Kolmogorov-Smirnov distance of the empirical distribution of z from a distribution."""
    values, n = cdf(np.sort(z)), z.size
    return max((np.arange(1, n + 1) / n - values).max(), (values - np.arange(n) / n).max())


def smoothed_distance(n, runs, rng):
    """Theorem 6."""
    _, draws = smoothed_draws(n, "kolmogorov-smirnov", runs, rng)
    return np.mean([kolmogorov_distance(z, lambda x: (x + x**2) / 2) for z in draws])


@lru_cache
def found_slope(name, quick):
    """The slope of log error against log n, checked; the slope of the theorem without logarithms; and the sizes."""
    error, start, theory = {
        "perturbed": (perturbed_error, 4, -2 / 3),
        "smoothed": (smoothed_error, 5, -2 / 5),
        "smoothed distance": (smoothed_distance, 5, -2 / 7),
    }[name]
    rng, repeats = np.random.default_rng(7), 20 if quick else 150
    sizes = [round(10 ** (start - quick + i / 2)) for i in range(5)]
    found = slope(sizes, [error(n, repeats, rng) for n in sizes])
    check(f"slope, {name}", found, theory, 0.2 if quick else 0.05)
    return found, theory, sizes


def slope_text(name, quick):
    """The sizes and the setting of `found_slope`."""
    _, _, sizes = found_slope(name, quick)
    return paragraph(
        f"""Slope of log error against log n, n from {sizes[0]:,} to {sizes[-1]:,}: density 1/2 + x, epsilon = 1, cells
        and draws by the theorem, {20 if quick else 150} releases for each n."""
    )


@lru_cache
def distances(quick):
    """For each n: sqrt(n) times the mean distance of n synthetic records from Beta(2, 3), n^(1/3) bins, and its error.

    Checked against an implementation with continuous noise.
    """
    rng, law, found = np.random.default_rng(8), beta(2, 3), {}
    sizes, runs = ((1000, 3000, 10_000), 10) if quick else ((1000, 10_000, 100_000), 400)
    for n, expected in zip(sizes, (1.149, 1.143, 1.138), strict=True):
        options = {"bounds": (0, 1), "epsilon": 1.0, "bins": round(n ** (1 / 3)), "rng": rng}
        away = [kolmogorov_distance(dpf.synthesize(rng.beta(2, 3, n), n, **options), law.cdf) for _ in range(runs)]
        mean, error = math.sqrt(n) * np.mean(away), math.sqrt(n * np.var(away) / runs)
        check("Kolmogorov-Smirnov distance", mean, expected, 4 * math.hypot(error, 0.047))
        found[n] = mean, error
    return found


def distance_table(quick):
    """The distances relative to both terms of theorem 8 (2)."""
    rows = [
        [f"{n:,}", f"{mean:.3f} ({error:.3f})", f"{mean * n ** (1 / 6) / math.log(n):.2f}"]
        for n, (mean, error) in distances(quick).items()
    ]
    text = paragraph(
        """Mean Kolmogorov-Smirnov distance of n synthetic records of the perturbed histogram (n^(1/3) bins, epsilon =
        1) from the true distribution, Beta(2, 3)."""
    )
    return text + "\n" + table(["n", "sqrt(n) x distance", "n^(2/3) / log(n) x distance"], rows)
