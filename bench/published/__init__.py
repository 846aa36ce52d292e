"""Published algorithms next to dpfast at equal guarantee, for the command `bench.published`.

The algorithms are prototypes in floating point, written from their papers and for comparisons of errors only: they take
a generator, and their guarantees hold for real numbers. A module for each kind of statistic has them and their `CASES`.
"""
