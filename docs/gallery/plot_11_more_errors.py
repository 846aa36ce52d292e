"""Errors of rows, lines, densities and local reports
==================================================

``mechanism.error`` takes the assumptions that a mechanism needs. This example plots it against the number of records
for eight mechanisms, each in its own unit, at epsilon = 1.

**Private**: no numbers, because the example reads no data. **Public**: all numbers, including the assumptions about the
records.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf
from dpfast import local

style.use()
unit, wide = dpf.Grid(0, 1), dpf.Grid(-50, 50)
box, ball = dpf.domains.Box((unit,) * 5), dpf.domains.Ball(3.0)

# %%
# Each function returns the error for n records and epsilon. Where ``error`` is that of the noise alone, as for
# covariances and local reports, the error of sampling is added. The assumptions are a standard deviation of 0.2 for
# numbers from 0 to 1, and of 1 elsewhere.


def of_columns(n, epsilon):
    """Root mean square error of one of the means."""
    return dpf.NoisySums(dpf.statistics.Mean(), domain=box, epsilon=epsilon).error(n, deviation=0.2)[0]


def of_covariance(n, epsilon):
    """Root mean square error of one covariance."""
    return np.hypot(dpf.Covariance(domain=ball, epsilon=epsilon).error(n, dimension=3)[0, 1], 1 / np.sqrt(n))


def of_slope(n, epsilon):
    """Root mean square error of the slope."""
    return dpf.TheilSen(epsilon=epsilon).error(n, deviation=1.0, spread=1.0)[0]


def of_depth(n, epsilon):
    """Root mean square of the Euclidean error."""
    return dpf.robust.TukeyDepth(grid=wide, dimension=2, epsilon=epsilon).error(n, deviation=1.0)


def of_histogram(n, epsilon):
    """Mean integrated squared error."""
    return dpf.PerturbedHistogram(20, grid=unit, epsilon=epsilon).error(n, roughness=4.0)


def of_rate(n, epsilon):
    """Not exceeded by 95 % of the releases."""
    return dpf.SufficientStatistics("exponential", bounds=(0.2, 5), epsilon=epsilon, planned_n=n).error(n, 1.0)


def of_local_mean(n, epsilon):
    """Not exceeded by 95 % of the estimates."""
    return np.hypot(local.Interval(epsilon, bounds=(0, 1)).error(n), 1.96 * 0.2 / np.sqrt(n))


def of_local_share(n, epsilon):
    """Not exceeded by 95 % of the estimates."""
    return np.hypot(local.Categorical(16, epsilon=epsilon).error(n), 1.96 * np.sqrt(0.1 * 0.9 / n))


replaced, local_reports = "epsilon = 1, one record replaced", "epsilon = 1, local"
panels = {
    "mean of 5 columns": (of_columns, replaced, "root mean square"),
    "covariance": (of_covariance, replaced, "root mean square"),
    "slope, Theil-Sen": (of_slope, replaced, "root mean square"),
    "mean of 2 columns by depth": (of_depth, replaced, "root mean square"),
    "histogram of 20 bins": (of_histogram, replaced, "integrated square"),
    "rate of waiting times": (of_rate, replaced, "95 % of releases"),
    "mean of local reports": (of_local_mean, local_reports, "95 % of estimates"),
    "share of 1 of 16 answers": (of_local_share, local_reports, "95 % of estimates"),
}

# %%
# The dashed lines are errors without privacy, at an epsilon of 20. With local reports the price of privacy falls like
# the error of sampling, so that the band stays as wide for any number of records; elsewhere it closes.

sizes = np.array([300, 1_000, 3_000, 10_000, 30_000, 100_000])
figure, axes = plt.subplots(4, 2, figsize=(5.6, 9.6), sharex=True)
for ax, (name, (error, note, measure)) in zip(axes.flat, panels.items(), strict=True):
    private, plain = ([error(int(n), epsilon) for n in sizes] for epsilon in (1.0, 20.0))
    ax.fill_between(sizes, plain, private, color=style.SKY, alpha=0.35, label="noise for privacy")
    ax.loglog(sizes, private, "-", marker="o", color=style.BLUE, label="with privacy")
    ax.loglog(sizes, plain, "--", marker="s", color="black", markersize=3, label="sampling alone")
    style.heading(ax, name, note)
    ax.set_ylabel(measure)
for ax in axes[-1]:
    ax.set_xlabel("number of records n")
    style.log_ticks(ax.xaxis, [300, 3_000, 30_000])
style.legend(figure, axes[0, 0], ncols=3)
plt.show()
