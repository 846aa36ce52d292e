"""Grouped pay under a budget
==========================

``dpf.by_group`` releases a statistic of each group for one epsilon, because a record is in one group. A ledger records
each charge and refuses releases that do not fit into the budget.

**Private**: the pay, the exact medians, and the bands, which come from the exact laws. **Public**: which region a
person works in, the bounds, the budget, the releases, and the ledger. If the region itself is private, use
``neighbors="add-remove"``. The seed makes the picture reproducible and the releases not private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(5)
regions = ["Ashby", "Birk", "Cove", "Dale", "Elm", "Firth", "Glen", "Holt", "Isle", "Kirk"]
sizes = [60, 90, 150, 300, 500, 800, 1_000, 1_500, 2_500, 4_000]
labels = np.repeat(regions, sizes)
pay = rng.lognormal(np.repeat(rng.normal(10.5, 0.15, len(regions)), sizes), 0.5)  # private

# %%
# The medians and the means fit into the budget, and the third release is refused before it reads the records.

grid = dpf.Grid(0, 200_000, step=64)
median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=0.5)
mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=0.25)
ledger = dpf.Ledger("1")
with ledger:
    medians = dpf.by_group(median, pay, labels=labels, keys=regions, rng=rng)
    means = dpf.by_group(mean, pay, labels=labels, keys=regions, rng=rng)
    try:
        dpf.by_group(median, pay, labels=labels, keys=regions, rng=rng)
    except dpf.BudgetError as error:
        print(f"BudgetError: {error}")

# %%
# The noise of a mean does not depend on the pay, so ``plot`` can show its interval, which is public.

figure, ax = plt.subplots(figsize=(5.6, 4.4))
means.plot(ax, unit="mean pay per year")
style.on_axis(ax.xaxis)
plt.show()

# %%
# The noise of a median depends on the pay, so the bands of the exact laws are private. The smaller the group, the wider
# the band.

exact = [np.median(pay[labels == region]) for region in regions]
low, high = np.transpose([style.interval(median.law(pay[labels == region])) for region in regions])
places = np.arange(len(regions))

figure, ax = plt.subplots(figsize=(5.6, 4.4))
ax.hlines(places, low, high, color=style.SKY, linewidth=8, alpha=0.6, label="90 % of releases")
ax.plot(exact, places, "|", linestyle="", color="black", markersize=12, label="exact median (private)")
ax.plot(medians.array, places, "D", linestyle="", color=style.VERMILION, label="released median")
ax.invert_yaxis()
ax.set_yticks(places, [f"{region}, n = {size:,}" for region, size in zip(regions, sizes, strict=True)])
ax.set(xlabel="pay per year")
style.on_axis(ax.xaxis)
style.heading(ax, "Median pay by region", style.guarantee(median.privacy) + ", all regions together")
style.legend(figure, ax)
plt.show()

# %%
# The ledger is public: it has the parameters of the releases, not the data.

ledger

# %%
# The same budget as a picture.

spent = 0.0
figure, ax = plt.subplots(figsize=(5.6, 1.9))
names = {"medians by region": (style.BLUE, ""), "means by region": (style.ORANGE, "///")}
for charge, (name, (color, hatch)) in zip(ledger.charges, names.items(), strict=True):
    cost = float(charge.profile.privacy.epsilon) * charge.times
    ax.barh(0, cost, left=spent, color=color, hatch=hatch, edgecolor="white", label=name)
    spent += cost
ax.barh(0, 1 - spent, left=spent, color="white", edgecolor=style.GREY, label="left")
ax.set(xlabel="epsilon", yticks=[], xlim=(0, 1))
style.heading(ax, "The budget of the ledger", style.guarantee(ledger.privacy))
style.legend(figure, ax, ncols=3)
plt.show()
