"""Benchmarks. The modules of this folder are commands, and `data` and `peers`, which their parts share.

`asv` is the asv suite, `compare` the table of ratios, `pages` the sections of the pages in docs/. The NumPy line that a
function replaces is a parameter of its benchmark, so a ratio comes from one run.
"""
