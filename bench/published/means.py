"""Means of bounded numbers, and centers of symmetric ones."""

import math
from functools import partial

import numpy as np
from scipy import stats

import dpfast as dpf
from bench.peers.records import drawer
from bench.published.comparison import Case, Published
from bench.published.populations import HEAVY, INCOMES, MODES, NORMAL, SCORES, WAITING
from bench.published.quantiles import exponential

TITLE = "Means and centers"
TEXT = """Mean distances from the mean of the records, with bounds of 10 to 40 deviations; of centers, from that of the
    population. Laplace noise for the whole bounds: Dwork, McSherry, Nissim and Smith 2006. Clipping at private
    quantiles: two draws of the exponential mechanism, of 0.01 and 0.99, of a quarter of epsilon each; or, as Huang,
    Liang and Yi 2021 do, of the ranks 30 / epsilon from each end, which leaves only outliers beyond. Histogram of the
    range: Karwa and Vadhan 2018, half of epsilon for the fullest bin as wide as the known deviation, and bounds of
    sqrt(2 log 2n) deviations around it. CoinPress: Biswas, Dong, Kamath and Ullman 2020, two and three rounds of
    Gaussian noise for normal data of known deviation; dpfast has `distribution=` with this deviation, around the middle
    of the bounds, and spends no delta. Trimmed mean: Bun and Steinke 2019, a tenth from each side, smooth sensitivity
    and Student's t noise with three degrees of freedom. Propose-test-release of such a mean: Dwork and Lei 2009; dpfast
    spends no delta."""
DELTA = 1e-6
TRIM = 0.1


def laplace_mean(generator, x, bounds, epsilon):
    return np.clip(x, *bounds).mean() + generator.laplace(0, (bounds[1] - bounds[0]) / (len(x) * epsilon))


def clipped_mean(generator, x, bounds, epsilon, share):
    """Half of epsilon for two quantiles, half for the mean within them."""
    found = (exponential(generator, x, level, bounds, epsilon / 4) for level in (share, 1 - share))
    return laplace_mean(generator, x, sorted(found), epsilon / 2)


def histogram_mean(generator, x, bounds, epsilon, deviation):
    """One replaced record changes two counts by 1, so that Laplace noise has scale 4 / epsilon for half of epsilon."""
    edges = np.arange(bounds[0], bounds[1] + deviation, deviation)
    counts = np.histogram(np.clip(x, *bounds), edges)[0] + generator.laplace(0, 4 / epsilon, len(edges) - 1)
    middle, reach = edges[np.argmax(counts)] + deviation / 2, deviation * (math.sqrt(2 * math.log(2 * len(x))) + 1)
    return laplace_mean(generator, x, (middle - reach, middle + reach), epsilon / 2)


def coinpress_mean(generator, x, bounds, mu, deviation, rounds, beta=0.01):
    """Clip to where all records are with probability 1 - beta, and the mean is better known after each round.

    The last round has three quarters of mu**2, those before it equal parts of the rest: several rounds of Gaussian
    noise have the root of the sum of their squares.
    """
    n, center, reach = len(x), sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
    tail = stats.norm.isf(beta / (2 * rounds))
    for share in [*[0.25 / (rounds - 1)] * (rounds - 1), 0.75]:
        radius = reach + deviation * stats.norm.isf(beta / (2 * n * rounds))
        noise = 2 * radius / n / (mu * math.sqrt(share))
        center = np.clip(x, center - radius, center + radius).mean() + noise * generator.normal()
        reach = tail * math.hypot(noise, deviation / math.sqrt(n))
    return center


def trimmed_widths(x, bounds):
    """After k = 0, 1, ... replaced records, the largest change of the sum of the kept ones by one more.

    A kept record and one beyond the cut change places: the width of the kept order statistics, moved by k + 1.
    """
    n, cut = len(x), int(TRIM * len(x))
    padded = np.concatenate([np.full(n, bounds[0]), np.sort(np.clip(x, *bounds)), np.full(n, bounds[1])])
    for k in range(n):
        shifts = np.arange(k + 2)
        yield (padded[n + n - cut - 1 + shifts] - padded[n + cut - k - 1 + shifts]).max()


def _trimmed(x, bounds):
    cut = int(TRIM * len(x))
    return np.sort(np.clip(x, *bounds))[cut : len(x) - cut]


def smooth_trimmed_mean(generator, x, bounds, epsilon, degrees=3):
    """Student's t of d degrees is moved by s S and stretched by exp(beta) for d beta + s (d + 1) / (2 sqrt d).

    A fifth of epsilon is for the stretching.
    """
    beta, scale = 0.2 * epsilon / degrees, 0.8 * epsilon * 2 * math.sqrt(degrees) / (degrees + 1)
    kept, size, width = _trimmed(x, bounds), 0.0, bounds[1] - bounds[0]
    for k, gap in enumerate(trimmed_widths(x, bounds)):
        size = max(size, math.exp(-beta * k) * gap)
        if math.exp(-beta * (k + 1)) * width <= size:
            break
    return kept.mean() + size / len(kept) / scale * generator.standard_t(degrees)


def tested_trimmed_mean(generator, x, bounds, epsilon, delta, proposed):
    """Half of epsilon for the distance to where the width is more than the proposed one, half for the noise."""
    kept, needed = _trimmed(x, bounds), 2 * math.log(1 / (2 * delta)) / epsilon
    distance = next((k for k, gap in enumerate(trimmed_widths(x, bounds)) if gap > proposed), len(x))
    if distance + generator.laplace(0, 2 / epsilon) <= needed:
        return sum(bounds) / 2
    return kept.mean() + generator.laplace(0, 2 * proposed / len(kept) / epsilon)


def _from_mean(released, x):
    return abs(float(released) - x.mean())


def _bounded():
    for population, n, epsilon in (
        (WAITING, 700, 1.0),
        (INCOMES, 3000, 0.5),
        (MODES, 1500, 1.0),
        (SCORES, 400, 2.0),
        (NORMAL, 2500, 0.3),
    ):
        bounds = float(population.grid.lower), float(population.grid.upper)
        public = {"bounds": bounds, "epsilon": epsilon}
        for method in ("auto", "private-bounds"):
            algorithms = [
                Published("Laplace noise", partial(laplace_mean, **public)),
                Published("clipped at quantiles", partial(clipped_mean, **public, share=0.01)),
                Published("clipped at ranks", partial(clipped_mean, **public, share=min(0.2, 30 / (n * epsilon)))),
            ]
            yield Case(
                "mean" + ", private bounds" * (method != "auto"), population.name, n, f"{epsilon:g}",
                drawer(population, n), partial(dpf.mean, grid=population.grid, epsilon=epsilon, method=method),
                _from_mean, tuple(algorithms[:1] if method == "auto" else algorithms[1:]),
            )  # fmt: skip


def _known_deviation():
    """Normal data, of which the deviation is public and the mean is somewhere in the bounds."""
    bounds, deviation = (float(NORMAL.grid.lower), float(NORMAL.grid.upper)), 2.0
    for n, epsilon, delta in ((1000, 0.5, 0.0), (4000, 1.0, 0.0), (1000, 1.0, DELTA), (5000, 0.4, DELTA)):
        if delta:
            public = {"bounds": bounds, "mu": dpf.theory.gaussian_mu(epsilon, delta), "deviation": deviation}
            algorithms = tuple(
                Published(f"CoinPress, {rounds} rounds", partial(coinpress_mean, **public, rounds=rounds))
                for rounds in (2, 3)
            )
        else:
            public = {"bounds": bounds, "epsilon": epsilon, "deviation": deviation}
            algorithms = (Published("histogram of the range", partial(histogram_mean, **public)),)
        assumed = stats.norm(sum(bounds) / 2, deviation)
        yield Case(
            "mean, deviation known", NORMAL.name, n, f"({epsilon:g}, {delta:g})" if delta else f"{epsilon:g}",
            drawer(NORMAL, n),
            partial(dpf.mean, grid=NORMAL.grid, epsilon=epsilon, distribution=assumed),
            _from_mean, algorithms,
        )  # fmt: skip


def _centers():
    for population, center, n, epsilon in ((SCORES, 100.0, 601, 1.0), (HEAVY, 0.0, 901, 0.6), (NORMAL, 3.0, 2001, 2.0)):
        bounds = float(population.grid.lower), float(population.grid.upper)
        yield Case(
            "center, trimmed mean", population.name, n, f"{epsilon:g}", drawer(population, n),
            partial(dpf.trimmed_mean, trim=TRIM, grid=population.grid, epsilon=epsilon),
            lambda released, x, center=center: abs(float(released) - center),
            (Published("trimmed mean", partial(smooth_trimmed_mean, bounds=bounds, epsilon=epsilon)),),
        )  # fmt: skip


def _tested():
    """The proposed width is that of nine tenths of the population and half as much more, which no analyst knows."""
    for population, center, n, epsilon in ((NORMAL, 3.0, 2001, 1.0), (SCORES, 100.0, 1601, 2.0)):
        bounds = float(population.grid.lower), float(population.grid.upper)
        proposed = 1.5 * float(np.diff(population.values(np.array([TRIM / 2, 1 - TRIM / 2])))[0])
        tested = partial(tested_trimmed_mean, bounds=bounds, epsilon=epsilon, delta=DELTA, proposed=proposed)
        yield Case(
            "center, trimmed mean", population.name, n, f"({epsilon:g}, {DELTA:g})", drawer(population, n),
            partial(dpf.trimmed_mean, trim=TRIM, grid=population.grid, epsilon=epsilon),
            lambda released, x, center=center: abs(float(released) - center),
            (Published("propose-test-release", tested),),
        )  # fmt: skip


def cases():
    yield from _bounded()
    yield from _known_deviation()
    yield from _centers()
    yield from _tested()
