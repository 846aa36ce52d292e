"""Benchmarks: an asv suite, a file per public module, and ``python -m bench.compare``, the table of ratios.

The NumPy line that a function replaces is a parameter of its benchmark, so a ratio comes from one run.
"""
