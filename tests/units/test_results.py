"""Results as text, HTML, frames and plots."""

import json
import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast.core.plotting import legible_ends
from dpfast.core.tabular import html_table
from dpfast.densities import Histogram
from dpfast.groups import KeyedReleases
from dpfast.groups.keyed import ReleasedColumn
from dpfast.local.hitters import FrequentKeys
from tests.cases import every
from tests.central import central, name, shaped

PUBLIC = dpf.Privacy(1.0)
GRID = dpf.Grid(0, 100, step=1)
MEAN = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=1.0)
RECORDS = np.random.default_rng(0).integers(18, 90, 200)


def count_by_key():
    count = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=GRID, epsilon=0.5, neighbors="add-remove")
    return dpf.by_group(count, RECORDS, labels=np.array(["a", "<b>"])[RECORDS % 2], keys=["a", "<b>"], rng=PCG64(1))


def ledger():
    made = dpf.Ledger(1.0)
    with made:
        dpf.mean(RECORDS, bounds=(0, 100), epsilon=0.25)
        dpf.median(RECORDS, bounds=(0, 100), epsilon=0.5)
    return made


def results():
    table = {"sex": ["<f>", "m"] * 100, "age": RECORDS}
    X = np.random.default_rng(1).normal(size=(200, 2))
    return {
        "estimate": dpf.interval("median", RECORDS, bounds=(0, 100), epsilon=1.0, rng=PCG64(1)),
        "histogram": dpf.histogram(RECORDS, 4, bounds=(0, 100), epsilon=1.0, rng=PCG64(1)),
        "two columns": dpf.histogram(X, (2, 3), bounds=(-3, 3), epsilon=1.0, delta=1e-6, rng=PCG64(1)),
        "density": dpf.density(RECORDS, bounds=(0, 100), epsilon=1.0, rng=PCG64(1)),
        "marginals": dpf.marginals(
            table, {"sex": ["<f>", "m"], "age": dpf.Bins(3, bounds=(0, 90))}, [("sex", "age"), ("sex",)],
            epsilon=1.0, rng=PCG64(1),
        ),
        "groups": count_by_key(),
        "fit": dpf.linear_regression(X, X @ [1, -1], radius=3.0, label_bound=5.0, epsilon=1.0, rng=PCG64(1)),
        "ledger": ledger(),
        "spent": ledger().spent_by("day"),
        "partitions": dpf.partitions(["<a>"] * 200, epsilon=1.0, delta=1e-3, rng=PCG64(1)),
        "frequent keys": FrequentKeys(["<k>"], np.array([0.5]), np.array([0.1]), 0.2),
    }  # fmt: skip


RESULTS = results()
COLUMNS = {
    "estimate": ["value", "low", "high", "confidence", "at_bound"],
    "histogram": ["lower", "upper", "count", "low", "high", "weight", "share"],
    "two columns": ["lower_0", "upper_0", "lower_1", "upper_1", "count", "low", "high", "weight", "share"],
    "density": ["x", "density", "cdf", "noise"],
    "marginals": ["marginal", "sex", "age", "count", "noise"],
    "groups": ["key", "release"],
    "fit": ["name", "estimate", "error", "low", "high"],
    "ledger": ["release", "times", "unit", "amount", "delta", "day", "column", "source", "purpose"],
    "spent": ["day", "releases", "unit", "amount", "delta"],
    "partitions": ["key", "count"],
    "frequent keys": ["key", "frequency", "error"],
}


class Reader(HTMLParser):
    """Reads HTML, checks that elements are closed in order, and keeps the tags and the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not {name for name, _ in attrs} - {"style", "colspan"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("key", RESULTS)
class TestEachResult:
    def test_html_is_escaped_and_states_the_guarantee(self, key):
        made = RESULTS[key]
        read = Reader(made._repr_html_())
        assert read.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "b", "small", "br"}
        assert key == "frequent keys" or "epsilon = " in read.text
        for label in ("<f>", "<b>", "<a>", "<k>"):
            assert (label in read.text) == (label in str(list(made._as_columns().values())))

    @pytest.mark.host
    def test_frames_agree(self, key):
        pandas, polars, pyarrow = (pytest.importorskip(library) for library in ("pandas", "polars", "pyarrow"))
        made = RESULTS[key]
        frame, lazy, arrow = made.to_pandas(), made.to_polars(), made.to_arrow()
        assert isinstance(frame, pandas.DataFrame)
        assert isinstance(lazy, polars.DataFrame)
        assert isinstance(arrow, pyarrow.Table)
        assert list(frame) == lazy.columns == arrow.column_names == COLUMNS[key]
        assert lazy.rows() == list(zip(*arrow.to_pydict().values(), strict=True))
        for column in frame:
            pandas.testing.assert_series_equal(frame[column], arrow.to_pandas()[column], check_dtype=False)

    @pytest.mark.host
    def test_plots(self, key):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from matplotlib import pyplot

        made = RESULTS[key]
        if not hasattr(made, "plot"):
            assert key in ("ledger", "spent", "partitions", "frequent keys")
            return
        figure, ax = pyplot.subplots()
        assert made.plot(ax) is ax
        assert made.plot() is ax  # the current axes
        assert ax.get_title(loc="left").startswith("Private ")
        [notes] = [text.get_text() for text in ax.texts]
        assert "epsilon = " in notes
        figure.canvas.draw()
        pyplot.close(figure)


def test_a_long_table_shows_its_ends():
    released = dpf.histogram(RECORDS, 50, bounds=(0, 99), epsilon=1.0)
    assert Reader(released._repr_html_()).text.count("30 more rows") == 1
    assert released._repr_html_().count("<tr>") == 22
    assert "more rows" not in dpf.histogram(RECORDS, 20, bounds=(0, 100), epsilon=1.0)._repr_html_()


def test_a_long_cell_is_cut():
    assert len(Reader(html_table("", ["a"], [("x" * 1000,)])).text) < 110


class TestHistogram:
    @pytest.mark.parametrize(
        "options",
        [{}, {"neighbors": "add-remove"}, {"delta": 1e-6, "noise": "gaussian"}],
        ids=["zero-sum", "independent", "gaussian"],
    )
    def test_the_interval_covers_the_exact_counts(self, options):
        """The share of covered counts of 101 cells is at least the confidence, and for independent noise about it."""
        mechanism = dpf.PerturbedHistogram(101, grid=dpf.Grid(0, 100, step=1), epsilon=0.3, **options)
        exact = np.bincount(RECORDS, minlength=101)
        rng, covered, runs = PCG64(3), 0, 100
        for _ in range(runs):
            low, high = mechanism(RECORDS, rng=rng).interval(0.8).T
            covered += np.count_nonzero((low <= exact) & (exact <= high))
        assert 0.8 - 0.03 < covered / (101 * runs) < 0.8 + 0.06  # six standard deviations of 0.004, and whole numbers

    def test_the_interval_is_wide_for_counts_of_a_given_sum(self):
        mechanism = dpf.PerturbedHistogram(2, grid=dpf.Grid(0, 100, step=1), epsilon=0.1)
        errors = mechanism.release(RECORDS, size=2000, rng=PCG64(1))[:, 0] - np.count_nonzero(RECORDS <= 50)
        released = mechanism([10, 90] * 10**6, rng=PCG64(1))
        reach = (np.diff(released.interval(0.95), axis=1) // 2).max()
        assert np.mean(np.abs(errors) <= reach) > 0.95

    def test_ends_are_counts(self):
        histogram = dpf.histogram([50] * 3, 4, bounds=(0, 100), epsilon=0.1)
        assert ((histogram.interval() >= 0) & (histogram.interval() <= 3)).all()
        assert histogram.interval().shape == (4, 2)
        assert RESULTS["two columns"].interval(0.5).shape == (2, 3, 2)

    def test_frames_list_the_cells(self):
        columns = RESULTS["two columns"]._as_columns()
        edges = RESULTS["two columns"].edges
        assert columns["lower_0"].tolist() == np.repeat(edges[0][:-1], 3).tolist()
        assert columns["upper_1"].tolist() == np.tile(edges[1][1:], 2).tolist()
        assert columns["count"].tolist() == RESULTS["two columns"].counts.reshape(-1).tolist()
        assert math.isclose(columns["share"].sum(), 1)


class TestDensity:
    @every("basis", ["cosine", "trigonometric"])
    @every("terms", [1, 4, 5])
    def test_noise_is_that_of_the_coefficients(self, basis, terms):
        made = dpf.density(RECORDS, bounds=(0, 100), epsilon=1.0, terms=terms, basis=basis)
        x, width, waves = np.linspace(0, 100, 7), 101, []  # the grid has 101 cells
        for j in range(terms):
            coefficients = np.zeros(terms)
            coefficients[j] = 0.1
            waves.append((dpf.SeriesDensity(coefficients, made.grid, 200, PUBLIC, basis).pdf(x)) * width)
        squares = ((np.array(waves) - 1) / 0.1) ** 2
        expected = made.coefficient_noise * np.sqrt(squares.sum(axis=0)) / width
        np.testing.assert_allclose(made.noise(x), expected, rtol=0.02)
        assert np.isnan(made.noise([-1.0, 101.0])).all()

    def test_coefficient_noise_is_that_of_the_mechanism(self):
        mechanism = dpf.SeriesCoefficients(3, grid=GRID, epsilon=1.0)
        released = mechanism.release(RECORDS, size=4000, rng=PCG64(1))
        made = dpf.SeriesDensity(released[0], GRID, 200, PUBLIC)
        assert np.allclose(released.std(axis=0), made.coefficient_noise, rtol=0.1)

    def test_local_noise_includes_sampling(self):
        x = np.random.default_rng(0).beta(10, 10, 2000)
        randomizer = local.SeriesReports(4, epsilon=1.0, grid=dpf.Grid(0, 1))
        rng = PCG64(1)
        released = np.array([randomizer.estimate(randomizer.randomize(x, rng=rng)) for _ in range(100)])
        stated = randomizer.density(randomizer.aggregate(randomizer.randomize(x, rng=rng))).coefficient_noise
        assert (released.std(axis=0) < 1.3 * stated).all()
        assert (released.std(axis=0) > 0.6 * stated).all()


class TestMarginals:
    def test_frames_list_all_marginals(self):
        columns = RESULTS["marginals"]._as_columns()
        assert columns["marginal"] == ["sex, age"] * 9 + ["sex"] * 3
        assert columns["age"][-3:] == [None] * 3
        assert columns["sex"][-3:] == ["<f>", "m", None]

    def test_taken_names(self):
        made = dpf.marginals({"count": [1, 2]}, {"count": dpf.Categories([1, 2])}, epsilon=1.0)
        assert list(made._as_columns()) == ["marginal", "count", "count_", "noise"]

    @pytest.mark.host
    def test_whole_categories_stay_whole_numbers(self):
        pytest.importorskip("pandas")
        data, columns = {"a": [1, 2, None] * 30}, {"a": dpf.Categories([1, 2])}
        made = dpf.marginals(data, columns, epsilon=1.0).to_pandas()
        assert (str(made["a"].dtype), made["a"].tolist()[:2]) == ("Int64", [1, 2])
        import pandas

        twin = dpf.synthesize(pandas.DataFrame(data), 9, columns=columns, epsilon=1.0)
        assert str(twin["a"].dtype) == "Int64"

    @pytest.mark.host
    def test_a_plot_of_a_marginal(self):
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib.figure import Figure

        ax = RESULTS["marginals"].plot(Figure().add_subplot(), ("sex",))
        assert [label.get_text() for label in ax.get_xticklabels()] == ["<f>", "m", "None"]
        with pytest.raises(ValueError, match="names must be those of a marginal of one or two columns"):
            RESULTS["marginals"].plot(Figure().add_subplot(), ("age",))


@every("name", results())
def test_json(name):
    """Of every result: the columns of its frame, without NaN and infinities, and its guarantee."""
    made = results()[name]
    columns = made.to_columns()
    found = json.loads(made.to_json(), parse_constant=pytest.fail)
    if name == "ledger":
        assert dpf.Ledger.from_json(made.to_json()).charges == made.charges
        return
    assert list(found["columns"]) == list(columns)
    for column, cells in found["columns"].items():
        expected = [None if cell != cell else cell for cell in columns[column]]
        assert [str(cell) if isinstance(cell, float) and math.isinf(cell) else cell for cell in expected] == cells
        assert {type(cell) for cell in columns[column]} <= {str, int, float, type(None)}
    privacy = getattr(made, "privacy", None)
    assert found["guarantee"] == (None if privacy is None else str(privacy))
    assert found["result"] == type(made).__name__


def test_json_of_missing_and_infinite_numbers():
    estimate = dpf.Estimate(math.nan, -math.inf, math.inf, 0.95, PUBLIC)
    found = json.loads(estimate.to_json(), parse_constant=pytest.fail)["columns"]
    assert (found["value"], found["low"], found["high"]) == ([None], ["-inf"], ["inf"])


class TestGroups:
    def test_intervals(self):
        released = count_by_key()
        noise = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=GRID, epsilon=0.5, neighbors="add-remove")
        assert released.interval().tolist() == [list(noise.noise_interval(x)) for x in released.array]

    def test_intervals_of_public_groups(self):
        mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=0.5)
        released = dpf.by_group(mean, [1, 2, 3], labels=["a", "b", "a"], keys=["a", "b", "none"])
        low, high = released.interval().T
        assert [low[0], high[0]] == list(mean.noise_interval(released["a"], n=2))
        assert np.isnan([low[2], high[2]]).all()

    def test_private_numbers_of_records_are_not_kept(self):
        assert "sizes" not in str(count_by_key().__dict__).replace("sizes=None", "")

    def test_medians_have_none(self):
        median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.5)
        released = dpf.by_group(median, [1, 2], labels=["a", "b"], keys=["a", "b"])
        with pytest.raises(TypeError, match="depends on the data"):
            released.interval()
        with pytest.raises(TypeError, match="not known"):
            KeyedReleases(["a"], [ReleasedColumn("x", np.array([1.0]))], dpf.Privacy(1.0)).interval()

    def test_columns_of_several_keys_and_numbers(self):
        numbers = ReleasedColumn("release", np.zeros((2, 2)), ["x", "q=0.5"])
        vectors = KeyedReleases([(1, "a"), (2, "b")], [numbers], dpf.Privacy(1.0), names=["year", "x"])
        assert list(vectors._as_columns()) == ["year", "x", "x_", "q=0.5"]
        numbers = ReleasedColumn("release", np.zeros((1, 2)))
        unnamed = KeyedReleases([(1, "a")], [numbers], dpf.Privacy(1.0))
        assert list(unnamed._as_columns()) == ["key_0", "key_1", "0", "1"]
        with pytest.raises(ValueError, match="single number"):
            vectors.plot()


class TestEstimate:
    def test_a_value_at_a_bound_is_marked(self):
        estimate = dpf.interval("median", [5] * 1000, bounds=(5, 9), epsilon=1.0)
        assert estimate.at_bound == "lower"
        assert ", at the lower bound; epsilon = 1" in repr(estimate)
        assert "at the lower bound" in estimate._repr_html_()
        assert dpf.interval("median", [9] * 1000, bounds=(5, 9), epsilon=1.0).at_bound == "upper"
        inner = dpf.interval("median", [7] * 1000, bounds=(5, 9), epsilon=1.0)
        assert inner.at_bound is None
        assert "bound" not in repr(inner)

    @every(
        "statistic, x, at",
        [
            ("mean", [0.0] * 1000, "lower"),
            ("variance", [0.0, 10.0] * 500, "upper"),
            ("std", [5.0] * 1000, "lower"),
            ("sum", [10.0] * 1000, "upper"),
            ("count", [], "lower"),
            ("count", [1.0] * 50, None),
        ],
    )
    def test_each_statistic(self, statistic, x, at):
        bounds = {} if statistic == "count" else {"bounds": (0, 10)}
        found = {dpf.interval(statistic, x, epsilon=1.0, rng=PCG64(seed), **bounds).at_bound for seed in range(20)}
        assert at in found
        assert found <= {at, None}

    def test_explain_tells(self):
        texts = []
        dpf.median([5] * 1000, bounds=(5, 9), epsilon=1.0, explain=texts.append)
        assert texts[1].startswith("The release is at the lower bound, 5: ")
        dpf.quantile([5] * 1000, [0.4, 0.6], bounds=(0, 5), epsilon=1.0, explain=texts.append)
        assert texts[3].startswith("2 of 2 releases are at the upper bound, 5: ")
        dpf.sum([0] * 10, bounds=(0, 1), epsilon=1.0, explain=texts.append)
        dpf.median([7] * 1000, bounds=(5, 9), epsilon=1.0, explain=texts.append)
        assert len(texts) == 6
        dpf.mean([7.0] * 1000, bounds="private", epsilon=1.0, explain=texts.append)
        assert len(texts) == 7

    @pytest.mark.host
    def test_several_in_one_plot(self):
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib.figure import Figure

        ax = Figure().add_subplot()
        for i, region in enumerate(("north", "south")):
            dpf.Estimate(i, i - 1, i + 2, 0.9, PUBLIC).plot(ax, name=region, unit="EUR")
        dpf.Estimate(2, 1, 4, 0.9, PUBLIC).plot(ax, name="south", unit="EUR")
        assert [label.get_text() for label in ax.get_yticklabels()] == ["north", "south", "south"]
        bottom, top = ax.get_ylim()
        assert top < 0 < 2 < bottom
        assert [float(line.get_ydata()[0]) for line in ax.lines if line.get_gid() == "dpfast estimate"] == [0, 1, 2]
        assert ax.get_xlabel() == "value (EUR)"
        assert len(ax.texts) == 1


@pytest.mark.host
def test_dollar_signs_in_names_are_no_formulas():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    text = "$x^$"
    mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=1.0)
    table = {text: [text, "b"] * 50, "$y^$": [text, "b"] * 50}
    marginals = dpf.marginals(table, dict.fromkeys(table, (text, "b")), [(text,), tuple(table)], epsilon=1.0)
    X = np.random.default_rng(0).normal(size=(500, 1))
    fit = replace(dpf.glm(X, np.arange(500) % 2, radius=4, epsilon=2.0), names=(text,))
    draws = [
        dpf.by_group(mean, np.arange(100), labels=[text, "b"] * 50, keys=[text, "b"]).plot,
        partial(dpf.Estimate(0, -1, 1, 0.9, PUBLIC).plot, name=text, unit=text),
        partial(marginals.plot, names=(text,)),
        partial(marginals.plot, names=tuple(table)),
        fit.plot,
    ]
    for draw in draws:
        figure = Figure()
        draw(figure.add_subplot())
        figure.savefig(BytesIO())  # a formula that is not complete raises a ValueError


@pytest.mark.parametrize("mechanism", list(central(GRID, kinds=None, statistics=[dpf.statistics.Median()])), ids=name)
def test_mechanisms_laws_and_states_show_no_record(mechanism):
    read = Reader(mechanism._repr_html_())
    assert str(mechanism.privacy) in read.text
    shown = []
    for x in (np.full(50, 3), np.full(50, 97)):
        law, state = mechanism.law(shaped(mechanism, x)), None
        with suppress(TypeError, ValueError):  # not every mechanism reads records one by one
            state = mechanism.start()
            state.update(shaped(mechanism, x))
        shown.append((repr(state), repr(law).partition(" at ")[0]))
    assert shown[0] == shown[1]


def test_local_mechanisms_have_tables():
    text = Reader(local.Categorical(5, 1.0)._repr_html_()).text
    assert "Categorical: epsilon = 1 (pure differential privacy) for any change of one record" in text
    assert "k-rr" in text
    assert eval(repr(local.Categorical(5, 1.0)), {"Categorical": local.Categorical}) == local.Categorical(5, 1.0)


def test_choices_have_tables():
    choice = dpf.explain("trimmed_mean", 0.1, n=2048, bounds=(0, 1000), epsilon=1.0)
    assert "Taken: smooth-sensitivity" in Reader(choice._repr_html_()).text


def test_the_ledger_names_releases_without_their_guarantee():
    columns = RESULTS["ledger"]._as_columns()
    assert columns["release"][0].startswith("GlobalSensitivity release of the mean of records on 101 points")
    assert not any("epsilon" in label for label in columns["release"])
    assert columns["amount"] == [0.25, 0.5]
    assert "spent epsilon = 0.75, remaining epsilon = 0.25" in RESULTS["ledger"]._repr_html_()


def test_a_histogram_of_no_law_has_no_interval():
    released = RESULTS["histogram"]
    other = Histogram(released.counts, released.weights, released.cells, 200, dpf.Privacy(rho=1.0))
    with pytest.raises(ValueError, match="epsilon"):
        other.interval()


class TestLegiblePlots:
    """Of a group of four records among large ones: its interval is not the axis, and no number is too large."""

    @pytest.mark.host
    @pytest.mark.parametrize("bounds", [None, (0.0, 1e9)])
    def test_groups(self, bounds):
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib.figure import Figure

        x, labels = 50 + RECORDS.repeat(20) / 10, np.append(["a", "b", "c", "d"] * 999, ["tiny"] * 4)
        made = dpf.interval("median", x, bounds=bounds, epsilon=1.0, labels=labels, keys=[*"abcd", "tiny", "none"])
        figure = Figure()
        ax = made.plot(figure.add_subplot())
        left, right = ax.get_xlim()
        assert 0 < left < right < 100
        arrows = [line for line in ax.lines if line.get_gid() == "dpfast beyond"]
        assert [line.get_marker() for line in arrows] == ["<", ">"]
        assert [line.get_ydata() for line in arrows] == [[4], [4]]
        [value] = [text.get_text() for text in ax.texts if text.get_gid() == "dpfast beyond"] or [None]
        assert value in (f"{made['tiny'].value:.3g}", None)
        figure.savefig(BytesIO())

    @pytest.mark.host
    def test_estimates_one_after_another(self):
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib.figure import Figure

        figure = Figure()
        ax = figure.add_subplot()
        for i, (low, high) in enumerate([(-1.7e308, 1.7e308), (1, 4), (2, 5), (3, 6e7)]):
            dpf.Estimate(low + 1, low, high, 0.9, PUBLIC).plot(ax, name=str(i))
        assert all(0 < end < 6 for end in ax.get_xlim())
        arrows = [line for line in ax.lines if line.get_gid() == "dpfast beyond"]
        assert [(line.get_marker(), *line.get_ydata()) for line in arrows] == [("<", 0), (">", 0), (">", 3)]
        assert [text.get_text() for text in ax.texts if text.get_gid() == "dpfast beyond"] == ["-1e+150"]
        figure.savefig(BytesIO())

    @pytest.mark.parametrize(
        ("low", "high", "ends"),
        [
            ([1, 2, 0], [3, 4, 1e6], (1, 4)),
            ([1, 2, 0], [3, 4, 9], (0, 9)),
            ([math.nan, 2], [math.nan, 4], (2, 4)),
            ([-1e200, 2], [1e200, 4], (2, 4)),
            ([math.nan], [math.nan], None),
            ([1, 1, 1, 0], [1, 1, 1, 5], (1, 1)),
            ([10, 20, 30, 1e9], [10, 20, 30, 1e9], (10, 30)),
            ([10, 20, 30, 900], [10, 20, 30, 900], (10, 900)),
        ],
    )
    def test_ends_of_an_axis(self, low, high, ends):
        assert legible_ends(low, high) == ends

    @pytest.mark.host
    def test_many_rows(self):
        """Names do not lie upon each other."""
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib.figure import Figure

        labels = np.arange(200) % 60
        figure = Figure()
        ax = dpf.by_group(MEAN, RECORDS, labels=labels, keys=range(60)).plot(figure.add_subplot())
        figure.canvas.draw()
        first, second = (label.get_window_extent() for label in ax.get_yticklabels()[:2])
        assert not first.overlaps(second)
