"""Slow twins: what every kernel means, in plain Python, Fractions and mpmath. Obviously right, never fast."""
