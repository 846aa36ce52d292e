"""Local functions and protocols that take records, as functions of records, a source and epsilon."""

from dpfast import local

SURVEYS = {
    "local.median": lambda x, source, epsilon: local.median(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source),
    "local.median, search": lambda x, source, epsilon: local.median(
        x, bounds=(-1.0, 1e6), epsilon=epsilon, method="search", rng=source
    ),
    "local.quantile": lambda x, source, epsilon: local.quantile(
        x, 0.9, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source
    ),
    "local.HashedCategorical": lambda x, source, epsilon: local.HashedCategorical(2**40, epsilon).randomize(
        x, rng=source
    ),
    "local.HeavyHitters": lambda x, source, epsilon: local.HeavyHitters(epsilon, 32).randomize(x, rng=source),
    "local.Attributes": lambda x, source, epsilon: local.Attributes([3, 50], epsilon).randomize(x, rng=source),
    "local.Attributes, split": lambda x, source, epsilon: local.Attributes([3, 50], epsilon, "split").randomize(
        x, rng=source
    ),
    "local.median_naive": lambda x, source, epsilon: local.median_naive(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source
    ),
    "local.mean": lambda x, source, epsilon: local.mean(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source),
    "local.mean of moments": lambda x, source, epsilon: local.mean(x, moment=2.0, epsilon=epsilon, rng=source),
    "local.density": lambda x, source, epsilon: local.density(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source).cdf(
        [3.0, 50.0]
    ),
    "local.density, series": lambda x, source, epsilon: (
        local.density(x, bounds=(-1.0, 99.0), epsilon=epsilon, method="series", rng=source).coefficients
    ),
    "local.sparse_mean": lambda x, source, epsilon: local.sparse_mean(x, epsilon=epsilon, radius=2.0, rng=source),
}
