"""Errors of every statistic x mechanism of the central model, from their exact laws."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

import dpfast as dpf
from bench import pages
from bench.pages.populations import Population, populations
from bench.pages.tables import digits, paragraph, size, table
from dpfast.laws import NestedIntervals

EPSILONS = (0.1, 1.0, 4.0)
DELTA = 1e-6
TRIM = 0.1
# Sizes, and the number of data sets of each.
DATASETS = {100: 100, 1000: 80, 10_000: 50, 100_000: 30, 1_000_000: 12}
QUICK = {100: 2, 1000: 1}


def statistics(population):
    """The estimated statistics, by their names in the tables."""
    return {
        "median": dpf.statistics.Median(),
        "0.9-quantile": dpf.statistics.Quantile(0.9),
        "trimmed mean": dpf.statistics.TrimmedMean(TRIM),
        "Winsorized mean": dpf.statistics.WinsorizedMean(TRIM),
        "Huber": dpf.statistics.Huber(population.corner),
        "mean": dpf.statistics.Mean(),
        "interquartile range": dpf.statistics.InterquartileRange(),
    }


MECHANISMS = {
    "inverse": dpf.InverseSensitivity,
    "global": dpf.GlobalSensitivity,
    "smooth": lambda *args, **public: dpf.SmoothSensitivity(*args, **public, delta=DELTA),
    "published": lambda *args, **public: dpf.SmoothSensitivity.as_published(*args, **public, delta=DELTA),
    "smooth, pure": dpf.SmoothSensitivity,
}


def mechanisms(name, population, epsilon):
    """Every mechanism that can release the statistic."""
    for mechanism, make in MECHANISMS.items():
        if not (mechanism == "global" and name != "mean") and not (name == "Huber" and mechanism != "inverse"):
            yield mechanism, make(statistics(population)[name], grid=population.grid, epsilon=epsilon)


# ---- exact expectations ----


def center(law):
    """The code of the statistic without noise."""
    return int(law.lower[0]) if isinstance(law, NestedIntervals) else law.center


def mean_absolute(law, target):
    """E|release - target|, computed from the law, without draws."""
    first, last = law.support
    start, stop = law.value(first), law.value(last)
    place = (target - start) / (stop - start) * (last - first)
    below = min(max(int(np.floor(place)), first), last - 1)
    distance = _by_stretches if isinstance(law, NestedIntervals) else _by_knots
    return distance(law, place, below) * (stop - start) / (last - first)


def _by_stretches(law, place, below):
    """The sum over stretches of equal score, cut at the target; exact but for the rounding of multiples to codes."""
    edges = np.unique(np.concatenate([law.lower, law.upper + 1, [0, below + 1, law.support[1] + 1]]))
    starts, ends = edges[:-1], edges[1:] - 1
    weights = law.weights(starts, ends)
    probabilities = np.exp(law.logpmf(starts)) / law.weights(starts, starts) * weights
    centers = (starts + ends) / 2
    measure = law.measure
    if measure is not None:
        sums = measure.unit * (ends - starts + 1.0) * centers
        for weight, numerator, denominator in measure.parts:
            low, high = (np.floor((k + measure.offset + 0.5) * (numerator / denominator)) for k in (starts - 1, ends))
            sums += weight * (high - low) * ((low + high + 1) / 2 * (denominator / numerator) - measure.offset)
        centers = sums / weights
    return np.sum(probabilities * np.abs(centers - place))


def _by_knots(law, place, below):
    """The sum of F(k) over the codes k below the target plus the sum of 1 - F(k) over the others.

    F is interpolated linearly between knots at distances from the center that grow by 3 %: to a relative 1e-3.
    """
    first, last = law.support
    away = np.geomspace(1, last + 1, int(35 * np.log(last + 2))).astype(np.int64)
    knots = np.concatenate([[first, last, below, below + 1], law.center + away, law.center + 1 - away])
    knots = np.unique(knots.clip(first, last))
    left, right = knots[:-1], knots[1:]  # the codes left .. right - 1
    at_left, at_right = law.cdf(left), law.cdf(right - 1)
    short = np.where(left < below, at_left + at_right, 2 - at_left - at_right) / 2 * (right - left)
    [at_target] = np.flatnonzero(left == below)
    short[at_target] = (place - below) * at_left[at_target] + (below + 1 - place) * (1 - at_left[at_target])
    return short.sum()


# ---- measurements ----


@dataclass(frozen=True)
class Error:
    """Means over data sets of E|release - statistic of the data| and of E|release - statistic of the population|."""

    noise: float
    total: float


@cache
def targets(population):
    """Each statistic of the population."""
    even = population.even(2**20)
    return {name: _exactly(statistic, population, even) for name, statistic in statistics(population).items()}


def _exactly(statistic, population, x):
    law = dpf.InverseSensitivity(statistic, grid=population.grid, epsilon=20.0).law(x)
    return law.value(center(law))


@cache
def measure(population, n, datasets):
    """Errors by (statistic, mechanism, epsilon); those without noise by (statistic, "none", None)."""
    every = {}
    for seed in range(datasets):
        x = population.sample(n, seed)
        for name, target in targets(population).items():
            for epsilon in EPSILONS:
                for mechanism, m in mechanisms(name, population, epsilon):
                    law = m.law(x)
                    own = law.value(center(law))
                    errors = mean_absolute(law, own), mean_absolute(law, target)
                    every.setdefault((name, mechanism, epsilon), []).append(errors)
            every.setdefault((name, "none", None), []).append((0.0, abs(own - target)))
    return {key: Error(*np.mean(errors, axis=0)) for key, errors in every.items()}


def measurements(quick):
    """`measure` of every population and size."""
    sizes = QUICK if quick else DATASETS
    return {(p, n): measure(p, n, datasets) for p in populations() for n, datasets in sizes.items()}


# ---- settings ----


@dataclass(frozen=True)
class Setting:
    """Errors of a statistic in one setting: noise by mechanism, and the sampling error."""

    population: Population
    n: int
    epsilon: float
    noise: dict
    sampling: float

    def small(self, mechanism):
        """Whether the noise is below the sampling error, or below a hundredth of a step of the grid."""
        return self.noise[mechanism] <= max(self.sampling, self.population.grid.step / 100)


@cache
def settings(quick, name):
    """Every measured setting of a statistic."""
    return [
        Setting(
            population,
            n,
            epsilon,
            {m: errors[name, m, epsilon].noise for m in MECHANISMS if (name, m, epsilon) in errors},
            errors[name, "none", None].total,
        )
        for (population, n), errors in measurements(quick).items()
        for epsilon in EPSILONS
    ]


def names():
    return list(statistics(populations()[0]))


def best(of):
    """The mechanism that has the least noise in the largest number of settings."""
    winners = [min(s.noise, key=s.noise.get) for s in of]
    return max(of[0].noise, key=winners.count)


def enough(of, mechanism):
    """The least n from which on the noise is below the sampling error in all settings; a dash if there is no such n."""
    sizes = sorted({s.n for s in of}, reverse=True)
    fine = list(itertools.takewhile(lambda n: all(s.small(mechanism) for s in of if s.n == n), sizes))
    return size(fine[-1]) if fine else "-"


def ratio(noise, other):
    return noise / other if other > 1e-12 else math.inf  # below, only rounding is left


def ratios(of, mechanism):
    """Noise over that of inverse sensitivity."""
    return [ratio(s.noise[mechanism], s.noise["inverse"]) for s in of]


def spread(values):
    return f"{digits(min(values))} to {digits(max(values))}"


# ---- sections ----

LABELS = {
    "smooth": f"Laplace, delta = {DELTA:g}",
    "published": f"as published, delta = {DELTA:g}",
    "smooth, pure": "Student-t, pure",
}


def answer(quick):
    """The best mechanism for each statistic, and where smooth and inverse sensitivity lose."""
    rows = []
    for name in names():
        groups = {epsilon: [s for s in settings(quick, name) if s.epsilon == epsilon] for epsilon in EPSILONS}
        chosen = {epsilon: best(of) for epsilon, of in groups.items()}
        cells = []
        for epsilon, of in groups.items():
            typical = np.median([ratio(s.noise[chosen[epsilon]], s.sampling) for s in of if s.n == 1000])
            cells.append(f"{chosen[epsilon]} ({digits(typical)})")
        rows.append([name, *cells, " / ".join(enough(of, chosen[epsilon]) for epsilon, of in groups.items())])
    headings = ["statistic", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "noise < sampling error from n ="]
    legend = f"""For each statistic, the mechanism that has the least noise in the largest number of settings of data
        and n; in brackets, its noise relative to the sampling error at n = 1000 (median over data). The last column is
        the n from which on its noise is below the sampling error for all data (a dash: for no n tried). *inverse* is
        `InverseSensitivity`, the default of every function except `dpf.mean`; *global* is `GlobalSensitivity`; *smooth*
        is `SmoothSensitivity`, with Laplace noise and delta = {DELTA:g} or, *pure*, with Student-t noise."""
    winners = f"""**Center of symmetric data.** The estimates with the least error (sampling error included), and the
        number of settings in which each wins: {_winners(quick)}."""
    return "\n".join(
        [
            "## Summary",
            "",
            paragraph(legend),
            table(headings, rows),
            _example(quick) + _inverse_loses(quick) + paragraph(winners, "- ") + _smooth_loses(quick),
        ]
    )


def _example(quick):
    """The median of 1000 normal records at epsilon 1."""
    normal = populations()[0]
    [s] = [s for s in settings(quick, "median") if (s.population, s.n, s.epsilon) == (normal, 1000, 1)]
    smooth = ", ".join(f"{digits(s.noise[mechanism])} ({label})" for mechanism, label in LABELS.items())
    text = f"""Median of 1000 records of {normal.note}, epsilon 1: E|noise| **{digits(s.noise["inverse"])}** with
        inverse sensitivity; with smooth sensitivity {smooth}; sampling error {digits(s.sampling)}."""
    return paragraph(text, "- ")


def _inverse_loses(quick):
    robust = [s for name in names() if name != "mean" for s in settings(quick, name)]
    lost = [s for s in robust if not s.small("inverse")]
    useless = [s for s in lost if s.noise["inverse"] > 10 * s.sampling]
    saved = [s for s in useless if any(map(s.small, s.noise))]
    mean = [s.noise["inverse"] / s.noise["global"] for s in settings(quick, "mean")]
    text = f"""**Inverse sensitivity is poor if n x epsilon is small**, above all with wide bounds. Without the mean,
        its noise exceeds the sampling error in {len(lost)} of {len(robust)} settings ({_shares(lost, robust)}), by more
        than a factor of ten in {len(useless)}; of these, another mechanism is below the sampling error in
        {len(saved) or "none"}. For the mean it has {spread(mean)} times the noise of global sensitivity."""
    return paragraph(text, "- ")


def _shares(some, of):
    """The number of settings for each n x epsilon."""
    products = sorted({s.n * s.epsilon for s in of})
    counts = {p: [sum(s.n * s.epsilon == p for s in group) for group in (some, of)] for p in products}
    return ", ".join(f"n x epsilon = {p:,.0f}: {few} of {whole}" for p, (few, whole) in counts.items() if few)


def _smooth_loses(quick):
    gapped = [name for name in names() if name != "Huber"]
    rows = []
    for mechanism, label in LABELS.items():
        every = [r for name in gapped for r in ratios(settings(quick, name), mechanism)]
        lost = f"{sum(r > 1 for r in every)} of {len(every)}"
        rows.append([label, lost, *(_by_epsilon(quick, name, mechanism) for name in gapped)])
    text = f"""**Smooth sensitivity against inverse sensitivity.** The ratio of their noise: above 1, smooth sensitivity
        loses. The table gives the median of this ratio over data and n, at epsilon {_slashed(EPSILONS)}, in bold where
        smooth sensitivity wins. *As published* uses the constants of Chaudhuri and Hsu 2012."""
    return paragraph(text, "- ") + "\n" + table(["noise", "loses in", *gapped], rows)


def _slashed(numbers):
    return " / ".join(f"{number:g}" for number in numbers)


def _by_epsilon(quick, name, mechanism):
    medians = [np.median(ratios([s for s in settings(quick, name) if s.epsilon == e], mechanism)) for e in EPSILONS]
    return " / ".join(f"**{digits(r)}**" if r < 1 else digits(r) for r in medians)


CENTERS = {
    "median": ("median", "inverse"),
    "trimmed mean": ("trimmed mean", "inverse"),
    "trimmed mean, smooth": ("trimmed mean", "smooth, pure"),
    "Winsorized mean": ("Winsorized mean", "inverse"),
    "Huber": ("Huber", "inverse"),
    "mean": ("mean", "global"),
}


def _centers(quick):
    """(population, n, epsilon, error of each estimate, error of the best one without noise)."""
    for (population, n), errors in measurements(quick).items():
        if population.symmetric and n <= 10_000:
            exact = min(errors[statistic, "none", None].total for statistic, _ in CENTERS.values())
            for epsilon in EPSILONS:
                totals = {name: errors[statistic, m, epsilon].total for name, (statistic, m) in CENTERS.items()}
                yield population, n, epsilon, totals, exact


def _winners(quick):
    wins = {}
    for population, *_, totals, _ in _centers(quick):
        wins.setdefault(population.name, []).append(min(totals, key=totals.get))
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{each} {won.count(each)}" for each in sorted(set(won), key=lambda w: (-won.count(w), w)))
        for name, won in wins.items()
    )


def center_of_symmetry(quick):
    """Errors of all estimates of the center."""
    rows = []
    for population, n, epsilon, totals, exact in _centers(quick):
        least = min(totals.values())
        shown = [f"**{digits(v)}**" if v == least else digits(v) for v in totals.values()]
        rows.append([population.name, size(n), f"{epsilon:g}", *shown, digits(exact)])
    text = """All of these estimate the same center, so their errors are comparable: E|release - center|, pure epsilon,
        sampling error included; with inverse sensitivity, except *smooth* (Student-t noise) and the mean (global)."""
    headings = ["data", "n", "epsilon", *CENTERS, "best without privacy"]
    return "\n".join(["## Center of symmetric data", "", paragraph(text), table(headings, rows)])


def smooth(quick):
    """Smooth against inverse sensitivity, by statistic and epsilon."""
    rows = []
    for name in names():
        if name == "Huber":
            continue
        for mechanism, label in LABELS.items():
            cells = []
            for epsilon in EPSILONS:
                of = ratios([s for s in settings(quick, name) if s.epsilon == epsilon], mechanism)
                cells.append(f"{digits(np.median(of))} ({spread(of)})")
            rows.append([name, label, *cells])
    text = """Noise relative to that of inverse sensitivity, which is pure: median (least to greatest) over data and n.
        Above 1, smooth sensitivity has more noise; ∞ means that inverse sensitivity is exact except with negligible
        probability. For order statistics of many records or ties, the noise of smooth sensitivity levels off near one
        step of the grid, the least bound that it may use; a finer step would reduce it. For a Winsorized mean its bound
        may be three times too large."""
    headings = ["statistic", "noise", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    return "\n".join(["## Smooth against inverse sensitivity", "", paragraph(text), table(headings, rows)])


def everything(quick):
    """All noises over sampling errors."""
    text = f"""Noise relative to the sampling error (column *sampling*), at epsilon {_slashed(EPSILONS)}."""
    parts = ["## All figures", "", paragraph(text)]
    for name in names():
        of = settings(quick, name)
        rows = []
        for population, n in measurements(quick):
            here = [s for s in of if (s.population, s.n) == (population, n)]
            shown = [" / ".join(digits(ratio(s.noise[m], s.sampling)) for s in here) for m in here[0].noise]
            rows.append([population.name, size(n), digits(here[0].sampling), *shown])
        heading = ["data", "n", "sampling", *of[0].noise]
        parts += [f"<details><summary>{name}</summary>", "", table(heading, rows), "</details>", ""]
    return "\n".join(parts)


# ---- the figure ----

LINES = {
    "none": "sampling error",
    "inverse": "inverse sensitivity",
    "published": f"smooth, {LABELS['published']}",
    "smooth": f"smooth, {LABELS['smooth']}",
    "smooth, pure": f"smooth, {LABELS['smooth, pure']}",
}
DRAWN = "median", "trimmed mean"


def figure(quick, path):
    """Noise of two statistics against n."""
    panels = {}
    for population in populations():
        if population.name in ("normal", "outliers", "lognormal"):
            for name in DRAWN:
                here = [s for s in settings(quick, name) if s.population == population and s.epsilon == 1]
                errors = {line: [s.sampling if line == "none" else s.noise[line] for s in here] for line in LINES}
                panels[f"{name}, {population.name}"] = [s.n for s in here], errors
    draw(panels, path)


def draw(panels, path):
    """Draw panels, by their titles: numbers of records, and errors by the keys of LINES."""
    figure, axes = pages.pyplot().subplots(len(panels) // 2, 2, figsize=(6.4, 7.8), sharex=True)
    for ax, (title, (sizes, errors)) in zip(axes.flat, panels.items(), strict=True):
        curves = {label: (sizes, errors[line]) for line, label in LINES.items()}
        pages.draw(ax, curves, **{LINES["none"]: {"color": "0.4", "marker": "", "linestyle": "--", "linewidth": 1.2}})
        ax.set_title(title)
        ax.minorticks_off()
        pages.ticks(ax.xaxis, sizes[::2])
    for ax in axes[-1]:
        ax.set_xlabel("number of records n")
    figure.supylabel("E|noise|, in units of the data; epsilon = 1, one record replaced", fontsize="medium")
    pages.legend(figure, axes[0, 0])
    pages.save(figure, path)
