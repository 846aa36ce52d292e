"""Results by public parameters: found for the same ones only."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast import Grid
from dpfast._kernels._calls import Calls, Described, Parameters
from dpfast.choosing import rounded_down
from dpfast.statistics import Median
from tests.cases import every
from tests.threads import in_threads

pytestmark = pytest.mark.kernel

GRID, STATISTIC = Grid(0, 1, step=0.25), Median()
NUMBERS = [1, 1.0, True, 0.0, -0.0, 0, False, 2**70, 1.5, "1", "", None]


def same(a, b):
    """The slow twin: one type, and one value as it is printed."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def of(*parts):
    """The parameters of a call, of which one is given, as a tuple of several."""
    return Parameters(epsilon=parts[0] if len(parts) == 1 else parts)


class TestFind:
    def test_tells_types_and_signs_apart(self):
        given = [(a, b) for a in NUMBERS for b in [*NUMBERS, (0.0, 1), (-0.0, 1), (0, 1), ("1",)]]
        for kept in given:
            calls = Calls(frozenset())
            calls.keep(STATISTIC, np.ones(3), of(*kept), True, kept)
            for asked in given:
                assert (calls.find(STATISTIC, np.ones(3), of(*asked), True) is not None) == same(kept, asked)

    def test_equal_objects_are_found(self):
        calls = Calls(frozenset([Grid]))
        number, text = float("0.1"), "".join(["au", "to"])
        calls.keep((0.25, 0.5), np.ones(3), of((0, 2**40), number, text, GRID), True, "kept")
        again = tuple(map(float, ["0.25", "0.5"]))
        found = calls.find(again, np.ones(3), of((0, int("1099511627776")), float("0.1"), "auto", GRID), True)
        assert found == "kept"
        assert calls.find(again, np.ones(3), of((0, 2**40), 0.1, "auto", Grid(0, 1, step=0.25)), True) is None

    def test_a_ledger_has_results_of_its_own(self):
        calls = Calls(frozenset())
        calls.keep(STATISTIC, np.ones(3), of(1.0), True, "outside")
        assert calls.find(STATISTIC, np.ones(3), of(1.0), False) is None
        calls.keep(STATISTIC, np.ones(3), of(1.0), False, "inside")
        assert calls.find(STATISTIC, np.ones(3), of(1.0), False) == "inside"
        assert calls.find(STATISTIC, np.ones(3), of(1.0), True) in ("outside", None)  # if both have one place

    def test_every_parameter_counts(self):
        calls, names = Calls(frozenset()), [name for name in dir(Parameters) if not name.startswith("_")]
        assert len(names) == 9
        calls.keep(STATISTIC, np.ones(3), Parameters(), True, "kept")
        for name in names:
            changed = Parameters(**{name: 7})
            assert getattr(changed, name) == 7
            assert calls.find(STATISTIC, np.ones(3), changed, True) is None
            with pytest.raises(AttributeError):
                setattr(changed, name, 8)

    def test_lists_cannot_change_what_was_kept(self):
        calls, bounds = Calls(frozenset()), [0.0, 1.0]
        calls.keep(STATISTIC, np.ones(3), Parameters(bounds), True, "kept")
        bounds[1] = 2.0
        assert calls.find(STATISTIC, np.ones(3), Parameters(bounds), True) is None
        assert calls.find(STATISTIC, np.ones(3), Parameters([0.0, 1.0]), True) == "kept"
        typical = np.array([0.0, 1.0])
        calls.keep(STATISTIC, np.ones(3), Parameters(distribution=typical), True, "kept")
        assert calls.find(STATISTIC, np.ones(3), Parameters(distribution=typical), True) is None

    def test_described_records_are_of_their_own(self):
        calls = Calls(frozenset())
        calls.keep(STATISTIC, Described(False, 1000), of(1.0), True, "kept")
        assert calls.find(STATISTIC, Described(False, 1023), of(1.0), True) == "kept"
        for other in (Described(True, 1000), Described(False, 0), np.ones(1000)):
            assert calls.find(STATISTIC, other, of(1.0), True) is None

    def test_by_the_kind_of_records_and_three_bits_of_their_number(self):
        sizes = [*range(70), 1000, 1023, 1024, 2**40, 2**59]
        vectors = [np.broadcast_to(np.ones((), kind), (n,)) for n in sizes for kind in ("f8", "f4", "i8", "?")]
        for one, other in itertools.product(vectors, vectors[::3]):
            calls = Calls(frozenset())
            calls.keep(STATISTIC, one, of(1.0), True, "kept")
            alike = [(x.dtype.kind, rounded_down(len(x)) if len(x) else 0) for x in (one, other)]
            assert (calls.find(STATISTIC, other, of(1.0), True) == "kept") == (alike[0] == alike[1])

    def test_results_take_places_but_never_of_other_parameters(self):
        calls = Calls(frozenset())
        for i in range(2000):
            calls.keep(STATISTIC, np.ones(3), of(i / 8), True, i)
        found = [calls.find(STATISTIC, np.ones(3), of(i / 8), True) for i in range(2000)]
        assert 128 < sum(i == each for i, each in enumerate(found)) <= 256
        assert all(each is None or each == i for i, each in enumerate(found))

    def test_results_that_other_threads_replace(self):
        """Where threads run at once, one must hold a result before another frees it: else the interpreter crashes."""
        calls, x = Calls(frozenset()), np.ones(3)

        def work(i):
            found = []
            for k in range(20_000):
                found.append(calls.find(STATISTIC, x, of(1.0), True))
                calls.keep(STATISTIC, x, of(1.0), True, [i, k])
            return all(each is None or len(each) == 2 for each in found)

        assert all(in_threads(work))

    @every("x", [[1.0], np.ones((2, 2)), np.float64(1), np.ma.ones(3), 1.0], ids=str)
    def test_only_vectors(self, x):
        calls = Calls(frozenset())
        calls.keep(STATISTIC, x, of(1.0), True, "kept")
        assert calls.find(STATISTIC, x, of(1.0), True) is None

    @every("part", [[1], (1, [1]), np.ones(1), object(), GRID, 1j], ids=lambda part: type(part).__name__)
    def test_parameters_of_other_types_are_not_kept(self, part):
        calls = Calls(frozenset())
        calls.keep(STATISTIC, np.ones(3), of(part), True, "kept")
        assert calls.find(STATISTIC, np.ones(3), of(part), True) is None

    @pytest.mark.parametrize("number", [Fraction(1, 3), np.float64(0.1), np.int64(7), Decimal("0.1")], ids=repr)
    def test_numbers_of_other_types_are_kept(self, number):
        calls = Calls(frozenset())
        calls.keep(STATISTIC, np.ones(3), of(number), True, "kept")
        assert calls.find(STATISTIC, np.ones(3), of(type(number)(str(number))), True) == "kept"
        assert calls.find(STATISTIC, np.ones(3), of(float(number)), True) is None


class TestReleases:
    def test_wrong_parameters_raise_after_right_ones(self):
        x = np.arange(100.0)
        dpf.median(x, bounds=(0, 100), epsilon=1)
        with pytest.raises(TypeError, match="epsilon must be a real number, not bool"):
            dpf.median(x, bounds=(0, 100), epsilon=True)
        with pytest.raises(TypeError, match="bounds must be a real number, not bool"):
            dpf.median(x, bounds=(False, 100), epsilon=1)
        with pytest.raises(ValueError, match="x is empty"):
            dpf.median(x[:0], bounds=(0, 100), epsilon=1)

    def test_a_ledger_chooses_by_itself(self):
        """Outside, permute-and-flip releases on a small grid, which a ledger that composes by rho does not take."""
        x, few = np.arange(100.0), {"bounds": (0, 100), "epsilon": 1.0}
        labels = []
        for ledger in (dpf.Ledger(epsilon=9), dpf.Ledger(rho=9), dpf.Ledger(epsilon=9)):
            dpf.median(x.astype(int), **few)
            with ledger:
                dpf.median(x.astype(int), **few)
            labels.append("permute-and-flip" in str(ledger.charges))
        assert labels == [True, False, True]

    def test_statistics_of_equal_floats(self):
        x, public = np.arange(100.0), {"bounds": (0, 100), "epsilon": 1.0}
        source = np.random.PCG64
        for trim in (0.1, 0.2, 0.1):
            expected = dpf.InverseSensitivity(dpf.statistics.TrimmedMean(trim), grid=Grid(0, 100), epsilon=1.0)
            release = dpf.trimmed_mean(x, trim, method="inverse-sensitivity", **public, rng=source(1))
            assert release == expected(x, rng=source(1))
        for q in (0.5, 0.25):
            expected = dpf.InverseSensitivity(dpf.statistics.Quantile(q), grid=Grid(0, 100), epsilon=1.0)
            assert dpf.quantile(x, q, **public, rng=source(1)) == expected(x, rng=source(1))
        with pytest.raises(ValueError, match="trim must be at least 0 and below"):
            dpf.trimmed_mean(x, 0.5, **public)
