"""A release and its exact law
===========================

A private release is one random draw, and ``mechanism.law`` gives the exact distribution of that draw. This example
plots it around the exact value for three statistics of a made-up payroll.

**Private**: the records, the exact values, and the laws. **Public**: the bounds, the step, epsilon, the number of
records, and the releases. Seeds make the pictures reproducible and the releases not private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(1)
pay = rng.lognormal(10.5, 0.6, 500)  # private

# %%
# The grid is public: pay is clamped to at most 200,000 and rounded to multiples of 64 (steps are powers of two).

grid = dpf.Grid(0, 200_000, step=64)
mechanisms = {
    "median": dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0),
    "mean": dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=1.0),
    "0.9-quantile": dpf.InverseSensitivity(dpf.statistics.Quantile(0.9), grid=grid, epsilon=1.0),
}
exact = {"median": np.median(pay), "mean": pay.mean(), "0.9-quantile": np.quantile(pay, 0.9)}  # private

# %%
# Each panel has the probability density of a release. The band holds 90 % of it, and the diamond is the one draw that
# would be published. The law of the mean has the same width for all records within the bounds; the laws of the
# quantiles are narrower where records are dense. The law of the mean is not centred at the exact mean, because the
# bounds cut off the highest pay; quantiles do not depend on it.

figure, axes = plt.subplots(3, 1, figsize=(5.6, 6.4))
for ax, (name, mechanism) in zip(axes, mechanisms.items(), strict=True):
    law = mechanism.law(pay)  # private
    low, high = style.interval(law)
    window = np.unique(np.linspace(style.quantile(law, 0.001), style.quantile(law, 0.999), 400).astype(int))
    values = law.value(window)
    release = mechanism(pay, rng=rng)
    ax.axvspan(low, high, color=style.SKY, alpha=0.3, label="90 % of releases")
    density = np.diff(law.cdf(window)) / np.diff(values / 1000)
    ax.stairs(density, values, color=style.BLUE, fill=False, linewidth=1.5, label="exact law")
    ax.axvline(exact[name], color="black", linestyle="--", label="exact value (private)")
    ax.plot(release, 0, "D", color=style.VERMILION, markersize=8, clip_on=False, zorder=3, label="release (public)")
    style.heading(ax, f"Release of the {name} of {pay.size} records", style.guarantee(mechanism.privacy))
    style.on_axis(ax.xaxis)
    ax.set(xlabel="pay per year", ylabel="density per 1,000", ylim=(0, None))
    print(f"{name}: released {release:,.0f}; 90 % of releases are from {low:,.0f} to {high:,.0f} (private)")
style.legend(figure, axes[0])
plt.show()
