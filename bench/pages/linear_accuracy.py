"""Linear regression against the float prototype of AdaSSP, diffprivlib and least squares without privacy; fixed seeds.

``python -m bench.pages.linear_accuracy`` prints the section alone; with diffprivlib's column where it is installed.
"""

import argparse
import math
import sys
import types

import numpy as np

import dpfast as dpf
from bench.pages.tables import paragraph, table
from dpfast._divergences import gaussian_mu_down

# diffprivlib's trees do not import with new releases of scikit-learn, and are not needed here.
_TREES = types.ModuleType("diffprivlib.models.forest")
_TREES.RandomForestClassifier = _TREES.DecisionTreeClassifier = object
try:
    sys.modules.setdefault("diffprivlib.models.forest", _TREES)
    from diffprivlib import models as peer
except ImportError:
    peer = None

DELTA, NOISE, BOUND = 1e-6, 0.5, 5.0
SEED = 20261122


def rows(n, p, design, rng):
    """Rows, and the public bounds on a column and on the norm: columns uniform on [-1, 1], or normal in a ball."""
    if design == "box":
        return rng.uniform(-1, 1, (n, p)), 1.0, math.sqrt(p)
    X = rng.normal(size=(n, p)) * 0.45 / math.sqrt(p)
    return X / np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None], 1.0, 1.0


def labels(X, slopes, rng):
    """Of variance 1 + 1/4 around 0.3, within the public bound."""
    return np.clip(0.3 + X @ slopes + NOISE * rng.normal(size=len(X)), -BOUND, BOUND)


def adassp(X, y, radius, epsilon, rng):
    """AdaSSP (Wang 2018) in floats, with tight Gaussian noise for one replaced record, a third of mu**2 for each part.

    The intercept is a column radius / sqrt(2 p), as public as the radius.
    """
    n, p = X.shape
    constant = radius / math.sqrt(2 * p)
    A, bound = np.column_stack([X, np.full(n, constant)]), math.hypot(radius, constant)
    sigma = math.sqrt(3) / gaussian_mu_down(epsilon, DELTA)
    d, rho, quantile = p + 1, 0.05, math.sqrt(2 * math.log(6 / DELTA))
    gram = A.T @ A
    noise = np.triu(rng.normal(size=(d, d)))
    least = np.linalg.eigvalsh(gram)[0] + sigma * bound**2 * (rng.normal() - quantile)
    level = math.sqrt(2) * sigma * bound**2
    ridge = max(0.0, level * math.sqrt(d * math.log(2 * d**2 / rho)) - max(least, 0.0))
    noisy = gram + level * (noise + np.triu(noise, 1).T)
    products = A.T @ y + 2 * sigma * bound * BOUND * rng.normal(size=d)
    found = np.linalg.solve(noisy + ridge * np.eye(d), products)
    return found[:p], found[p] * constant


def diffprivlib(X, y, limit, epsilon, seed):
    """Its functional mechanism, pure, with correct bounds."""
    p = X.shape[1]
    bounds = {"bounds_X": (-limit * np.ones(p), limit * np.ones(p)), "bounds_y": (-BOUND, BOUND)}
    model = peer.LinearRegression(epsilon=epsilon, random_state=seed, **bounds).fit(X, y)
    return model.coef_, model.intercept_


def excesses(n, p, epsilon, design, runs):
    """For each method, the mean over `runs` of the RMSE for new records minus that of least squares, and its error."""
    rng, found = np.random.default_rng(SEED), {}
    for _ in range(runs):
        X, limit, radius = rows(n, p, design, rng)
        slopes = rng.normal(size=p)
        slopes /= math.sqrt(np.mean((X @ slopes) ** 2))
        y = labels(X, slopes, rng)
        fresh, *_ = rows(20_000, p, design, rng)
        target = labels(fresh, slopes, rng)
        exact = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0]
        public = {"radius": radius, "label_bound": BOUND, "epsilon": epsilon, "rng": rng}
        pure, relaxed = (dpf.linear_regression(X, y, delta=delta, **public) for delta in (0.0, DELTA))
        fits = {
            "dpfast": (pure.coefficients, pure.intercept),
            "dpfast, delta": (relaxed.coefficients, relaxed.intercept),
            "AdaSSP, delta": adassp(X, y, radius, epsilon, rng),
        }
        if peer is not None:
            fits["diffprivlib"] = diffprivlib(X, y, limit, epsilon, int(rng.integers(2**31)))
        errors = {name: _rmse(target - fresh @ b - a) for name, (b, a) in fits.items()}
        least = _rmse(target - fresh @ exact[:p] - exact[p])
        for name, error in errors.items():
            found.setdefault(name, []).append(error - least)
    return {name: (np.mean(x), np.std(x) / math.sqrt(runs)) for name, x in found.items()}


def _rmse(residuals):
    return math.sqrt(np.mean(residuals**2))


def section(quick: bool) -> str:
    """Excess RMSE by n, the number of columns and epsilon."""
    lines = []
    for design in ("box", "ball"):
        for n in (1000,) if quick else (10_000, 30_000):
            for p in (3,) if quick else (3, 8, 30):
                for epsilon in (1.0,) if quick else (0.5, 1.0, 2.0):
                    found = excesses(n, p, epsilon, design, 3 if quick else 20)
                    lines.append([design, n, p, f"{epsilon:g}", *(f"{mean:.4f}" for mean, _ in found.values())])
    text = f"""Root mean squared error of predictions for new records, minus that of least squares without privacy: mean
        of 20 runs. Labels have the variance 1.25, residuals 0.25. Public: columns in [-1, 1] (box) or rows in the unit
        ball, labels within {BOUND:g} of 0. delta = {DELTA:g} where stated, else 0."""
    return "\n".join(["## Linear regression", "", paragraph(text), table(["rows", "n", "p", "epsilon", *found], lines)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.pages.linear_accuracy")
    parser.add_argument("--quick", action="store_true")
    print(section(parser.parse_args().quick))
