"""Missing values
==============

A missing record counts as a public value that ``missing=`` chooses, without a warning, which would reveal that it is
missing. This example shows the effect of each choice on a mean and on a median.

**Private**: the records, which of them are missing, and the exact statistics. **Public**: ``missing=``, the bounds,
epsilon, the releases, and the number of records, except with ``missing="drop"``, which keeps it private. The bands come
from 100 seeded releases; a seeded release is not private.
"""

from functools import partial

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(9)
pay = rng.normal(45_000, 12_000, 2_000).clip(0, 150_000)  # private
shares = np.linspace(0, 0.5, 6)
hidden = rng.random(pay.size)  # the order in which records go missing, at random
columns = [np.where(hidden < share, np.nan, pay) for share in shares]

# %%
# Four policies, with the same epsilon. ``"drop"`` leaves missing records out, and its guarantee is for one record added
# or removed.

policies = {
    'missing="lower", the default': {},
    "missing=30_000": {"missing": 30_000},
    'missing="half"': {"missing": "half"},
    'missing="drop"': {"missing": "drop", "neighbors": "add-remove"},
}
functions = {
    "mean": partial(dpf.mean, bounds=(0, 150_000), epsilon=1.0, rng=rng),
    "median": partial(dpf.median, bounds=(0, 150_000), epsilon=1.0, rng=rng),
}
exact = {"mean": np.nanmean, "median": np.nanmedian}

# %%
# The dashed line is the exact statistic of the records that are present. For the mean only ``"drop"`` follows it; for
# the median ``"half"`` also does, because as many missing records count below the median as above.

looks = ("o", style.VERMILION), ("s", style.PURPLE), ("D", style.GREEN), ("^", style.BLUE)
figure, axes = plt.subplots(2, 1, figsize=(5.6, 6.8), sharex=True)
for ax, (name, function) in zip(axes, functions.items(), strict=True):
    for (label, policy), (marker, color) in zip(policies.items(), looks, strict=True):
        releases = np.array([[function(column, **policy) for _ in range(100)] for column in columns])
        ax.fill_between(100 * shares, *style.spread(releases.T), color=color, alpha=0.3)
        ax.plot(100 * shares, np.median(releases, axis=1), marker=marker, color=color, label=label)
    ax.plot(100 * shares, [exact[name](column) for column in columns], "--", color="black", label="exact (private)")
    ax.set(xlabel="percent missing", ylabel="pay per year")
    style.on_axis(ax.yaxis)
    style.heading(ax, f"The {name} of {pay.size:,} records", "epsilon = 1, one record replaced; drop: added or removed")
style.legend(figure, axes[0])
plt.show()
