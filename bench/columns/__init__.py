"""Real columns: releases of all functions for the tables that packages of the index ship.

``python -m bench.columns`` counts the releases that are absurd and came without a word; some of the same calls are
those of tests/hosts/test_real_columns.py.
"""
