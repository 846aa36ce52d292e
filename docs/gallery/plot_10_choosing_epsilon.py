"""Choosing epsilon
================

Epsilon limits how much anyone can learn about one record, with any prior knowledge. This example plots that limit and
the error of a median, so that you can choose epsilon before you see the data.

**Private**: no numbers, because the example reads no data. **Public**: all numbers, including the assumed distribution.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import lognorm

import dpfast as dpf

style.use()
epsilons = np.geomspace(0.03, 8, 9)
assumed = lognorm(0.6, scale=40_000)

# %%
# The limit: an attacker to whom two candidates for a record are equally likely guesses right with a probability of at
# most :math:`e^\varepsilon / (1 + e^\varepsilon)`. A candidate that had a probability of 1 % before the release has at
# most :math:`e^\varepsilon / (99 + e^\varepsilon)` after it.

certainty = np.exp(epsilons) / (1 + np.exp(epsilons))
rare = np.exp(epsilons) / (99 + np.exp(epsilons))

# %%
# The error: with a probability of 95 % the error of a median is at most that of ``mechanism.error``, for three numbers
# of records. The dashed lines are the error of sampling alone, from an epsilon of 20, and the bands are the price of
# privacy.

figure, (attack, error) = plt.subplots(2, 1, figsize=(5.6, 6.8), sharex=True)
attack.semilogx(epsilons, 100 * certainty, "-", marker="o", color=style.VERMILION, label="prior of 50 %")
attack.semilogx(epsilons, 100 * rare, "-.", marker="s", color=style.PURPLE, label="prior of 1 %")
attack.set(xlabel="epsilon", ylabel="greatest probability, percent", ylim=(0, 100))
attack.legend(loc="upper left")
style.heading(attack, "What an attacker may believe after a release", "pure guarantee, one record replaced")

for n, color, marker in ((200, style.ORANGE, "^"), (2_000, style.GREEN, "D"), (20_000, style.BLUE, "v")):
    found = [
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 500_000), epsilon=epsilon).error(
            n, distribution=assumed
        )
        for epsilon in (*epsilons, 20.0)
    ]
    error.loglog(epsilons, found[:-1], "-", marker=marker, color=color, label=f"n = {n:,}")
    error.axhline(found[-1], linestyle="--", color=color, linewidth=1)
    error.fill_between(epsilons, found[-1], found[:-1], color=color, alpha=0.2)
error.set(xlabel="epsilon", ylabel="error of 95 %, in units of pay")
error.legend(loc="upper right")
style.on_axis(error.yaxis)
style.log_ticks(error.xaxis, [0.03, 0.1, 0.3, 1, 3, 8])
style.heading(error, "Error of the median", "pure guarantee, one record replaced; dashed: sampling alone")
plt.show()
