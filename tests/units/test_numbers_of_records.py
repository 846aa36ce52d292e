"""The public number of records of x, in one place: counted, or known before anything is read."""

import collections

import numpy as np
import pytest

import dpfast as dpf
from dpfast.streaming import known_records, records_of
from tests.cases import every

pytestmark = pytest.mark.host
pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))


class Opened:
    """An iterable of pieces that counts how often it is read."""

    def __init__(self, pieces):
        self.pieces, self.reads = pieces, 0

    def __call__(self):
        self.reads += 1
        return iter(self.pieces)


class Foreign(collections.UserList):
    """A container of the user, whose length is code of others."""


KNOWN = {
    "list": [1.0, 2.0, None],
    "tuple": (1, 2, 3),
    "array": np.arange(3),
    "rows": np.zeros((3, 5)),
    "masked": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "pandas": pd.Series([1, 2, 3]),
    "frame": pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}),
    "polars": pl.Series([1, 2, 3]),
    "arrow": pa.array([1, None, 3]),
    "table": pa.table({"a": [1, 2, 3]}),
    "counted": dpf.Counted([1.0, 2.0], [1, 2]),
    "chunks": dpf.Chunks([np.arange(2), [5.0], np.empty(0)]),
    "chunks of chunks": dpf.Chunks([dpf.Chunks([[1.0]]), dpf.Counted([7.0], [2])]),
}


@every("x", [pytest.param(case, id=label) for label, case in KNOWN.items()])
def test_known_without_reading(x):
    assert records_of(x) == known_records(x) == 3


@every("x", [np.array(1.0), 3.0, None, pa.scalar(1), iter([1.0])], ids=lambda x: type(x).__name__)
def test_what_has_no_records(x):
    assert records_of(x) is None
    assert known_records(x) is None


def test_what_is_known_after_reading_only():
    opened = Opened([np.arange(2), [5.0]])
    chunks = dpf.Chunks(opened)
    assert known_records(chunks) is None
    assert opened.reads == 0
    assert records_of(chunks) == known_records(chunks) == 3
    assert opened.reads == 1


def test_the_length_of_a_foreign_container_is_code_of_others():
    x = Foreign([1.0, 2.0, 3.0])
    assert records_of(x) == 3
    assert known_records(x) is None
    assert dpf.Chunks([x]).known is None


def test_a_piece_without_records_is_not_known():
    assert known_records(dpf.Chunks([[1.0], 2.0])) is None


def test_explanations_say_what_is_known(capsys):
    parameters = {"bounds": (0, 10), "epsilon": 1.0, "explain": True}
    for x in (np.ones(200), dpf.Chunks([np.ones(150), np.ones(50)]), dpf.Counted([1.0], [200])):
        dpf.mean(x, **parameters)
        assert "for n = 200" in capsys.readouterr().out
    opened = Opened([np.ones(200)])
    dpf.mean(dpf.Chunks(opened), **parameters)
    assert "for n =" not in capsys.readouterr().out
