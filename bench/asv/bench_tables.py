"""A column of a CSV file, against pyarrow's reader of that column."""

import importlib
import tempfile
from pathlib import Path

import numpy as np

from dpfast.tables import read_column


def arrow_column(path, name):
    """The column by pyarrow, which stops at a row of another length."""
    csv = importlib.import_module("pyarrow.csv")
    return csv.read_csv(path, convert_options=csv.ConvertOptions(include_columns=[name]))


class CSV:
    """One of six columns, of which two are text."""

    params = (["dpfast", "pyarrow"], ["age", "pay", "score"], [100_000])
    param_names = ("line", "column", "n")

    def setup(self, line, column, n):
        try:
            importlib.import_module("pyarrow.csv")
        except ImportError:
            raise NotImplementedError from None
        rng = np.random.default_rng(0)
        columns = rng.integers(18, 90, n), rng.lognormal(10.5, 0.6, n), rng.normal(size=n)
        rows = zip(*(values.tolist() for values in columns), strict=True)
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "people.csv"
        with path.open("w") as file:
            file.write("id,age,pay,score,city,note\n")
            file.writelines(
                f'{i},{age},{pay:.2f},{score!r},"Lille","abc"\n' for i, (age, pay, score) in enumerate(rows)
            )
        self.run = {"dpfast": read_column, "pyarrow": arrow_column}[line], str(path), column

    def teardown(self, line, column, n):
        self.folder.cleanup()

    def time_read(self, line, column, n):
        function, path, name = self.run
        function(path, name)
