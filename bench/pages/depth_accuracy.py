"""Robust means by Tukey depth, boxes and whitened columns: sections of ``bench.pages robust``, and items of the page on
the slides (``bench.papers.robustness``); fixed seeds."""

import math
from functools import partial

import numpy as np
from numpy.random import default_rng

import dpfast as dpf
from bench import pages
from bench.pages.tables import paragraph, table
from dpfast.robust.whitened import Whitened
from dpfast.theory import depth_error, medians_error

EPSILON = 1.0
BOUND = {2: 1000.0, 3: 4.0}
SEED = 20231120
DENSITY = 1 / math.sqrt(2 * math.pi)


def rows(d, n, rho, outliers, rng):
    """Records of N(center, R), a fraction of them replaced by one far point; the center, and the whitening of R."""
    roots = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    center = rng.uniform(-0.1, 0.1, d)
    x = rng.normal(size=(n, d)) @ roots.T
    x[: int(outliers * n)] = [3.0, *[-3.0] * (d - 1)]
    return x + center, center, np.linalg.inv(roots)


def releases(d, bound):
    """All methods for d columns, functions of the records and a generator."""
    grid = dpf.Grid(-bound, bound)
    boxes, whitened = dpf.NestedBoxes(grid=grid, epsilon=EPSILON), Whitened((grid,) * d, epsilon=EPSILON)
    known = {
        "medians, not private": lambda x, rng: np.median(x, axis=0),
        "boxes": lambda x, rng: boxes(x, rng=rng),
        "whitened": lambda x, rng: whitened(x, rng=rng),
    }
    if d < 4:
        depth = dpf.robust.TukeyDepth(grid=grid, dimension=d, epsilon=EPSILON)
        known["depth"] = lambda x, rng: depth(x, rng=rng)
    return known


def errors(release, d, n, rho, outliers, runs):
    """The root mean square error in the Mahalanobis norm of the normal records."""
    squares = []
    for seed in range(runs):
        rng = default_rng([SEED, d, n, seed])
        x, center, whitening = rows(d, n, rho, outliers, rng)
        squares.append(float(np.sum((whitening @ (release(x, rng) - center)) ** 2)))
    return math.sqrt(np.mean(squares))


def runs_of(d, n, quick):
    if quick:
        return 3
    return 40 if d == 3 and n >= 1000 else 150


def methods(quick):
    """Errors of all methods, with and without correlation and outliers."""
    sizes = {2: (1000,), 3: (300,)} if quick else {2: (1000, 10_000), 3: (300, 1000)}
    lines = []
    for d, counts in sizes.items():
        made = releases(d, BOUND[d])
        for n in counts:
            for rho in (0.0, 0.9):
                for outliers in (0.0, 0.05):
                    runs = runs_of(d, n, quick)
                    found = {name: errors(release, d, n, rho, outliers, runs) for name, release in made.items()}
                    unit = math.sqrt(d / n)
                    figures = (f"{found[name] / unit:.2f}" for name in made)
                    lines.append((d, n, rho, f"{outliers:.0%}", *figures, f"{found['boxes'] / found['depth']:.2f}"))
    many, few = runs_of(2, 1000, quick), runs_of(3, 1000, quick)
    words = paragraph(
        f"""Root mean square error in the Mahalanobis norm of N(mu, R), in units of sqrt(d / n), the error of the mean
        without privacy; R has the correlation rho of any two columns; epsilon = {EPSILON:g}, pure. Bounds of each
        column are +-{BOUND[2]:g} for d = 2 and +-{BOUND[3]:g} for d = 3, where depth has 256 points in each, 0.03
        apart, which shows with rho = 0.9. Outliers are all at (3, -3, ...). `whitened` has half of epsilon for the
        release, the rest for locations, scales and the covariance: it needs about 540 d / epsilon records. {many} data
        sets ({few} for d = 3 and n = 1000): the standard error of a figure is 4 to 7 %."""
    )
    headings = ("d", "n", "rho", "outliers", *releases(3, 4.0), "boxes / depth")
    return "\n".join(["## Methods", "", words, table(headings, lines)])


def rates(quick):
    """The error by depth against the rate of the slides, and the greatest ratio of both for n epsilon >= 100."""
    sizes = {2: (250, 1000, 4000, 16_000), 3: (100, 300, 1000)}
    lines = []
    for d, counts in sizes.items():
        for epsilon in (1.0, 0.2):
            made = dpf.robust.TukeyDepth(grid=dpf.Grid(-8 / (d - 1), 8 / (d - 1)), dimension=d, epsilon=epsilon)
            for n in counts[:1] if quick else counts:
                if n * epsilon < 25 * d:  # too few records for a location
                    continue
                found = errors(
                    lambda x, rng, m=made: m(x, rng=rng), d, n, 0.9 if d == 2 else 0.0, 0.0, runs_of(d, n, quick)
                )
                rate = math.sqrt(d / n) + d / (n * epsilon)
                theory = depth_error(n, d, epsilon)
                figures = f"{found:.4f}", f"{theory:.4f}", f"{found / theory:.2f}", f"{found / rate:.2f}"
                lines.append((d, epsilon, n, *figures))
    words = paragraph(
        """The slides' rate for the Gaussian mean is an error of the order of sqrt(d / n) + d / (n epsilon) where n is
        above d log(bounds) / epsilon. Errors by depth (Mahalanobis, root mean square; correlation 0.9 and bounds +-8
        for d = 2, 0 and +-4 for d = 3), by the formula `dpf.theory.depth_error`, and relative to the rate: the ratio
        stays bounded, as it does by `depth_error`: 1.2 where sampling dominates and 2 sqrt(2 pi) sqrt(1 + 1 / d),
        about 6, where privacy does. In the row of n epsilon = 50 for d = 2 some releases are anywhere in the
        bounds."""
    )
    headings = ("d", "epsilon", "n", "error", "formula", "error / formula", "error / rate")
    return words + "\n" + table(headings, lines), max(float(line[-1]) for line in lines if line[1] * line[2] >= 100)


def outliers(quick):
    """The bias by a fraction alpha of adversarial records, and the greatest error by depth over alpha."""
    lines, n = [], 4000
    made = releases(2, BOUND[2])
    for rho in (0.0, 0.9):
        for alpha in (0.01, 0.05, 0.1):
            runs = 3 if quick else 40
            found = [errors(release, 2, n, rho, alpha, runs) for release in made.values()]
            lines.append((rho, f"{alpha:.0%}", *(f"{value / alpha:.2f}" for value in found)))
    words = paragraph(
        f"""The root mean square error over alpha, the fraction of the records that are at (3, -3): d = 2, n = {n},
        epsilon = {EPSILON:g}. It is bounded: the error is of the order of alpha, with the sampling error and the noise
        on top for small alpha. The Mahalanobis norm is that of the clean records; with rho = 0.9 the outliers are in
        the direction of least variance, 13 standard deviations away."""
    )
    return words + "\n" + table(("rho", "alpha", *made), lines), max(float(line[-1]) for line in lines)


def columns(quick):
    """Many columns: the noise of boxes relative to that of a law in the Euclidean norm, and whitened columns."""
    lines = []
    for d in (2, 10) if quick else (2, 5, 10, 30):
        n = 100_000 if d > 10 else 20_000 if d > 3 else 5000
        made = releases(d, BOUND[2])
        ideal = math.sqrt(d * (d + 1)) * 2 / (n * EPSILON * DENSITY)
        x, *_ = rows(d, n, 0.0, 0.0, default_rng([SEED, d]))
        away = dpf.NestedBoxes(grid=dpf.Grid(-8, 8), epsilon=EPSILON).release(
            x, size=100 if quick else 2000, rng=default_rng(1)
        ) - np.median(x, axis=0)
        noise = math.sqrt(np.mean(np.sum(away**2, axis=1))) / ideal
        runs = 3 if quick else 12
        for rho in (0.0, 0.9):
            for bad in (0.0, 0.05):
                found = {name: errors(made[name], d, n, rho, bad, runs) / math.sqrt(d / n) for name in list(made)[:3]}
                lost = f"{noise:.2f} ({math.sqrt((d + 2) / 3):.2f})" if not rho and not bad else ""
                gain = f"{found['boxes'] / found['whitened']:.2f}"
                lines.append((d, n, rho, f"{bad:.0%}", lost, *(f"{value:.2f}" for value in found.values()), gain))
    words = paragraph(
        f"""What is lost beyond three columns, epsilon = {EPSILON:g}, bounds +-{BOUND[2]:g}. Lost: the root mean square
        noise of boxes, for a data set of independent columns, over that of a law with weight exp(-epsilon / 2 times
        the score in the Euclidean norm), which depth has for d = 2 and 3 and the slides' estimator in all dimensions,
        in brackets by theory, sqrt((d + 2) / 3). Errors in units of sqrt(d / n), as above: whitening does not win this
        factor back. It makes the error the same for all correlations, for a noise that is twice as large, but outliers
        spoil the covariance: with 5 % of them it loses where columns are independent."""
    )
    headings = ("d", "n", "rho", "outliers", "lost", "medians, not private", "boxes", "whitened", "boxes / whitened")
    return "\n".join(["## More columns", "", words, table(headings, lines)])


def method(quick):
    """How to reproduce."""
    text = f"""Every release is drawn by its exact law; data sets and draws have fixed seeds. **To reproduce**:
        `python -m bench.pages robust`, about two minutes on one core. Made with dpfast {dpf.__version__}."""
    return "\n".join(["## Method", "", paragraph(text)])


CURVES = {
    "boxes": partial(medians_error, correlation=0.9),
    "whitened": lambda n, d, epsilon: medians_error(n, d, epsilon / 2),
    "depth": depth_error,
}


def figure(quick, path):
    """Errors by theory of two columns of correlation 0.9, and measured ones."""
    made, counts = releases(2, BOUND[2]), (1000,) if quick else (1000, 4000, 16_000)
    runs = 3 if quick else 100
    draw({name: (counts, [errors(made[name], 2, n, 0.9, 0.0, runs) for n in counts]) for name in CURVES}, path)


def draw(measured, path):
    """Draw the measured errors, (n, errors) by the keys of CURVES, and those of theory."""
    drawing, axes = pages.pyplot().subplots(figsize=(5.6, 4.4))
    n = np.unique(np.geomspace(200, 50_000, 40).astype(int)).tolist()
    for marker, (name, error) in zip(pages.MARKERS, CURVES.items(), strict=False):
        [line] = axes.loglog(n, [error(count, 2, EPSILON) for count in n], label=f"{name}, theory")
        axes.loglog(*measured[name], marker, color=line.get_color(), label=f"{name}, measured")
    axes.loglog(n, [math.sqrt(2 / count) for count in n], ":", color="black", label="the mean, not private")
    axes.set_title("Two columns of correlation 0.9: epsilon = 1, one record replaced")
    axes.set(xlabel="number of records n", ylabel="error, Mahalanobis norm")
    pages.ticks(axes.xaxis, [300, 1000, 3000, 10_000, 30_000])
    pages.ticks(axes.yaxis, [0.01, 0.02, 0.05, 0.1, 0.2])
    pages.legend(drawing, axes)
    pages.save(drawing, path)
