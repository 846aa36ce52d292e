"""The calls of `bench.calls`: small ones, where Python's layers are the cost, and kernels."""

from bench import calls
from bench.asv.timed import Timed


class Small(Timed):
    """A call on 100 records, or what it replaces, if that is a call."""

    params = (list(calls.small()), ["dpfast", "floor"])
    param_names = ("call", "line")

    def setup(self, call, line):
        one = calls.small()[call]
        self.run = one.run if line == "dpfast" else one.floor
        if not callable(self.run):
            raise NotImplementedError


class Kernels(Timed):
    """A call on 1,000 to 100,000 records."""

    params = tuple(calls.kernels())
    param_names = ("call",)

    def setup(self, call):
        self.run = calls.kernels()[call]
