"""T42: No record is dropped without a word because of the type of its key: it is kept, or its container is refused."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from uuid import UUID

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from tests.cases import every

N, DIFFERENT = 120, 4

KEYS = {
    "integers": range(DIFFERENT),
    "large integers": [10**30 + i for i in range(DIFFERENT)],
    "floats": [0.5, 1.5, -2.25, 1e300],
    "float and its integer": [1.0, 2.0, 0.5, np.inf],
    "decimals": [Decimal("0.10"), Decimal("1.5"), Decimal(7), Decimal("1e-9")],
    "fractions": [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7), Fraction(5)],
    "text": ["ann", "bob", "", "M\u00e9xico"],
    "invalid text": ["M\udce9xico", "M\udce8xico", "\ud800", "a\0"],
    "bytes": [b"ann", b"bob", b"", b"\xff"],
    "booleans and None-like text": [True, False, "None", "nan"],
    "UUIDs": [UUID(int=i << 100) for i in range(DIFFERENT)],
    "dates": [date(2020, 1, 1 + i) for i in range(DIFFERENT)],
    "times": [datetime(2020, 1, 1, i) for i in range(DIFFERENT)],
    "instants": [datetime(2020, 1, 1, i, tzinfo=UTC) for i in range(DIFFERENT)],
    "hours": [time(i) for i in range(DIFFERENT)],
    "durations": [timedelta(i) for i in range(DIFFERENT)],
    "addresses": [IPv4Address(i) for i in range(DIFFERENT)],
    "tuples": [("ann", 1), ("ann", 2), ("bob", UUID(int=1)), (date(2020, 1, 1), 0.5)],
    "all kinds": ["1", 1, b"1", Decimal("1.1")],
}


def _objects(cells):
    made = np.empty(len(cells), object)
    made[:] = cells
    return made


def _pandas(cells):
    return pytest.importorskip("pandas").Series(_objects(cells), dtype=object)


def _categories(cells):
    pandas = pytest.importorskip("pandas")
    values = list(dict.fromkeys(cells))
    return pandas.Series(
        pandas.Categorical.from_codes(
            [values.index(cell) for cell in cells], pandas.Index(_objects(values), dtype=object)
        )
    )


def _polars(cells):
    polars = pytest.importorskip("polars")
    return polars.Series("", list(cells), dtype=polars.Object)


HOSTS = {
    "list": list,
    "tuple": lambda cells: tuple(cells),
    "array of objects": _objects,
    "masked array": lambda cells: np.ma.MaskedArray(_objects(cells), np.zeros(len(cells), bool)),
    "two columns": lambda cells: (list(cells), [0] * len(cells)),
    "pandas": _pandas,
    "pandas categories": _categories,
    "polars objects": _polars,
    # Types that libraries infer: the column is kept or refused.
    "numpy": np.array,
    "pandas, inferred": lambda cells: pytest.importorskip("pandas").Series(list(cells)),
    "polars, inferred": lambda cells: pytest.importorskip("polars").Series("", list(cells)),
    "Arrow, inferred": lambda cells: pytest.importorskip("pyarrow").array(list(cells)),
}


def records(kind):
    """Each key in a fourth of the records."""
    return [KEYS[kind][i % DIFFERENT] for i in range(N)]


def column(kind, host):
    """A column of keys in a container, whose library may refuse them."""
    if (host, kind) == ("tuple", "tuples"):
        pytest.skip("a tuple of tuples is several columns")
    try:
        return HOSTS[host](records(kind))
    except Exception:
        pytest.skip("the library makes no column of these keys")


def released_or_refused(call, host):
    """What a call returns; None if it refuses the dtype that a library has inferred."""
    try:
        return call()
    except TypeError as error:
        if "must be numbers, text or bytes" in str(error) and ("inferred" in host or host == "numpy"):
            return None
        raise


@pytest.mark.host
@every("kind", KEYS)
@every("host", HOSTS)
def test_bounding_keeps_records_of_all_units(kind, host):
    units, order = column(kind, host), np.arange(N)
    stream = dpf.BoundedContributions(per_unit=2, rng=PCG64(1))
    kept = released_or_refused(lambda: dpf.bound_contributions(units, order, per_unit=N), host)
    if kept is None:
        return
    assert kept.tolist() == order.tolist()
    few = dpf.bound_contributions(units, order, per_unit=2)
    paired = dpf.bound_contributions(units, order, keys=units, per_unit=3, per_key=2)
    stream.update(units, order)
    stream.update(units, order + N)
    for part in (few, paired, stream.kept()):
        assert np.bincount(part % DIFFERENT, minlength=DIFFERENT).tolist() == [2] * DIFFERENT


@pytest.mark.host
@every("kind", KEYS)
@every("host", HOSTS)
def test_partitions_and_groups_have_all_keys(kind, host):
    labels, options = column(kind, host), {"epsilon": 40.0, "delta": 1e-6}
    released = released_or_refused(lambda: dpf.partitions(labels, **options), host)
    if released is None:
        return
    found = list(released.keys[0] if isinstance(released.keys, tuple) else released.keys)
    listed = list(KEYS[kind])
    if host == "numpy" or "inferred" in host:
        assert abs(released.counts.sum() - N) < 5 * DIFFERENT  # whatever the library makes of the keys
    else:
        assert len(found) == DIFFERENT
        assert all(key in listed for key in found)
        assert all(type(key) is type(listed[listed.index(key)]) for key in found if not isinstance(key, (int, float)))
    assert np.abs(released.counts - N / len(found)).max() < 5
    chunks = dpf.partitions(dpf.Chunks([labels, labels]), **options)
    assert np.abs(chunks.counts - 2 * N / len(found)).max() < 5
    mechanism = dpf.PartitionSelection(40.0, 1e-6)
    state, other = mechanism.start(), mechanism.start()
    state.update(labels)
    other.update(labels)
    stored = type(state).from_bytes(state.to_bytes(), mechanism)
    stored.merge(other)
    merged = stored.release()
    assert np.array_equal(np.array(merged.keys, object), np.array(released.keys, object))
    assert np.abs(merged.counts - 2 * N / len(found)).max() < 5
    if host in ("list", "array of objects"):
        unit = dpf.Grid(0, 1, step=1)
        mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=unit, epsilon=20.0, neighbors="add-remove")
        selection = dpf.PartitionSelection(20.0, 1e-6)
        groups = dpf.by_group(mean, np.ones(N), labels=labels, keys="private", partitions=selection)
        assert set(groups) == set(listed)
        assert min(groups[key] for key in listed) > 0.5
