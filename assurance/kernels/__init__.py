"""Bounded model checking of the integer arithmetic of the kernels: `python -m assurance.kernels`."""
