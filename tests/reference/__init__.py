"""Slow twins: the meaning of every kernel in plain Python, Fractions and mpmath. Obviously right, never fast."""
