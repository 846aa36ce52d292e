"""n times the squared error of private logistic regression, relative to its limit: ``python -m bench.glm_accuracy``.

Synthetic people: x uniform on {-1, 1}^3 / sqrt(3), coefficients (1, -0.5, 0.5), n = 1e5, bound 5; and the
default steps on the same people. Standard errors are in units of the last digit.
"""

import argparse
import itertools
import math

import numpy as np

from bench.pages.tables import table
from dpfast import local

N, STAR = 100_000, np.array([1.0, -0.5, 0.5])
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) / math.sqrt(3)


def people(rng):
    X = CORNERS[rng.integers(0, 8, N)]
    return X, rng.random(N) < 1 / (1 + np.exp(-X @ STAR))


def protocols(epsilon):
    published = (4 * local.L2Ball(3, epsilon).scale, 2 / 3)
    return {
        "4 i^(-2/3)": local.GradientDescent(3, epsilon, steps=published),
        "default": local.GradientDescent(3, epsilon),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.glm_accuracy", description="Errors of private regression.")
    parser.add_argument("--runs", type=int, default=400)
    runs, rng, rows = parser.parse_args(arguments).runs, np.random.default_rng(1), []
    for epsilon in (2.0, 1.0):
        methods = protocols(epsilon)
        squares = {name: [] for name in methods}
        for _ in range(runs):
            X, y = people(rng)
            for name, protocol in methods.items():
                squares[name].append(N * np.sum((protocol(X, y, rng=rng) - STAR) ** 2))
        for name, found in squares.items():
            limit = N * np.trace(methods[name].covariance(N, CORNERS, STAR))
            error = np.std(found) / math.sqrt(runs)
            rows.append([f"{epsilon:g}", name, f"{np.mean(found):.0f}({error:.0f})", f"{limit:.1f}"])
    print(table(["epsilon", "steps", "n MSE", "limit"], rows))


if __name__ == "__main__":
    main()
