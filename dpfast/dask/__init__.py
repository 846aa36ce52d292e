"""Releases of Dask collections: states are computed where the chunks are, and merged in a tree. Requires `dask`.

Only states are transferred, as bytes, and the caller makes the single draw. Losing a worker is harmless: reading a
chunk again gives the same state.
"""

from dpfast.dask.releases import aggregate, release, state

__all__ = ["aggregate", "release", "state"]
