"""Mean rank errors and times of joint quantiles, against one release each of a share of the budget.

``python bench/quantile_accuracy.py [--epsilon 1] [--records 100000] [--quick]``; fixed seeds, nothing private.
"""

import argparse
import time

import numpy as np

import dpfast as dpf


def rank_error(ordered, ranks, values):
    """Mean distance in ranks; 0 where the released value covers the rank."""
    below, not_above = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.mean(np.maximum(0, np.maximum(below + 1 - ranks, ranks - not_above)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    grid, rng = dpf.Grid(0, 1e6), np.random.default_rng(2)
    x = np.random.default_rng(1).lognormal(10, 1, arguments.records)
    ordered = np.sort(x)
    print(f"{'m':>4} {'joint':>8} {'split':>8} {'gain':>6} {'ms':>8} {'numpy ms':>9}")
    for m, runs in ((1, 300), (2, 300), (9, 60), (33, 20), (63, 8), (99, 6)):
        qs = np.arange(1, m + 1) / (m + 1)
        ranks = np.maximum(1, np.ceil(qs * x.size))
        runs = max(2, runs // 10) if arguments.quick else runs
        joint = dpf.Quantiles(qs, grid=grid, epsilon=arguments.epsilon)
        alone = [
            dpf.Quantiles([q], grid=grid, epsilon=arguments.epsilon / m).release(x, size=runs, rng=rng) for q in qs
        ]
        errors = [
            np.mean([rank_error(ordered, ranks, values) for values in releases])
            for releases in (joint.release(x, size=runs, rng=rng), np.concatenate(alone, axis=1))
        ]
        start = time.perf_counter()
        joint(x, rng=rng)
        middle = time.perf_counter()
        np.quantile(x, qs)
        times = 1e3 * (middle - start), 1e3 * (time.perf_counter() - middle)
        print(
            f"{m:4} {errors[0]:8.2f} {errors[1]:8.2f} {errors[1] / errors[0]:6.1f} {times[0]:8.1f} {times[1]:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
