"""Differentially private statistics: exact samplers on public integer grids, compiled kernels, NumPy in and out."""
