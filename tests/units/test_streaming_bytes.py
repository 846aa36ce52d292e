"""States as bytes: versions, damage, forgery and size; bytes are never trusted."""

import hashlib
import json
import struct
import sys
import zlib
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.densities import PerturbedHistogram
from dpfast.statistics import Median, Sum
from dpfast.streaming import State, wire
from tests.cases import every
from tests.central import outcome, same
from tests.streams import ALL, DEFAULT, INTEGERS, PCG, name, records
from tests.threads import in_threads

pytestmark = pytest.mark.kernel


HEAD = 14  # magic, version, checksum


def forged(data, change):
    """Bytes with another header and a checksum that is right."""
    (length,) = struct.unpack("<Q", data[HEAD : HEAD + 8])
    header = json.loads(data[HEAD + 8 : HEAD + 8 + length])
    text = json.dumps(change(header)).encode()
    body = struct.pack("<Q", len(text)) + text + data[HEAD + 8 + length :]
    return data[:10] + struct.pack("<I", zlib.crc32(body)) + body


def second_pass(mechanism, n=80):
    x = records(mechanism, n)
    state = mechanism.start()
    for chunk in np.array_split(x, 2):
        state.update(chunk)
    if state.passes > 1:
        state.next_pass()
        state.update(x)
    return state


@cache
def sound(at):
    """The bytes of a state in its second pass, or the only one."""
    return second_pass(ALL[at]).to_bytes()


def test_versions_and_other_mechanisms_are_refused():
    mechanism = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0)
    data = second_pass(mechanism).to_bytes()
    assert data[:10] == b"dpfast\x00S\x03\x00"
    for version, age in ((2, "an earlier"), (1, "an earlier"), (4, "a later")):
        with pytest.raises(
            ValueError, match=f"format {version}, saved by {age} version .* reads format 3; read the rec"
        ):
            State.from_bytes(data[:8] + struct.pack("<H", version) + data[10:], mechanism)
    other = dpf.InverseSensitivity(Median(), grid=dpf.Grid(-10, 101), epsilon=1.0)
    with pytest.raises(ValueError, match="another mechanism"):
        State.from_bytes(data, other)
    with pytest.raises(ValueError, match="not a state"):
        State.from_bytes(b"", mechanism)


# The digest of what states hold of the same records, for each format: states of two meanings would merge.
MEANINGS = {3: "51736597613afee1"}


def test_a_state_of_another_meaning_has_another_format():
    """Raise `_VERSION` of dpfast/streaming/wire.py, and note the digest, if what the same records leave has changed."""
    digest = hashlib.sha256()
    for mechanism in (*ALL, PerturbedHistogram(5, grid=dpf.Grid(1, 5, step=1), epsilon=1.0)):
        digest.update(second_pass(mechanism).to_bytes().partition(b'"held"')[2])
    assert digest.hexdigest()[:16] == MEANINGS[wire._VERSION]


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_bytes_are_a_value_error(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, good = ALL[at], sound(at)
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "noise"]))
    if kind == "flip":
        at = data.draw(st.integers(0, len(good) - 1))
        bad = bytearray(good)
        bad[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        bad = good[: data.draw(st.integers(0, len(good) - 1))]
    elif kind == "more":
        bad = good + data.draw(st.binary(min_size=1, max_size=9))
    else:
        bad = data.draw(st.binary(max_size=60))
    with pytest.raises(ValueError, match=r"damaged|format|another mechanism"):
        State.from_bytes(bytes(bad), mechanism)


LEAF = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3)
TREE = st.recursive(
    LEAF | st.builds(lambda s, e: {"size": s, "entries": e}, LEAF, LEAF), lambda t: st.lists(t, max_size=4)
)


def paths(node, path=()):
    yield path
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, part in parts:
        yield from paths(part, (*path, key))


@settings(max_examples=75)
@given(data=st.data())
def test_forged_bytes_are_a_value_error_or_a_state(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, good = ALL[at], sound(at)

    def change(header):
        places = [path for path in paths(header) if path and path[0] != "mechanism"]
        *path, last = places[data.draw(st.integers(0, len(places) - 1))]
        node = header
        for key in path:
            node = node[key]
        node[last] = data.draw(TREE)
        return header

    body = forged(good, change)
    if data.draw(st.booleans()) and len(body) > 400:  # other numbers in the arrays, too
        at = data.draw(st.integers(300, len(body) - 8))
        body = body[:at] + struct.pack("<q", data.draw(st.integers(-(2**63), 2**63 - 1))) + body[at + 8 :]
        body = body[:10] + struct.pack("<I", zlib.crc32(body[HEAD:])) + body[HEAD:]
    use(body, mechanism)


def use(body, mechanism):
    """Whatever a state is made of, it is refused by a ValueError or works."""
    try:
        state = State.from_bytes(body, mechanism)
        assert state.to_bytes()
        other = State.from_bytes(body, mechanism)
        other.merge(second_pass(mechanism) if state.number == mechanism.start().passes else mechanism.start())
    except ValueError:
        pass
    try:
        state = State.from_bytes(body, mechanism)
        while state.number < state.passes:
            state.next_pass()
        state.law()
    except ValueError:
        pass


def sealed(body):
    """Any header and arrays, with the right magic, version and checksum."""
    return b"dpfast\x00S\x03\x00" + struct.pack("<I", zlib.crc32(body)) + body


@settings(max_examples=200)
@given(data=st.data())
def test_bits_that_flip_under_a_right_checksum(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, body = ALL[at], bytearray(sound(at)[HEAD:])
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.sampled_from([0, len(body) - 64]))  # the header, and the arrays
        at = data.draw(st.integers(max(first, 0), len(body) - 1))
        body[at] = data.draw(st.integers(0, 255) | st.sampled_from(list(b'0123456789[]{},:"-nulE.')))
    use(sealed(bytes(body)), mechanism)


@every("depth", [9, 300, 500, 990, 100_000])
@every("brackets", ["[]", ('{"x":', "}")])
def test_deep_json(depth, brackets):
    for mechanism in (ALL[0], dpf.NestedBoxes(grid=DEFAULT, epsilon=4.0)):
        header = second_pass(mechanism).to_bytes()
        (length,) = struct.unpack("<Q", header[HEAD : HEAD + 8])
        text = header[HEAD + 8 : HEAD + 7 + length].decode()
        text += ',"held":' + brackets[0] * depth + "1" + brackets[1] * depth + "}"  # said twice: the last one holds
        with pytest.raises(ValueError, match="damaged"):
            State.from_bytes(sealed(struct.pack("<Q", len(text)) + text.encode()), mechanism)


@pytest.mark.parametrize("n", [2**22 + 1, 2**30, 2**40, 2**62])
@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.MEstimator(dpf.psi.Huber(2.0), grid=DEFAULT, epsilon=1.0),
        dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0),
        PerturbedHistogram(7, grid=DEFAULT, epsilon=1.0),
    ],
    ids=name,
)
def test_few_bytes_do_not_stand_for_much_memory(mechanism, n):
    """As many zeros as the header states."""

    def change(header):
        return {**header, "n": n, "held": [{"size": n, "entries": 0}]}

    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(forged(mechanism.start().to_bytes(), change), mechanism)


@every("places", [[1, -(2**63), -1], [-1, 0, 1], [0, 0, 1], [2, 1, 3], [99, 100, 101], [1, 2, 2**63 - 1]])
def test_bad_places(places):
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    state = mechanism.start()
    state.update([1, 2, 3])

    body = state.to_bytes()
    good = struct.pack("<6q", 1, 2, 3, 1, 1, 1)
    assert body.endswith(good)
    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(sealed(body[HEAD : -len(good)] + struct.pack("<6q", *places, 1, 1, 1)), mechanism)


@every(
    "cells",
    [
        ([1280], [0], [40]),  # no such place
        ([-1], [0], [40]),
        ([3], [1], [40]),  # more records than there are
        ([3], [0], [41]),
        ([3], [0], [2**63 - 1]),
        ([3], [2**63 - 1], [2**63 - 1]),
        ([3], [-1], [40]),
        ([3], [0], [-1]),
        ([3], [0], [5]),  # without a wanted rank,
        ([3], [0], [20]),  # and without some of them
        ([3, 3], [0, 20], [20, 20]),  # not apart
        ([4, 3], [0, 20], [20, 20]),
        ([3, 4], [0, 20], [20]),
        ([3, 4], [0, 19], [20, 21]),
    ],
)
def test_impossible_cells(cells):
    grid = dpf.Grid(0, 10 * 2**18 - 1, step=1)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=20.0)
    state = mechanism.start()
    state.update(np.full(40, 3 << 11))
    state.next_pass()
    assert [part.tolist() for part in state._reading._looked[0]] == [[3], [0], [40]]
    State.from_bytes(state.to_bytes(), mechanism)
    state._reading._looked[0] = tuple(np.array(part, np.int64) for part in cells)
    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(state.to_bytes(), mechanism)


def test_counts_of_32_bits_are_added_up_in_time(monkeypatch):
    """As if there were no more than 9 bits."""
    monkeypatch.setattr("dpfast.streaming.ranks._PIECE", 2**8)
    for mechanism in ALL:
        x = records(mechanism, 2100)
        chunks = [x[:900], x[900:1000], x[1000:]]
        released = [outcome(mechanism, records, rng=PCG(1)) for records in (dpf.Chunks(chunks), x)]
        assert same(*released)


def test_a_state_that_is_read_does_not_change():
    """Other threads may merge it and send it at the same time."""
    mechanism = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0)
    state = mechanism.start()
    state.update(records(mechanism, 20_000))
    expected = State.from_bytes(state.to_bytes(), mechanism).to_bytes()

    def read(i):
        if i % 2:
            return state.to_bytes()
        other = mechanism.start()
        other.merge(state)
        return other.to_bytes()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            assert in_threads(read) == [expected] * 8
    finally:
        sys.setswitchinterval(interval)


def test_codes_that_are_mostly_zero_are_few_bytes_up_to_a_limit():
    mechanism = dpf.MEstimator(dpf.psi.Huber(2.0), grid=dpf.Grid(0, 1), epsilon=1.0)
    for n, dense in ((2**22, False), (2**22 + 1, True)):
        state = mechanism.start()
        state.update(np.zeros(n, np.int8))
        data = state.to_bytes()
        assert (len(data) > 8 * n) == dense
        assert State.from_bytes(data, mechanism).n == n


def test_more_records_than_can_be_counted():
    mechanism = dpf.GlobalSensitivity(Sum(), grid=INTEGERS, epsilon=1.0, neighbors="add-remove")
    data = forged(mechanism.start().to_bytes(), lambda header: {**header, "n": 2**62})
    state = State.from_bytes(data, mechanism)
    with pytest.raises(ValueError, match=r"more than 2\*\*62 records"):
        state.merge(State.from_bytes(data, mechanism))
