"""Private medians of skewed data, ``python -m bench.median_descent [--runs R]``.

n = 10,000 lognormal(0, 1) numbers (median 1), bounds (0, r), the search starts at 0. The table shows the mean
of the gap E|X - estimate| - E|X - 1| over the runs, with its standard error in units of the last digit, and the bound.
"""

import argparse
import math

import numpy as np
from scipy.special import ndtr

import dpfast as dpf
from dpfast import local

N = 10_000
ROWS = [(0.5, 1.5), (0.5, 4.0), (0.5, 16.0), (1.0, 1.5), (1.0, 4.0), (1.0, 16.0), (2.0, 4.0), (2.0, 16.0)]


def gap(theta):
    """E|X - theta| - E|X - 1| of a lognormal(0, 1) X."""
    theta = np.maximum(theta, 1e-300)
    a = np.log(theta)
    loss = theta * (2 * ndtr(a) - 1) + math.exp(0.5) * (1 - 2 * ndtr(a - 1))
    return loss - math.exp(0.5) * (1 - 2 * ndtr(-1))


def shown(gaps):
    error = np.std(gaps) / math.sqrt(len(gaps))
    return f"{np.mean(gaps):.5f}({error * 1e5:.0f})"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.median_descent", description="Gaps of private medians.")
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args(arguments).runs
    rng = np.random.default_rng(1)
    print("| epsilon | r | minimax steps | bound | naive | averaging steps |")
    print("| --- | --- | --- | --- | --- | --- |")
    for epsilon, r in ROWS:
        public = {"bounds": (0.0, r), "epsilon": epsilon}
        methods = {
            "minimax": lambda x, p=public: local.median(x, **p, steps="minimax", start=0.0, rng=rng),
            "naive": lambda x, p=public: local.median_naive(x, **p, rng=rng),
            "averaging": lambda x, p=public: local.median(x, **p, start=0.0, rng=rng),
        }
        found = {
            name: gap(np.array([run(rng.lognormal(size=N)) for _ in range(runs)])) for name, run in methods.items()
        }
        bound = dpf.theory.local_median_upper_bound(N, epsilon=epsilon, width=r)
        print(
            f"| {epsilon:g} | {r:g} | {shown(found['minimax'])} | {bound:.4g} | {shown(found['naive'])} | "
            f"{shown(found['averaging'])} |"
        )


if __name__ == "__main__":
    main()
