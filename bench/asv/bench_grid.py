"""``dpfast.core.grid``: values to codes and back, against the same map in NumPy."""

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class EncodeFloats(Timed):
    """`FloatGrid.encode`, which rounds the bits of a double."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        x, grid = data.pay(1_000_000), dpf.FloatGrid(resolution=0)
        self.run = {"dpfast": lambda: grid.encode(x), "numpy": lambda: data.encode_floats_in_numpy(grid, x)}[line]


class Decode(Timed):
    """`Grid.decode`."""

    params = ("dpfast", "numpy")
    param_names = ("line",)

    def setup(self, line):
        grid = dpf.Grid(*data.BOUNDS)
        codes = grid.encode(data.pay(1_000_000))
        self.run = {
            "dpfast": lambda: grid.decode(codes),
            "numpy": lambda: (codes + grid.first) * np.float64(grid.step),
        }[line]


class New:
    """Construct a grid with the default step, which needs a search."""

    def time_new(self):
        dpf.Grid(*data.BOUNDS)
