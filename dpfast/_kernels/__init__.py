"""Compiled kernels, one for each ``src/x/_x.pyx``; the ``.pyi`` files have the types, the ``.pxd`` files the C API."""

from importlib.util import find_spec

if find_spec("dpfast._kernels._grid") is None:
    raise ImportError(
        f"dpfast is imported from its sources, and its kernels are not compiled there: start Python in another folder, "
        f"or run `pip install -e .` in that of the sources ({__file__})"
    )
