"""Mean and median pay under local privacy: figures 5 and 6 and table 1 of Duchi, Jordan and Wainwright (section 6.1).

The population is the pay of 2010 of the University of California, as far as the file has it, or without the file
made-up lognormal pay with a Pareto tail.
"""

from functools import lru_cache

import numpy as np

from bench import pages
from bench.pages.tables import check, digits, paragraph, table
from bench.papers import Result, data, duchi_drawing
from dpfast import local

MOMENTS = tuple(10 ** (j / 10) for j in range(1, 21))  # 1.26 to 100
EPSILONS = (0.1, 0.5, 1.0, 2.0, 10.0)
VARIANTS = {
    "as published": {"method": "laplace", "truncation": "paper"},
    "best T, Laplace": {"method": "laplace"},
    "best T, codebook": {},
}
LOOKS = {
    "as published": "published",
    "best T, Laplace": "Laplace",
    "best T, codebook": "better",
    "no privacy": "no privacy",
}
# Widths of the bounds in units of about the median, as in the paper.
RADII = (1.5, 2.0, 4.0, 8.0, 16.0)
MEDIAN_EPSILON = 1.0
_UNIT = 25_000.0
_PAPER = 252_540  # people of the paper


@lru_cache
def population():
    """Yearly pay, at least 0, and its description."""
    file = data.find("uc_pay_2010_2023.csv.gz")
    if file:
        year, gross = np.loadtxt(file, delimiter=",", skiprows=1, usecols=(0, 3)).T
        return np.maximum(gross[year == 2010], 0.0), "pay of 2010, University of California, without the large campuses"
    rng = np.random.default_rng(0)
    pay = rng.lognormal(np.log(_UNIT), 1.0, 25_000)
    return np.where(rng.random(pay.size) < 0.02, 150_000 * (1 + rng.pareto(3.0, pay.size)), pay), "made-up pay"


# ---- figure 5 and table 1: means ----


def mean_runs(quick):
    return 4 if quick else 400


@lru_cache
def mean_rows(quick, people=None):
    """{(epsilon, moment, variant): mean absolute error}, and that of the mean of the sample.

    Half of the people in each run as in the paper, or `people` drawn with replacement; moments known exactly.
    """
    pay, _ = population()
    runs, rng = mean_runs(quick), np.random.default_rng(1)
    center, largest = pay.mean(), pay.max()
    if people:
        samples = [rng.choice(pay, people) for _ in range(max(runs // 8, 2))]
    else:
        samples = [rng.permutation(pay)[: pay.size // 2] for _ in range(runs)]
    found = {}
    for k in MOMENTS[::7] if quick else MOMENTS:
        public = {"moment": k, "scale": largest * np.mean((pay / largest) ** k) ** (1 / k)}
        for epsilon in EPSILONS:
            for variant, options in VARIANTS.items():
                errors = [abs(local.mean(x, rng=rng, epsilon=epsilon, **public, **options) - center) for x in samples]
                found[epsilon, k, variant] = float(np.mean(errors))
    return found, float(np.mean([abs(x.mean() - center) for x in samples]))


def draw_means(quick, path):
    """Figure 5: a panel for epsilon = 0.5 and one for 1."""
    pay, _ = population()
    found, plain = mean_rows(quick)
    figure, axes = duchi_drawing.panels(2, 1, size=(5.6, 6.4), sharex=True, sharey=True)
    moments = sorted({k for _, k, _ in found})
    for ax, epsilon in zip(axes, (0.5, 1.0), strict=True):
        for variant in VARIANTS:
            errors = [found[epsilon, k, variant] for k in moments]
            duchi_drawing.line(ax, LOOKS[variant], variant, moments, errors)
        ax.axhline(plain, color="black", ls=":", label="no privacy")
        ax.set(xscale="log", yscale="log", ylabel="mean absolute error, dollars")
        ax.set_title(f"Mean pay of {pay.size // 2:,} people, {epsilon:g}-locally private, {mean_runs(quick)} runs")
        pages.ticks(ax.xaxis, (1.5, 3, 10, 30, 100))
        pages.ticks(ax.yaxis, (300, 1000, 3000, 10_000, 30_000))
    axes[-1].set_xlabel("assumed moment k")
    pages.legend(figure, axes[0])
    pages.save(figure, path)


def means(quick):
    """Figure 5 as a table."""
    pay, name = population()
    found, plain = mean_rows(quick)
    moments = sorted({k for _, k, _ in found})
    body = [
        [f"{k:.2f}", *(f"{found[e, k, v]:,.0f}" for e in (0.5, 1.0) for v in VARIANTS), f"{plain:,.0f}"]
        for k in moments
    ]
    published = {k: found[1.0, k, "as published"] for k in moments}
    best = min(published, key=published.get)
    check("figure 5: no privacy is best", int(plain < min(published.values())), 1, 0)
    text = f"""{name[0].upper() + name[1:]}: {pay.size // 2:,} of {pay.size:,} people drawn without replacement,
        {mean_runs(quick)} runs, values clipped at a threshold T that depends on the assumed moment, known exactly.
        Mean absolute error in dollars; the mean is {pay.mean():,.0f}. "as published" is equation (10) with T = (n
        epsilon^2)^(1/2k); "best T" minimises the proved bound (`local_truncation`); "codebook" is `Interval`."""
    headings = ["k", *(f"epsilon {e:g}: {v}" for e in (0.5, 1.0) for v in VARIANTS), "no privacy"]
    share, better = published[best] / pay.mean(), min(found[1.0, k, "best T, codebook"] for k in moments) / pay.mean()
    return Result(
        f"at epsilon 1 the published estimator has its least error at k = {best:.1f}, {100 * share:.0f} % of the mean, "
        f"and {published[moments[0]] / published[best]:.1f} and {published[moments[-1]] / published[best]:.1f} times "
        f"that at k = {moments[0]:.2f} and {moments[-1]:.0f}; the best threshold with a codebook reaches "
        f"{100 * better:.1f} %; without privacy {100 * plain / pay.mean():.2f} %",
        f"shape yes; errors larger, as n is {pay.size // 2:,} instead of {_PAPER // 2:,}",
        paragraph(text) + "\n" + table(headings, body),
    )


def best_means(quick):
    """Table 1: for each epsilon the least error over the assumed moments, with half of the people and the paper's n."""
    pay, _ = population()
    body, shares = [], {}
    people = pay.size // 10 if quick else _PAPER // 2
    for drawn in (None, people):
        found, plain = mean_rows(quick, drawn)
        n = f"{drawn or pay.size // 2:,}"
        for epsilon in EPSILONS:
            cells = []
            for variant in VARIANTS:
                error, k = min((found[key], key[1]) for key in found if key[0] == epsilon and key[2] == variant)
                shares[drawn, epsilon, variant] = 100 * error / pay.mean()
                cells.append(f"{error:,.0f} ({100 * error / pay.mean():.2g} %, k = {k:.2g})")
            body.append([n, f"{epsilon:g}", *cells])
        shares[drawn] = 100 * plain / pay.mean()
        body.append([n, "∞", *[f"{plain:,.0f} ({shares[drawn]:.2g} %)"] * len(VARIANTS)])
    text = f"""Least mean absolute error over the assumed moments, chosen with hindsight, in dollars, as a share of
        the mean ({pay.mean():,.0f}), and the moment. n = {pay.size // 2:,} is half of our people, {mean_runs(quick)}
        runs; n = {people:,}, half of the paper's people, are drawn with replacement, {max(mean_runs(quick) // 8, 2)}
        runs."""
    return Result(
        f"n = {people:,}: as published {shares[people, 1.0, 'as published']:.1f} % of the mean at epsilon 1 and "
        f"{shares[people, 2.0, 'as published']:.1f} % at epsilon 2, best T with a codebook "
        f"{shares[people, 1.0, 'best T, codebook']:.1f} % and {shares[people, 2.0, 'best T, codebook']:.1f} %; without "
        f"privacy {shares[people]:.2f} %",
        "the order, yes: our people are other campuses, with a lower mean",
        paragraph(text) + "\n" + table(["n", "epsilon", *VARIANTS], body),
    )


# ---- figure 6: medians ----


def median_runs(quick):
    return 8 if quick else 400


def _sizes(quick):
    largest = 4000 if quick else _PAPER
    return [round(largest / 2**j) for j in range(6 if quick else 11)][::-1]


@lru_cache
def median_rows(quick):
    """{(radius, method): gaps of all runs, a row for each n}: E|X - estimate| - E|X - median|, in dollars.

    Each n has runs of its own; the naive estimator has the largest n only, as in the paper.
    """
    pay, _ = population()
    ordered, rng, found = np.sort(pay), np.random.default_rng(2), {}
    below = np.concatenate([[0.0], np.cumsum(ordered)])

    def distance(theta):
        count = np.searchsorted(ordered, theta)
        return (theta * (2 * count - pay.size) + below[-1] - 2 * below[count]) / pay.size

    least = distance(np.median(pay))
    sizes, runs = _sizes(quick), median_runs(quick)
    for radius in RADII[::2] if quick else RADII:
        bounds = (0.0, radius * _UNIT)
        protocols = {
            "(11), steps as published": local.MedianDescent(bounds=bounds, epsilon=MEDIAN_EPSILON, steps="minimax"),
            "default steps": local.MedianDescent(bounds=bounds, epsilon=MEDIAN_EPSILON),
            "no privacy": local.MedianDescent(bounds=bounds, epsilon=44.0, steps="minimax"),
        }
        gaps = {name: np.empty((len(sizes), runs)) for name in protocols} | {"naive": np.empty((1, runs))}
        for run in range(runs):
            x = rng.choice(pay, sizes[-1])
            for i, n in enumerate(sizes):
                for name, protocol in protocols.items():
                    gaps[name][i, run] = distance(protocol(x[:n], rng=rng)) - least
            naive = local.median_naive(x, bounds=bounds, epsilon=MEDIAN_EPSILON, rng=rng)
            gaps["naive"][0, run] = distance(naive) - least
        found.update({(radius, name): values for name, values in gaps.items()})
    return found


MEDIAN_LOOKS = {
    "(11), steps as published": "published",
    "default steps": "better",
    "no privacy": "no privacy",
    "naive": "Laplace",
}


def draw_medians(quick, path):
    """Figure 6: a panel for each radius, the gap against n with bands."""
    found, sizes = median_rows(quick), _sizes(quick)
    radii = sorted({radius for radius, _ in found})
    figure, axes = duchi_drawing.panels(3, 2, size=(5.6, 7.0), sharex=True, sharey=True)
    for ax, radius in zip(axes, radii, strict=False):
        for name, look in MEDIAN_LOOKS.items():
            gaps = found[radius, name]
            if name == "naive":  # the estimator of all people, as a level
                gaps = np.repeat(gaps, len(sizes), axis=0)
            bands = () if name == "no privacy" else np.quantile(gaps, [0.05, 0.95], axis=1)
            shown = "naive (41), all people" if name == "naive" else name
            duchi_drawing.line(ax, look, shown, sizes, gaps.mean(axis=1), *bands, markevery=2)
        ax.set(xscale="log", yscale="log", ylim=(0.5, 3e4))
        ax.set_title(f"bounds 0 to {radius * _UNIT:,.0f}")
    for ax in axes[len(radii) :]:
        ax.set_axis_off()
    for ax in axes[max(len(radii) - 2, 0) : len(radii)]:
        ax.set_xlabel("people n")
        ax.xaxis.set_tick_params(labelbottom=True)
    for ax in axes[::2]:
        ax.set_ylabel("gap, dollars")
    about = f"{MEDIAN_EPSILON:g}-locally private: mean and 5 to 95 % of {median_runs(quick)} runs"
    figure.suptitle(f"Gap of median pay, {about}", fontsize="medium")
    pages.legend(figure, axes[0])
    pages.save(figure, path)


def medians(quick):
    """Figure 6 as a table, at the largest n."""
    pay, _ = population()
    found, sizes = median_rows(quick), _sizes(quick)
    center, body, ratios, worst = np.median(pay), [], [], []
    radii = sorted({radius for radius, _ in found})
    for radius in radii:
        last = {name: found[radius, name][-1] for name in MEDIAN_LOOKS}
        cells = []
        for gaps in last.values():
            low, high = np.quantile(gaps, [0.05, 0.95])
            cells.append(f"{digits(gaps.mean())} ({digits(low)} to {digits(high)})")
        body.append([f"{radius:g}", *cells])
        ratios.append(last["naive"].mean() / last["(11), steps as published"].mean())
        worst.append(last["(11), steps as published"].mean() / center)
        bound = local.MedianDescent(bounds=(0, radius * _UNIT), epsilon=MEDIAN_EPSILON, steps="minimax")
        for n, gaps in zip(sizes, found[radius, "(11), steps as published"], strict=True):
            check(f"figure 6: gap below its bound, r = {radius}", int(gaps.mean() < bound.gap_bound(n)), 1, 0)
    text = f"""E|X - estimate| - E|X - median| in dollars at n = {sizes[-1]:,}, drawn with replacement;
        {median_runs(quick)} runs, mean and range of 90 % of them; epsilon = {MEDIAN_EPSILON:g}; bounds from 0 to r
        times {_UNIT:,.0f}; the median is {center:,.0f}. "(11)" has the steps of Corollary 2's bound, r / sqrt(i) up
        to a constant; the default steps decrease as i^(-2/3); "naive" is equation (41), "no privacy" is (11) with
        epsilon = 44."""
    return Result(
        f"the naive median has {min(ratios):.0f} to {max(ratios):.0f} times the gap of (11); that of (11) is at most "
        f"{100 * max(worst):.2g} % of the median, and below the bound of Corollary 2 at every n",
        "yes; the paper's steps have a constant that is lost in the stored text",
        paragraph(text) + "\n" + table(["r", *MEDIAN_LOOKS], body),
    )
