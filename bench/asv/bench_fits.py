"""``dpfast.families`` that need whole blocks: all blocks in one call, against one fit per block."""

import importlib.util
import warnings

import numpy as np
import scipy.optimize
import scipy.stats

from bench.asv.timed import Timed
from dpfast import families
from dpfast.families import Ranges


def labels(n, d):
    """Regressors, and labels with slopes between -1 and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, rng.random(n) < 1 / (1 + np.exp(-X @ np.linspace(-1, 1, d)))


def logistic(data, blocks, workers=1):
    """Fit all blocks with the kernel."""
    family = families.LogisticRegression(data[0].shape[1], intercept=False)
    box = Ranges(family.names, (-3.0,) * len(family.names), (3.0,) * len(family.names))
    return family.estimates(data, blocks, box, corrected=True, workers=workers)


def scikit(data, blocks, solver="lbfgs"):
    """One scikit-learn fit per block, without bias correction."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf, fit_intercept=False, solver=solver)
        return [model.fit(X, y).coef_[0] for X, y in _parts(data, blocks)]


def scipy_logistic(data, blocks):
    """Minimise the negative log-likelihood of each block by BFGS with the gradient."""

    def loss(beta, X, sign):
        margin = sign * (X @ beta)
        return np.logaddexp(0, -margin).sum(), -X.T @ (sign / (1 + np.exp(margin)))

    start = np.zeros(data[0].shape[1])
    return [
        scipy.optimize.minimize(loss, start, (X, np.where(y, 1.0, -1.0)), jac=True).x for X, y in _parts(data, blocks)
    ]


def _parts(data, blocks):
    return zip(*(np.array_split(part, blocks) for part in data), strict=True)


def has_scikit():
    return importlib.util.find_spec("sklearn") is not None


def _weibull(x):
    return scipy.stats.weibull_min.fit(x, floc=0)


class LogisticBlocks(Timed):
    """200 blocks of 5,000 records of 2 to 50 regressors, with bias correction; the loops do not correct."""

    params = (["dpfast", "dpfast, 2 workers", "scipy", "sklearn lbfgs", "sklearn newton-cholesky"], [2, 10, 50])
    param_names = ("line", "d")
    timeout = 300

    def setup(self, line, d):
        if line.startswith("sklearn") and not has_scikit():
            raise NotImplementedError
        data = labels(1_000_000 if line.startswith("dpfast") or d <= 10 else 50_000, d)
        blocks = len(data[0]) // 5000
        self.run = {
            "dpfast": lambda: logistic(data, blocks),
            "dpfast, 2 workers": lambda: logistic(data, blocks, 2),
            "scipy": lambda: scipy_logistic(data, blocks),
            "sklearn lbfgs": lambda: scikit(data, blocks),
            "sklearn newton-cholesky": lambda: scikit(data, blocks, "newton-cholesky"),
        }[line]


class ScalarBlocks(Timed):
    """20,000 blocks of 50 records; the baseline is SciPy's fit of ten of them."""

    params = (["dpfast", "scipy, 10 blocks"], ["weibull", "laplace", "negative binomial"])
    param_names = ("line", "family")

    def setup(self, line, family):
        rng, n = np.random.default_rng(0), 1_000_000
        ours, name, theirs, x = {
            "weibull": (
                families.Weibull(),
                "shape",
                _weibull,
                rng.weibull(1.5, n),
            ),
            "laplace": (families.Laplace(), "scale", scipy.stats.laplace.fit, rng.laplace(size=n)),
            "negative binomial": (
                families.NegativeBinomial(),
                "r",
                lambda v: scipy.stats.fit(scipy.stats.nbinom, v, {"n": (0.1, 20), "p": (0.01, 1)}),
                rng.negative_binomial(2, 0.2, n),
            ),
        }[family]
        box = Ranges((name,), (0.1,), (10.0,))
        parts = np.array_split(x, n // 50)[:10]
        self.run = {
            "dpfast": lambda: ours.estimates((x,), n // 50, box, corrected=True, workers=1),
            "scipy, 10 blocks": lambda: [theirs(part) for part in parts],
        }[line]
