"""The comparisons, by section of the page: lists of `bench.peers.comparison.Job`."""

from bench.peers.jobs import accounts, counts, local, means, quantiles, regressions, vectors

SECTIONS = {
    "counts": counts,
    "means": means,
    "quantiles": quantiles,
    "vectors": vectors,
    "regressions": regressions,
    "local": local,
    "accounts": accounts,
}
