"""Compiled kernels, one for each ``src/_x.pyx``; typed by the ``.pyi`` beside them, cimported by the ``.pxd``."""
