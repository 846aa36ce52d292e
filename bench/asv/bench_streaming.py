"""``dpfast.streaming``: releases of chunks against the sum of the same chunks."""

import tempfile

from bench import data
from bench.asv.timed import Timed


class Stream(Timed):
    """A median, or nine quantiles, of generated chunks or of a memmap, in two passes."""

    params = (["sum", "median", "9 quantiles"], ["generated", "memmap"], [10_000_000])
    param_names = ("line", "chunks", "n")

    def setup(self, line, chunks, n):
        self.folder = tempfile.TemporaryDirectory()
        source = data.streams(n, self.folder.name)[chunks]
        median, deciles = data.median_mechanism(), data.deciles_mechanism()
        self.run = {
            "sum": lambda: sum(chunk.sum() for chunk in source),
            "median": lambda: median(source),
            "9 quantiles": lambda: deciles(source),
        }[line]

    def teardown(self, line, chunks, n):
        self.folder.cleanup()

    def peakmem_stream(self, line, chunks, n):
        self.run()


class TwoValues:
    """A median of a memmap whose records have two values, and of one of random records."""

    params = (["random", "two values"], [10_000_000])
    param_names = ("records", "n")

    def setup(self, records, n):
        self.folder = tempfile.TemporaryDirectory()
        self.source, self.mechanism = data.two_values(n, self.folder.name)[records], data.median_mechanism()

    def teardown(self, records, n):
        self.folder.cleanup()

    def time_stream(self, records, n):
        self.mechanism(self.source)
