"""Draws from the exponential mechanism of Theorem 14, in doubles: exact but for rounding, by rejection.

The weight of k points z is exp(-a |p_x - p_z|), p_x and p_z series of means of the cosines over the records and over
z, p_z with fewer terms. With c the leading coefficients of p_x, s those of p_z and rho the norm of the other
coefficients of p_x, |p_x - p_z|^2 = |c - s|^2 + rho^2. Independent points with density proportional to exp(<t,
cosines>) have a density proportional to exp(k <t, s>) together: they are accepted with probability exp(-a sqrt(|v|^2 +
rho^2) + k <t, v> + rho sqrt(a^2 - k^2 |t|^2)), v = c - s, whose exponent is at most 0 for k |t| <= a. The t whose
points have the mean c, or as near as that limit allows, makes most of them fit.
"""

import itertools
import math

import numpy as np
from scipy.optimize import minimize

from bench.pages.tables import check, paragraph, slope, table

GAMMA = 1.5
GRID = 4096
_BATCH = 2**20  # points that are proposed at once, at most


def _cosines(terms, u):
    return np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(1, terms + 1), u))


def tilt(c, waves, most):
    """The t of norm at most `most` for which points of density exp(<t, waves>) have the mean c, if there is one."""

    def log_moment(t):
        exponents = t @ waves
        top = exponents.max()
        weights = np.exp(exponents - top)
        return top + math.log(weights.mean()) - t @ c, waves @ weights / weights.sum() - c

    t = minimize(log_moment, np.zeros(len(c)), jac=True, method="BFGS").x
    return t * min(1.0, most / max(math.hypot(*t), 1e-300))


def draw(c, rest, k, a, waves, rng):
    """Indices of the k points of one release, and how many sets of k were proposed."""
    t = tilt(c, waves, a / k)
    weights = np.exp(t @ waves - (t @ waves).max())
    cumulative = np.cumsum(weights) / weights.sum()
    highest = -rest * math.sqrt(max(a**2 - k**2 * (t @ t), 0.0))
    proposed, sets = 0, 4
    while True:
        z = np.searchsorted(cumulative, rng.random((sets, k))).clip(max=waves.shape[1] - 1)
        v = c - np.stack([wave[z].mean(axis=1) for wave in waves], axis=1)
        exponents = -a * np.sqrt((v**2).sum(axis=1) + rest**2) + k * v @ t - highest
        accepted = np.flatnonzero(rng.random(len(z)) < np.exp(exponents))
        if accepted.size:
            return z[accepted[0]], proposed + accepted[0] + 1
        proposed, sets = proposed + sets, min(2 * sets, max(_BATCH // k, 1))


def _check_the_law():
    """Draws from all sets of 3 of 4 points have their probabilities."""
    waves, rng, k, a = _cosines(2, (np.arange(4) + 0.5) / 4), np.random.default_rng(3), 3, 9.0
    c, rest, runs = np.array([0.3, -0.2]), 0.1, 5_000
    sets = np.array(list(itertools.product(range(4), repeat=k)))
    distances = np.sqrt(((c - waves[:, sets].mean(axis=2).T) ** 2).sum(axis=1) + rest**2)
    law = np.exp(-a * distances)
    places = [draw(c, rest, k, a, waves, rng)[0] @ [16, 4, 1] for _ in range(runs)]
    found = np.bincount(places, minlength=64) / runs
    law /= law.sum()
    check("chi square of draws, theorem 14", runs * ((found - law) ** 2 / law).sum() / 63, 1.0, 0.6)


def _release(population, n, rng):
    """The squared error of p_z and of p_x, and the number of proposals, for epsilon = 1."""
    k, terms = round(math.sqrt(n)), round(n ** (1 / (2 * GAMMA + 1)))
    fewer = round(k ** (1 / (2 * GAMMA + 1)))
    u = (np.arange(GRID) + 0.5) / GRID
    records = np.bincount((population.sample(n, rng) * GRID).astype(int).clip(max=GRID - 1), minlength=GRID)
    means = _cosines(terms, u) @ records / n
    waves = _cosines(fewer, u)
    z, proposals = draw(means[:fewer], math.hypot(*means[fewer:]), k, n / (4 * terms), waves, rng)
    s, wanted = waves[:, z].mean(axis=1), population.coefficients
    errors = [((found - wanted[: len(found)]) ** 2).sum() + (wanted[len(found) :] ** 2).sum() for found in (s, means)]
    return *errors, proposals


def rates(population, quick):
    """The slope of the error against n, that of the theorem, and the table of errors and proposals."""
    _check_the_law()
    sizes = [1000, 3000, 10_000] if quick else [1000, 3000, 10_000, 30_000, 100_000]
    runs, rng, rows, errors = 3 if quick else 20, np.random.default_rng(4), [], []
    for n in sizes:
        drawn, exact, proposals = np.mean([_release(population, n, rng) for _ in range(runs)], axis=0)
        errors.append(drawn)
        rows.append([f"{n:,}", str(round(math.sqrt(n))), f"{drawn:.2e}", f"{exact:.2e}", f"{proposals:,.0f}"])
    found, expected = slope(sizes, errors), -GAMMA / (2 * GAMMA + 1)
    check("slope above that of theorem 14", max(found - expected, 0.0), 0.0, 0.1)
    about = f"""Mean integrated squared error of the k points of a release at epsilon = 1, {runs} runs each, for
        coefficients that decrease as j^(-{GAMMA + 0.5:g}); that of the series of the records, without privacy; and the
        sets of k independent points that were proposed until one was accepted. The error falls faster than the
        theorem's bound: at these n the bias of k^(1/{2 * GAMMA + 1:g}) terms, to which its rate belongs, is the smaller
        part. The weights are those of equation 17,
        whose loss stands there. n^(1/{2 * GAMMA + 1:g}) terms of the records, k^(1/{2 * GAMMA + 1:g}) of the points."""
    return found, expected, paragraph(about) + "\n" + table(["n", "k", "points", "records", "proposals"], rows)
