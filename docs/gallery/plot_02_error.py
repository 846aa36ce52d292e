"""Error against n and epsilon
===========================

Before you touch any data, ``mechanism.error`` predicts how far a release is from the population value. It needs an
assumption about the records, and it includes clipping, sampling and the noise for privacy. This example plots it for
six statistics of pay, against the number of records and against epsilon.

**Private**: no numbers, because the example reads no data. **Public**: all numbers, including the assumed distribution,
which must not come from the records.
"""

import gallery_style as style
from matplotlib import pyplot as plt
from scipy.stats import lognorm

import dpfast as dpf

style.use()
assumed = lognorm(0.6, scale=40_000)
grid = dpf.Grid(0, 500_000)
statistics = {
    "median": (dpf.InverseSensitivity, dpf.statistics.Median()),
    "0.9-quantile": (dpf.InverseSensitivity, dpf.statistics.Quantile(0.9)),
    "interquartile range": (dpf.InverseSensitivity, dpf.statistics.InterquartileRange()),
    "trimmed mean, 10 %": (dpf.InverseSensitivity, dpf.statistics.TrimmedMean(0.1)),
    "mean": (dpf.GlobalSensitivity, dpf.statistics.Mean()),
    "Huber's M-estimate": (dpf.MEstimator, dpf.psi.Huber(20_000.0)),
}


def error(kind, statistic, n, epsilon):
    """Return the error that 95 % of the releases do not exceed."""
    return kind(statistic, grid=grid, epsilon=epsilon).error(n, distribution=assumed, confidence=0.95)


def panels(title, places, with_noise, without, note):
    """One panel for each statistic. The band between the lines is the price of privacy."""
    figure, axes = plt.subplots(3, 2, figsize=(5.6, 7.2), sharex=True, sharey=True)
    for ax, name in zip(axes.flat, statistics, strict=True):
        ax.fill_between(places, without[name], with_noise[name], color=style.SKY, alpha=0.35, label="noise for privacy")
        ax.loglog(places, with_noise[name], "-", marker="o", color=style.BLUE, label="95 % of releases")
        ax.loglog(places, without[name], "--", marker="s", color="black", markersize=3, label="95 %, sampling alone")
        style.heading(ax, name, note)
        style.on_axis(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel(title)
    figure.supylabel("error, in units of pay", fontsize="medium")
    style.legend(figure, axes[0, 0])
    return axes


# %%
# Against the number of records, at epsilon = 1. An epsilon of 20 stands for a release without noise. The noise falls
# like 1 / n and the error of sampling like 1 / sqrt(n), so that privacy costs less and less. With few records a release
# may be anywhere within the bounds, as for the 0.9-quantile of 100 records.

sizes = [30, 100, 1_000, 10_000]
private = {name: [error(*each, n, 1.0) for n in sizes] for name, each in statistics.items()}
sampling = {name: [error(*each, n, 20.0) for n in sizes] for name, each in statistics.items()}
axes = panels("number of records n", sizes, private, sampling, "epsilon = 1, one record replaced")
style.log_ticks(axes[0, 0].xaxis, [100, 1_000, 10_000])
plt.show()

# %%
# Against epsilon, for 1,000 records. Where the band closes, a larger epsilon gains no accuracy.

epsilons = [0.03, 0.1, 0.3, 1.0, 4.0]
private = {name: [error(*each, 1_000, epsilon) for epsilon in epsilons] for name, each in statistics.items()}
sampling = {name: [sampling[name][2]] * len(epsilons) for name in statistics}
axes = panels("epsilon", epsilons, private, sampling, "n = 1,000, one record replaced")
style.log_ticks(axes[0, 0].xaxis, epsilons)
plt.show()
