"""Mean size of the noise of counts, sums, histograms and means of columns, in dpfast and in other libraries."""

from functools import cache

import numpy as np

import dpfast as dpf
from bench import pages
from bench.pages.tables import digits, paragraph, table
from bench.peers import installed
from dpfast.theory import gaussian_scale

EPSILONS = (1.0, 2.0, 4.0)
DIMENSIONS = (2, 5, 20, 120)
CELLS = (2, 4, 16, 64)
N = 1000
DRAWS, FEW = 400_000, 200_000  # of dpfast and of other libraries
DELTA = 1e-6


def integers(quick):
    """Counts, sums and histograms: integers, at pure epsilon."""
    rows = [
        *(["count", f"{epsilon:g}", *_counts(epsilon, quick)] for epsilon in EPSILONS),
        *(["sum of integers from 0 to 10", f"{epsilon:g}", *_sums(10, epsilon, quick)] for epsilon in (*EPSILONS, 8.0)),
        *([f"histogram of {k} cells", "1", *_histogram(k, quick)] for k in CELLS),
    ]
    text = f"""Mean distance of a release, or of a cell of it, from the exact value, at pure epsilon: counts for
        one record added or removed; sums and histograms for one replaced record, with n public. Means over {DRAWS:,}
        draws of dpfast and {FEW:,} of the others, with a standard error of at most 2 %. The others have the noise of
        their mechanisms for integers of the same l1 sensitivity: discrete Laplace in OpenDP, the geometric mechanism
        in diffprivlib."""
    heads = ["release", "epsilon", "dpfast", *installed.integers(1, 1.0)]
    return "\n".join(["## Integers", "", paragraph(text), table(heads, rows)])


def _counts(epsilon, quick):
    mechanism = dpf.GlobalSensitivity(
        dpf.statistics.Count(), grid=dpf.Grid(0, 1, step=1), epsilon=epsilon, neighbors="add-remove"
    )
    return _against(_noise(mechanism, np.zeros(N), N, quick), 1, epsilon, quick)


def _sums(width, epsilon, quick):
    mechanism = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, width, step=1), epsilon=epsilon)
    records = np.full(N, width // 2)
    return _against(_noise(mechanism, records, records.sum(), quick), width, epsilon, quick)


def _histogram(k, quick):
    mechanism = dpf.densities.PerturbedHistogram(k, grid=dpf.Grid(0, k, step=1 / 16), epsilon=1.0)
    records = np.arange(100 * k) % k + 0.5
    draws = mechanism.release(records, size=_draws(quick) // k)
    return _against(np.abs(draws - 100).mean(), 2, 1.0, quick)


def _noise(mechanism, records, exact, quick):
    return np.abs(mechanism.release(records, size=_draws(quick)) - exact).mean()


def _draws(quick):
    return 1000 if quick else DRAWS


def _against(ours, sensitivity, epsilon, quick):
    others = installed.integers(sensitivity, epsilon).values()
    return [digits(ours), *(digits(np.abs(draw(100 if quick else FEW)).mean()) for draw in others)]


def columns(quick):
    """Means of d columns, at pure epsilon and with a delta."""
    rows = [
        [f"{d}", *(f"{digits(N * size)}" for size in _column_sizes(d, quick).values())]
        for d in (DIMENSIONS[:2] if quick else DIMENSIONS)
    ]
    text = f"""Means of d columns of n = {N:,} records from 0 to 1: n times the mean distance of a coordinate from
        the exact mean, at epsilon 1 for all columns together, for one replaced record. dpfast draws the noise of all
        columns at once; the others split epsilon over the columns. With a delta of {DELTA:g} dpfast takes Gaussian
        noise where it is expected to be less; "analytic Gaussian" is the mean size of the continuous Gaussian
        mechanism of the least standard deviation."""
    return "\n".join(["## Means of columns", "", paragraph(text), table(["d", *_column_sizes(2, True)], rows)])


@cache
def _column_sizes(d, quick):
    """Mean distances, by library."""
    X = np.full((N, d), 0.5)
    box, draws = dpf.domains.Box((dpf.Grid(0, 1),) * d), max((10_000 if quick else DRAWS) // d, 200)
    sizes = {}
    for name, delta in (("dpfast, pure", 0.0), (f"dpfast, delta = {DELTA:g}", DELTA)):
        mechanism = dpf.NoisySums(dpf.statistics.Mean(), domain=box, epsilon=1.0, delta=delta)
        sizes[name] = np.abs(mechanism.release(X, size=draws) - 0.5).mean()
    sizes["analytic Gaussian"] = np.sqrt(2 / np.pi * d) * gaussian_scale(1.0, DELTA) / N
    for name, release in installed.column_means(X, 1.0).items():
        sizes[name] = np.mean([np.abs(np.asarray(release()) - 0.5).mean() for _ in range(10 if quick else 500)])
    return sizes


def figure(quick, path):
    """The mean size of the noise of a coordinate against the number of columns: the numbers of the section."""
    dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
    sizes = [_column_sizes(d, quick) for d in dimensions]
    drawing, axes = pages.pyplot().subplots(figsize=(5.6, 4.0))
    pages.draw(axes, {name: (dimensions, [N * size[name] for size in sizes]) for name in sizes[0]})
    axes.set_title("Means of columns: epsilon = 1 for all, one record replaced")
    axes.set(xlabel="number of columns", ylabel="n times the mean noise of a coordinate")
    pages.ticks(axes.xaxis, dimensions)
    pages.ticks(axes.yaxis, [2, 5, 10, 20, 50, 100])
    pages.legend(drawing, axes)
    pages.save(drawing, path)
