"""Released keys and errors of their counts, against Laplace noise with a threshold and PipelineDP's strategy.

``python -m bench.partition_selection`` prints the tables of docs/guides/partitions.md. PyDP, which PipelineDP uses, is
optional. All lines of the first table have the same epsilon and delta for one record added or removed; those of the
second one for a unit of k records of different keys.
"""

import bisect
import itertools
import math

import numpy as np

import dpfast as dpf

N, RUNS, DRAWS = 10**5, 20, 20_000


def laplace_threshold(counts, epsilon, delta, rng):
    """Laplace noise of scale 1 / epsilon, the least threshold with P(1 + X >= threshold) <= delta (Google, OpenDP)."""
    noise = rng.laplace(0, 1 / epsilon, (RUNS, len(counts)))
    noisy = counts + noise
    return noisy, noisy >= 1 - math.log(2 * delta) / epsilon


def pipeline_dp(counts, epsilon, delta, rng):
    """PipelineDP: half of epsilon for its truncated geometric strategy, half for a Laplace count."""
    from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy

    strategy = create_truncated_geometric_partition_strategy(epsilon / 2, delta, 1)
    seen = np.array([[strategy.should_keep(int(n)) for n in counts] for _ in range(RUNS)])
    return counts + rng.laplace(0, 2 / epsilon, seen.shape), seen


def ours(counts, epsilon, delta, rng):
    x = np.repeat(np.arange(len(counts)), counts)
    released = dpf.PartitionSelection(epsilon, delta).release(x, size=RUNS)
    noisy, seen = np.zeros((RUNS, len(counts))), np.zeros((RUNS, len(counts)), bool)
    for row, one in enumerate(released):
        noisy[row, one.keys], seen[row, one.keys] = one.counts, True
    return noisy, seen


LINES = {"dpfast": ours, "Laplace threshold": laplace_threshold, "PipelineDP": pipeline_dp}


def same_keys(epsilon, delta, k):
    """The threshold, the records that release a key with probability 0.9, and the deviation of the noise."""
    return selection(dpf.PartitionSelection(epsilon, delta, contributions=k))


def different_keys(epsilon, delta, k):
    return selection(dpf.PartitionSelection(epsilon, delta, contributions=k, per_key=1))


def selection(mechanism):
    needed = bisect.bisect_left(range(10**6), 0.9, key=mechanism.probability)
    drawn = mechanism.law(np.zeros(10**5, np.int64)).sample(size=DRAWS)
    return mechanism.threshold, needed, drawn.std()


def pydp(name):
    def line(epsilon, delta, k):
        import pydp.algorithms.partition_selection as pydp_selection

        strategy = getattr(pydp_selection, f"create_{name}_partition_strategy")(epsilon, delta, k)
        needed = bisect.bisect_left(range(10**6), 0.9, lo=1, key=strategy.probability_of_keep)
        drawn = np.array([strategy.noised_value_if_should_keep(10**5) for _ in range(DRAWS)])
        return strategy.threshold, needed, drawn.std()

    return line


UNITS = {
    "any keys": same_keys,
    "`per_key=1`": different_keys,
    "PyDP, Gaussian": pydp("gaussian"),
    "PyDP, Laplace": pydp("laplace"),
}


def units():
    print("| epsilon, delta, k | " + " | ".join(f"{name}: threshold, records, noise" for name in UNITS) + " |")
    for epsilon, delta, k in itertools.product([1.0, 0.1], [1e-6, 1e-9], [3, 10, 100]):
        cells = []
        for line in UNITS.values():
            try:
                threshold, needed, noise = line(epsilon, delta, k)
            except ImportError:
                cells.append("not installed")
                continue
            cells.append(f"{threshold:.0f}, {needed}, {noise:.3g}")
        print(f"| {epsilon:g}, {delta:g}, {k} | " + " | ".join(cells) + " |")


def main():
    rng = np.random.default_rng(1)
    counts = np.unique(np.minimum(rng.zipf(1.5, N), 10**6), return_counts=True)[1]
    print(f"{N} records, {len(counts)} keys; mean of {RUNS} runs")
    print("| epsilon, delta | " + " | ".join(f"{name}: keys, error" for name in LINES) + " |")
    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-6)]:
        cells = []
        for line in LINES.values():
            try:
                noisy, seen = line(counts, epsilon, delta, rng)
            except ImportError:
                cells.append("not installed")
                continue
            error = math.sqrt(float(np.mean((noisy - counts)[seen] ** 2)))
            cells.append(f"{seen.sum() / RUNS:.0f}, {error:.2f}")
        print(f"| {epsilon:g}, {delta:g} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
    units()
