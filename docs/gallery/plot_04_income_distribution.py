"""An income distribution and synthetic records
============================================

A histogram, a smooth density and synthetic records of made-up incomes.

**Private**: the records, and the density from which they were drawn, which is shown for comparison. **Public**: the
bounds, epsilon, and everything that is computed from a release: its density, its quantiles, and any number of synthetic
records. The seed makes the pictures reproducible and the releases not private.
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
# A histogram of 20 bins, and a series of cosines, each with epsilon = 0.5. The noise on a count does not depend on the
# records, so the bars that hold the noise of 90 % of the bins are public.

histogram = dpf.histogram(incomes, 20, bounds=bounds, epsilon=0.5, rng=rng)
series = dpf.density(incomes, bounds=bounds, epsilon=0.5, roughness=20.0, rng=rng)

width = histogram.edges[1] - histogram.edges[0]
noise = 2 / 0.5 * np.log(10) / (incomes.size * width)  # 90 % of Laplace noise of scale 2 / epsilon
centres = histogram.edges[:-1] + width / 2

figure, axes = plt.subplots(2, 1, figsize=(5.6, 6.4), sharex=True, sharey=True)
places = np.linspace(*bounds, 500)
axes[0].stairs(histogram.density, histogram.edges, fill=True, color=style.SKY, label="release (public)")
axes[0].errorbar(centres, histogram.density, noise, fmt="none", color=style.BLUE, capsize=2, label="90 % of the noise")
axes[1].plot(places, series.pdf(places), "-", color=style.BLUE, label="release (public)")
for ax, release, name in ((axes[0], histogram, "Histogram"), (axes[1], series, "Cosine series")):
    ax.plot(places, population.pdf(places), "--", color="black", label="population (private)")
    style.heading(ax, f"{name} of {incomes.size:,} incomes", style.guarantee(release.privacy))
    style.on_axis(ax.xaxis)
    ax.yaxis.set_major_formatter(lambda density, _: f"{1e4 * density:.2f}")
    ax.set(xlabel="income per year", ylabel="density per 10,000")
style.legend(figure, axes[0])
plt.show()

# %%
# Synthetic records follow joint quantiles. You may publish them and analyse them like records. More
# of them do not make the analysis more precise, because the error of the release remains. The band, from 200 seeded
# releases, is private.

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
