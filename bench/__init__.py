"""Benchmarks and simulations. The modules here are commands, except `data`, which the folders share.

`asv` is the asv suite, `compare` the table of ratios to NumPy, `peers` that of errors and times relative to other
libraries, `published` that of errors relative to algorithms of papers; `pages` holds the sections of the pages in
docs/results. The NumPy call that a function replaces is a parameter of its benchmark, so that both times come from one
run.
"""
