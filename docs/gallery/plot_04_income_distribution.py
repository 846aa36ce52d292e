"""An income distribution and synthetic records
============================================

A histogram, a smooth density and synthetic records of made-up incomes.

**Private**: the records, and the density of the population, which is shown for comparison. **Public**: the bounds,
epsilon, and all results of a release: its density, its quantiles, and any number of synthetic records. The seed makes
the pictures reproducible and the releases not private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import lognorm

import dpfast as dpf

style.use()
rng = np.random.default_rng(4)
population = lognorm(0.5, scale=36_000)
incomes = population.rvs(2_000, random_state=rng)  # private
bounds = (0, 160_000)

# %%
# A histogram of 20 bins, and a series of cosines, each with epsilon = 0.5. ``plot`` draws a release with its guarantee.
# The noise on a count does not depend on the records, so the lines, which hold it with a probability of 95 %, are
# public.

histogram = dpf.histogram(incomes, 20, bounds=bounds, epsilon=0.5, rng=rng)
series = dpf.density(incomes, bounds=bounds, epsilon=0.5, roughness=20.0, rng=rng)

figure, axes = plt.subplots(2, 1, figsize=(5.6, 7.2))
places = np.linspace(*bounds, 500)
for ax, release in zip(axes, (histogram, series), strict=True):
    release.plot(ax, unit="income per year")
    ax.plot(places, population.pdf(places), "--", color=style.VERMILION, label="population (private)")
    style.on_axis(ax.xaxis)
style.legend(figure, axes[0])
plt.show()

# %%
# Synthetic records follow joint quantiles. You may publish them and analyse them like records. More of them do not make
# the analysis more precise, because the error of the release remains. The band, from 200 seeded releases, is private.

shares = np.arange(1, 100)
twins = dpf.synthesize(incomes, 2_000, bounds=bounds, epsilon=1.0, rng=rng)
others = (dpf.synthesize(incomes, 2_000, bounds=bounds, epsilon=1.0, rng=rng) for _ in range(200))
low, high = style.spread([np.quantile(other, shares / 100) for other in others])

figure, ax = plt.subplots()
ax.plot(shares, np.quantile(incomes, shares / 100), "--", color="black", label="exact (private)")
ax.plot(shares, np.quantile(twins, shares / 100), "-", marker="o", markevery=9, label="synthetic records (public)")
ax.fill_between(shares, low, high, color=style.SKY, alpha=0.4, label="90 % of synthetic data sets")
style.heading(ax, "Percentiles of 2,000 synthetic incomes", style.guarantee(dpf.Privacy(1.0)))
ax.set(xlabel="percent of the records", ylabel="income per year")
style.on_axis(ax.yaxis)
style.legend(figure, ax)
plt.show()
