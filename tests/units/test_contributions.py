"""Bounded contributions: the exact law of what is kept, what one unit changes, containers and streams."""

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast._kernels._bounding import Reservoirs, thin, thin_sorted
from dpfast.groups import contributions
from tests.cases import every
from tests.reference.contributions import law as reference_law
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

NO_PAIR = np.zeros(0, np.int64)


def word(outcome, of):
    """A word whose draw below `of` is `outcome`."""
    return -(-outcome * 2**64 // of) + 1


def scripts(ranges):
    """All outcomes of draws below these numbers, as words, with the probability of each."""
    share = Fraction(1, math.prod(ranges))
    for outcomes in itertools.product(*map(range, ranges)):
        yield [word(outcome, of) for outcome, of in zip(outcomes, ranges, strict=True)], share


def ranges_of_thin(codes, keep):
    """The number of equally likely outcomes of the word of each record."""
    left = Counter(code for code, kept in zip(codes, keep, strict=True) if kept)
    for code, kept in zip(codes, keep, strict=True):
        yield left[code] + (not kept)
        left[code] -= bool(kept)


def order_by_code(codes):
    """The order in which `thin_sorted` visits records."""
    return sorted(range(len(codes)), key=lambda i: (codes[i], i))


def order_of_equal_hashes(codes):
    """The same if all hashes are equal: one group after the other, each moved to the front of what is left."""
    order, start = list(range(len(codes))), 0
    while start < len(order):
        end, first = start, codes[order[start]]
        for i in range(start, len(order)):
            if codes[order[i]] == first:
                order[i], order[end] = order[end], order[i]
                end += 1
        start = end
    return order


def unmixed(hashed):
    """The word whose SplitMix64 hash is this."""
    mask = 2**64 - 1
    z = hashed ^ (hashed >> 31) ^ (hashed >> 62)
    z = z * pow(0x94D049BB133111EB, -1, 2**64) & mask
    z ^= (z >> 27) ^ (z >> 54)
    z = z * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    return z ^ (z >> 30) ^ (z >> 60)


def keys_of_equal_hashes(codes, seed):
    """Different integers for different codes below 2 n, whose hashes differ in their last bits only."""
    return np.array([unmixed(5 << 60 | int(code)) ^ seed for code in codes], np.uint64).view(np.int64)


def thinned_by_code(source, codes, limit, keep):
    thin(source, codes, int(codes.max(initial=-1)) + 1, limit, keep)
    return range(len(codes))


def thinned_by_sort(source, codes, limit, keep):
    keep &= codes >= 0
    codes = np.maximum(codes, 0)
    thin_sorted(source, codes, limit, keep)
    return order_by_code(codes.tolist())


def thinned_by_hash(source, codes, limit, keep):
    keep &= codes >= 0
    codes = np.maximum(codes, 0)
    thin_sorted(source, keys_of_equal_hashes(codes, 77), limit, keep, seed=77)
    return order_of_equal_hashes(codes.tolist())


def thinned(codes, keep, limit, by):
    """The law of the marks after `by`, by all outcomes of its words, of which many lead to the same marks."""
    codes = np.array(codes, np.int64)
    marks = [int(kept and code >= 0) for kept, code in zip(keep, codes, strict=True)]
    order = by(PCG64(1), codes, limit, np.array(keep, np.uint8))
    visited = codes if by is thinned_by_code else np.maximum(codes, 0)
    ranges = ranges_of_thin(
        [int(visited[i]) for i in order], [(keep if by is thinned_by_code else marks)[i] for i in order]
    )
    law = Counter()
    for script, share in scripts([max(r, 1) for r in ranges]):
        out = np.array(keep, np.uint8)
        source = ScriptedBits(script)
        by(source, codes, limit, out)
        assert source.used == len(codes)
        assert (out <= marks).all()
        law[tuple(out.tolist())] += share
    return law


def law_of_thin(units, keys, per_unit, per_key, by=thinned_by_code):
    """The law of the kept records in one call: two passes of `thin`, or of `thin_sorted`."""
    pairs = [2 * u + k if u >= 0 else -1 for u, k in zip(units, keys, strict=True)]
    found = Counter()
    whole = (1,) * len(units)
    first = thinned(pairs, whole, per_key, by) if per_key else {whole: Fraction(1)}
    for keep, p in first.items():
        for kept, q in thinned(units, keep, per_unit, by).items():
            found[frozenset(np.flatnonzero(kept).tolist())] += p * q
    return found


law_of_sorted = functools.partial(law_of_thin, by=thinned_by_sort)
law_of_hashed = functools.partial(law_of_thin, by=thinned_by_hash)


def ranges_of_reservoirs(units, keys, per_unit, per_key):
    """The number of equally likely outcomes of each word that reservoirs draw."""
    pairs, entries = Counter(), Counter()
    for u, k in zip(units, keys, strict=True):
        if u < 0:
            continue
        pairs[u, k] += 1
        if per_key and pairs[u, k] > per_key:
            yield pairs[u, k]
            continue
        entries[u] += 1
        if entries[u] > per_unit:
            yield entries[u]


def law_of_reservoirs(units, keys, per_unit, per_key):
    found = Counter()
    codes = np.array(units, np.int64)
    pairs = np.where(codes >= 0, 2 * codes + np.array(keys, np.int64), -1)
    for script, share in scripts(list(ranges_of_reservoirs(units, keys, per_unit, per_key))):
        source, reservoirs = ScriptedBits(script), Reservoirs(per_unit, per_key)
        for i in range(len(units)):  # a chunk for each record
            entered = np.zeros(1, np.uint8)
            part = pairs[i : i + 1] if per_key else None
            reservoirs.add(source, codes[i : i + 1], part, i, entered, 3, 6 if per_key else 0)
        assert source.used == len(script)
        found[frozenset(reservoirs.kept().tolist())] += share
    return found


def datasets(n):
    """Records of up to three units and two keys; the order of the records matters to none of the laws.

    Of four records those that skip no code of a unit: three show what such a code does.
    """
    kinds = [(-1, 0), *itertools.product(range(3), range(2))]
    every_one = map(list, itertools.combinations_with_replacement(kinds, n))
    return [data for data in every_one if n < 4 or len({u for u, _ in data} - {-1}) == max(u for u, _ in data) + 1]


@functools.cache
def kept_law(units, keys, per_unit, per_key):
    return reference_law(units, keys, per_unit, per_key)


def law_of_the_definition(units, keys, per_unit, per_key):
    """Of each dataset once, for all kernels; units below 0 are missing."""
    return kept_law(tuple(None if u < 0 else u for u in units), tuple(keys), per_unit, per_key)


LAWS = every("law", [law_of_thin, law_of_sorted, law_of_hashed, law_of_reservoirs])
LIMITS = every("per_unit, per_key", [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (3, 2)])


class TestLaw:
    @LAWS
    @LIMITS
    def test_is_that_of_the_definition_for_all_datasets(self, law, per_unit, per_key):
        for n in range(5):
            for data in datasets(n):
                units, keys = [u for u, _ in data], [k for _, k in data]
                assert law(units, keys, per_unit, per_key) == law_of_the_definition(units, keys, per_unit, per_key)

    @LAWS
    @pytest.mark.parametrize(("per_unit", "per_key"), [(2, 0), (2, 1), (2, 2), (3, 2)])
    def test_of_interleaved_records(self, law, per_unit, per_key):
        units, keys = [0, 1, 0, 0, 1, 0, -1, 0], [0, 1, 1, 0, 1, 0, 1, 1]
        assert law(units, keys, per_unit, per_key) == law_of_the_definition(units, keys, per_unit, per_key)


def violations(law, data, per_unit, per_key):
    """How removing each unit changes more than its own kept records, at most so many."""
    whole = law([u for u, _ in data], [k for _, k in data], per_unit, per_key)
    for unit in {u for u, _ in data if u >= 0}:
        others = [i for i, (u, _) in enumerate(data) if u != unit]
        rest = law([data[i][0] for i in others], [data[i][1] for i in others], per_unit, per_key)
        remaining = Counter()
        for kept, p in whole.items():
            own = [i for i in kept if data[i][0] == unit]
            if len(own) > per_unit or (per_key and max(Counter(data[i][1] for i in own).values(), default=0) > per_key):
                yield unit, "limits"
            remaining[frozenset(others.index(i) for i in kept if i in others)] += p
        if remaining != rest:
            yield unit, "others"


def law_of_the_whole_array(units, keys, per_unit, per_key):
    """A control: a uniformly random subset of all records, of per_unit records for each unit."""
    present = [i for i, u in enumerate(units) if u >= 0]
    wanted = min(len(present), per_unit * len({units[i] for i in present}))
    kept = list(itertools.combinations(present, wanted))
    return Counter({frozenset(chosen): Fraction(1, len(kept)) for chosen in kept})


def law_of_the_first_records(units, keys, per_unit, per_key):
    """A control: the first records of the whole array."""
    present = [i for i, u in enumerate(units) if u >= 0]
    return Counter({frozenset(present[: 2 * per_unit]): Fraction(1)})


class TestOneUnit:
    """T27: the kept records of neighbours differ in at most k records of one unit."""

    @LIMITS
    def test_changes_its_own_kept_records_only(self, per_unit, per_key):
        """By the definition, which `TestLaw` finds in all kernels."""
        for data in datasets(4):
            assert not list(violations(law_of_the_definition, data, per_unit, per_key))

    @pytest.mark.parametrize("law", [law_of_the_whole_array, law_of_the_first_records])
    def test_control(self, law):
        found = {kind for data in datasets(4) for _, kind in violations(law, data, 1, 0)}
        assert found == {"limits", "others"}

    @pytest.mark.parametrize(("per_unit", "per_key"), [(1, 0), (2, 0), (2, 1)])
    def test_sums_of_bounded_records_protect_the_unit(self, per_unit, per_key):
        """The law of a released sum, mixed over the kept records, for all datasets of three units, and values 0, 1."""
        epsilon = 0.5
        grid = dpf.Grid(0, 1, step=1)
        mechanism = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=grid, epsilon=epsilon, neighbors="add-remove")
        codes = np.arange(-6, 11)
        laws = {total: np.exp(mechanism.law([1] * total).noise.logpmf(codes - total)) for total in range(5)}

        def mixed(data):
            units, values = [u for u, _ in data], [k for _, k in data]
            kept = law_of_the_definition(units, values, per_unit, per_key)
            return sum(float(p) * laws[sum(values[i] for i in chosen)] for chosen, p in kept.items())

        most = 0.0
        for data in datasets(4):
            for unit in {u for u, _ in data if u >= 0}:
                ratio = np.log(mixed(data) / mixed([record for record in data if record[0] != unit]))
                most = max(most, np.abs(ratio).max())
        stated = mechanism.privacy.for_units(per_unit).epsilon
        if per_key:  # a unit has at most one record of value 1
            stated /= 2
        assert most == pytest.approx(stated, rel=1e-9)


class TestChoice:
    N, SIZE, KEPT = 40_000, 5, 2

    def subsets_of(self, kept):
        """The number of units for which each subset of the places is kept."""
        rows = kept.reshape(-1, self.SIZE)
        assert (rows.sum(axis=1) == self.KEPT).all()
        return np.bincount((rows << np.arange(self.SIZE)).sum(axis=1), minlength=2**self.SIZE)

    def probabilities(self):
        sizes = np.array([bin(code).count("1") for code in range(2**self.SIZE)])
        return np.where(sizes == self.KEPT, 1 / math.comb(self.SIZE, self.KEPT), 0.0)

    @every("order", ["blocks", "interleaved"])
    @every("stream, spread", [(True, 1), (False, 1), (False, 1_000_003), (False, 2**40 + 1)], ids=str)
    def test_is_uniform(self, order, stream, spread):
        unit = np.repeat(np.arange(self.N) * spread, self.SIZE)
        places = np.argsort(np.random.default_rng(1).random(len(unit))) if order == "interleaved" else slice(None)
        number, kept = np.arange(len(unit))[places], np.zeros(len(unit), np.int64)
        if stream:
            bounded = dpf.BoundedContributions(per_unit=self.KEPT, rng=PCG64(3))
            for part in np.array_split(number, 7):
                bounded.update(unit[part], part)
            kept[bounded.kept()] = 1
        else:
            kept[dpf.bound_contributions(unit[places], number, per_unit=self.KEPT, rng=PCG64(3))] = 1
        assert not chi_square_rejects(self.subsets_of(kept), self.probabilities())

    def test_control(self):
        values = np.random.default_rng(1).random((self.N, self.SIZE))
        largest = (np.argsort(np.argsort(values * [1, 1, 1, 1, 1.1])) >= self.SIZE - self.KEPT).astype(np.int64)
        assert chi_square_rejects(self.subsets_of(largest), self.probabilities())

    def test_does_not_depend_on_values(self):
        unit = np.random.default_rng(2).integers(0, 50, 1000)
        kept = [
            np.isin(
                np.arange(1000), dpf.bound_contributions(unit, np.arange(1000), values, per_unit=3, rng=PCG64(5))[0]
            )
            for values in (np.zeros(1000), np.arange(1000.0), np.full(1000, np.nan))
        ]
        np.testing.assert_array_equal(kept[0], kept[1])
        np.testing.assert_array_equal(kept[0], kept[2])

    @every("form", [lambda u: u.astype(str), lambda u: u - 5, list])
    @every("per_key", [None, 2])
    def test_does_not_depend_on_how_units_are_named(self, form, per_key):
        drawn = np.random.default_rng(2)
        unit, keys, number = drawn.integers(0, 90, 1000), drawn.integers(0, 4, 1000), np.arange(1000)
        missing = np.ma.MaskedArray(unit, unit % 7 == 0)
        asked = {"per_unit": 3, "per_key": per_key, "keys": keys if per_key else None}
        expected = dpf.bound_contributions(unit, number, rng=PCG64(5), **asked)
        found = dpf.bound_contributions(form(unit), number, rng=PCG64(5), **asked)
        np.testing.assert_array_equal(found, expected)
        without = dpf.bound_contributions(missing, number, rng=PCG64(5), **asked)
        np.testing.assert_array_equal(without, expected[unit[expected] % 7 > 0])

    @pytest.mark.parametrize("spread", [10**6, 2**50])
    def test_is_that_of_units_among_many_others(self, spread):
        """Sorted and hashed records: few units have many records, most have one; some are missing."""
        drawn = np.random.default_rng(4)
        unit = np.where(drawn.random(50_000) < 0.3, drawn.integers(0, 9, 50_000), drawn.integers(9, 60_000, 50_000))
        missing = drawn.random(50_000) < 0.1
        named = np.ma.MaskedArray((unit - 30_000) * (spread - 1), missing)
        kept = dpf.bound_contributions(named, np.arange(50_000), per_unit=4, rng=PCG64(6))
        assert (np.diff(kept) > 0).all()
        counts = np.bincount(unit[~missing], minlength=60_000)
        np.testing.assert_array_equal(np.bincount(unit[kept], minlength=60_000), np.minimum(counts, 4))
        assert not missing[kept].any()

    def test_the_default_source_is_secret(self):
        unit, number = np.zeros(1000, np.int64), np.arange(1000)
        drawn = [dpf.bound_contributions(unit, number, per_unit=500).tolist() for _ in range(2)]
        assert drawn[0] != drawn[1]


@settings(max_examples=80)
@given(st.data())
def test_limits_hold_in_one_call_and_in_chunks(draws):
    n = draws.draw(st.integers(0, 60))
    units = draws.draw(st.lists(st.sampled_from(["a", "b", 1, b"a", None, float("nan")]), min_size=n, max_size=n))
    keys = draws.draw(st.lists(st.sampled_from([0, 1, "x", None]), min_size=n, max_size=n))
    per_unit, per_key = draws.draw(st.integers(1, 9)), draws.draw(st.integers(1, 9) | st.none())
    rng = Generator(PCG64(draws.draw(st.integers(0, 99))))
    asked = {"per_unit": per_unit, "per_key": per_key, "rng": rng}
    keyed = keys if per_key else None
    cuts = sorted(draws.draw(st.lists(st.integers(0, n), max_size=4)))
    stream = dpf.BoundedContributions(**asked)
    for start, end in itertools.pairwise([0, *cuts, n]):
        stream.update(units[start:end], list(range(start, end)), keys=keyed and keyed[start:end])
    present = [i for i in range(n) if type(units[i]) in (str, int, bytes) and (not per_key or keys[i] is not None)]
    pairs = Counter((units[i], keys[i]) for i in present)
    left = Counter()
    for (unit, _), count in pairs.items():
        left[unit] += min(count, per_key) if per_key else count
    for kept in (dpf.bound_contributions(units, list(range(n)), keys=keyed, **asked), stream.kept()):
        assert kept == sorted(set(kept))
        assert set(kept) <= set(present)
        assert Counter(units[i] for i in kept) == {unit: min(count, per_unit) for unit, count in left.items()}
        if per_key:
            assert max(Counter((units[i], keys[i]) for i in kept).values(), default=0) <= per_key


@pytest.mark.host
class TestContainers:
    N = 30
    UNITS = (*range(7),) * 4 + (0, 1)

    def forms(self):
        np_ = np.arange(self.N, dtype=np.float32)
        yield "list", list(range(self.N)), list
        yield "tuple", tuple(range(self.N)), list
        yield "range", range(self.N), list
        yield "array", np_, np.ndarray.tolist
        yield "rows", np.stack([np_, -np_], axis=1), lambda x: x[:, 0].tolist()
        yield "masked", np.ma.MaskedArray(np_, np_ > 20), lambda x: x.data.tolist()
        pandas = pytest.importorskip("pandas")
        yield "Series", pandas.Series(np_, index=range(5, 5 + self.N)), list
        yield "DataFrame", pandas.DataFrame({"x": np_, "y": "t"}), lambda x: x["x"].tolist()
        yield "categorical", pandas.Series(pandas.Categorical.from_codes(np.arange(self.N), range(self.N))), list
        yield "Index", pandas.Index(np_), list
        polars = pytest.importorskip("polars")
        yield "polars", polars.Series(np_), polars.Series.to_list
        yield "frame", polars.DataFrame({"x": np_}), lambda x: x["x"].to_list()
        arrow = pytest.importorskip("pyarrow")
        yield "Arrow", arrow.array(np_), lambda x: x.to_pylist()
        yield "chunked", arrow.chunked_array([np_[:10], np_[10:]]), lambda x: x.to_pylist()
        yield "table", arrow.table({"x": np_}), lambda x: x["x"].to_pylist()

    def test_keep_their_type(self):
        for name, x, numbers in self.forms():
            kept = dpf.bound_contributions(list(self.UNITS), x, per_unit=2, rng=PCG64(1))
            wanted = list if name == "range" else type(x)
            assert type(kept) is wanted, name
            assert getattr(kept, "dtype", None) == getattr(x, "dtype", None), name
            chosen = [int(i) for i in numbers(kept)]
            assert Counter(self.UNITS[i] for i in chosen) == dict.fromkeys(range(7), 2), name
            assert chosen == sorted(chosen), name

    def test_keep_it_in_chunks(self):
        for name, x, numbers in self.forms():
            bounded = dpf.BoundedContributions(per_unit=1, rng=PCG64(1))
            for start in range(0, self.N, 8):
                rows = x[start : start + 8] if not hasattr(x, "iloc") else x.iloc[start : start + 8]
                bounded.update(list(self.UNITS[start : start + 8]), rows, list(range(start, min(start + 8, self.N))))
            kept, places = bounded.kept()
            wanted = {"range": list, "Arrow": "ChunkedArray"}.get(name, type(x))
            assert type(kept) is wanted or type(kept).__name__ == wanted, name
            assert [int(i) for i in numbers(kept)] == places, name
            assert sorted(self.UNITS[i] for i in places) == list(range(7)), name

    def test_several_arrays_have_the_same_records(self):
        unit = np.random.default_rng(3).integers(0, 5, 100)
        first, second, third = dpf.bound_contributions(unit, unit, np.arange(100), [*"ab"] * 50, per_unit=4)
        assert len(first) == len(second) == len(third) == 20
        np.testing.assert_array_equal(first, unit[second])
        assert third == [("ab" * 50)[i] for i in second]

    def test_units_and_keys_of_several_columns(self):
        unit = (["a", "a", "b", "a"], [1, 2, 1, 1])
        kept = dpf.bound_contributions(unit, [0, 1, 2, 3], per_unit=1)
        assert len(kept) == 3
        assert {1, 2} < set(kept)
        assert dpf.bound_contributions([1, 1], [0, 1], keys=([0, 0], [0, 1]), per_unit=9, per_key=1) == [0, 1]


class TestStream:
    def test_memory_is_that_of_the_kept_records(self):
        bounded = dpf.BoundedContributions(per_unit=2)
        for _ in range(50):
            bounded.update(np.arange(1000) % 10, np.zeros((1000, 3)))
        assert sum(len(numbers) for numbers, _ in bounded._pieces) <= 1100
        assert bounded.kept().shape == (20, 3)

    def test_goes_on_after_the_kept_records_were_read(self):
        bounded = dpf.BoundedContributions(per_unit=1)
        bounded.update([1], ["a"])
        assert bounded.kept() == ["a"]
        bounded.update([2], ["b"])
        assert bounded.kept() == ["a", "b"]

    def test_no_records(self):
        bounded = dpf.BoundedContributions(per_unit=1)
        bounded.update([], np.zeros(0, np.float32))
        assert bounded.kept().dtype == np.float32

    def test_serves_calls_with_too_many_records_for_one(self, monkeypatch):
        monkeypatch.setattr(contributions, "_MOST", 64)
        unit = np.arange(100) % 10
        kept = dpf.bound_contributions(unit, np.arange(100), keys=unit % 2, per_unit=3, per_key=2)
        assert Counter((kept % 10).tolist()) == dict.fromkeys(range(10), 2)

    def test_bad_use(self):
        bounded = dpf.BoundedContributions(per_unit=1)
        with pytest.raises(ValueError, match="no chunk was read"):
            bounded.kept()
        bounded.update([1], [2])
        with pytest.raises(ValueError, match="every chunk must have 1 arrays, not 2"):
            bounded.update([1], [2], [3])
        assert repr(bounded) == "<BoundedContributions of at most 1 per unit>"
        assert repr(dpf.BoundedContributions(per_unit=2, per_key=1)).endswith("of at most 2 per unit, 1 per key>")


@every(
    "given, options, error, message",
    [
        (([1],), {"per_unit": 1}, TypeError, "an array of records is needed besides unit"),
        (([1], [1]), {"per_unit": 0}, ValueError, "per_unit must be at least 1, not 0"),
        (([1], [1]), {"per_unit": 1.5}, TypeError, "per_unit must be an integer, not float"),
        (([1], [1]), {"per_unit": 1, "per_key": 0, "keys": [1]}, ValueError, "per_key must be at least 1, not 0"),
        (([1], [1]), {"per_unit": 1, "per_key": 1}, TypeError, "keys and per_key must be given together"),
        (([1], [1]), {"per_unit": 1, "keys": [1]}, TypeError, "keys and per_key must be given together"),
        (([1], [1, 2]), {"per_unit": 1}, ValueError, "unit, keys and all arrays must have the same number of records"),
        (([1], [1]), {"per_unit": 1, "per_key": 1, "keys": [1, 2]}, ValueError, "unit, keys and all arrays must have"),
        (([1], 5.0), {"per_unit": 1}, TypeError, "an array of records is needed, not float"),
        (([1], np.array(5.0)), {"per_unit": 1}, TypeError, "an array of records is needed, not a zero-dimensional"),
        (([1], "a"), {"per_unit": 1}, TypeError, "an array of records is needed, not str"),
        (("a", [1]), {"per_unit": 1}, TypeError, "unit must be a column of keys, not str"),
        (([1], [1]), {"per_unit": 1, "rng": 5}, TypeError, "rng must be None"),
    ],
)
def test_bad_arguments(given, options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        dpf.bound_contributions(*given, **options)


PIECES = {
    "list": lambda: [1, 2, 3],
    "tuple": lambda: (1, 2, 3),
    "masked": lambda: np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "records": lambda: np.rec.array([(1,), (2,), (3,)], dtype=[("a", int)]),
    "Series": lambda: pytest.importorskip("pandas").Series([1, 2, 3]),
    "Index": lambda: pytest.importorskip("pandas").Index([1, 2, 3]),
    "Categorical": lambda: pytest.importorskip("pandas").Categorical(["a", "b", "a"]),
    "Int64": lambda: pytest.importorskip("pandas").array([1, None, 2], dtype="Int64"),
    "polars": lambda: pytest.importorskip("polars").Series([1, 2, 3]),
    "Array": lambda: pytest.importorskip("pyarrow").array([1, 2, 3]),
    "ChunkedArray": lambda: pytest.importorskip("pyarrow").chunked_array([[1], [2, 3]]),
    "RecordBatch": lambda: pytest.importorskip("pyarrow").record_batch({"a": [1, 2, 3]}),
    "Table": lambda: pytest.importorskip("pyarrow").table({"a": [1, 2, 3]}),
}


@pytest.mark.host
@every("piece", [pytest.param(case, id=label) for label, case in PIECES.items()])
def test_the_type_does_not_depend_on_where_the_kept_records_are(piece):
    x, found = piece(), []
    for second in ([None, None, None], [1, 2, 2], [3, 4, 5]):
        bounded = dpf.BoundedContributions(per_unit=1, rng=PCG64(1))
        bounded.update([1, 2, 1], x)
        bounded.update(second, x)
        found.append(bounded.kept())
    assert len({(type(kept), str(getattr(kept, "dtype", ""))) for kept in found}) == 1
    assert len(found[2]) == 5


class TestLimit:
    UNITS = np.repeat(np.arange(60), np.arange(60) % 7)  # 51 units of 1 to 6 records
    SIZES = np.bincount(UNITS)[np.bincount(UNITS) > 0]

    @staticmethod
    def mechanism(epsilon, share, most):
        grid = dpf.Grid(1, most, step=1)
        return dpf.InverseSensitivity(
            dpf.statistics.Quantile(share), grid=grid, epsilon=epsilon, neighbors="add-remove"
        )

    @pytest.mark.parametrize(("epsilon", "share", "most"), [(0.1, 0.95, 1000), (4.0, 0.5, 4), (1.0, 1.0, 2)])
    def test_it_is_the_quantile_of_the_numbers_of_records(self, epsilon, share, most):
        shuffled = Generator(PCG64(1)).permutation(self.UNITS).astype(object)
        shuffled[[3, 7]] = None  # of no unit
        _, sizes = np.unique([unit for unit in shuffled if unit is not None], return_counts=True)
        for seed in range(20):
            given = {"epsilon": epsilon, "share": share, "most": most}
            limit = dpf.contribution_limit(shuffled, rng=PCG64(seed), **given)
            assert type(limit) is int
            assert limit == self.mechanism(**given)(np.minimum(sizes, most), rng=PCG64(seed))

    def test_a_unit_of_any_number_of_records_changes_one_number(self):
        mechanism, most = self.mechanism(0.7, 0.9, 12), 12
        for added in (1, 5, 12, 10**6):
            laws = [mechanism.law(np.minimum(sizes, most)) for sizes in (self.SIZES, np.append(self.SIZES, added))]
            gap = np.abs(np.subtract(*(law.logpmf(law.outcomes()) for law in laws)))
            assert gap.max() <= 0.7 + 1e-9
        repeated = [mechanism.law(np.minimum(sizes, most)) for sizes in (self.SIZES, np.append(self.SIZES, [12] * 5))]
        assert (
            np.abs(np.subtract(*(law.logpmf(law.outcomes()) for law in repeated))).max() > 0.7
        )  # a unit counted often

    @pytest.mark.parametrize(("budget", "spent"), [({"per_unit": 3}, 0.25), ({"per_unit": None}, 0.25)])
    def test_a_ledger_charges_it_once(self, budget, spent):
        ledger = dpf.Ledger(1.0, neighbors="add-remove", **budget)
        with ledger:
            dpf.contribution_limit(self.UNITS, epsilon=0.25)
            with pytest.raises(dpf.BudgetError):
                dpf.contribution_limit(self.UNITS, epsilon=0.76)
        assert ledger.spent.epsilon == spent
        assert len(ledger.charges) == 1

    def test_no_units(self):
        assert 1 <= dpf.contribution_limit([], epsilon=1.0, most=3) <= 3
        assert 1 <= dpf.contribution_limit([None, None], epsilon=1.0, most=3) <= 3

    @pytest.mark.parametrize("given", [{"epsilon": 0.0}, {"epsilon": 1.0, "share": 1.5}, {"epsilon": 1.0, "most": 1}])
    def test_parameters_are_refused_before_the_charge(self, given):
        ledger = dpf.Ledger(9.0, neighbors="add-remove")
        with ledger, pytest.raises(ValueError, match=f"^{[*given][-1]} must be"):
            dpf.contribution_limit(self.UNITS, **given)
        assert not ledger.charges
