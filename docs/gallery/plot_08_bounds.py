"""No bounds against bounds
========================

You choose bounds without looking at the data, so they are often far too wide. This example measures the noise of a mean
and of a median when the bounds are up to a million times too wide, and without bounds.

**Private**: the records, and the noise of each release, which is its distance from the exact statistic. **Public**: the
bounds, epsilon, the number of records, and the releases. The runs are seeded, so that the picture is reproducible; a
seeded release is not private.
"""

from functools import partial

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(8)
n, runs = 5_000, 60
samples = rng.lognormal(10.5, 0.6, (runs, n))  # private
widths = 10.0 ** np.arange(7)

# %%
# Each run has 5,000 records of its own. Pay is below 300,000 with a probability of more than 99.9 %, so that this upper
# bound is a good one; the others are 10 to 1,000,000 times as large.


def noise(statistic, exact, widths):
    """Return the noise of every run, one row for each width."""
    return np.array(
        [
            [abs(statistic(x, bounds=(0, 300_000 * width), epsilon=1.0, rng=rng) - exact(x)) for x in samples]
            for width in widths
        ]
    )


found = {
    "mean": noise(partial(dpf.mean, method="global-sensitivity"), np.mean, widths),
    'mean, method="private-bounds"': noise(partial(dpf.mean, method="private-bounds"), np.mean, widths),
    "median": noise(dpf.median, np.median, widths),
}
free = np.abs([dpf.median(x, epsilon=1.0, rng=rng) - np.median(x) for x in samples])

# %%
# Lines are the median of the noise, bands hold 90 % of it, and the dotted line is the median without bounds. The noise
# of a mean grows with its bounds, until most of its releases are at the lower bound, which is 43,000 away.
# ``method="private-bounds"`` spends part of epsilon on finding narrower ones. The noise of a median does not depend on
# the bounds, so you can leave them out; its rise at the right end is due to the default step of the grid, which is 128
# there.

figure, ax = plt.subplots(figsize=(5.6, 4.2))
looks = ("o", style.VERMILION), ("s", style.GREEN), ("D", style.BLUE)
for (name, errors), (marker, color) in zip(found.items(), looks, strict=True):
    ax.fill_between(widths, *style.spread(errors.T), color=color, alpha=0.2)
    ax.loglog(widths, np.median(errors, axis=1), marker=marker, color=color, label=name)
ax.axhline(np.median(free), linestyle=":", color="black", label="median, no bounds")
ax.set(xlabel="width of the bounds, relative to good ones", ylabel="noise, in units of pay", ylim=(0.3, None))
style.on_axis(ax.yaxis)
style.log_ticks(ax.xaxis, widths[::2])
style.heading(ax, f"Noise of one release of {n:,} records", style.guarantee(dpf.Privacy(1.0)))
style.legend(figure, ax)
plt.show()
