"""Robust means in d dimensions: sample sizes and the calculator, adversaries, Gaussian means; fixed seeds."""

import math

import numpy as np
from numpy.random import default_rng

import dpfast as dpf
from bench.pages.tables import paragraph, table
from dpfast.theory import gaussian_mean_sample_size

EPSILON = 1.0
BOUND = 1000.0
SEED = 20231120


def section(quick: bool) -> str:
    """Required numbers of records, Gaussian means without useful bounds, and independent columns with a delta."""
    return "\n".join(["## Robust means in d dimensions", "", _records(quick), _gaussian_mean(quick), _columns(quick)])


def _records(quick: bool) -> str:
    """The least n, of a grid of ratio 1.1, from which on 95 % of the releases are within alpha in every coordinate."""
    rows = []
    for d in (1, 5) if quick else (1, 5, 20, 100):
        for alpha, contamination in ((0.2, 0.0), (0.4, 0.1)):
            public = {"width": 2 * BOUND, "step": dpf.Grid(-BOUND, BOUND).step, "epsilon": EPSILON}
            promised = gaussian_mean_sample_size(alpha, dimension=d, contamination=contamination, **public)
            runs = 20 if quick else 60
            error_there = _error(promised, d, contamination, runs)
            low, high = 0, math.ceil(math.log(promised, 1.1))
            while high - low > 1:
                middle = (low + high) // 2
                if _error(round(1.1**middle), d, contamination, runs) <= alpha:
                    high = middle
                else:
                    low = middle
            least = round(1.1**high)
            row = f"{contamination:.0%}", alpha, promised, f"{error_there:.3f}", least, f"{promised / least:.1f}"
            rows.append((d, *row))
    words = paragraph(
        f"""Number of records of N(mu, I) for an error of at most alpha in every coordinate with probability 0.95,
        epsilon = {EPSILON:g}, bounds +-{BOUND:g}: the calculator `dpf.theory.gaussian_mean_sample_size`, whose bound
        holds for every adversary, and the least sufficient n in simulation, where all adversarial rows lie at one
        corner of the bounds."""
    )
    headings = ("d", "adversarial", "alpha", "calculator", "error there", "simulated", "ratio")
    return words + "\n" + table(headings, rows)


def _error(n: int, d: int, contamination: float, runs: int) -> float:
    """The 95 % quantile of the greatest error of a coordinate."""
    mechanism = dpf.NestedBoxes(grid=dpf.Grid(-BOUND, BOUND), epsilon=EPSILON)
    rng = default_rng([SEED, n, d])
    errors = []
    for _ in range(runs):
        x = rng.normal(size=(n, d))
        x[: int(contamination * n)] = BOUND
        errors.append(np.abs(mechanism(x, rng=rng)).max())
    return float(np.quantile(errors, 0.95))


def _gaussian_mean(quick: bool) -> str:
    """Means anywhere within 1e6, 5000 records in 10 dimensions."""
    n, d, bound = 5000, 10, 1e6
    rng = default_rng(SEED)
    errors: dict[str, list[float]] = {}
    for _ in range(5 if quick else 50):
        center = rng.uniform(-0.9 * bound, 0.9 * bound, d)
        x = center + rng.normal(size=(n, d))
        y = x.copy()
        y[: n // 10] = bound
        boxes = dpf.robust_mean(x, bounds=(-bound, bound), epsilon=EPSILON, rng=rng)
        tested = dpf.robust_mean(x, epsilon=EPSILON, delta=1e-6, step=2.0**-10, width=1.0, rng=rng)
        laplace = [dpf.mean(column, bounds=(-bound, bound), epsilon=EPSILON / d, rng=rng) for column in x.T]
        attacked = dpf.robust_mean(y, bounds=(-bound, bound), epsilon=EPSILON, rng=rng)
        for name, release in {
            "coordinate medians, not private": np.median(x, axis=0),
            "robust_mean": boxes,
            "robust_mean without bounds, delta = 1e-6": tested,
            "clipped mean, Laplace noise": laplace,
            "coordinate medians, 10 % adversarial": np.median(y, axis=0),
            "robust_mean, 10 % adversarial": attacked,
            "mean, not private, 10 % adversarial": y.mean(axis=0),
        }.items():
            lost = release is None
            errors.setdefault(name, []).append(math.inf if lost else float(np.abs(release - center).max()))
    base = np.median(errors["coordinate medians, not private"])
    rows = [(name, f"{np.median(e):.3g}", f"{np.median(e) / base:.3g}") for name, e in errors.items()]
    words = paragraph(
        f"""Gaussian mean, d = {d}, bounds +-{bound:g}, n = {n}, epsilon = {EPSILON:g}: greatest error of a coordinate,
        median over data sets."""
    )
    return words + "\n" + table(("estimate", "median error", "ratio to the first"), rows)


def _columns(quick: bool) -> str:
    """The noise of both mechanisms within bounds, where there is a delta."""
    n, delta, releases = 20_000, 1e-6, 100 if quick else 1000
    grid, rows = dpf.Grid(-BOUND, BOUND), []
    for d in (5, 20) if quick else (5, 20, 100):
        x = default_rng([SEED, d]).normal(size=(n, d))
        columns = dpf.robust.IndependentColumns(grid=grid, dimension=d, epsilon=EPSILON, delta=delta)
        noise = []
        for mechanism in (dpf.NestedBoxes(grid=grid, epsilon=EPSILON), columns):
            away = mechanism.release(x, size=releases, rng=default_rng(SEED)) - np.median(x, axis=0)
            noise.append(np.array([np.abs(away).mean(), np.sqrt(np.mean(away**2)), np.abs(away).max(axis=1).mean()]))
        gains = (f"{gain:.2f}" for gain in noise[0] / noise[1])
        row = f"{columns.share:.4f}", *(f"{mean:.5f}" for mean, _, _ in noise), *gains
        rows.append((d, *row, "columns" if columns.favoured else "boxes"))
    words = paragraph(
        f"""N(mu, I), n = {n}, epsilon = {EPSILON:g}, delta = {delta:g}: the noise of each coordinate (the release minus
        the median) of nested boxes, which do not use delta, and of independent columns, each with the share of epsilon
        that the exact composition of d releases allows: mean absolute values, the gains of columns in mean absolute
        value, root mean square and greatest coordinate, and the choice of `dpf.robust_mean`."""
    )
    gains = ("gain, mean", "gain, root mean square", "gain, greatest")
    return "\n" + words + "\n" + table(("d", "share", "boxes", "columns", *gains, "choice"), rows)
