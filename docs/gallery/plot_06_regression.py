"""Regression with intervals
=========================

``dpf.linear_regression`` releases coefficients with standard errors that include the noise for privacy, and
``dpf.theil_sen`` a line that outliers move little.

**Private**: the records, the fits without privacy, and the points of the scatter plot. **Public**: the bounds, epsilon,
the number of records, and both fits with their intervals. The seed makes the pictures reproducible and the fits not
private.
"""

import gallery_style as style
import numpy as np
from matplotlib import pyplot as plt

import dpfast as dpf

style.use()
rng = np.random.default_rng(6)
n = 10_000
decades, schooling, hours = rng.uniform(0, 4, n), rng.integers(8, 19, n), rng.normal(3.6, 0.5, n).clip(1, 6)
X = np.column_stack([decades, schooling, hours])  # private
truth = np.array([3.0, 2.0, 5.0])
pay = X @ truth - 5 + rng.normal(0, 6, n)  # in thousands, private

# %%
# The bounds of the columns and of pay are public. They are given in data units, so columns need no scaling.

bounds = [(0, 4), (8, 18), (1, 6)]
fit = dpf.linear_regression(X, pay, bounds=bounds, label_center=45.0, label_bound=45.0, epsilon=1.0, rng=rng)
print(fit)

# %%
# ``plot`` draws the coefficients with 95 % intervals for those of the population, which include the error of sampling
# and the noise. The intervals without privacy, below them, show the price of privacy.

design = np.column_stack([X, np.ones(n)])
plain, squares, *_ = np.linalg.lstsq(design, pay, rcond=None)
plain_errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares / (n - 4))

figure, ax = plt.subplots(figsize=(5.6, 3.6))
fit.plot(ax)
places = np.arange(3)
ax.errorbar(
    plain[:3],
    places + 0.25,
    xerr=1.96 * plain_errors[:3],
    fmt="s",
    color=style.VERMILION,
    capsize=4,
    label="without privacy (private)",
)
ax.plot(truth, places, "|", color=style.GREEN, markersize=20, markeredgewidth=2, label="population")
ax.set_yticks(places, ["experience,\nin decades", "schooling,\nin years", "weekly hours,\nin tens"])
ax.set(xlabel="pay per year in thousands, per unit of the column", ylim=(2.6, -0.5))
style.legend(figure, ax)
plt.show()

# %%
# A line through records with outliers. Theil-Sen needs no bounds. The band is the 95 % interval of its slope, and the
# line of least squares without privacy shows the effect of the outliers.

x = rng.uniform(0, 40, 2_000)
y = 20 + 0.8 * x + rng.normal(0, 4, x.size)
y[x > 38] = 5.0  # one in twenty has a wrong entry
robust = dpf.theil_sen(x, y, epsilon=1.0, standard_error=True, rng=rng)
slope, intercept = np.polyfit(x, y, 1)

ends = np.array([0.0, 40.0])
line = robust.predict(ends[:, None])
steps = np.array([-20.0, 0.0, 20.0])
tilted = robust.predict([[20.0]]) + np.outer(robust.interval(0.95)[0], steps)
figure, ax = plt.subplots(figsize=(5.6, 4.0))
ax.scatter(x, y, s=3, color="#9a9a9a", rasterized=True, label="records (private)")
ax.fill_between(
    20 + steps, tilted.min(axis=0), tilted.max(axis=0), color=style.SKY, alpha=0.6, label="95 % interval of the slope"
)
ax.plot(ends, line, "-", color=style.BLUE, label="Theil-Sen (public)")
ax.plot(ends, intercept + slope * ends, "--", color=style.VERMILION, label="least squares without privacy")
ax.plot(ends, 20 + 0.8 * ends, ":", color="black", label="population without outliers")
ax.set(xlabel="years of experience", ylabel="pay per year in thousands")
style.heading(ax, f"Line through {x.size:,} records", style.guarantee(robust.privacy))
style.legend(figure, ax)
plt.show()
