"""Too few records: the warning precedes the charge, also of groups and of chunks whose number is not known before."""

import warnings
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from tests.cases import every
from tests.central import same

FLOATS = dpf.FloatGrid()
MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=FLOATS, epsilon=1.0)
JOINT = dpf.Quantiles([0.25, 0.75], grid=FLOATS, epsilon=1.0)
LINE = dpf.TheilSen(FLOATS, FLOATS, epsilon=1.0)
FEW = np.random.default_rng(0).normal(50, 10, 60)


def PCG():
    return np.random.PCG64(1)


def told(call):
    """The texts of the warnings of a call, and the charges if the first one is an error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    with dpf.Ledger(epsilon=100.0) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error", dpf.UtilityWarning)
        with suppress(dpf.UtilityWarning):
            call()
    return [str(warning.message) for warning in seen], ledger.charges


class Opened:
    """Pieces of unknown length, and how often they were read."""

    def __init__(self, *pieces):
        self.pieces, self.reads = pieces, 0

    def __call__(self):
        self.reads += 1
        return iter(self.pieces)


ROWS = np.random.default_rng(0).normal(0, 1, (60, 2))
OF_CHUNKS = {
    "median": (MEDIAN, FEW, "60 records"),
    "quantiles": (JOINT, FEW, "60 records"),
    "theil_sen": (LINE, ROWS, "60 records"),
    "interval": (lambda x, **o: dpf.interval("median", x, epsilon=1.0, **o), FEW, "60 records"),
}


@every("name", OF_CHUNKS)
@every("known", [True, False])
def test_chunks(name, known):
    release, x, text = OF_CHUNKS[name]
    pieces = np.array_split(x, 3)
    chunks = dpf.Chunks(pieces if known else Opened(*pieces))
    texts, charges = told(lambda: release(chunks))
    assert len(texts) == 1
    assert texts[0].startswith(text)
    assert charges == ()


@pytest.mark.parametrize("size", [None, 3])
def test_several_releases_of_chunks(size):
    texts, charges = told(lambda: MEDIAN.release(dpf.Chunks(Opened(FEW)), size=size))
    assert len(texts) == 1
    assert charges == ()
    assert len(told(lambda: MEDIAN.release(FEW, size=size))[0]) == 1


@pytest.mark.parametrize("mechanism", [MEDIAN, JOINT], ids=["median", "quantiles"])
def test_chunks_are_read_once_for_each_pass_and_released_as_an_array(mechanism):
    x = np.random.default_rng(1).normal(50, 10, 2000)
    opened = Opened(x[:1500], x[1500:])
    with dpf.Ledger(epsilon=1.0) as ledger:
        released = mechanism(dpf.Chunks(opened), rng=PCG())
    assert same(released, mechanism(x, rng=PCG()))
    assert opened.reads == mechanism.start().passes == 2
    assert len(ledger.charges) == 1
    several = mechanism.release(dpf.Chunks(opened), size=3, rng=PCG())
    assert same(several, mechanism.release(x, size=3, rng=PCG()))


def test_one_pass():
    tiny = dpf.FloatGrid(digits=12, lower=0, upper=1e9)
    mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=tiny, epsilon=0.01)
    opened = Opened(FEW)
    assert mechanism.start().passes == 1
    texts, charges = told(lambda: mechanism(dpf.Chunks(opened)))
    assert len(texts) == 1
    assert charges == ()
    assert opened.reads == 2


def test_wrong_arguments_and_empty_chunks_are_rejected_before_the_charge():
    opened = Opened(FEW)
    with dpf.Ledger(epsilon=100.0) as ledger:
        with pytest.raises(TypeError, match="rng"):
            MEDIAN(dpf.Chunks(opened), rng="seed")
        assert opened.reads == 0
        with pytest.raises(ValueError, match="empty"):
            MEDIAN(dpf.Chunks(Opened()))
    assert ledger.charges == ()


def test_a_release_by_the_source_is_charged_too():
    def source():
        MEDIAN(np.ones(200))
        return iter([np.ones(200)])

    with dpf.Ledger(epsilon=100.0) as ledger:
        MEDIAN(dpf.Chunks(source))
    assert len(ledger.charges) == 1 + MEDIAN.start().passes


LABELS = np.repeat([0, 1], [40, 500])
X = np.random.default_rng(2).normal(50, 10, len(LABELS))
NAMES = np.array(["few", "many"])[LABELS]
SMALLEST = "1 of 2 groups have few records, see .few of releases by key. Of the smallest: 40 records are too few"
GROUPS = {
    "labels": {"labels": LABELS},
    "text": {"labels": NAMES, "keys": ["many", "few", "none"]},
    "offsets": {"offsets": [0, 40, 540]},
}


@every("groups", [pytest.param(case, id=label) for label, case in GROUPS.items()])
@every(
    "mechanism",
    [
        pytest.param(MEDIAN, id="median"),
        pytest.param(JOINT, id="joint"),
        pytest.param({"middle": (MEDIAN, "x")}, id="column"),
    ],
)
def test_the_smallest_group(groups, mechanism):
    x = {"x": X} if isinstance(mechanism, dict) else X
    texts, charges = told(lambda: dpf.by_group(mechanism, x, **groups))
    assert len(texts) == 1
    assert texts[0].startswith(SMALLEST)
    assert charges == ()


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("how", [{"labels": [1, 0, 1]}, {"offsets": [0, 1, 3]}], ids=str)
def test_the_smallest_group_of_counted_records(few, how):
    """It has the records of its values, not as many as it has values."""
    counts = [40, 300, 300] if "offsets" in how else [300, 40, 300]
    x = dpf.Counted([1.0, 2.0, 3.0], counts if few else np.array(counts) + 100)
    texts, charges = told(lambda: dpf.by_group(MEDIAN, x, **how))
    assert [text.startswith(SMALLEST) for text in texts] == [True] * few
    assert len(charges) == (not few)


def test_sizes_of_counted_groups_are_those_of_records():
    x = dpf.Counted([1.0, 2.0, 3.0], [100, 200, 300])
    mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 10), epsilon=1.0)
    released = dpf.by_group(mean, x, labels=["a", "b", "a"], keys=["a", "b", "c"])
    first, second = (mean.noise_interval(released["a"], n=400), mean.noise_interval(released["b"], n=200))
    assert released.interval()[:2].tolist() == [list(first), list(second)]


@pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")
@every("groups", [{"labels": [0, 1]}, {"labels": [[0, 1, 0]]}, {"offsets": [0, 2]}], ids=str)
@every(
    "x",
    [pytest.param(np.ones(3), id="array"), pytest.param(dpf.Counted([1.0, 2.0, 3.0], [100, 200, 300]), id="counted")],
)
def test_groups_of_another_number_of_records(groups, x):
    with pytest.raises(ValueError, match=r"one entry for each record|to the number of records"):
        dpf.by_group(MEDIAN, x, **groups)


def private_median(epsilon):
    return dpf.InverseSensitivity(dpf.statistics.Median(), grid=FLOATS, epsilon=epsilon, neighbors="add-remove")


OF_PRIVATE_N = {  # by epsilon: a release, and what it warns of if there are 100 records
    "median": (private_median, 0.38, 0.4),
    "chunks": (lambda e: lambda x: private_median(e)(dpf.Chunks(np.array_split(x, 3))), 0.38, 0.4),
    "list": (lambda e: lambda x: private_median(e)(x.tolist()), 0.38, 0.4),
    "state": (lambda e: lambda x: private_median(e).start().read(dpf.Chunks([x])).release(), 0.38, 0.4),
    "groups": (lambda e: lambda x: dpf.by_group(private_median(e), x, labels=x > 50, num_groups=2), 0.38, 0.4),
    "joint": (lambda e: lambda x: dpf.quantile(x, [0.25, 0.75], epsilon=e, neighbors="add-remove"), 1.9, 2.0),
    "interval": (lambda e: lambda x: dpf.interval("median", x, epsilon=e, neighbors="add-remove"), 2.0, 12.0),
    "mean": (lambda e: lambda x: dpf.mean(x, bounds="private", epsilon=e, neighbors="add-remove"), 4.9, 5.1),
    "bounds": (lambda e: lambda x: dpf.bounds(x, epsilon=e, neighbors="add-remove"), 3.1, 3.2),
}


@every("epsilon", [1.0, 0.5, 0.1])
@every("n", [30, 60, 250])
def test_as_many_records_as_an_interval_advises_are_enough(epsilon, n):
    [text], _ = told(lambda: dpf.interval("median", np.arange(n) + 0.5, epsilon=epsilon))
    enough = int(text.split("at least ")[1].split()[0].replace(",", ""))
    assert 300 < enough * epsilon < 350
    assert told(lambda: dpf.interval("median", np.arange(enough) + 0.5, epsilon=epsilon))[0] == []


@every("name", OF_PRIVATE_N)
def test_a_private_number_of_records_is_presumed(name):
    release, warned, silent = OF_PRIVATE_N[name]
    for records in (FEW, X):
        texts, charges = told(partial(release(warned), records))
        assert len(texts) == 1
        assert texts[0].startswith("n is private, and presumed to be at least 100: 100 records are")
        assert charges == () or name == "state"
        assert told(partial(release(silent), records))[0] == []
