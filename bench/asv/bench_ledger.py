"""``dpfast.ledger``: the overhead of a charge."""

import tempfile

import dpfast as dpf
from bench import data
from bench.asv.timed import Timed


class Overhead(Timed):
    """The overhead of an active ledger, in memory and on disk; without one a call reads a context variable."""

    params = ("no ledger", "ledger", "file")
    param_names = ("line",)

    def setup(self, line):
        self.x, self.mechanism = data.pay(100), data.median_mechanism()
        self.folder = tempfile.TemporaryDirectory()
        path = f"{self.folder.name}/ledger"
        self.ledger = dpf.Ledger(1e9, path=path if line == "file" else None)
        release = lambda: self.ledger.release(self.mechanism, self.x)  # noqa: E731
        self.run = (lambda: self.mechanism(self.x)) if line == "no ledger" else release

    def teardown(self, line):
        self.folder.cleanup()
