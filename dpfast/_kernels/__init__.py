"""Compiled kernels, one for each ``src/_x.pyx``; the ``.pyi`` files have the types, the ``.pxd`` files the C API."""
