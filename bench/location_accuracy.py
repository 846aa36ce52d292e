"""Errors of every statistic x mechanism of the central model, from their exact laws."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

import dpfast as dpf
from bench.populations import Population, populations
from bench.tables import digits, size, table
from dpfast.laws import NestedIntervals

EPSILONS = (0.1, 1.0, 4.0)
DELTA = 1e-6
TRIM = 0.1
# Sizes, and how many data sets of each.
DATASETS = {100: 100, 1000: 80, 10_000: 50, 100_000: 30, 1_000_000: 12}
QUICK = {100: 3, 1000: 2}


def statistics(population):
    """What is estimated, by the name it has in the tables."""
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
    """E|release - target|, from the distribution function F of the law: no draws.

    The sum of F(k) over the codes k below the target plus that of 1 - F(k) over the others. F is taken as linear
    between knots, where it is (inverse sensitivity) or nearly is (noise: to a relative 1e-3).
    """
    first, last = law.support
    start, stop = law.value(first), law.value(last)
    place = (target - start) / (stop - start) * (last - first)
    below = min(max(int(np.floor(place)), first), last - 1)
    knots = np.unique(np.concatenate([_knots(law), [below, below + 1]]))
    left, right = knots[:-1], knots[1:]  # the codes left .. right - 1
    at_left, at_right = law.cdf(left), law.cdf(right - 1)
    short = np.where(left < below, at_left + at_right, 2 - at_left - at_right) / 2 * (right - left)
    [at_target] = np.flatnonzero(left == below)
    short[at_target] = (place - below) * at_left[at_target] + (below + 1 - place) * (1 - at_left[at_target])
    return short.sum() * (stop - start) / (last - first)


def _knots(law):
    """Codes between which F is linear; for noise, at distances from its center that grow by 3 %."""
    first, last = law.support
    if isinstance(law, NestedIntervals):
        return np.concatenate([law.lower, law.upper + 1, [first, last + 1]]).clip(first, last)
    away = np.geomspace(1, last + 1, int(35 * np.log(last + 2))).astype(np.int64)
    return np.concatenate([[first, last], law.center + away, law.center + 1 - away]).clip(first, last)


# ---- measurements ----


@dataclass(frozen=True)
class Error:
    """Means over the data sets: of E|release - statistic of the data| and of E|release - statistic of the population|."""

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


# ---- what the tables are made of ----

SMOOTH = ("smooth", "smooth, pure")


@dataclass(frozen=True)
class Setting:
    """What was measured of a statistic in one setting: noise by mechanism, and the sampling error."""

    population: Population
    n: int
    epsilon: float
    noise: dict
    sampling: float

    @property
    def smooth(self):
        """The noise of the better smooth sensitivity."""
        return min(self.noise[mechanism] for mechanism in SMOOTH)


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
    """The mechanism whose noise has the least geometric mean over settings."""
    return min(of[0].noise, key=lambda m: sum(math.log(max(s.noise[m], 1e-12)) for s in of))


def enough(of, mechanism):
    """The least n from which on the noise is below the sampling error in all the settings; a dash if in none."""
    sizes = sorted({s.n for s in of}, reverse=True)
    fine = list(itertools.takewhile(lambda n: all(s.noise[mechanism] <= s.sampling for s in of if s.n == n), sizes))
    return size(fine[-1]) if fine else "-"


def smooth_ratios(of):
    """Noise of the better smooth sensitivity over that of inverse sensitivity."""
    return [s.smooth / s.noise["inverse"] for s in of]


def spread(values):
    return f"{digits(min(values))} to {digits(max(values))}"


def listed(words):
    words = list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def triple(texts):
    """One text for each epsilon; once if they agree."""
    texts = list(texts)
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


# ---- sections ----


def answer(quick):
    """Which mechanism for which statistic, where smooth and inverse sensitivity lose."""
    rows = []
    for name in names():
        of = settings(quick, name)
        by_epsilon = [[s for s in of if s.epsilon == epsilon] for epsilon in EPSILONS]
        chosen = [best(some) for some in by_epsilon]
        at = [s for s in of if s.n == 1000 and s.epsilon == 1]
        rows.append(
            [
                name,
                triple(chosen),
                spread([s.noise[best(of)] / s.sampling for s in at if s.sampling]),
                triple(enough(some, mechanism) for some, mechanism in zip(by_epsilon, chosen, strict=True)),
            ]
        )
    headings = [
        "statistic",
        "least noise over all (epsilon 0.1 / 1 / 4)",
        "noise / sampling error, n = 1000, epsilon 1",
        "noise below sampling error everywhere from n =",
    ]
    return "\n".join(["## The answer", "", *_verdicts(quick), "", table(headings, rows)])


def _verdicts(quick):
    """Sentences made of the numbers."""
    ratios = {name: smooth_ratios(settings(quick, name)) for name in names() if name != "Huber"}
    never = [name for name, of in ratios.items() if min(of) >= 1]
    often = {name: sum(r < 1 for r in of) for name, of in ratios.items() if name not in never}
    if never:
        values = np.concatenate([ratios[name] for name in never])
        yield (
            f"- **Smooth sensitivity loses for {_plural(never)}**, in every setting: its better variant has "
            f"{spread(values)} times the noise of inverse sensitivity (median {digits(np.median(values))})."
        )
    for name, wins in often.items():
        of = ratios[name]
        yield (
            f"- {name[0].upper() + name[1:]}: smooth sensitivity has less noise than inverse sensitivity in {wins} of "
            f"{len(of)} settings; ratio {spread(of)}, median {digits(np.median(of))}."
        )
    published = [s.noise["published"] / s.smooth for name in ratios for s in settings(quick, name)]
    yield (
        f"- The published constants cost {spread(published)} times the noise of the better variant with exact ones "
        f"(median {digits(np.median(published))})."
    )
    mean = [s.noise["inverse"] / s.noise["global"] for s in settings(quick, "mean")]
    yield f"- Mean: inverse sensitivity has {spread(mean)} times the noise of global sensitivity."
    yield from _where_inverse_loses(quick)


def _where_inverse_loses(quick):
    for name in ("median", "trimmed mean"):
        of = settings(quick, name)
        lost = [s for s in of if s.noise["inverse"] > s.sampling]
        if not lost:
            continue
        useless = [s for s in of if s.noise["inverse"] > 10 * s.sampling]
        worst = max(of, key=lambda s: s.noise["inverse"] / max(s.sampling, 1e-12))
        yield (
            f"- **Inverse sensitivity loses where n x epsilon is small**: the noise of the {name} exceeds the sampling "
            f"error in {len(lost)} of {len(of)} settings, all with n x epsilon <= {_largest(lost)}, and is more than "
            f"ten times it in {len(useless)}"
            + (f" (n x epsilon <= {_largest(useless)})" if useless else "")
            + f"; worst: {worst.population.name}, n = {size(worst.n)}, epsilon {worst.epsilon:g}."
        )


def _largest(of):
    return f"{max(s.n * s.epsilon for s in of):,.0f}"


def _plural(of):
    return listed(f"the {name}" for name in of)


CENTERS = {
    "median": ("median", "inverse"),
    "trimmed mean": ("trimmed mean", "inverse"),
    "trimmed mean, smooth": ("trimmed mean", "smooth, pure"),
    "Winsorized mean": ("Winsorized mean", "inverse"),
    "Huber": ("Huber", "inverse"),
    "mean": ("mean", "global"),
}


def center_of_symmetry(quick):
    """Errors of all estimates of one thing."""
    rows, wins = [], {}
    for (population, n), errors in measurements(quick).items():
        if not population.symmetric or n > 10_000:
            continue
        for epsilon in EPSILONS:
            totals = {name: errors[statistic, m, epsilon].total for name, (statistic, m) in CENTERS.items()}
            least = min(totals, key=totals.get)
            wins.setdefault(population.name, []).append(least)
            shown = [f"**{digits(v)}**" if name == least else digits(v) for name, v in totals.items()]
            exact = min(errors[statistic, "none", None].total for statistic, _ in CENTERS.values())
            rows.append([population.name, size(n), f"{epsilon:g}", *shown, digits(exact)])
    counts = [
        f"{name}: " + listed(f"{each} ({winners.count(each)})" for each in sorted(set(winners), key=winners.count)[::-1])
        for name, winners in wins.items()
    ]
    return "\n".join(
        [
            "## The middle of symmetric data",
            "",
            "All of these estimate the same center, so their errors compare: E|release - center|, pure epsilon, sampling "
            f"error included. Least error, and in how many settings: {'; '.join(counts)}.",
            "",
            table(["data", "n", "epsilon", *CENTERS, "best without privacy"], rows),
        ]
    )


def smooth(quick):
    """Smooth against inverse sensitivity, by statistic and epsilon."""
    rows = []
    for name in names():
        if name == "Huber":
            continue
        for label, ratios in {
            "Laplace, delta = 1e-6": lambda of: [s.noise["smooth"] / s.noise["inverse"] for s in of],
            "as published, delta = 1e-6": lambda of: [s.noise["published"] / s.noise["inverse"] for s in of],
            "Student-t, pure": lambda of: [s.noise["smooth, pure"] / s.noise["inverse"] for s in of],
        }.items():
            cells = []
            for epsilon in EPSILONS:
                values = ratios([s for s in settings(quick, name) if s.epsilon == epsilon])
                cells.append(f"{digits(np.median(values))} ({spread(values)})")
            rows.append([name, label, *cells])
    return "\n".join(
        [
            "## Smooth sensitivity against inverse sensitivity",
            "",
            "Noise over the noise of inverse sensitivity, which is pure: median (least to greatest) over data and n. Above "
            "1 smooth sensitivity loses.",
            "",
            table(["statistic", "noise", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], rows),
        ]
    )


def everything(quick):
    """All noises over sampling errors."""
    parts = [
        "## All figures",
        "",
        "E|release - statistic of the data| / E|statistic of the data - statistic of the population|, the latter in the "
        f"column *sampling*, at epsilon {' / '.join(f'{e:g}' for e in EPSILONS)}.",
    ]
    for name in names():
        of = settings(quick, name)
        rows = []
        for (population, n), _ in measurements(quick).items():
            here = [s for s in of if (s.population, s.n) == (population, n)]
            shown = [" / ".join(digits(s.noise[m] / s.sampling) for s in here) for m in here[0].noise]
            rows.append([population.name, size(n), digits(here[0].sampling), *shown])
        heading = ["data", "n", "sampling", *of[0].noise]
        parts += ["", f"<details><summary>{name}</summary>", "", table(heading, rows), "</details>"]
    return "\n".join(parts) + "\n"


# ---- the figure ----

LINES = {
    "none": ("sampling error", "0.5", "--"),
    "inverse": ("inverse sensitivity", "C0", "-"),
    "smooth": ("smooth, Laplace, delta = 1e-6", "C1", "-"),
    "published": ("smooth, as published, delta = 1e-6", "C3", "-"),
    "smooth, pure": ("smooth, Student-t, pure", "C2", "-"),
}


def figure(quick, path):
    """Noise of two statistics against n, as an SVG that depends on the numbers only."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "dpfast", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"})
    shown = [p for p in populations() if p.name in ("normal", "outliers", "lognormal")]
    fig, axes = plt.subplots(2, len(shown), figsize=(9, 5.6), sharex=True, layout="constrained")
    for row, name in zip(axes, ("median", "trimmed mean"), strict=True):
        for ax, population in zip(row, shown, strict=True):
            here = [s for s in settings(quick, name) if s.population == population and s.epsilon == 1]
            for line, (label, color, style) in LINES.items():
                errors = [s.sampling if line == "none" else s.noise[line] for s in here]
                ax.loglog([s.n for s in here], errors, style, color=color, label=label, marker=".", markersize=4)
            ax.set_title(f"{name}, {population.name}")
    axes[0, 0].set_ylabel("E|noise|")
    axes[1, 0].set_ylabel("E|noise|")
    for ax in axes[1]:
        ax.set_xlabel("n")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    fig.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(fig)
