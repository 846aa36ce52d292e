"""Calls of all regressions on nasty records, for tests of the types of outcomes."""

import numpy as np

import dpfast as dpf
from dpfast import local


def pairs(x):
    """Rows of three numbers as the records of a regression."""
    if isinstance(x, list):
        return [row[:2] for row in x], [row[2] for row in x]
    return x[:, :2], x[:, 2]


def shown(fit):
    """The numbers of a fit and its intervals, in one array."""
    return np.concatenate(
        [fit.covariance.ravel(), fit.interval().ravel(), fit.intercept_interval().ravel(), fit.predict([[3, 4]])]
    )


def lines(x):
    """Rows of two numbers as the records of a regression on one column."""
    if isinstance(x, list):
        return [row[0] for row in x], [row[1] for row in x]
    return x[:, 0], x[:, 1]


# By name: functions of the records, the source of randomness and epsilon.
REGRESSIONS = {
    "local.glm": lambda x, source, epsilon: local.glm(*pairs(x), epsilon=epsilon, rng=source),
    "local.glm, linear": lambda x, source, epsilon: local.glm(
        *pairs(x), epsilon=epsilon, model="linear", norm="linf", bound=3.0, intercept=True, rng=source
    ),
    "theil_sen": lambda x, source, epsilon: dpf.theil_sen(*lines(x), epsilon=epsilon, rng=source),
    "theil_sen, bounds": lambda x, source, epsilon: dpf.theil_sen(
        *lines(x), slope_bounds=(-3.0, 3.0), intercept_bounds=(0.0, 99.0), epsilon=epsilon, matchings=1, rng=source
    ),
    "mle, linear": lambda x, source, epsilon: dpf.mle(
        pairs(x), "linear", bounds={"intercept": (-9.0, 9.0), "x1": (-9.0, 9.0)}, epsilon=epsilon, blocks=2, rng=source
    ),
    "mle, logistic": lambda x, source, epsilon: dpf.mle(
        pairs(x), "logistic", bounds={"x0": (-9.0, 9.0)}, epsilon=epsilon, blocks=2, rng=source
    ),
    "mle, Poisson": lambda x, source, epsilon: dpf.mle(
        pairs(x), "poisson-regression", bounds={"x0": (-9.0, 9.0)}, epsilon=epsilon, blocks=2, rng=source
    ),
    "linear_regression": lambda x, source, epsilon: shown(
        dpf.linear_regression(*pairs(x), radius=3.0, label_bound=99.0, epsilon=epsilon, center=1e6, rng=source)
    ),
    "linear_regression, Gaussian": lambda x, source, epsilon: shown(
        dpf.linear_regression(
            *pairs(x), radius=1e9, label_bound=1e-9, epsilon=epsilon, delta=1e-9, intercept=False, rng=source
        )
    ),
    "linear_regression, bounds": lambda x, source, epsilon: shown(
        dpf.linear_regression(
            *pairs(x), bounds=[(-9.0, 9.0), (-9.0, 2.0**100)], label_bound=99.0, epsilon=epsilon, rng=source
        )
    ),
    "linear_regression, residuals": lambda x, source, epsilon: shown(
        dpf.linear_regression(
            *pairs(x), radius=9.0, label_bound=99.0, epsilon=epsilon, method="residuals", center=1e6, rng=source
        )
    ),
    "linear_regression, blocks": lambda x, source, epsilon: dpf.linear_regression(
        *pairs(x), bounds=(-9.0, 9.0), epsilon=epsilon, rng=source
    ).predict([[3, 4]]),
    "glm, logistic": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), radius=3.0, epsilon=epsilon, center=1e6, rng=source)
    ),
    "glm, logistic, Gaussian": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), radius=1e-9, epsilon=epsilon, delta=1e-9, intercept=False, rng=source)
    ),
    "glm, logistic, bounds": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), bounds=[(0.0, 99.0), (-(2.0**100), 99.0)], epsilon=epsilon, delta=1e-6, rng=source)
    ),
    "glm, Poisson": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), model="poisson", radius=9.0, label_bound=99.0, epsilon=epsilon, delta=1e-6, rng=source)
    ),
    "glm, multinomial": lambda x, source, epsilon: shown(
        dpf.glm(
            *pairs(x), model="multinomial", classes=3, radius=3.0, epsilon=epsilon, delta=1e-6, center=1e6, rng=source
        )
    ),
    "glm, multinomial, pure": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), model="multinomial", classes=2, radius=1e-9, epsilon=epsilon, intercept=False, rng=source)
    ),
    "glm, Huber": lambda x, source, epsilon: shown(
        dpf.glm(*pairs(x), model="huber", radius=1e9, label_bound=99.0, k=2.0, epsilon=epsilon, rng=source)
    ),
    "linear_regression, number of records private": lambda x, source, epsilon: shown(
        dpf.linear_regression(
            *pairs(x),
            bounds=(-9.0, 99.0),
            label_bound=99.0,
            epsilon=epsilon,
            neighbors="add-remove",
            missing="drop",
            rng=source,
        )
    ),
    "glm, number of records private": lambda x, source, epsilon: shown(
        dpf.glm(
            *pairs(x),
            radius=3.0,
            epsilon=epsilon,
            delta=1e-6,
            center=1e6,
            neighbors="add-remove",
            missing="drop",
            rng=source,
        )
    ),
}
