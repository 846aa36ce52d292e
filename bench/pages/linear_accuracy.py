"""Linear regression against the float prototype of AdaSSP, diffprivlib and least squares without privacy; fixed seeds.

``python -m bench.pages.linear_accuracy`` prints the sections; with diffprivlib's column where it is installed.
"""

import argparse
import math
import sys
import types

import numpy as np

import dpfast as dpf
from bench.pages.tables import digits, paragraph, size, table
from dpfast.core.divergences import gaussian_mu_down

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


ERRORS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 2 degrees of freedom": lambda rng, n: rng.standard_t(2, n),
    "normal, 5 % of 20 times the size": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.05, 20, 1),
}
WITHIN = 8.0  # of 0: most labels with normal errors
HUBER = 1.5  # the bound of residuals
COLUMNS = 5


def _released(fit):
    return fit.coefficients, fit.intercept


def robust_errors(kind, n, epsilon, label_bound, runs):
    """For each method the root mean squared error of the linear predictor for new rows."""
    rng, found = np.random.default_rng(SEED), {}
    for _ in range(runs):
        X, slopes = rng.normal(size=(n, COLUMNS)), rng.normal(size=COLUMNS)
        slopes *= 2 / np.linalg.norm(slopes)
        y = 0.5 + X @ slopes + ERRORS[kind](rng, n)
        public = {"radius": math.sqrt(COLUMNS) + 2, "label_bound": label_bound, "epsilon": epsilon, "rng": rng}
        huber = {"model": "huber", "k": HUBER, **public}
        fits = {
            "`linear_regression`": _released(dpf.linear_regression(X, y, **public)),
            "`linear_regression`, delta": _released(dpf.linear_regression(X, y, delta=DELTA, **public)),
            "sums": _released(dpf.linear_regression(X, y, method="sums", **public)),
            "`glm`, Huber": _released(dpf.glm(X, y, **huber)),
            "`glm`, Huber, delta": _released(dpf.glm(X, y, delta=DELTA, **huber)),
        }
        exact = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0]
        fits["least squares, no privacy"] = exact[:-1], exact[-1]
        for name, (b, a) in fits.items():
            found.setdefault(name, []).append(np.sum((b - slopes) ** 2) + (a - 0.5) ** 2)
    return {name: math.sqrt(np.mean(squares)) for name, squares in found.items()}


def outliers(quick: bool) -> str:
    """One table: errors of linear regressions by the law of the errors, n, and how loose the bound of labels is."""
    lines = []
    for kind in ERRORS:
        for n in (1000,) if quick else (1000, 10_000):
            for loose in (1,) if quick else (1, 3, 30):
                found = robust_errors(kind, n, 1.0, loose * WITHIN, 2 if quick else 20)
                lines.append([kind, size(n), f"{loose * WITHIN:g}", *map(digits, found.values())])
    text = f"""{COLUMNS} columns, standard normal, slopes of length 2: the root mean squared error of the linear
        predictor at a new row, over 20 samples; epsilon = 1, delta = {DELTA:g} where stated, else 0. "Bound" is the
        public bound on labels of `linear_regression`, and of the mean of the labels in `glm`, where residuals are moved
        into +-{HUBER:g}. `linear_regression`
        takes sums or corrections by the size of the residuals, by public numbers; "sums" are sums alone."""
    head = ["errors", "n", "bound", *found]
    return "\n".join(["## Outliers", "", paragraph(text), table(head, lines)])


COVERAGE = [  # rows, n, p, epsilon, delta, runs
    ("ball", 1000, 1, 1.0, 0.0, 1000),
    ("ball", 1000, 1, 4.0, DELTA, 1000),
    ("box", 1000, 3, 4.0, 0.0, 400),
    ("box", 1000, 3, 2.0, DELTA, 400),
    ("ball", 10_000, 5, 2.0, DELTA, 400),
    ("box", 10_000, 3, 0.3, 0.0, 400),
    ("ball", 10_000, 8, 4.0, 0.0, 300),
    ("ball", 30_000, 10, 1.0, DELTA, 200),
    ("box", 30_000, 5, 0.3, DELTA, 200),
    ("box", 100_000, 1, 0.3, 0.0, 300),
    ("ball", 100_000, 10, 0.3, DELTA, 100),
    ("ball", 100_000, 10, 0.5, 0.0, 100),
]


def coverage(quick: bool) -> str:
    """The share of true coefficients in their intervals, and of intervals that leave the noise out."""
    lines = []
    for design, n, p, epsilon, delta, runs in COVERAGE[:2] if quick else COVERAGE:
        rng, inside, without, constants = np.random.default_rng(SEED), [], [], []
        for _ in range(10 if quick else runs):
            X, _, radius = rows(n, p, design, rng)
            variance = (1 / 3 if design == "box" else 0.45**2 / p) if p > 1 or design == "box" else np.var(X)
            slopes = rng.normal(size=p)
            slopes /= math.sqrt(variance) * np.linalg.norm(slopes)
            public = {"radius": radius, "label_bound": BOUND, "epsilon": epsilon, "delta": delta, "rng": rng}
            fit = dpf.linear_regression(X, labels(X, slopes, rng), **public)
            low, high = fit.interval(0.95).T
            inside.append((low <= slopes) & (slopes <= high))
            without.append(np.abs(fit.coefficients - slopes) <= 1.96 * NOISE / math.sqrt(n * variance))
            constants.append(fit.intercept_interval(0.95)[0] <= 0.3 <= fit.intercept_interval(0.95)[1])
        shares = (f"{np.mean(found):.3f}" for found in (inside, constants, without))
        lines.append([design, n, p, f"{epsilon:g}", f"{delta:g}", *shares])
    text = """Share of the coefficients, and of the intercepts, in their 95 % intervals, over 100 to 1000 runs with
        random slopes; last, of intervals that leave the noise out."""
    head = ["rows", "n", "p", "epsilon", "delta", "coefficients", "intercept", "without noise"]
    return "\n".join(["## Intervals of linear regression", "", paragraph(text), table(head, lines)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.pages.linear_accuracy")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["accuracy", "coverage"])
    options = parser.parse_args()
    for name, made in {"accuracy": section, "coverage": coverage}.items():
        if options.only in (None, name):
            print(made(options.quick), flush=True)
