"""T34: Every public parameter is read once, before the charge: later readings would find another value."""

import dataclasses
import enum
import inspect
import itertools
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from dpfast import Ledger
from tests.cases import every
from tests.central import shaped
from tests.changing import Index, changing, reads
from tests.promises.test_foreign import changed_functions
from tests.releases import MECHANISMS, NEIGHBORS, RELEASES, X

MORE = {"size": 2, "workers": 1, "delta": 1e-6}  # options of many functions, beyond those in RELEASES
PRIVATE = 20  # arguments of this length are records, which may be read in several passes
REFUSED = (TypeError, ValueError, LookupError, AssertionError)  # a name that is not equal to itself names nothing


def charges(function, neighbors):
    """What a call charges, and what it returns; None for a call that is refused."""
    ledger, made = Ledger(10_000.0, 0.9, neighbors=neighbors), None
    with ledger, suppress(*REFUSED):
        made = function()
    return [(charge.times, charge.profile) for charge in ledger.charges], made


@every("name", RELEASES)
@pytest.mark.filterwarnings("ignore")
def test_functions(name, monkeypatch):
    neighbors = NEIGHBORS.get(name, "replace-one")

    def called(function, args, options):
        known = inspect.signature(function).parameters
        more = {key: value for key, value in MORE.items() if key in known and key not in options}
        given = {**dict(enumerate(args)), **more, **options}
        for key, value in given.items():
            if isinstance(value, np.ndarray) and len(value) >= PRIVATE:
                continue

            plain, _ = charges(partial(_with, function, args, options, key, value), neighbors)
            for new in changing(value):
                found, made = charges(partial(_with, function, args, options, key, new), neighbors)
                if made is None:
                    assert found in ([], plain)
                    continue
                assert found == plain, (key, type(new))
                assert reads(new) <= 1, (key, type(new))
                if key == "size":
                    assert np.shape(made)[:1] == (found[0][0],)
        return function(*args, **options)

    changed_functions(monkeypatch, called)
    RELEASES[name]()


def _with(function, args, options, key, value):
    """Call a function with another value of one argument, given by place or by name."""
    if isinstance(key, int):
        return function(*args[:key], value, *args[key + 1 :], **options)
    return function(*args, **{**options, key: value})


each = every("mechanism", MECHANISMS)


@pytest.mark.filterwarnings("ignore")
class TestMechanisms:
    @each
    @every("shape", [lambda n: n, lambda n: (n, 1), lambda n: (1, n)])
    def test_sizes(self, mechanism, shape):
        x, releases = shaped(mechanism, X), [lambda size, **rest: mechanism.release(x, size=size, **rest)]
        with suppress(*REFUSED):
            state = mechanism.start().read([x])
            releases.append(lambda size: state.release(size=size))
        for release in releases:
            for first in (0, 2):
                n = Index(first)
                found, made = charges(partial(release, shape(n)), mechanism.privacy.neighbors)
                assert n.reads == 1
                if made is not None:
                    assert [times for times, _ in found] == ([first] if first else [])  # no release costs nothing
                    expected = shape(first) if isinstance(shape(first), tuple) else (first,)
                    assert np.shape(made)[: len(expected)] == expected

    @each
    def test_workers(self, mechanism):
        workers = Index(1)
        found, _ = charges(partial(mechanism, shaped(mechanism, X), workers=workers), mechanism.privacy.neighbors)
        assert len(found) == workers.reads == 1

    @each
    def test_fields(self, mechanism):
        for field in dataclasses.fields(mechanism):
            for new in changing(getattr(mechanism, field.name)) if field.init else []:
                try:
                    made = dataclasses.replace(mechanism, **{field.name: new})
                except REFUSED:
                    continue
                assert reads(new) <= 1, field.name
                found, released = charges(partial(made, shaped(mechanism, X)), mechanism.privacy.neighbors)
                assert reads(new) <= 1, field.name
                assert released is None or found == [(1, mechanism.privacy_profile)], field.name


@every("text, compared", itertools.product((str, np.str_), ("__eq__", "__ne__")))
def test_names_that_compare_in_their_own_way_are_refused(text, compared):
    Name = type("Name", (text,), {compared: lambda *_: compared == "__eq__", "__hash__": text.__hash__})
    makers = [dpf.Privacy, partial(dpf.GlobalSensitivity, dpf.statistics.Count(), grid=dpf.Grid(0, 9))]
    makers.append(partial(dpf.Running, dpf.Bins(3, bounds=(0, 3)), periods=2))
    for refused in makers:
        with pytest.raises(ValueError, match="neighbors must be"):
            refused(epsilon=1.0, neighbors=Name("add-remove"))
    assert dpf.Privacy(1.0, neighbors=np.str_("add-remove")).neighbors == "add-remove"


def test_names_of_an_enumeration():
    class Relation(enum.StrEnum):
        OTHER = "add-remove"

    assert dpf.Privacy(1.0, neighbors=Relation.OTHER).neighbors == "add-remove"
