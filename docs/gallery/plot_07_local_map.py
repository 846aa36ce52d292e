"""A map from local reports
========================

Each person randomises their own record, the region where they live, on their own device and sends a report of a few
bits. The server, which never has the records, estimates the share of each region. The map is made up, with one tile for
each region.

**Private**: the true regions, and the shares computed from them. **Public**: the reports and all estimates from them;
the guarantee also holds against the server. The seed makes the map reproducible and the reports not private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

from dpfast import local

style.use()
rng = np.random.default_rng(7)
tiles = """
. . Ash . . Elk
. Bay Cob Dun Fen .
Gil Hay Ivy Jet Kit Lea
. Mor Nab Oak Pit .
. . Rye Sal . ."""
rows = [row.split() for row in tiles.split("\n")[1:]]
places = [(r, c) for r, row in enumerate(rows) for c, name in enumerate(row) if name != "."]
names = [rows[r][c] for r, c in places]
distance = np.array([np.hypot(r - 2, c - 2.4) for r, c in places])
shares = np.exp(-distance) / np.exp(-distance).sum()

# %%
# Client and server build the same randomiser. In practice ``randomize`` runs on each person's device.

n = 20_000
survey = local.Categorical(len(names), epsilon=1.0)
homes = rng.choice(len(names), n, p=shares)  # private
reports = survey.randomize(homes, rng=rng)
estimates = survey.estimate(survey.aggregate(reports), project="l2")
exact = np.bincount(homes, minlength=len(names)) / n

# %%
# The same tiles with the exact and with the estimated shares, in percent. ``survey.error`` is the range of the noise.

figure, axes = plt.subplots(2, 1, figsize=(4.4, 7.0), sharex=True, sharey=True)
noise = 100 * survey.error(n, confidence=0.95)
guarantee = f"epsilon = {survey.epsilon:g}, local, n = {n:,}; 95 %: +-{noise:.1f}"
maps = ("Exact shares (private)", "without privacy", exact), ("Estimated shares (public)", guarantee, estimates)
for ax, (title, note, values) in zip(axes, maps, strict=True):
    grid = np.full((len(rows), len(rows[0])), np.nan)
    grid[tuple(np.transpose(places))] = 100 * values
    image = ax.imshow(grid, vmin=0, vmax=100 * max(exact.max(), estimates.max()))
    for (r, c), name, value in zip(places, names, values, strict=True):
        ink = "black" if value > 0.45 * max(exact.max(), estimates.max()) else "white"
        ax.text(c, r, f"{name}\n{100 * value:.1f}", ha="center", va="center", color=ink, fontsize=8)
    style.heading(ax, title, note)
    ax.grid(visible=False)
    ax.set_axis_off()
figure.colorbar(image, ax=axes, orientation="horizontal", label="percent of the people", aspect=40)
plt.show()

# %%
# The error of the unbiased estimates follows from public numbers. It gives each region its interval.

unbiased = survey.estimate(survey.aggregate(reports))
order = np.argsort(-exact)
figure, ax = plt.subplots(figsize=(5.6, 3.4))
steps = np.arange(len(names))
ax.bar(steps, 100 * exact[order], color="#d0d0d0", label="exact (private)")
ax.errorbar(steps, 100 * unbiased[order], noise, fmt="D", color=style.BLUE, capsize=2, label="unbiased, 95 % interval")
ax.plot(steps, 100 * estimates[order], "x", color=style.VERMILION, markersize=6, label="projected: sum 100 %")
ax.set_xticks(steps, np.array(names)[order], rotation=90)
ax.set(xlabel="region", ylabel="percent of the people")
style.heading(ax, "Shares of the regions", f"epsilon = {survey.epsilon:g}, {style.NEIGHBORS['local']}")
style.legend(figure, ax)
plt.show()
