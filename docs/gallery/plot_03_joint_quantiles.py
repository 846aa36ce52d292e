"""Many quantiles for one epsilon
==============================

``dpf.quantile`` with a list of levels releases all quantiles together and in order. This example compares it with one
release per quantile, with epsilon split over the quantiles.

**Private**: the records, their exact quantiles, and the bands, which come from 300 releases. **Public**: one set of
quantiles, ``released``. The seed makes the picture reproducible and the release not private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(3)
hours = np.append(rng.normal(38, 4, 1_500), rng.normal(20, 5, 500)).clip(0, 60)  # weekly hours of work, private
levels = np.arange(1, 20) / 20
grid = dpf.Grid(0, 80)

# %%
# One call, one epsilon, 19 quantiles:

released = dpf.quantile(hours, levels, bounds=(0, 80), epsilon=1.0, rng=rng)
print(released.round(1))

# %%
# The bands show where 90 % of the releases of each quantile are, with the same total epsilon. The lower panel has the
# same bands around the exact quantiles, cut off at 4 hours.

joint = dpf.Quantiles(levels, grid=grid, epsilon=1.0)
each = [dpf.InverseSensitivity(dpf.statistics.Quantile(q), grid=grid, epsilon=1.0 / levels.size) for q in levels]
bands = {
    "released jointly": style.spread(joint.release(hours, size=300, rng=rng)),
    "epsilon split 19 ways": style.spread(np.transpose([one.release(hours, size=300, rng=rng) for one in each])),
}
exact = np.quantile(hours, levels, method="inverted_cdf")

figure, (ax, errors) = plt.subplots(2, 1, figsize=(5.6, 6.4))
ax.plot(levels, exact, "--", marker="", color="black", label="exact quantiles (private)")
ax.plot(levels, released, "D", linestyle="", color=style.VERMILION, label="one joint release (public)")
looks = {"released jointly": (style.BLUE, None), "epsilon split 19 ways": (style.ORANGE, "///")}
for name, (low, high) in bands.items():
    color, hatch = looks[name]
    look = {"facecolor": color, "edgecolor": color, "alpha": 0.3, "hatch": hatch, "label": f"90 %, {name}"}
    ax.fill_between(levels, low, high, **look)
    errors.fill_between(levels, low - exact, high - exact, **look)
for axis, title in ((ax, "19 quantiles"), (errors, "Errors of the 19 quantiles")):
    style.heading(axis, f"{title} of {hours.size:,} records", style.guarantee(joint.privacy) + ", all together")
    axis.set(xlabel="level of the quantile", ylabel="hours per week")
errors.axhline(0, color="black", linestyle="--")
errors.plot(levels, released - exact, "D", linestyle="", color=style.VERMILION)
errors.set_ylim(-4, 4)
style.legend(figure, ax)
plt.show()

# %%
# The mean width of the bands:

for name, (low, high) in bands.items():
    print(f"{name}: {np.mean(high - low):.2f} hours")
