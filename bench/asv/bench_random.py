"""``dpfast.random``: the secure generator against PCG64, which is not secure."""

import numpy as np
from numpy.random import PCG64, Generator

from dpfast.random import SecureBitGenerator, streams

_GENERATORS = {"secure": SecureBitGenerator, "PCG64": PCG64}


class Variates:
    """NumPy's methods on either generator, which take words one by one."""

    params = tuple(_GENERATORS)
    param_names = ("generator",)

    def setup(self, generator):
        self.rng, self.out = Generator(_GENERATORS[generator]()), np.empty(1_000_000)

    def time_random(self, generator):
        self.rng.random(out=self.out)

    def time_standard_normal(self, generator):
        self.rng.standard_normal(out=self.out)

    def time_integers(self, generator):
        self.rng.integers(0, 1000, 1_000_000)


class Instances:
    """A new generator."""

    params = tuple(_GENERATORS)
    param_names = ("generator",)

    def time_new(self, generator):
        _GENERATORS[generator]()


class Streams:
    """The sources of 16 blocks of an array fill."""

    params = ("secure", "PCG64")
    param_names = ("rng",)

    def setup(self, rng):
        self.rng = None if rng == "secure" else PCG64(1)

    def time_streams(self, rng):
        list(streams(self.rng, 16))
