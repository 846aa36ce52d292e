"""The table of ratios: ``python -m bench.compare``."""
