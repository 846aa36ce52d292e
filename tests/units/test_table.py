"""`Table`: its methods are the functions, with the facts of columns, under one ledger."""

import contextlib
import itertools
import re
import threading
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast import statistics
from dpfast.errors import BudgetError, PrivacyWarning, UtilityWarning
from dpfast.reports.costs import cost_of
from dpfast.tables import TableError
from tests.cases import every

KINDS = ["a", "b", "c"]
DROPPED = {"pay": {"bounds": (0, 100), "missing": "drop"}}
COLUMNS = {
    "pay": {"bounds": (0, 100), "missing": "half"},
    "age": {"bounds": (18, 90), "type": "integer", "missing": "lower"},
    "kind": {"categories": KINDS},
}
N = 900


def records(seed=0):
    rng = np.random.default_rng(seed)
    pay = rng.gamma(5, 8, N)
    pay[rng.random(N) < 0.24] = np.nan
    kinds = np.array(KINDS, object)[rng.integers(0, 3, N)]
    person = np.array([f"p{i}" for i in rng.integers(0, 300, N)], object)
    return {"pay": pay, "age": rng.integers(18, 90, N).astype(float), "kind": kinds, "person": person}


def table(data=None, **options):
    given = {"epsilon": 100, "columns": COLUMNS, "rng": np.random.default_rng(5)}
    return dpf.Table(records() if data is None else data, **given | options)


def fresh():
    return np.random.default_rng(5)


PAY = {"bounds": (0, 100), "missing": "half", "epsilon": 2}
CALLS = {
    "median": (lambda t: t.median("pay", epsilon=2), lambda x: dpf.median(x["pay"], **PAY, rng=fresh())),
    "quantile": (
        lambda t: t.quantile("pay", 0.9, epsilon=2),
        lambda x: dpf.quantile(x["pay"], 0.9, **PAY, rng=fresh()),
    ),
    "quantiles": (
        lambda t: t.quantile("pay", [0.2, 0.9], epsilon=2),
        lambda x: dpf.quantile(x["pay"], [0.2, 0.9], **PAY, rng=fresh()),
    ),
    "mean": (lambda t: t.mean("pay", epsilon=2), lambda x: dpf.mean(x["pay"], **PAY, rng=fresh())),
    "sum": (lambda t: t.sum("pay", epsilon=2), lambda x: dpf.sum(x["pay"], **PAY, rng=fresh())),
    "variance": (lambda t: t.variance("pay", epsilon=2), lambda x: dpf.variance(x["pay"], **PAY, rng=fresh())),
    "std": (lambda t: t.std("pay", epsilon=2), lambda x: dpf.std(x["pay"], **PAY, rng=fresh())),
    "iqr": (lambda t: t.iqr("pay", epsilon=2), lambda x: dpf.iqr(x["pay"], **PAY, rng=fresh())),
    "trimmed_mean": (
        lambda t: t.trimmed_mean("pay", 0.1, epsilon=2),
        lambda x: dpf.trimmed_mean(x["pay"], 0.1, **PAY, rng=fresh()),
    ),
    "winsorized_mean": (
        lambda t: t.winsorized_mean("pay", 0.1, epsilon=2),
        lambda x: dpf.winsorized_mean(x["pay"], 0.1, **PAY, rng=fresh()),
    ),
    "huber": (lambda t: t.huber("pay", 9.0, epsilon=2), lambda x: dpf.huber(x["pay"], 9.0, **PAY, rng=fresh())),
    "interval": (
        lambda t: [*t.interval("median", "pay", epsilon=2)],
        lambda x: [*dpf.interval("median", x["pay"], **PAY, rng=fresh())],
    ),
    "integers": (
        lambda t: t.mean("age", epsilon=2),
        lambda x: dpf.mean(x["age"], grid=dpf.Grid(18, 90, step=1), epsilon=2, rng=fresh()),
    ),
    "histogram": (
        lambda t: t.histogram("pay", 7, epsilon=2).counts,
        lambda x: dpf.histogram(x["pay"], 7, **PAY, rng=fresh()).counts,
    ),
    "density": (
        lambda t: t.density("pay", epsilon=2).pdf(50.0),
        lambda x: dpf.density(x["pay"], **PAY, rng=fresh()).pdf(50.0),
    ),
    "bounds": (lambda t: t.bounds("age", epsilon=2), lambda x: dpf.bounds(x["age"], epsilon=2, rng=fresh())),
    "mle": (
        lambda t: t.mle("age", "normal", bounds=[(0, 100)], epsilon=2),
        lambda x: dpf.mle(x["age"], "normal", bounds=[(0, 100)], epsilon=2, rng=fresh()),
    ),
    "linear_regression": (
        lambda t: t.linear_regression(["age", "kind"], "pay", epsilon=2).coefficients,
        lambda x: (
            dpf.linear_regression(
                np.column_stack([x["age"], x["kind"] == "b", x["kind"] == "c"]),
                x["pay"],
                bounds=[(18, 90), (0, 1), (0, 1)],
                label_bound=50,
                label_center=50,
                epsilon=2,
                rng=fresh(),
            ).coefficients
        ),
    ),
    "groups": (
        lambda t: t.median("pay", by="kind", epsilon=2).array,
        lambda x: (
            dpf.by_group(
                dpf.InverseSensitivity(statistics.Median(), grid=dpf.Grid(0, 100, missing="half"), epsilon=2),
                x["pay"],
                labels=x["kind"],
                keys=KINDS,
                rng=fresh(),
            ).array
        ),
    ),
    "intervals of groups": (
        lambda t: t.interval("mean", "pay", by="kind", epsilon=2).array,
        lambda x: dpf.interval("mean", x["pay"], labels=x["kind"], keys=KINDS, **PAY, rng=fresh()).array,
    ),
}


@pytest.mark.filterwarnings("ignore:a record with a missing cell of")
@every("name", CALLS)
def test_a_method_is_its_function_with_the_facts_of_the_column(name):
    method, function = CALLS[name]
    one = table()
    np.testing.assert_array_equal(method(one), function(records()))
    [release] = one.releases
    assert release.privacy.epsilon == 2
    assert one.ledger.spent.epsilon == 2
    if name not in ("bounds", "quantile"):  # which are at a bound
        assert not np.array_equal(method(table(rng=np.random.default_rng(6))), function(records()))


def test_counts_and_private_keys():
    one = table(neighbors="add-remove", delta=1e-5)
    assert abs(one.count(column="pay", epsilon=9) - N) < 9
    assert one.count(by="kind", epsilon=9).array.sum() == pytest.approx(N, abs=9)
    assert abs(one.count(column="age", within=(18, 53), epsilon=9) - np.sum(records()["age"] <= 53)) < 9
    assert set(one.top_k("kind", 2, epsilon=9)) < set(KINDS)
    hidden = table(neighbors="add-remove", delta=1e-5, columns={"pay": {"bounds": (0, 100), "missing": "drop"}})
    assert list(hidden.partitions("kind", epsilon=9, delta=1e-6).keys) == KINDS
    means = hidden.mean("pay", by="kind", epsilon=9, delta=1e-6)
    assert list(means) == KINDS
    assert means.counts.sum() == pytest.approx(N, abs=9)
    assert means.array == pytest.approx([40, 40, 40], abs=8)
    last = hidden.releases[-1].privacy
    assert (last.epsilon, last.delta) == (9, 1e-6)


def test_shares_add_up_to_the_budget():
    for epsilon in ("0.1", 1, "1/3", 0.7):
        one = table(epsilon=epsilon)
        for _ in range(10):
            one.mean("pay", share=0.1)
        with pytest.raises(BudgetError):
            one.mean("pay", share=0.01)
        assert one.report().privacy.epsilon == pytest.approx(float(one.ledger.privacy.epsilon), rel=1e-12)


def test_a_share_of_delta_goes_where_a_release_uses_one():
    one = table(neighbors="add-remove", delta=1e-5, columns={"pay": {"bounds": (0, 100)}})
    one.mean("pay", by="kind", share=0.25)
    one.mean("pay", share=0.25)
    assert [release.privacy.delta for release in one.releases] == [pytest.approx(2.5e-6, rel=1e-15), 0]


class TestUnits:
    def test_the_guarantee_is_for_a_unit(self):
        one = table(unit=("person", 2), epsilon=3, delta=1e-5, columns=COLUMNS | DROPPED)
        assert one.ledger.privacy.per_unit == 2
        one.mean("pay", epsilon=1)
        one.partitions("kind", epsilon=0.5, delta=1e-6)
        one.sum("age", by="kind", share=0.25)
        assert [release.privacy.epsilon for release in one.releases] == [1, 0.5, 0.75]
        assert one.ledger.spent.epsilon == 2.25
        one = table(unit=("person", 2), epsilon=3, delta=1e-5, columns={"pay": {"bounds": (0, 100)}})
        one.mean("pay", by="kind", share=0.5)
        assert one.ledger.spent.epsilon == 1.5
        assert one.ledger.spent.delta <= 0.5e-5

    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_no_unit_has_more_records(self, limit):
        one = table(unit=("person", limit), epsilon=1000 * limit)
        data = records()
        _, sizes = np.unique(data["person"].astype(str), return_counts=True)
        kept = np.minimum(sizes, limit).sum()
        assert one.count(column="age", epsilon=200 * limit) == kept
        # The same records in all columns.
        values, ages = one.records.values("pay"), one.records.values("age")
        pairs = {*zip(np.nan_to_num(data["pay"]), data["age"], strict=True)}
        assert len(values) == kept
        assert {*zip(np.nan_to_num(values), ages, strict=True)} <= pairs

    def test_the_delta_of_a_record_gives_that_of_a_unit(self):
        for epsilon, delta, k in ((1, 1e-6, 3), (0.1, 1e-5, 20), (8, 1e-9, 2)):
            budget = dpf.Privacy(10, 1e-4, "add-remove", per_unit=k)
            cost = cost_of(budget, epsilon, None, delta)
            whole = dpf.Privacy(cost.epsilon, cost.delta, "add-remove").for_units(k)
            assert epsilon * (1 - 2**-52) <= whole.epsilon <= epsilon
            assert 0.99 * delta < whole.delta <= delta

    def test_a_ledger_must_be_for_the_unit(self):
        for per_unit in (None, 3):
            ledger = dpf.Ledger(1, neighbors="add-remove", per_unit=per_unit)
            with pytest.raises(ValueError, match="per_unit=2, not"):
                table(epsilon=None, ledger=ledger, unit=("person", 2))
        for unit in ("person", ("person",), 3):
            with pytest.raises(TypeError, match="unit must be a column and the most records"):
                table(unit=unit)


@pytest.mark.host
class TestContainers:
    FORMS = ("pandas", "polars", "lazy", "arrow", "duckdb", "csv", "parquet")

    def made(self, form, tmp_path):
        data = records()
        if form == "csv":
            path = tmp_path / "x.csv.gz"
            pytest.importorskip("pandas").DataFrame(data).to_csv(path, index=False)
            return str(path)
        if form in ("arrow", "duckdb", "parquet"):
            arrow = pytest.importorskip("pyarrow")
            frame = arrow.table({name: list(x) for name, x in data.items()})
            if form == "duckdb":
                return pytest.importorskip("duckdb").connect().from_arrow(frame)
            if form == "parquet":
                pytest.importorskip("pyarrow.parquet").write_table(frame, tmp_path / "x.parquet")
                return tmp_path / "x.parquet"
            return frame
        library = pytest.importorskip("polars" if form == "lazy" else form)
        frame = library.DataFrame({name: x.tolist() for name, x in data.items()})
        return frame.lazy() if form == "lazy" else frame

    @every("form", FORMS)
    def test_all_containers_give_the_same_numbers(self, form, tmp_path):
        def releases(data):
            one = table(data, delta=1e-5, unit=("person", 3), columns=COLUMNS | DROPPED)
            one.mean("pay", epsilon=1)
            one.median("pay", by="kind", epsilon=1)
            one.histogram("age", 5, epsilon=1)
            return [release.columns for release in one.releases]

        def numbers(found):
            return [[cells for cells in columns.values() if cells] for columns in found]

        assert numbers(releases(self.made(form, tmp_path))) == numbers(releases(records()))

    def test_a_query_reads_all_columns_at_once(self, tmp_path):
        polars = pytest.importorskip("polars")
        times = []

        def looked_at(frame):
            times.append(1)
            return frame

        lazy = polars.DataFrame({name: x.tolist() for name, x in records().items()}).lazy()
        one = table(lazy.map_batches(looked_at))
        one.median("pay", by="kind", epsilon=1)
        one.mean("age", epsilon=1)
        assert len(times) == 1
        with pytest.raises(TypeError, match="name 'person' in columns="):
            one.count(column="person", epsilon=1)
        with pytest.raises(TypeError, match="name the columns to read in columns="):
            dpf.Table(lazy, epsilon=1)

    @pytest.mark.filterwarnings("ignore:a record with a missing cell of")
    def test_a_file_is_read_once(self, tmp_path, monkeypatch):
        path = self.made("csv", tmp_path)
        times = []
        from dpfast.reports import sources

        read = sources.blocks
        monkeypatch.setattr(sources, "blocks", lambda *given: times.append(1) or read(*given))
        one = table(path)
        one.median("pay", by="kind", epsilon=1)
        one.linear_regression(["age", "kind"], "pay", epsilon=1)
        assert len(times) == 1

    def test_a_schema_is_read_once_for_each_column(self, tmp_path, monkeypatch):
        path = self.made("parquet", tmp_path)
        from dpfast.reports import sources

        asked, real = [], sources.schema_type
        monkeypatch.setattr(sources, "schema_type", lambda path, name: asked.append(name) or real(path, name))
        one = table(path, columns={"pay": COLUMNS["pay"], "age": {"bounds": (18, 90), "missing": "lower"}})
        for _ in range(3):
            one.median("pay", epsilon=1)
            one.mean("age", epsilon=1)
            one.mean("age", bounds=(0, 99), epsilon=1)
        assert asked == ["pay", "age"]

    def test_integers_as_keys_of_a_file(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("year,pay\n" + "2010,1\n2011,3\n,5\nx,7\n2010.5,9\n" * 100)
        columns = {"year": {"categories": [2010, 2011, 2012]}, "pay": {"bounds": (0, 10)}}
        one = dpf.Table(path, epsilon=500, neighbors="add-remove", columns=columns)
        counts = one.count(by="year", epsilon=100)
        assert dict(counts) == {2010: 100, 2011: 100, 2012: 0}
        columns["year"] = {"type": "integer"}
        one = dpf.Table(path, epsilon=500, delta=1e-5, neighbors="add-remove", columns=columns)
        assert list(one.count(by="year", epsilon=100, delta=1e-6)) == [2010, 2011]

    def test_formats(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("pay;kind\n" + "1.234,5;a\n" * 100)
        form = {"delimiter": ";", "decimal": ",", "thousands": "."}
        one = dpf.Table(path, epsilon=50, columns={"pay": {"bounds": (0, 2000), "missing": "lower"}}, format=form)
        assert one.mean("pay", epsilon=50) == pytest.approx(1234.5, abs=9)


class TestErrors:
    @every(
        "options, message",
        [
            ({"epsilon": None}, "give ledger= or epsilon="),
            ({"ledger": dpf.Ledger(1)}, "give ledger= or epsilon="),
            ({"epsilon": None, "ledger": dpf.Ledger(1), "delta": 0.1}, "those of the ledger"),
            ({"columns": ["pay"]}, "columns must be a mapping"),
            ({"columns": {"pay": (0, 1)}}, "for 'pay' it is tuple"),
            ({"columns": {"pay": {"bound": 3}}}, "column 'pay' has no fact 'bound': it takes type, bounds"),
            ({"columns": {"pay": {"bounds": (3, 1)}}}, "column 'pay': "),
            ({"columns": {"pay": {"type": "float"}}}, "column 'pay': type must be"),
            ({"columns": {"pay": {"step": 0.5}}}, "column 'pay': step needs bounds"),
            ({"columns": {"kind": {"categories": "ab"}}}, "column 'kind': categories must be a sequence"),
            ({"columns": {"kind": {"categories": ["a", "a"]}}}, "column 'kind': categories must be different"),
            ({"columns": {"kind": {"categories": ["a", 1]}}}, "column 'kind': categories must be different"),
            ({"columns": {"pay": {"missing": "mean"}}}, "column 'pay': missing must be"),
            ({"format": {"decimal": "x"}}, "decimal must be"),
        ],
    )
    def test_before_data_are_read(self, options, message):
        with pytest.raises((TypeError, ValueError, TableError), match=message):
            table(**options)

    @pytest.mark.parametrize("data", [3, [1, 2], np.zeros((3, 2)), {1, 2}])
    def test_what_is_no_table(self, data):
        with pytest.raises(TypeError, match="data must be a frame"):
            dpf.Table(data, epsilon=1)

    @every(
        "call, message",
        [
            (lambda t: t.mean("pay"), "give epsilon= or share="),
            (lambda t: t.mean("pay", epsilon=1, share=0.1), "give epsilon= or share="),
            (lambda t: t.mean("pay", share=1.5), "share must be at most 1"),
            (lambda t: t.mean("rent", epsilon=1), "no column 'rent': it has 'pay', 'age', 'kind', 'person'"),
            (lambda t: t.mean("pay", by="kin", epsilon=1), "no column 'kin': did you mean 'kind'"),
            (lambda t: t.glm(["age"], "knd", epsilon=1), "no column 'knd': did you mean 'kind'"),
            (lambda t: t.partitions("knd", epsilon=1), "no column 'knd': did you mean 'kind'"),
            (lambda t: t.mean("pay", by="person", epsilon=1), "keys of person are private: give their categories"),
            (lambda t: t.count(epsilon=1), "count needs column= or by="),
            (
                lambda t: t.linear_regression(["person"], "pay", epsilon=1),
                "bounds of all features, and 'person' has none",
            ),
            (lambda t: t.glm(["age"], "kind", epsilon=1), "the label 'kind' must be a number, or have two categories"),
            (lambda t: t.mean("pay", epsilon=1, trim=0.1), "unexpected keyword argument 'trim'"),
        ],
    )
    def test_cost_nothing(self, call, message):
        one = table()
        with pytest.raises((TypeError, ValueError, TableError), match=message):
            call(one)
        assert one.ledger.spent.epsilon == 0
        assert one.releases == ()

    @every(
        "call, message",
        [
            (lambda t: t.average, r"did you mean mean\?"),
            (lambda t: t.hist, r"did you mean histogram\?"),
            (lambda t: t.medain, r"did you mean median\?"),
            (lambda t: t.groupby, "did you mean by=, as in"),
            (lambda t: t.min, r"did you mean quantile\(column, 0\)"),
            (lambda t: t.pay, "has no attribute 'pay'$"),
        ],
    )
    def test_words_of_other_libraries_for_methods(self, call, message):
        with pytest.raises(AttributeError, match=message):
            call(table())

    @every(
        "call, message",
        [
            (
                lambda t: t.mean("pay", eps=1),
                r"mean\(\) got an unexpected keyword argument 'eps': did you mean 'epsilon'",
            ),
            (lambda t: t.mean("pay", groupby="kind", share=0.1), "did you mean 'by'"),
            (lambda t: t.mean("pay", "kind", share=0.1), r"too many positional arguments: write mean\(column, by="),
            (lambda t: t.quantile("pay", share=0.1), r"missing a required argument: 'q': write quantile\(column, q, "),
            (lambda t: t.histogram("name", share=0.1), "of text, a count by this column counts its keys"),
            (lambda t: t.histogram("kind", share=0.1), r"'kind' is text, .*: count\(by='kind'\) counts its keys"),
            (lambda t: t.median("kind", share=0.1), "'kind' is text, of which there are no numbers"),
        ],
    )
    def test_advice_costs_nothing(self, call, message):
        one = table(data={**records(), "name": np.array(["x"] * len(records()["pay"]))})
        with pytest.raises(TypeError, match=message):
            call(one)
        assert one.ledger.spent.epsilon == 0

    @pytest.mark.host
    def test_columns_of_one_name(self):
        pandas = pytest.importorskip("pandas")
        with pytest.raises(TableError, match="several columns are named 'pay'"):
            dpf.Table(pandas.DataFrame(np.zeros((3, 2)), columns=["pay", "pay"]), epsilon=1).median("pay", epsilon=1)

    def test_a_share_needs_a_budget_of_epsilon(self):
        one = table(epsilon=None, ledger=dpf.Ledger(rho=1))
        with pytest.raises(TypeError, match="a share is of a budget of epsilon, not of rho"):
            one.mean("pay", share=0.1)
        one.mean("pay", epsilon=0.5)
        assert one.report().privacy.epsilon == 0.5


def test_a_replaced_record_pays_for_releases_of_an_added_one():
    """Counts, private keys and what drops missing records cost what they are given, for a replaced record."""
    one = table(epsilon=30, delta=1e-4, columns=COLUMNS | DROPPED)
    assert abs(one.count(column="age", epsilon=4) - N) < 15
    assert one.interval("count", "age", epsilon=4).privacy.neighbors == "add-remove"
    assert one.mean("pay", epsilon=2) == pytest.approx(40, abs=5)
    assert one.interval("median", "pay", by="kind", epsilon=2)["a"].low < 45
    assert list(one.median("age", by=["person"], epsilon=4, delta=1e-5)) is not None
    one.mean("age", epsilon=1)
    assert [release.privacy.epsilon for release in one.releases] == [4, 4, 2, 2, 4, 1]
    assert {release.privacy.neighbors for release in one.releases} == {"replace-one"}
    assert 0.99e-5 < one.releases[4].privacy.delta <= 1e-5
    assert one.ledger.spent.epsilon == 17


def test_a_call_may_say_otherwise():
    one = table()
    assert one.mean("pay", bounds=(0, 5), missing=0, epsilon=20) <= 5
    np.testing.assert_array_equal(one.mean("pay", by="kind", bounds=(0, 5), epsilon=20).array <= 5, True)


def test_what_is_for_a_replaced_record_only():
    one = table(neighbors="add-remove")
    with pytest.raises(ValueError, match="is for one record replaced: it needs a table with neighbors='replace-one'"):
        one.density("age", epsilon=1)
    with pytest.raises(ValueError, match="density is for one record replaced"):
        table(columns=COLUMNS | DROPPED).density("pay", epsilon=1)


FACTS = {"x": {"bounds": (-1, 1)}, "y": {"bounds": (-3, 9)}}


class TestMissingCellsOfRegressions:
    def made(self, missing=None, **options):
        rng, n = np.random.default_rng(3), 20_000
        x = rng.uniform(-1, 1, n)
        y = 3 + 2 * x + rng.normal(size=n) / 4
        x[(x > 0) & (rng.random(n) < 0.8)] = np.nan
        columns = {name: facts | ({} if missing is None else {"missing": missing}) for name, facts in FACTS.items()}
        return dpf.Table({"x": x, "y": y}, **{"epsilon": 8, "columns": columns, "rng": fresh(), **options})

    def test_nothing_said_warns_before_the_charge(self):
        held = self.made()
        with pytest.warns(UtilityWarning, match="missing cell of x, y counts as one in the middle .* missing='drop'"):
            held.linear_regression(["x"], "y", epsilon=1)
        assert held.releases[0].privacy.neighbors == "replace-one"
        assert "counts as one in the middle" in held.releases[0].note
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            held = self.made()
            with pytest.raises(UtilityWarning):
                held.linear_regression(["x"], "y", epsilon=1)
        assert held.ledger.spent.epsilon == 0

    @pytest.mark.parametrize("options", [{}, {"neighbors": "add-remove"}, {"unit": ("person", 1)}])
    def test_left_out(self, options):
        held = self.made("drop")
        if "unit" in options:
            data = {name: held.records.values(name) for name in "xy"} | {"person": np.arange(20_000)}
            held = dpf.Table(data, epsilon=8, columns=held.columns, rng=fresh(), **options)
        elif options:
            held = self.made(None, **options)  # where it costs nothing, it is the default
        fit = held.linear_regression(["x"], "y", share=0.5)
        assert fit.coefficients[0] == pytest.approx(2, abs=0.1)
        assert fit.n is None
        assert held.releases[0].privacy.epsilon == 4
        assert held.ledger.spent.epsilon == 4
        assert "Records with a missing cell are left out." in held.releases[0].note

    def test_what_is_said_of_a_cell(self):
        held = self.made(0.5)
        function = dpf.linear_regression
        x, y = (held.records.values(name) for name in "xy")
        x = np.where(np.isnan(x), 0.5, x)[:, None]
        expected = function(x, y, bounds=[(-1, 1)], label_bound=6, label_center=3, epsilon=1, rng=fresh())
        assert held.linear_regression(["x"], "y", epsilon=1).coefficients == pytest.approx(expected.coefficients)
        low = self.made("lower").linear_regression(["x"], "y", epsilon=1)
        assert low.coefficients[0] < 1

    def test_columns_that_cannot_be_missing_need_nothing_said(self):
        data = {"x": np.arange(2000) % 7, "y": np.arange(2000) % 2 == 0}
        columns = {"x": {"bounds": (0, 6)}, "y": {"bounds": (0, 1)}}
        held = dpf.Table(data, epsilon=8, columns=columns)
        assert held.linear_regression(["x"], "y", epsilon=1).n == 2000


def test_threads_share_a_table():
    one, found = table(), []
    threads = [threading.Thread(target=lambda: found.append(one.median("pay", epsilon=1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(one.releases) == 8
    assert {release.privacy.epsilon for release in one.releases} == {1.0}
    assert one.ledger.spent.epsilon == 8


@pytest.mark.filterwarnings("ignore:a record with a missing cell of")
def test_text_labels_of_a_logistic_regression():
    data = records()
    data["rich"] = np.where(data["age"] > 50, "yes", "no").astype(object)
    columns = COLUMNS | {"rich": {"categories": ["no", "yes"]}}
    fit = table(data, columns=columns).glm(["age"], "rich", epsilon=50)
    assert fit.coefficients[0] > 0
    assert fit.names == ("age",)


@pytest.mark.parametrize("k", [3, 6, 7, 11])
def test_shares_of_units_add_up(k):
    held = table(rng=None, epsilon=2, unit=("person", k))
    for _ in range(5):
        held.mean("age", share="0.2")
    with pytest.raises(BudgetError):
        held.mean("age", share=0.001)
    assert cost_of(held.ledger.privacy, None, np.float64(0.25), 0.0) == cost_of(held.ledger.privacy, None, "0.25", 0.0)


def test_statistics_of_ranks_with_a_delta_and_a_private_number():
    """A delta that the default method does not take is left out."""
    held = table(epsilon=10, delta=1e-6, neighbors="add-remove")
    for release in (held.iqr, lambda name, **cost: held.huber(name, 9.0, **cost)):
        assert 0 <= release("age", share=0.1) <= 90
    assert 0 <= dpf.iqr(records()["age"], bounds=(18, 90), epsilon=5, delta=1e-6, neighbors="add-remove") <= 72


def test_one_generator_for_all_releases():
    with pytest.raises(TypeError, match="rng is for all releases"):
        table(rng=None).mean("pay", epsilon=1, rng=fresh())


def test_columns_of_other_lengths():
    data, columns = records() | {"age": records()["age"][:-1]}, {"pay": COLUMNS["pay"], "age": COLUMNS["age"]}
    columns["pay"] = {"bounds": (0, 100), "missing": "lower"}
    for options in ({}, {"unit": ("person", 1)}):
        held = table(data, columns=columns, **options)
        held.mean("pay", epsilon=1)
        with pytest.raises(TableError, match=r"equally long$"):
            held.mean("age", epsilon=1)


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("pay,more\n" + "1,2\n" * 50)
    held = table(str(path), columns={"pay": {"bounds": (0, 100), "missing": "lower"}})
    held.mean("pay", epsilon=1)
    path.write_text("pay,more\n" + "1,3\n" * 51)
    with pytest.raises(TableError, match="has changed"):
        held.median("more", epsilon=1)


@pytest.mark.filterwarnings("ignore:a record with a missing cell of")
def test_notes_say_what_is_public_and_how_cells_are_read():
    held = table()
    held.interval("median", "pay", by="kind", epsilon=5)
    held.linear_regression(["age"], "pay", epsilon=5)
    first, second = held.releases
    for words in (
        "pay within 0 and 100: values beyond",
        "Missing cells of pay: half.",
        "intervals of 95 %",
        "taken as public",
    ):
        assert words in first.note
    assert "missing cell counts as one in the middle" in second.note
    report = held.report()
    assert report.guarantee.count("Taken as public: which records are in which group of kind.") == 1
    assert first.note in report.to_markdown()
    private = table(delta=1e-6, columns={"pay": {"bounds": (0, 100)}}, rng=None)
    private.mean("pay", by="kind", epsilon=5, delta=1e-7)
    assert "public" not in private.releases[0].note


@every("unit", [None, ("person", 2), ("person", 7)])
@every("budget", [(2, 1e-6), ("0.7", "1e-6"), (1, 3e-9)])
@every("shares", [(0.3, 0.3, 0.4), ("1/3", "1/3", "1/3"), (0.1,) * 10])
def test_shares_that_use_up_the_budget_leave_nothing_and_read_well(unit, budget, shares):
    epsilon, delta = budget
    held = table(epsilon=epsilon, delta=delta, unit=unit, columns=DROPPED, rng=None)
    for share in shares:
        held.mean("pay", by="kind", share=share)
    left, spent = held.ledger.remaining, held.ledger.spent
    assert (left.epsilon, left.delta) == (0, 0)
    assert Fraction(spent.epsilon) <= Fraction(epsilon)
    assert Fraction(spent.delta) <= Fraction(delta)
    report = held.report()
    stated = f"epsilon = {float(epsilon):g}, delta = {float(delta):g} for"
    assert stated in report.guarantee
    assert report.spending[-1][1].startswith(stated)
    assert report.spending[-2][1].startswith(stated)
    assert not re.search(r"\d{8}", " ".join(text for _, text in report.spending))


def test_a_release_has_its_own_charges_only():
    """Not those that another thread makes to the same ledger meanwhile, nor those of a nested receipt elsewhere."""
    ledger, other = dpf.Ledger(100), dpf.Ledger(1)
    held = table(epsilon=None, ledger=ledger)
    quarter = dpf.PrivacyProfile(dpf.Privacy(0.25))

    def meanwhile(column):
        thread = threading.Thread(target=lambda: ledger.reserve(quarter, times=3))
        thread.start()
        thread.join()
        other.reserve(quarter)
        return read(column)

    read, held.records.values = held.records.values, meanwhile
    held.mean("pay", epsilon=2)
    assert [release.privacy.epsilon for release in held.releases] == [2]
    assert ledger.spent.epsilon == 2.75
    with ledger.receipt() as outer, ledger.receipt() as inner:
        ledger.reserve(quarter, times=2)
        with pytest.raises(BudgetError):
            ledger.reserve(quarter, times=1000)
    assert [charge.times for charge in outer] == [charge.times for charge in inner] == [2]


def test_missing_cells_are_left_out_where_this_is_free_and_else_warned_of():
    """A deviation that counts a quarter of its column as 0 is no surprise: by public facts, never by the records."""
    lower, out = "Missing cells of x count as the lower bound.", "Missing cells of x are left out."
    at_bound = "a missing cell of x counts as the lower bound: .* say missing='drop' to leave them out, a number"
    for full, hidden in itertools.product((False, True), repeat=2):
        data = {"x": np.where(np.arange(900) % 2, np.nan if not full else 5.0, 5.0), "y": np.full(900, 5.0)}
        more = {"neighbors": "add-remove"} if hidden else {}
        one = table(data=data, columns={"x": {"bounds": (0, 9)}, "y": {"missing": "drop"}}, **more)
        free = contextlib.nullcontext() if hidden else pytest.warns(UtilityWarning, match=at_bound)
        for release in (
            lambda one: one.mean("x", method="inverse-sensitivity", epsilon=1),
            lambda one: one.interval("std", "x", epsilon=1),
            lambda one: one.histogram("x", 3, epsilon=1),
            lambda one: one.std("x", epsilon=1),
            lambda one: one.median("x", method="smooth-sensitivity", epsilon=1),
        ):
            with free:
                release(one)
            assert (out if hidden else lower) in one.releases[-1].note
        one.interval("median", "x", epsilon=1)
        assert one.releases[-1].result.value == 5
        one.quantile("x", [0.2, 0.8], epsilon=9)
        one.median("x", epsilon=1)
        one.mean("x", epsilon=9)
        assert abs(one.releases[-1].result - 5) < 0.1
        one.interval("mean", "x", epsilon=9)
        assert all(out in release.note for release in one.releases[-5:])
        one.mean("x", missing=4, epsilon=1)
        one.median("y", epsilon=1)
        told = [re.findall(r"Missing[^.]*", release.note) for release in one.releases[-2:]]
        assert told == [["Missing cells of x: 4"], ["Missing cells of y are left out"]]
    alone = table(data={"x": np.arange(900.0)}, columns={})
    alone.median("x", epsilon=1)
    assert alone.releases[0].note == out


def test_whole_numbers_of_numpy_are_never_missing():
    one = table(data={"x": np.arange(900)}, columns={"x": {"bounds": (0, 900)}})
    one.mean("x", epsilon=1)
    assert len(one.releases) == 1


def test_quantiles_leave_missing_cells_out_for_their_whole_epsilon():
    """Of a replaced record; a mean gets half of it, because the number of the others is private."""
    held = table(columns=DROPPED)
    held.median("pay", epsilon=2)
    held.interval("median", "pay", epsilon=2)
    held.mean("pay", epsilon=2)
    found = [release.result for release in held.releases]
    assert found[0] == dpf.median(records()["pay"], bounds=(0, 100), missing="drop", epsilon=2, rng=fresh())
    assert found[1].privacy.epsilon == 2
    assert [release.privacy.epsilon for release in held.releases] == [2, 2, 2]


def test_within_private_bounds_a_median_stands_for_missing_cells():
    """There is no interval, and the note says so; it does not say that they count as the lower bound."""
    one = table(columns={"pay": {"bounds": "private"}, "kind": {"categories": KINDS}})
    one.mean("pay", by="kind", epsilon=9)
    one.median("pay", epsilon=9)
    first, second = (release.note for release in one.releases)
    assert "Missing cells of pay are replaced by a median that is released first: if half of a group or more" in first
    assert "There is no interval" in first
    assert second == "Missing cells of pay are left out."
    with pytest.raises(TypeError, match=r"bounds of 'pay' are needed, not 'private': .* a release of bounds finds"):
        one.histogram("pay", 5, epsilon=1)


def test_a_note_says_how_the_call_reads_the_column():
    """Parameters of a call take the place of facts; a count clamps nothing, and a fit has bounds of its parameters."""
    one = table(columns=COLUMNS | {"age": {"bounds": (18, 90), "missing": "lower"}})
    one.mean("pay", bounds=(0, 5), missing=3, epsilon=1)
    one.quantile("pay", 0.5, grid=dpf.Grid(0, 9, missing="half"), epsilon=1)
    one.count(column="pay", within=(0, 9), epsilon=1)
    one.interval("count", "pay", epsilon=1)
    one.mle("age", "normal", bounds=[(0, 100)], epsilon=1)
    one.mle("age", "normal", bounds=[(0, 100)], method="blocks", epsilon=1)
    one.linear_regression(["age"], "pay", missing="drop", epsilon=1)
    one.linear_regression(["age"], "pay", missing="drop", radius=90, label_bound=9, epsilon=1)
    assert [re.sub(r" Errors are .*? 95 %\.", "", release.note) for release in one.releases] == [
        "pay within 0 and 5: values beyond count as the nearer bound. Missing cells of pay: 3.",
        "Missing cells of pay: half.",
        "",
        "From low to high: intervals of 95 %.",
        "Missing cells of age: 18.",
        "Missing cells of age are left out.",
        "age within 18 and 90: values beyond count as the nearer bound. Missing cells of age: lower. pay within 0 and "
        "100: values beyond count as the nearer bound. Records with a missing cell are left out.",
        "Missing cells of age: lower. Records with a missing cell are left out.",
    ]
    assert one.releases[2].title == "count within 0 and 9 of pay"


def test_missing_cells_of_a_fit():
    """The facts of a column say it where a fit can take it."""
    one = table()
    with pytest.raises(
        ValueError, match="a fit takes a number or 'drop' for missing cells, not the 'half' of 'pay': give"
    ):
        one.mle("pay", "exponential", bounds=(0.01, 1), epsilon=1)
    one.mle("pay", "exponential", bounds=(0.01, 1), blocks=20, epsilon=1)
    one.mle("pay", "exponential", bounds=(0.01, 1), missing=40, epsilon=1)
    with pytest.raises(ValueError, match="blocks is a parameter of blocks, which are for neighbors='replace-one'"):
        table(neighbors="add-remove").mle("age", "exponential", bounds=(0.01, 1), blocks=20, epsilon=1)


def test_standard_deviations_of_groups_are_roots_of_variances():
    """With the same noise, charge and counts; the ends of the intervals are outside of the roots."""
    for columns in (COLUMNS, DROPPED):
        one, other = (table(columns=columns, delta=1e-5) for _ in range(2))
        cost = {"epsilon": 9} if columns is COLUMNS else {"epsilon": 9, "delta": 1e-6}
        stds, variances = one.std("pay", by="kind", **cost), other.variance("pay", by="kind", **cost)
        np.testing.assert_array_equal(stds.array, np.sqrt(variances.array))
        assert list(stds) == list(variances) == KINDS
        assert (stds.privacy, one.ledger.spent) == (variances.privacy, other.ledger.spent)
        if columns is COLUMNS:
            low, high = stds.interval().T
            assert np.all(low**2 <= variances.interval()[:, 0] * (1 + 1e-15))
            assert np.all(high**2 >= variances.interval()[:, 1] * (1 - 1e-15))
            assert set(one.releases[0].columns) == {"kind", "value", "low", "high", "few"}
        else:
            assert stds.counts.tolist() == variances.counts.tolist()
    with pytest.raises(TypeError, match=r"roots\(\) are those of variances; interval\('std', ...\)"):
        table().mean("pay", by="kind", epsilon=1).roots()


def test_an_interval_without_bounds_says_what_it_may_mean():
    """Whatever the records are: a column of text has none that are numbers."""
    for cells in (np.full(3000, np.nan), np.arange(3000.0)):
        one = table({"x": cells}, columns={})
        one.interval("median", "x", epsilon=9)
        one.interval("count", "x", epsilon=9)
        assert "Where there is no information, or no bound, there are too few numbers" in one.releases[0].note
        assert "One " not in one.releases[1].note


def test_bounds_that_are_needed_say_what_finds_them():
    one = table(columns={"kind": COLUMNS["kind"]})
    start = "bounds of 'pay' are needed: .* --bounds pay=LOWER,UPPER; "
    for call, told in (
        (lambda: one.mean("pay", epsilon=1), "'private' finds them for means, sums and variances without intervals$"),
        (
            lambda: one.histogram("pay", epsilon=1),
            "a release of bounds finds some; of text, a count by",
        ),
        (lambda: one.density("pay", epsilon=1), "a release of bounds finds some$"),
        (lambda: one.iqr("pay", by="kind", epsilon=1), "private ones are not for the iqr of groups$"),
    ):
        with pytest.raises(TypeError, match=start + told):
            call()
    assert one.ledger.spent.epsilon == 0


class TestOnceForEachKey:
    """``per_key=1``: a unit has at most one record in each group, because the table leaves out the others."""

    def made(self, **budget):
        """300 persons with three records in one group each, and one in another."""
        person = np.repeat(np.arange(300), 4)
        data = {"pay": np.tile([10.0, 20.0, 30.0, 90.0], 300), "kind": np.array(["a", "a", "a", "b"] * 300)}
        facts = {"pay": {"bounds": (0, 100)}, "kind": {"categories": ["a", "b"]}}
        return dpf.Table({**data, "person": person}, unit=("person", 4), columns=facts, **budget)

    def test_records_of_a_unit_in_one_group(self):
        one = self.made(epsilon=800)
        keep = one.records.once_per_key(["kind"])
        kinds, persons = one.records.labels(["kind", "person"]).values()
        assert max(Counter(zip(persons[keep], kinds[keep], strict=True)).values()) == 1
        assert keep.sum() == 600
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            assert one.count(by="kind", per_key=1, epsilon=400).array.tolist() == pytest.approx([300, 300], abs=2)
            assert one.count(by="kind", epsilon=400).array.tolist() == pytest.approx([900, 300], abs=2)

    def test_keys_that_are_released(self):
        """The guarantee of ``per_key=1`` holds for records that are bounded so: these have three with one key."""
        one = self.made(epsilon=20, delta=1e-5)
        one.columns.pop("kind")  # so that the keys are private
        found = one.partitions("kind", per_key=1, epsilon=20, delta=1e-5)
        assert dict(zip(found.keys, found.counts.tolist(), strict=True)) == pytest.approx({"a": 300, "b": 300}, abs=99)

    def test_what_is_charged(self):
        """Four times the rho of one record, and not that of four records at once; epsilon is the same."""
        each = dpf.GlobalSensitivity(statistics.Sum(), grid=dpf.Grid(0, 100), epsilon=0.5, neighbors="add-remove")
        for release in (
            lambda t, **limit: t.sum("pay", by="kind", epsilon=2, **limit),
            lambda t, **limit: t.interval("sum", "pay", by="kind", epsilon=2, **limit),
        ):
            spent = []
            for limit in ({"per_key": 1}, {}):
                ledger = dpf.Ledger(rho=100, neighbors="add-remove", per_unit=4)
                result = release(self.made(ledger=ledger), **limit)
                spent.append(ledger.spent.rho)
                assert result.privacy.epsilon == (2 if limit else 0.5)
            assert spent[0] == pytest.approx(4 * each.privacy_profile.rho, rel=1e-9)
            assert spent[1] > 2 * spent[0]

    def test_it_is_for_units(self):
        with pytest.raises(TypeError, match="per_key=1 is for a table with a unit"):
            table().mean("pay", by="kind", per_key=1, epsilon=1)
        with pytest.raises(ValueError, match="per_key must be 1 or None"):
            self.made(epsilon=9).mean("pay", by="kind", per_key=2, epsilon=1)


def test_intervals_of_units():
    """`interval` states and charges the guarantee of units, as `by_group` does."""
    ledger = dpf.Ledger(4, neighbors="add-remove", per_unit=2)
    groups = {"labels": ["a", "b"] * 500, "keys": ["a", "b"], "bounds": (0, 9), "neighbors": "add-remove"}
    with ledger:
        found = dpf.interval("mean", np.full(1000, 4.0), epsilon=2, **groups, contributions=2, per_key=1)
    assert found.privacy.per_unit == 2
    assert (ledger.spent.epsilon, found.privacy.epsilon) == (4, 4)
    with pytest.raises(TypeError, match="for groups"):
        dpf.interval("mean", [1.0], bounds=(0, 9), epsilon=1, contributions=2)


def test_missing_cells_of_sums_and_of_statistics_given_as_objects():
    data = {"x": np.where(np.arange(3000) % 3, 6.0, np.nan)}
    one = table(data=data, columns={"x": {"bounds": (-50, 100)}}, epsilon=100)
    assert abs(one.sum("x", epsilon=9) - 12_000) < 200
    assert abs(one.interval("sum", "x", epsilon=9).value - 12_000) < 200
    assert abs(one.interval(dpf.statistics.Sum(), "x", epsilon=9).value - 12_000) < 200
    assert all("Missing cells of x: 0" in release.note for release in one.releases)
    for mean in ("mean", dpf.statistics.Mean()):
        assert abs(one.interval(mean, "x", epsilon=9).value - 6) < 0.5
    for method in ("auto", "inverse-sensitivity"):
        assert one.median("x", method=method, distribution=None, epsilon=9) == 6
    one.mean("x", missing="drop", epsilon=9)
    assert one.releases[-1].result == pytest.approx(6, abs=0.5)
    assert one.releases[-1].privacy == dpf.Privacy(9.0)  # not of half of it, for one record added or removed
