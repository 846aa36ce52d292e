"""Errors of running totals next to other libraries: ``python -m bench.running`` prints docs/results/running.md.

It needs OpenDP and JAX Privacy (``pip install opendp jax-privacy``): where one is missing, its columns have dashes.
Nothing is drawn: errors are those of linear estimates.
"""

import math

import numpy as np

import dpfast as dpf
from bench.pages import colophon
from bench.pages.tables import digits, paragraph, table

PERIODS = (24, 365, 1000, 10_000)
NOTES = """The Toeplitz factor of JAX Privacy is the square root that dpfast rounds to integers, for up to 4,096 periods
with columns of equal norms; its dense one is optimised for T, with 3 % less error for 24 periods, and needs a matrix of
T x T numbers. It adds noise in floating point. OpenDP's tree is released once, after all periods, with least squares
over all of them: the errors are those of ranges of a histogram, for which dpfast has `workload="ranges"`. Binary trees
have no least squares."""
_MOST_DENSE, _MOST_TREE = 24, 1000  # periods for matrices that are optimised, or applied to each unit of noise


def ours(periods, **budget):
    return dpf.Running(dpf.statistics.Count(), periods=periods, neighbors="add-remove", **budget).error(periods)


def split(periods):
    """An equal part of mu = 1 for the count of each total, each with noise of its own."""
    return math.sqrt(periods)


def binary(periods, pure):
    """A binary tree without least squares: a noisy sum for each digit of 1 of the period."""
    levels = periods.bit_length()
    ones = max(period.bit_count() for period in range(1, periods + 1))
    return math.sqrt(ones * (variance(levels) if pure else levels))


def jax_toeplitz(periods):
    """The optimal Toeplitz factor of JAX Privacy."""
    try:
        from jax_privacy.matrix_factorization import toeplitz
    except ImportError:
        return None
    coefficients = toeplitz.optimal_max_error_strategy_coefs(periods)
    error = toeplitz.per_query_error(strategy_coef=coefficients, skip_checks=True).max()
    return float(np.sqrt(error * toeplitz.sensitivity_squared(coefficients)))


def jax_dense(periods):
    """The dense factor of JAX Privacy, optimised for the greatest error."""
    if periods > _MOST_DENSE:
        return None
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        from jax_privacy.matrix_factorization import dense
    except ImportError:
        return None
    factor = np.asarray(dense.optimize(periods, reduction_fn=jax.numpy.max))
    estimates = np.linalg.solve(factor.T, np.tril(np.ones((periods, periods))).T).T
    return float(np.linalg.norm(estimates, axis=1).max() * np.linalg.norm(factor, axis=0).max())


def opendp(periods):
    """The tree of OpenDP with its least squares, after all periods: the operator is applied to units of noise."""
    if periods > _MOST_TREE:
        return None
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    branching = dp.t.choose_branching_factor(periods)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=periods, branching_factor=branching)
    consistent = dp.t.make_consistent_b_ary_tree(branching)
    size, levels = len(tree([0] * periods)), tree.map(1)
    unit = 10**6
    rows = [np.cumsum(consistent([unit * (i == j) for j in range(size)])[:periods]) / unit for i in range(size)]
    return float(np.linalg.norm(rows, axis=0).max()) * math.sqrt(variance(levels))


def variance(scale):
    """The variance of discrete Laplace noise."""
    q = math.exp(-1 / scale)
    return 2 * q / (1 - q) ** 2


def _shown(error):
    return "-" if error is None else f"{error:.2f}" if error < 10 else digits(error)


def page():
    gaussian = [(ours(t, mu=1.0), jax_toeplitz(t), jax_dense(t), binary(t, False), split(t)) for t in PERIODS]
    pure = [(ours(t, epsilon=1.0), opendp(t), binary(t, True)) for t in PERIODS]
    return "\n".join(
        [
            "# Running totals\n",
            paragraph(
                "Greatest standard error of running counts after each of T periods, one record added or removed. "
                "Gaussian noise, mu = 1, in units of that of one count with the same guarantee:"
            ),
            rows(["dpfast", "JAX Privacy, Toeplitz", "JAX Privacy, dense", "binary tree", "split budget"], gaussian),
            paragraph("Discrete Laplace noise, epsilon = 1, in records:"),
            rows(["dpfast", "OpenDP, tree", "binary tree"], pure),
            paragraph(NOTES),
            colophon("bench.running"),
        ]
    )


def rows(names, errors):
    """The errors for all numbers of periods."""
    return table(["T", *names], [[f"{t:,}", *map(_shown, found)] for t, found in zip(PERIODS, errors, strict=True)])


if __name__ == "__main__":
    print(page(), end="")
