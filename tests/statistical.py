"""Thresholds for tests with random draws: a correct sampler fails once in 1e9 runs, and seeds are fixed."""

import numpy as np
from flint import arb, ctx
from scipy.stats import chi2, kstwo

ALPHA = 1e-9


def chi_square_rejects(counts, probabilities):
    """Pearson's test, cells of small expectation pooled into one."""
    counts, probabilities = np.asarray(counts, float), np.asarray([float(p) for p in probabilities])
    expected = counts.sum() * probabilities
    large = expected >= 20
    observed = np.append(counts[large], counts[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    keep = expected > 0
    assert observed[~keep].sum() == 0
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    return statistic > chi2.isf(ALPHA, keep.sum() - 1)


def row_counts(sample, outcomes):
    """How often each outcome, a row of small integers, is drawn; last, how often all others together are."""
    reach, width = int(np.abs(outcomes).max()), outcomes.shape[1]

    def codes(rows):
        return np.ravel_multi_index(rows.astype(int).T + reach, (2 * reach + 1,) * width)

    near = sample[(np.abs(sample) <= reach).all(axis=1)]
    counts = np.bincount(codes(near), minlength=(2 * reach + 1) ** width)[codes(outcomes)]
    return np.append(counts, len(sample) - counts.sum())


def kolmogorov_rejects(sample, cdf):
    """Kolmogorov-Smirnov's test against a continuous or fine lattice cdf."""
    x = np.sort(sample)
    values = cdf(x)
    n = len(x)
    distance = max((np.arange(1, n + 1) / n - values).max(), (values - np.arange(n) / n).max())
    return distance > kstwo.isf(ALPHA, n)


def exceeds(ratio, epsilon):
    """Whether a rational is more than e^epsilon, certified."""
    with ctx.workprec(200):
        edge, value = arb(epsilon).exp(), arb(ratio.numerator) / arb(ratio.denominator)
        assert (value > edge) != (value < edge)
        return bool(value > edge)
