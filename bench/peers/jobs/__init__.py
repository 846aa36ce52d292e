"""The comparisons by section of the page: modules with `jobs()`, of `bench.peers.comparison.Job`, or with `lines()`."""

from bench.peers.jobs import accounts, choice, counts, local, means, quantiles, regressions, tables, vectors

SECTIONS = {
    "counts": counts,
    "means": means,
    "quantiles": quantiles,
    "vectors": vectors,
    "regressions": regressions,
    "local": local,
    "tables": tables,
    "accounts": accounts,
    "choice": choice,
}
