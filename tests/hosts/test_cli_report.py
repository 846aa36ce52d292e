"""``dpfast report``: one plan, one budget, one file; the same in Python; nothing in it but the releases."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import main
from dpfast.reports import ReportPlan, sources
from dpfast.reports.pages import round_ticks, shown
from dpfast.reports.plans import METHODS, keys_of_plans
from dpfast.tables import TableError

PLAN = """
title = "People & pay"
epsilon = 2

[columns.pay]
bounds = [0, 200]
missing = "half"

[columns.kind]
categories = ["a", "b", "none"]
missing = "half"

[columns.age]
type = "integer"
bounds = [18, 90]
missing = "half"

[[release]]
statistic = "median"
column = "pay"
by = "kind"
share = 0.3

[[release]]
statistic = "mean"
column = "pay"
share = 0.1

[[release]]
statistic = "quantile"
column = "age"
q = [0.1, 0.9]
share = 0.1

[[release]]
statistic = "std"
column = "age"
interval = false
epsilon = 0.2

[[release]]
statistic = "histogram"
column = "age"
bins = 8
share = 0.2

[[release]]
statistic = "linear_regression"
features = ["age", "kind"]
label = "pay"
share = 0.2
"""
PERSONS = """
epsilon = 3
delta = 1e-5
unit = ["person", 2]

[columns.pay]
bounds = [0, 200]
missing = "drop"

[[release]]
statistic = "count"
by = "kind"
share = 0.25

[[release]]
statistic = "mean"
column = "pay"
by = "kind"
share = 0.25

[[release]]
statistic = "median"
column = "pay"
share = 0.25

[[release]]
statistic = "partitions"
column = "kind"
share = 0.25
"""


def write(tmp_path, name="people.csv", seed=0, extreme=False):
    rng, n = np.random.default_rng(seed), 2000
    pay = rng.gamma(5, 12, n) if not extreme else np.full(n, 1e300)
    age = rng.integers(18, 90, n) if not extreme else np.zeros(n, int)
    kind = rng.choice(["a", "b", "<i>c"], n) if not extreme else np.full(n, "none")
    empty = rng.random(n) < (0.24 if not extreme else 0.9)
    cells = [["" if gone else repr(x) for x, gone in zip(pay.tolist(), empty, strict=True)], age, kind]
    rows = zip(*cells, rng.integers(0, 900, n), strict=True)
    path = tmp_path / name
    path.write_text("pay,age,kind,person\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    return str(path)


@pytest.fixture
def files(tmp_path):
    plans = {"plan": PLAN, "persons": PERSONS}
    for name, text in plans.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return write(tmp_path), str(tmp_path / "plan.toml"), str(tmp_path / "persons.toml")


def run(capsys, *arguments, code=0):
    assert main(["report", *map(str, arguments)]) == code
    return capsys.readouterr()


def test_the_same_numbers_in_python_in_twelve_lines(capsys, files):
    data, plan, _ = files
    columns = {"pay": {"bounds": (0, 200), "missing": "half"}, "kind": {"categories": ["a", "b", "none"]}}
    columns["age"] = {"type": "integer", "bounds": (18, 90), "missing": "half"}
    columns["kind"]["missing"] = "half"
    table = dpf.Table(data, epsilon=2, columns=columns, rng=np.random.default_rng(7))
    table.interval("median", "pay", by="kind", share=0.3)
    table.interval("mean", "pay", share=0.1)
    table.quantile("age", [0.1, 0.9], share=0.1)
    table.std("age", epsilon=0.2)
    table.histogram("age", 8, share=0.2)
    table.linear_regression(["age", "kind"], "pay", share=0.2)
    report = table.report("People & pay")
    found = json.loads(run(capsys, data, plan, "--json", "--seed", 7).out)
    assert found["releases"] == report.to_dict()["releases"]
    assert report.written(".md") == run(capsys, data, plan, "--seed", 7).out
    again = ReportPlan.read(plan).run(data, rng=np.random.default_rng(7))
    assert again.to_json() == report.to_json()


@pytest.mark.parametrize("which", ["plan", "persons"])
def test_the_dry_run_states_the_charges_and_touches_no_record(capsys, files, tmp_path, monkeypatch, which):
    data, plan = files[0], files[1 if which == "plan" else 2]
    report = ReportPlan.read(plan).run(data)
    ledger = ReportPlan.read(plan).ledger()
    for release in report.releases:
        for profile in release.profiles:
            ledger.reserve(profile)
    monkeypatch.setattr(sources.File, "read", None)
    foreseen = json.loads(run(capsys, data, plan, "--dry-run", "--json").out)
    assert foreseen["privacy"] == report.to_dict()["privacy"]
    assert foreseen["privacy"]["epsilon"] == pytest.approx(ledger.spent.epsilon, rel=1e-14)
    assert foreseen["privacy"]["delta"] == pytest.approx(ledger.spent.delta, rel=1e-14)
    for one, other in zip(foreseen["releases"], report.to_dict()["releases"], strict=True):
        assert (one["title"], one["privacy"]) == (other["title"], other["privacy"])
    text = run(capsys, data, plan, "--dry-run").out
    assert "no record was touched" in text
    assert "Expected error" in text
    assert "at the lower bound" not in text


def test_a_dry_run_needs_no_readable_file(capsys, files, tmp_path):
    text = run(capsys, tmp_path / "nowhere.csv", files[1], "--dry-run").out
    assert "10,000 imagined records" in text


def test_a_header_says_at_once_that_a_column_is_misspelt(capsys, files, tmp_path):
    """The header is public: no record is read for it, and nothing is charged."""
    ledger, data = tmp_path / "x.ledger", tmp_path / "header.csv"
    data.write_text('pay,age,kind\n"a cell without an end')
    dpf.Ledger(1, path=ledger)
    for more in (["--dry-run"], []):
        for words, options in (
            ("median of ages by kind", ["--categories", "kind=A,B"]),
            ("median of age by knd", []),
            ("median of age", ["--bounds", "gae=0,1"]),
        ):
            told = run(capsys, data, "--ledger", ledger, "--release", words, *options, *more, code=2).err
            assert "in the header: did you mean" in told
            assert told.endswith("it has 'pay', 'age', 'kind'\n")
    assert not dpf.Ledger.open(ledger).charges


def test_a_schema_says_how_many_records_a_dry_run_imagines(capsys, files, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    columns = {"pay": [1.5] * 70, "age": [30] * 70, "kind": ["a"] * 70, "person": list(range(70))}
    parquet.write_table(arrow.table(columns), path)
    assert "70 imagined records" in run(capsys, path, files[1], "--dry-run").out
    private = tmp_path / "private.toml"  # of persons, whose number of records is private
    private.write_text(PERSONS)
    told = run(capsys, path, private, "--dry-run").out
    assert "their number is private: errors are for 100, 1,000 and 10,000 of them, in each group if any" in told
    assert "imagined" not in told
    assert json.loads(run(capsys, path, private, "--dry-run", "--json").out)["records"] is None


@pytest.mark.parametrize("which", ["plan", "persons"])
def test_nothing_depends_on_the_records_but_the_releases(capsys, files, tmp_path, which):
    """Titles, columns, numbers of rows with public keys, warnings and exit codes: for usual records and for others."""
    plan = files[1 if which == "plan" else 2]
    shapes = []
    for data in (files[0], write(tmp_path, "others.csv", 1), write(tmp_path, "extreme.csv", extreme=True)):
        found = run(capsys, data, plan, "--json")
        releases = json.loads(found.out)["releases"]
        public = which == "plan"
        rows = [[len(cells) for cells in each["columns"].values()] for each in releases if public]
        shapes.append(([(each["title"], each["privacy"], [*each["columns"]]) for each in releases], rows, found.err))
    assert shapes[0] == shapes[1] == shapes[2]
    html = [re.sub(r"[\d.,e+-]+|no records", "#", run_html(tmp_path, data, plan)) for data in (files[0], files[0])]
    assert html[0] == html[1] or which == "persons"


def run_html(tmp_path, data, plan):
    path = tmp_path / "out.html"
    assert main(["report", data, plan, "-o", str(path), "--force"]) == 0
    return path.read_text("utf-8")


def test_files(capsys, files, tmp_path):
    data, plan, _ = files
    for end in ("html", "json", "csv", "md"):
        path = tmp_path / f"out.{end}"
        assert run(capsys, data, plan, "-o", path).out.startswith(f"6 releases in {path}  (epsilon = 2 ")
        assert "exists; give --force" in run(capsys, data, plan, "-o", path, code=2).err
    page = (tmp_path / "out.html").read_text("utf-8")
    body = page.removeprefix("<!DOCTYPE html>\n").replace('<meta charset="utf-8">', "")
    tree = ElementTree.fromstring(re.sub(r'<meta name="viewport"[^>]*>', "", body))
    assert next(each.text for each in tree.iter("h2")) == "median of pay by kind, with interval"
    assert len([*tree.iter("svg")]) == 2
    assert len([*tree.iter("table")]) == 7
    assert not re.search(r"https?:|src=|<script", page)
    assert "People &amp; pay" in page
    assert json.loads((tmp_path / "out.json").read_text())["privacy"]["epsilon"] == 2
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "release,group,value,low,high,standard_error,records,few"
    assert lines[-1].startswith("guarantee,All numbers of this report together: epsilon = 2")
    assert "must be" in run(capsys, data, plan, "-o", tmp_path / "x.pdf", code=2).err
    for taken in (data, plan):
        assert (
            "it is an input, which would be lost" in run(capsys, data, plan, "-o", taken, "--force", code=2).err
            or taken == plan
        )


def test_standard_output(capsys, files):
    found = run(capsys, files[0], files[1], "-o", "-")
    assert found.out.startswith("# People & pay\n\nAll numbers of this report together: epsilon = 2 ")
    assert found.err == ""
    assert "| all together | epsilon = 2 for one record replaced |" in found.out


def test_a_ledger(capsys, files, tmp_path):
    data, plan, _ = files
    assert main(["ledger", str(tmp_path / "budget"), "--epsilon", "3"]) == 0
    capsys.readouterr()
    message = "leave epsilon, delta and neighbors out of the plan"
    assert message in run(capsys, data, plan, "--ledger", tmp_path / "budget", code=2).err
    (tmp_path / "plan.toml").write_text(PLAN.replace("epsilon = 2\n", "", 1))
    assert "needs epsilon, the budget of the report" in run(capsys, data, plan, code=2).err
    found = json.loads(run(capsys, data, plan, "--ledger", tmp_path / "budget", "--json").out)
    assert found["remaining"]["epsilon"] == pytest.approx(0.1)
    found = run(capsys, data, plan, "--ledger", tmp_path / "budget", code=4)
    assert "the report of epsilon = 2.9" in found.err
    assert dpf.Ledger.open(tmp_path / "budget").spent.epsilon == pytest.approx(2.9)


@pytest.mark.parametrize("options", [{"rho": "0.06"}, {"epsilon": 2, "delta": 1e-4, "composition": "renyi"}])
def test_ledgers_that_compose_otherwise(capsys, files, tmp_path, options):
    """Twenty releases of epsilon 0.07 cost much less than 20 times 0.07 there."""
    path = tmp_path / "budget"
    ledger = dpf.Ledger(path=path, **options)
    release = '[[release]]\nstatistic = "mean"\ncolumn = "pay"\ninterval = false\nepsilon = 0.07\n'
    (tmp_path / "plan.toml").write_text("[columns.pay]\nbounds = [0, 200]\n" + 20 * release)
    run(capsys, files[0], tmp_path / "plan.toml", "--ledger", path)
    assert len(ledger.charges) == 20


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 2", "epsilon = 2\nbudget = 3", "has no use for 'budget': it takes title, epsilon"),
        (
            'statistic = "mean"',
            'statistic = "average"',
            "release 2 needs a statistic: did you mean 'mean'? it is one of median, mean",
        ),
        ('statistic = "mean"\ncolumn = "pay"', 'statistic = "mean"', "release 2, mean, needs 'column'"),
        ("bins = 8", "bins = 8\nbin = 3", "release 5, histogram: "),
        ('missing = "half"', 'mising = "half"', "column 'pay' has no fact 'mising'"),
        ('column = "age"\nq', 'column = "rent"\nq', "no column 'rent' in the header: it has 'pay', 'age', 'kind'"),
        (
            'column = "pay"\nshare = 0.1',
            'column = "rent"\nshare = 0.1',
            "release 2, mean: no column 'rent' in the header",
        ),
        ("share = 0.1", "share = 0.9", "does not fit"),
        ('title = "People & pay"', "title = ", "plan.toml: "),
        ("[[release]]", "[[releases]]", "has no use for 'releases'"),
    ],
)
def test_invalid_plans_release_nothing(capsys, files, tmp_path, old, new, message):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace(old, new))
    found = run(capsys, files[0], path, code=4 if "fit" in message else 2)
    assert message in found.err
    assert found.out == ""
    assert found.err.count("\n") == 1


def test_a_warning_says_of_which_release(capsys, files, tmp_path):
    given = ["--epsilon", "0.01", "--release", "mean of pay", "--release", "median of age", "--bounds", "pay=0,200"]
    given += ["--missing", "pay=lower"]
    told = run(capsys, files[0], *given).err
    assert told.startswith("dpfast: warning: release 2, median: 2,000 records are too few for these quantiles")
    assert told.count("\n") == 1


def test_categories_of_a_column_of_integers(capsys, tmp_path):
    """Of Parquet, which declares them: "1" is not 1, and would be a group without records."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, plan = tmp_path / "x.parquet", tmp_path / "plan.toml"
    parquet.write_table(arrow.table({"pay": [1.5] * 900, "campus": [0, 1, 2] * 300}), path)
    given = [path, "--epsilon", 9, "--release", "median of pay by campus", "--json", "--categories"]
    found = json.loads(run(capsys, *given, "campus=0,1").out)["releases"][0]["columns"]
    assert found["campus"] == [0, 1]
    assert found["value"] == [1.5, 1.5]
    assert "the keys of a column of integers must be integers, not 'x'" in run(capsys, *given, "campus=0,x", code=2).err
    text = 'epsilon = 9\ncolumns.campus.categories = ["0", "1"]\n[[release]]\nstatistic = "median"\nepsilon = 1\n'
    plan.write_text(text + 'column = "pay"\nby = "campus"\n')
    for more in ([], ["--dry-run"]):
        told = run(capsys, path, plan, *more, code=2).err
        assert "column 'campus' holds integers: its categories must be, too, not '0'" in told


def test_standard_input_is_refused(capsys, files):
    assert "needs a file, not standard input" in run(capsys, "-", files[1], code=2).err


def test_units(capsys, files):
    found = json.loads(run(capsys, files[0], files[2], "--json").out)
    assert found["privacy"]["per_unit"] == 2
    assert found["privacy"]["epsilon"] == pytest.approx(3, rel=1e-12)
    assert 0 < found["privacy"]["delta"] <= 1e-5
    assert "one unit of at most 2 records added or removed" in found["guarantee"]
    assert {"kind", "count", "value"} <= set(found["releases"][1]["columns"])


def test_cells():
    cells = {1234567: "1,234,567", 0.5: "0.5", 1234567.8: "1,234,568", 1e20: "1e+20", -3.25: "-3.25", 0.0: "0"}
    cells |= {1e-7: "1e-07", float("nan"): "no records", None: "", "a": "a", True: "True", 90024.0: "90,024"}
    assert {cell: shown(cell) for cell in cells} == cells


def test_several_statistics_in_one_command(capsys, files):
    data, public = files[0], ["--bounds", "pay=0,200", "age=18,90", "--categories", "kind=a,b"]
    public += ["--missing", "pay=half", "age=lower"]
    words = ["median of pay by kind", "quantile 0.1,0.9 of age", "trimmed-mean 0.1 of age", "count by kind"]
    given = [item for each in words for item in ("--release", each)]
    found = json.loads(run(capsys, data, "--epsilon", "2", *public, *given, "--seed", "3", "--json").out)
    columns = {"pay": {"bounds": (0, 200), "missing": "half"}, "age": {"bounds": (18, 90), "missing": "lower"}}
    columns["kind"] = {"categories": ["a", "b"]}
    table = dpf.Table(data, epsilon=2, columns=columns, rng=np.random.default_rng(3))
    table.interval("median", "pay", by="kind", share="1/4")
    table.quantile("age", [0.1, 0.9], share="1/4")
    table.trimmed_mean("age", 0.1, share="1/4")
    table.count(by="kind", share="1/4")
    assert found["releases"] == table.report().to_dict()["releases"]
    assert found["privacy"]["epsilon"] == 2
    assert "all together: epsilon = 2" in run(capsys, data, "--epsilon", "2", *public, *given, "--dry-run").out


def test_persons_without_a_plan(capsys, files, tmp_path):
    given = ["--epsilon", 3, "--bounds", "pay=0,200", "--missing", "pay=drop", "--release", "mean of pay", "--json"]
    found = json.loads(run(capsys, files[0], *given, "--unit", "person=2", "--seed", 4).out)
    columns = {"pay": {"bounds": (0, 200), "missing": "drop"}}
    table = dpf.Table(files[0], epsilon=3, unit=("person", 2), columns=columns, rng=np.random.default_rng(4))
    mean = table.interval("mean", "pay", share=1)
    assert found["releases"][0]["columns"]["value"] == [mean.value]
    assert found["privacy"]["per_unit"] == 2
    with pytest.raises(SystemExit):
        main(["report", files[0], *map(str, given), "--unit", "person"])
    assert "--unit: must be NAME=K, not 'person'" in capsys.readouterr().err


def test_a_plan_declares_all(capsys, files):
    """A budget beside the plan, which would not be that of the report, is refused."""
    for option, value in (("epsilon", 1), ("bounds", "pay=0,1"), ("unit", "person=2"), ("missing", "pay=drop")):
        told = run(capsys, *files[:2], f"--{option}", value, code=2).err
        assert f"--{option} is for --release: REPORT.toml declares it" in told


def test_an_end_beyond_all_numbers_is_no_number():
    assert [shown(x) for x in (1.7976931348623157e308, -1.7e308, 1e300)] == ["no bound", "no bound", "1e+300"]


def test_words_with_a_number(capsys, files):
    """Of bins, which a histogram of a private number of records needs."""
    given = [files[0], "--epsilon", 1, "--bounds", "pay=0,200", "--missing", "pay=drop", "--json", "--release"]
    found = json.loads(run(capsys, *given, "histogram 5 of pay").out)
    assert len(found["releases"][0]["columns"]["count"]) == 5
    assert "private here: give a number of bins" in run(capsys, *given, "histogram of pay", code=2).err


@pytest.mark.parametrize(
    "words", ["mad of pay", "median", "quantile of pay", "median 3 of pay", "glm of pay", "of", ""]
)
def test_words_that_are_no_release(capsys, files, words):
    found = run(capsys, files[0], "--epsilon", "1", "--release", words, code=2)
    assert "--release must be STATISTIC" in found.err or "needs a column" in found.err
    assert found.out == ""


def test_private_bounds_have_no_interval(capsys, files):
    given = ["--epsilon", "40", "--bounds", "pay=private", "--release", "mean of pay", "--release", "median of pay"]
    found = json.loads(run(capsys, files[0], *given, "--json").out)
    assert [list(release["columns"]) for release in found["releases"]] == [["value"], ["value", "low", "high"]]
    with pytest.raises(TypeError, match="an interval needs public bounds of 'pay', a pair"):
        dpf.Table({"pay": [1.0]}, epsilon=1, columns={"pay": {"bounds": "private"}}).interval("mean", "pay", share=1)


def test_a_schema_says_which_columns_there_are(capsys, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"pay": [1.5] * 70}), path)
    given = ["--epsilon", "1", "--categories", "kind=a,b", "--release", "count by kind", "--dry-run"]
    assert "no column 'kind'" in run(capsys, path, *given, code=2).err


def test_a_format(capsys, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("pay;kind\n" + "1,5;a\n2,5;b\n" * 200)
    given = ["--epsilon", "40", "--bounds", "pay=0,4", "--release", "mean of pay", "--delimiter", ";", "--decimal", ","]
    found = json.loads(run(capsys, path, *given, "--json").out)
    assert found["releases"][0]["columns"]["value"][0] == pytest.approx(2, abs=0.1)
    (tmp_path / "plan.toml").write_text(
        "epsilon = 40\nformat = {delimiter = ';'}\n[columns.pay]\nbounds = [0, 4]\n"
        "[[release]]\nstatistic = 'mean'\ncolumn = 'pay'\nshare = 1\n"
    )
    found = json.loads(run(capsys, path, tmp_path / "plan.toml", "--decimal", ",", "--json").out)
    assert found["releases"][0]["columns"]["value"][0] == pytest.approx(2, abs=0.1)


def test_a_report_that_stops_halfway_says_what_is_spent(capsys, files, monkeypatch, tmp_path):
    """Another process may take the budget meanwhile, after the dry run."""
    from dpfast.reports import plans

    real, path = plans.release_entry, tmp_path / "budget"
    (tmp_path / "plan.toml").write_text(PLAN.replace("epsilon = 2\n", "", 1))
    ledger = dpf.Ledger(2, path=path)

    def meanwhile(table, entry):
        if len(table.releases) == len(ledger.charges) == 2:
            ledger.reserve(dpf.PrivacyProfile(ledger.remaining))
        real(table, entry)

    monkeypatch.setattr(plans, "release_entry", meanwhile)
    found = run(capsys, files[0], tmp_path / "plan.toml", "--ledger", path, code=3)
    assert found.out == ""
    assert "release 3, quantile: " in found.err
    assert "2 of 6 releases are made, and their epsilon is spent" in found.err


SHARED = Path("/work/shared/data")
REAL = {
    "chicago_pay_2018": """
epsilon = 2
delta = 1e-6
[columns.annual]
bounds = [0, 300_000]
missing = "drop"
[columns.full_part]
categories = ["F", "P"]
[[release]]
statistic = "median"
column = "annual"
by = "full_part"
share = 0.3
[[release]]
statistic = "count"
by = "department"
share = 0.3
[[release]]
statistic = "histogram"
column = "annual"
bins = 20
share = 0.4
""",
    "adult": """
epsilon = 1
[columns]
age = {type = "integer", bounds = [17, 90]}
income = {type = "integer", bounds = [0, 1], missing = "lower"}
hours_per_week = {type = "integer", bounds = [0, 99], missing = "drop"}
sex = {categories = ["Male", "Female"]}
race = {categories = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]}
[[release]]
statistic = "mean"
column = "income"
by = ["sex", "race"]
share = 0.5
[[release]]
statistic = "linear_regression"
features = ["age", "sex"]
label = "hours_per_week"
share = 0.5
""",
    "uc_pay_2010_2023": """
epsilon = 2
[columns]
gross = {type = "integer", bounds = "private"}
campus = {categories = [0, 1, 2, 3]}
[[release]]
statistic = "median"
column = "gross"
by = "campus"
share = 0.5
[[release]]
statistic = "mean"
column = "gross"
interval = false
share = 0.5
""",
}


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared data")
@pytest.mark.parametrize("name", REAL)
def test_real_tables(capsys, tmp_path, name):
    """Bounds that nobody knows, a quarter of the cells missing, groups by text, private keys."""
    plan, data = tmp_path / "plan.toml", SHARED / f"{name}.csv.gz"
    plan.write_text(REAL[name])
    foreseen = json.loads(run(capsys, data, plan, "--dry-run", "--json").out)
    found = json.loads(run(capsys, data, plan, "--json", "--seed", 1).out)
    assert found["privacy"] == foreseen["privacy"]
    assert found["privacy"]["epsilon"] == pytest.approx(found["budget"]["epsilon"], rel=1e-9)
    report = ReportPlan.read(plan).run(data, rng=np.random.default_rng(1))
    assert report.to_dict()["releases"] == found["releases"]
    first = found["releases"][0]["columns"]
    for low, value, high in zip(first["low"], first["value"], first["high"], strict=True):
        assert value is None or (low or -np.inf) <= value <= (high or np.inf)
    if name.startswith("uc"):
        assert found["releases"][1]["columns"]["value"][0] == pytest.approx(34_851, rel=0.02)


def test_a_plan_or_releases(capsys, files):
    for given in ([], [files[1], "--release", "median of pay"]):
        assert "give either REPORT.toml or --release" in run(capsys, files[0], *given, code=2).err


def test_a_dry_run_goes_where_the_report_would(capsys, files, tmp_path):
    data, plan, _ = files
    for end in ("html", "json", "csv", "md"):
        path = tmp_path / f"dry.{end}"
        assert run(capsys, data, plan, "--dry-run", "-o", path).out.startswith(f"dry run in {path}  (no record was")
        assert "exists; give --force" in run(capsys, data, plan, "--dry-run", "-o", path, code=2).err
        text = path.read_text("utf-8")
        assert "Expected error" in text
        assert "median of pay by kind" in text
        assert "What was spent" not in text
        assert "<tbody></tbody>" not in text
    assert "*epsilon = 0.6 for one record replaced (share = 0.3). " in (tmp_path / "dry.md").read_text()
    assert all(line.count("*") in (0, 2) for line in (tmp_path / "dry.md").read_text().splitlines())
    assert json.loads((tmp_path / "dry.json").read_text())["records"] == 10_000
    foreseen = ReportPlan.read(plan).dry_run(data)
    with pytest.raises(TableError, match="exists; give force=True"):
        foreseen.save(path)
    foreseen.save(path, force=True)


def test_a_saved_report_replaces_no_file_by_itself(tmp_path):
    table = dpf.Table({"age": [31, 45] * 200}, epsilon=2, columns={"age": {"bounds": (0, 120), "missing": "lower"}})
    table.mean("age", share=0.5)
    report, path = table.report("Ages"), tmp_path / "ages.md"
    report.save(path)
    path.write_text("mine")
    with pytest.raises(TableError, match="exists; give force=True to replace it"):
        report.save(path)
    assert path.read_text() == "mine"
    report.save(path, force=True)
    assert path.read_text().startswith("# Ages")
    ledger = tmp_path / "ledger.json"
    dpf.Ledger(1, path=ledger)
    with pytest.raises(TableError, match="it is a ledger"):
        report.save(ledger, force=True)


def test_a_saved_report_never_replaces_its_data(tmp_path, monkeypatch):
    """Under its name, as a link, after a change of the folder, moved, or made anew; nor does a dry run."""
    data, plan = tmp_path / "ages.csv", {"statistic": "mean", "column": "age", "share": 1}
    facts = {"epsilon": 2, "columns": {"age": {"bounds": (0, 120), "missing": "lower"}}}

    def fill():
        data.write_text("age\n" + "31\n45\n" * 200)

    fill()
    monkeypatch.chdir(tmp_path)
    table = dpf.Table(data.name, **facts)
    table.mean("age", share=0.5)
    foreseen = ReportPlan(**facts, releases=(plan,)).dry_run(data.name)
    link, moved = tmp_path / "link.csv", tmp_path / "moved.csv"
    link.symlink_to(data)
    monkeypatch.chdir(tmp_path.parent)
    for report in (table.report(), foreseen):
        for name in (data, link):
            with pytest.raises(TableError, match="it is an input, which would be lost"):
                report.save(name, force=True)
    data.rename(moved)
    fill()
    for name in (data, moved):
        with pytest.raises(TableError, match="it is an input"):
            table.report().save(name, force=True)
        assert name.read_text().startswith("age\n31\n")
    table.report().save(tmp_path / "report.csv")


def test_a_value_that_tells_nothing_is_none(capsys, tmp_path):
    """One whose interval is as wide as its range: null in JSON, words on pages, and grey without a dot in drawings."""
    path = tmp_path / "x.csv"
    path.write_text("pay,kind\n" + "50,a\n52,a\n" * 900 + "50,b\n" * 2)
    table = dpf.Table(str(path), epsilon=2, columns={"pay": {"bounds": (0, 100)}, "kind": {"categories": ["a", "b"]}})
    table.interval("median", "pay", by="kind", epsilon=1)
    table.interval("median", "pay", epsilon=0.001)
    with pytest.warns(dpf.UtilityWarning, match="too few"):
        table.interval("median", "pay", bounds=None, epsilon=0.001)
    report = table.report()
    groups, whole, _ = (release.to_dict() for release in report.releases)
    assert [value is None for value in groups["columns"]["value"]] == [False, True]
    assert groups["columns"]["few"] == [False, True]
    assert (groups["columns"]["low"][1], groups["columns"]["high"][1]) == (0, 100)
    assert whole["columns"] == {"value": [None], "low": [0], "high": [100]}
    assert "Where a value is no information, its interval is as wide as the bounds" in groups["note"]
    assert report.untold == 3
    assert "| b (few) | no information | 0 | 100 |" in report.to_markdown()
    page = report.to_html()
    assert page.count("<circle") == 1
    assert page.count('stroke="#999999"') == 1
    assert page.count("<path") == 2
    assert ">median of pay</text>" in page
    given = ["--epsilon", "0.001", "--bounds", "pay=0,100", "--release", "median of pay", "-o", tmp_path / "r.md"]
    assert run(capsys, path, *given).out.endswith("; 1 of the rows have no information)\n")


def test_ends_without_a_bound_are_null_and_words(capsys, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("name\n" + "secret\n" * 500)
    given = ["median", str(path), "--epsilon", "0.01", "--interval"]
    assert main(given) == 0
    shown, note = capsys.readouterr().out.splitlines()
    assert "95 % interval no bound to no bound" in shown
    assert note.endswith("of a column of text the release means nothing)")
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["low"], found["high"]) == (None, None)
    assert main(["median", str(path), "--epsilon", "1", "--type", "number"]) == 0
    assert "of text" not in capsys.readouterr().out
    assert (
        "| no information | no bound | no bound |"
        in run(capsys, path, "--epsilon", "1", "--release", "median of name").out
    )


@pytest.mark.parametrize("ends", [(90_024.0, 94_339.8), (-0.0013, 0.0017), (0.0, 250_000.0), (1e9, 1e9 + 1)])
def test_ticks_are_round_and_around(ends):
    ticks = round_ticks(*ends)
    assert len(ticks) == 5
    assert ticks[0] <= ends[0]
    assert ticks[-1] >= ends[1]
    step = ticks[1] - ticks[0]
    assert f"{step:.0e}"[0] in "125"
    assert ticks[-1] - ticks[0] < 5 * (ends[1] - ends[0])


def test_messages_use_the_words_of_the_form(capsys, files, tmp_path):
    """A plan has keys, and --release has options by column."""
    given = ["--epsilon", "1", "--bounds", "pay=0,200", "--release", "std of pay"]
    assert "say --missing COLUMN=drop to leave them out" in run(capsys, files[0], *given).err
    plan = tmp_path / "few.toml"
    plan.write_text(
        'epsilon = 1\ncolumns.pay.bounds = [0, 200]\n[[release]]\nstatistic = "std"\ncolumn = "pay"\nshare = 1\n'
    )
    assert 'say missing = "drop" to leave them out' in run(capsys, files[0], plan).err
    assert (
        "'count' needs a column: count of COLUMN or count by COLUMN"
        in run(capsys, files[0], "--epsilon", "1", "--release", "count", code=2).err
    )
    assert "--epsilon is needed, the budget" in run(capsys, files[0], "--release", "count of pay", code=2).err
    given = ["--epsilon", "1", "--bounds", "pay=0,200", "--release", "regression of pay on age"]
    assert (
        "'age' has none: (lower, upper) in columns= or in a plan, or --bounds age=LOWER,UPPER"
        in run(capsys, files[0], *given, code=2).err
    )


def test_a_regression_without_a_plan(capsys, files):
    public = ["--bounds", "pay=0,200", "age=18,90", "--missing", "pay=half", "age=lower"]
    given = [files[0], "--epsilon", "4", *public, "--json", "--seed", "3", "--release", "regression of pay on age"]
    [release] = json.loads(run(capsys, *given).out)["releases"]
    assert release["title"] == "linear regression of pay on age"
    assert release["columns"]["name"] == ["age", "intercept"]
    assert "Errors are standard errors." in release["note"]


def test_a_dry_run_says_what_it_imagines(capsys, tmp_path):
    """Not as facts: the number of records and equal groups; and that sizes of public groups need no epsilon."""
    path, plan = tmp_path / "x.csv", tmp_path / "plan.toml"
    path.write_text("pay,kind\n")
    release = '[[release]]\nshare = 0.5\nby = "kind"\nstatistic = '
    text = 'epsilon = 1\n{}\ncolumns.pay.bounds = [0, 9]\ncolumns.kind.categories = ["a", "b"]\n'
    text += f'{release}"median"\ncolumn = "pay"\n{release}"count"\n'
    plan.write_text(text.format(""))
    told = run(capsys, path, plan, "--dry-run").out
    assert "10,000 imagined records; records = 40_000 in a plan would say how many there are" in told
    assert "if all groups were equal, each would have 5,000 records" in told
    assert "median of pay by kind, with interval: epsilon = 0.5 for one record replaced (share = 0.5)" in told
    assert told.count("These sizes are public anyway") == 1
    plan.write_text(text.format("records = 600"))
    assert "600 imagined records\n" in run(capsys, path, plan, "--dry-run").out


def test_pages_say_once_what_several_notes_say():
    """The note of one release has it, and so do all in JSON."""
    table = dpf.Table({"pay": [1.0] * 900}, epsilon=2, columns={"pay": {"bounds": (0, 9)}})
    nothing = "Where a value is no information, its interval is as wide as the bounds"
    for times in (1, 2):
        table.interval("median", "pay", share=0.5)
        report = table.report()
        for text in (report.to_markdown(), report.to_html()):
            assert text.count(nothing) == 1
            assert ("Notes" in text) is (times == 2)
        assert report.to_json().count(nothing) == times


def test_pages_show_one_count_by_private_keys(capsys, tmp_path):
    """The release; JSON has that of their selection, too."""
    table = dpf.Table({"kind": ["a"] * 900}, epsilon=9, delta=1e-5)
    table.count(by="kind", epsilon=9, delta=1e-6)
    report = table.report()
    assert "| kind | value | low | high |" in report.to_markdown()
    assert "count" in report.to_dict()["releases"][0]["columns"]
    path = tmp_path / "x.csv"
    path.write_text("kind\n" + "a\n" * 900)
    given = ["count", str(path), "--epsilon", "9", "--delta", "1e-6", "--group-by", "kind", "--keys", "private"]
    assert main(given) == 0
    assert re.match(r"a: \d+\n", capsys.readouterr().out)


def test_a_coarse_step_is_told():
    """Where an interval of width 0 may be beside the exact value."""
    for bounds, words in (((0, 1e12), "rounded to multiples of 256"), ((0, 1e5), "100,000: values")):
        table = dpf.Table({"pay": [1.0] * 900}, epsilon=1, columns={"pay": {"bounds": bounds}})
        table.median("pay", epsilon=1)
        assert words in table.releases[0].note


def test_histograms_read_well():
    """Edges to a hundredth of a bin, whole numbers as such, shares in percent, and edges below the bars."""
    rng = np.random.default_rng(0)
    data = {"pay": rng.lognormal(11, 0.4, 9000), "age": rng.integers(18, 90, 9000)}
    columns = {"pay": {"bounds": (0, 300_000), "missing": "lower"}, "age": {"bounds": (18, 90)}}
    table = dpf.Table(data, epsilon=10, columns=columns)
    table.histogram("pay", 7, epsilon=1)
    table.histogram("age", 5, epsilon=1)
    table.histogram("pay", 3, bounds=(0.5, 3.5), epsilon=1)
    report = table.report()
    lines = report.to_markdown().splitlines()
    assert "| from | to | count | low | high | share in % |" in lines
    for row in ("| 42,857 | 85,714 |", "| 18 | 32 |", "| 76 | 90 |", "| 0.5 | 1.5 |"):
        assert any(line.startswith(row) for line in lines)
    shares = report.releases[1].columns["share"]
    [line] = [line for line in lines if line.startswith("| 18 | 32 |")]
    assert float(line.split("|")[-2]) == pytest.approx(100 * shares[0], abs=0.005)
    page = report.to_html()
    for label in ("85,714", "171,429", ">33<", ">90<", "highest bar: "):
        assert label in page
    assert {"lower", "upper", "share"} < set(report.to_dict()["releases"][0]["columns"])


def test_columns_that_are_named_twice(capsys, files, tmp_path):
    path = tmp_path / "twice.toml"
    release = '[[release]]\nstatistic = "{}"\ncolumn = {}\n{}\nshare = 1\n'
    for name, column, more in (
        ("mean", '["pay", "age"]', ""),
        ("histogram", '["pay", "pay"]', ""),
        ("mean", '"pay"', 'by = ["kind", "kind"]'),
        ("partitions", '["kind", "kind"]', ""),
    ):
        path.write_text(PLAN.partition("[[release]]")[0] + release.format(name, column, more))
        message = run(capsys, files[0], path, code=2).err
        assert f"release 1, {name}: " in message
        assert "'kind' is named twice" in message or "must be the name of one column, not ['pay'" in message


def test_the_guide_and_the_help_list_all_keys(capsys):
    """Written by `keys_of_plans`, so that no key goes stale; facts, which have a table of their own, mean something."""
    guide = Path(dpf.__file__).parents[1] / "docs" / "guides" / "report.md"
    keys = keys_of_plans()
    for fact in keys["[columns.NAME]"] if guide.exists() else ():
        first = next(row for row in guide.read_text("utf-8").splitlines() if row.startswith(f"| `{fact}` |"))
        assert len(first.split(" | ")) == 3, first
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name, found in keys.items():
        assert f"{name} {', '.join(found)}" in text
        if guide.exists():
            assert f"| `{name}` | {', '.join(f'`{key}`' for key in found)} |\n" in guide.read_text("utf-8")


@pytest.mark.parametrize("name", METHODS)
def test_the_first_keys_are_enough(name):
    """What a statistic needs comes first, and suffices."""
    values = {"q": 0.5, "trim": 0.1, "k": 3, "family": "normal", "features": ["age"], "label": "pay", "by": "kind"}
    values["column"] = "kind" if name in ("partitions", "top_k") else "pay"
    needed = keys_of_plans()[name][: 1 + (name not in ("count", "mle") and bool(METHODS[name]))]
    if name == "mle":
        needed, values["bounds"] = ("column", "family", "bounds"), [[0, 200]]
    facts = {"bounds": (0, 200), "missing": "lower"}
    columns = {"pay": facts, "age": facts, "kind": {"categories": ["a", "b", "c", "d"]}}
    release = {"statistic": name, **{key: values[key] for key in needed}, "share": 1}
    dry = ReportPlan(epsilon=5, delta=1e-5, columns=columns, releases=(release,)).dry_run()
    assert dry.privacy.epsilon == 5


def test_a_table_for_a_spreadsheet(tmp_path):
    """A line for each number, of all kinds of results; keys named as columns, and keys that are no formulas."""
    data = {"pay": np.arange(900.0) % 9, "value": np.array(["=1+1", "-5", "b, c"] * 300)}
    columns = {
        "pay": {"bounds": (0, 9), "missing": "lower"},
        "value": {"categories": ["=1+1", "-5", "b, c", "none"], "missing": "half"},
    }
    table = dpf.Table(data, epsilon=300, delta=1e-3, columns=columns)
    found = table.interval("median", "pay", by="value", epsilon=9)
    means = table.mean("pay", by="value", epsilon=9)
    number = table.mean("pay", epsilon=9)
    table.quantile("pay", [0.25, 0.75], epsilon=9)
    table.quantile("pay", [0.25, 0.75], by="value", epsilon=9)
    bars = table.histogram("pay", 3, epsilon=9)
    fit = table.linear_regression(["value"], "pay", epsilon=9)
    table.mle("pay", "normal", bounds={"mean": (0, 9), "sd": (0.1, 9)}, epsilon=9)
    table.bounds("pay", epsilon=9)
    report = table.report()
    report.save(tmp_path / "x.csv")
    head, *rows, last = csv.reader((tmp_path / "x.csv").read_text("utf-8").splitlines())
    assert head == ["release", "group", "value", "low", "high", "standard_error", "records", "few"]
    assert last[:2] == ["guarantee", report.guarantee]
    assert {len(row) for row in rows} == {len(head)}
    groups, plain, whole, levels, parts, bins, slopes, family, ends = (
        [row for row in rows if row[0] == release.title] for release in report.releases
    )
    keys = ["'=1+1", "-5", "b, c", "none"]
    assert [row[1] for row in groups] == keys
    estimates = [*found.values()]
    assert [row[2:5] for row in groups[:3]] == [[str(e.value), str(e.low), str(e.high)] for e in estimates[:3]]
    assert [row[2] for row in plain] == [*map(str, means.array[:3].tolist()), ""]  # no records
    assert whole == [["mean of pay", "", str(number), *[""] * 5]]
    assert [row[1] for row in levels] == ["q=0.25", "q=0.75"]
    assert [row[1] for row in parts[:3]] == ["'=1+1, q=0.25", "'=1+1, q=0.75", "'-5, q=0.25"]
    assert [row[1:3] for row in bins] == [
        [name, str(n)] for name, n in zip(["0 to 3", "3 to 6", "6 to 9"], bars.counts, strict=True)
    ]
    assert [row[5] for row in slopes[:-1]] == list(map(str, fit.standard_errors.tolist()))
    assert [row[1] for row in slopes] == ["value=-5", "value=b, c", "value=none", "intercept"]
    assert [row[1] for row in family] == ["mean", "sd"]
    assert [row[1] for row in ends] == ["lower", "upper"]


def test_a_seed_is_told_once(capsys, files, tmp_path):
    """In the guarantee of the report, and beside its file; with the secure generator nothing is."""
    data, plan, _ = files
    for given, count in (([], 0), (["--seed", 7], 1)):
        for form in ([], ["--json"], ["-o", tmp_path / f"{count}.html"]):
            found = run(capsys, data, plan, *given, *form)
            assert found.out.count("NOT private") == count
            assert "NOT private" not in found.err
        assert (tmp_path / f"{count}.html").read_text("utf-8").count("NOT private") == count
    ages, facts = {"age": [31, 45] * 200}, {"age": {"bounds": (0, 120)}}
    for rng, private in ((None, True), (dpf.random.SecureBitGenerator(), True), (np.random.PCG64(1), False)):
        table = dpf.Table(ages, epsilon=1, columns=facts, rng=rng)
        table.median("age", share=1)
        assert ("NOT private" not in table.report().guarantee) is private
        assert table.report().to_dict()["private"] is private


_OF_PERSONS = ("person", 20)
_FACTS = {"pay": {"bounds": (0, 200), "missing": "lower"}, "kind": {"categories": ["a", "b"], "missing": "half"}}


def _by_decimals(table):
    """Amounts whose doubles are above the decimal, and below it."""
    for epsilon in (0.1, 0.3, 0.6):
        table.interval("mean", "pay", epsilon=epsilon)
    table.count(by="person", epsilon=0.2, delta=1.1e-6)


def _of_all_kinds(table):
    table.interval("median", "pay", by="kind", share=0.3)
    table.quantile("pay", [0.1, 0.9], share=0.1)
    table.std("pay", by="kind", share=0.1)
    table.histogram("pay", 7, share=0.1)
    table.mle("pay", "gamma", bounds={"shape": (1, 50), "rate": (0.01, 1)}, missing=9, share=0.04)
    table.top_k("kind", 1, share=0.1)
    table.bounds("pay", epsilon=0.2)
    table.linear_regression(["kind"], "pay", share=0.1)


def _of_persons(table):
    table.count(by="kind", share=0.3)
    table.interval("mean", "pay", by="kind", per_key=1, share=0.3)
    table.partitions("kind", share=0.4)


@pytest.mark.parametrize("make", [_by_decimals, _of_all_kinds, _of_persons])
def test_a_table_and_a_plan_make_the_same_files(capsys, files, tmp_path, make):
    """Byte by byte, in all forms, with the same generator: the plan has what the calls say."""
    budget = {"epsilon": 1.3, "delta": 1.1e-5, **({"unit": _OF_PERSONS} if make is _of_persons else {})}
    entries = []

    class Noting:
        def __getattr__(self, name):
            def note(*arguments, **options):
                statistic, rest = (arguments[0], arguments[1:]) if name == "interval" else (name, arguments)
                named = dict(zip(_ARGUMENTS.get(name, ("column",)), rest, strict=False))
                alone = {"interval": False} if name in ("std", "mean") else {}
                entries.append({"statistic": statistic, **named, **alone, **options})

            return note

    make(Noting())
    plan = tmp_path / "made.toml"
    lines = [f"{key} = {_toml(value)}" for key, value in budget.items()]
    lines += [f"columns.{name} = {_toml(facts)}" for name, facts in _FACTS.items()]
    for entry in entries:
        lines += ["[[release]]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    plan.write_text("\n".join(lines))
    for end in ("json", "csv", "md", "html"):
        run(capsys, files[0], plan, "-o", tmp_path / f"command.{end}", "--seed", 7)
        table = dpf.Table(files[0], **budget, columns=_FACTS, rng=np.random.default_rng(7))
        make(table)
        table.report().save(tmp_path / f"python.{end}")
        assert (tmp_path / f"python.{end}").read_bytes() == (tmp_path / f"command.{end}").read_bytes()


_ARGUMENTS = {
    "quantile": ("column", "q"),
    "histogram": ("column", "bins"),
    "mle": ("column", "family"),
    "top_k": ("column", "k"),
    "linear_regression": ("features", "label"),
}


def _toml(value):
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(part)}' for key, part in value.items())}}}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def test_too_few_records_for_a_release_cost_nothing(capsys, files, tmp_path):
    """Their number is public and known once they are read, before the first release."""
    given = ["--epsilon", "0.2", "--release", "count of pay", "--release", "bounds of pay", "--ledger"]
    ledger = dpf.Ledger(0.2, path=tmp_path / "x.ledger")
    told = run(capsys, files[0], *given[2:], tmp_path / "x.ledger", code=2).err
    assert "release 2, bounds: bounds need 2840 records for --epsilon 0.1, not 2000" in told
    assert not dpf.Ledger.open(tmp_path / "x.ledger").charges
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("rows", [3_000, 300])
def test_one_number_of_records_is_presumed(capsys, tmp_path, rows):
    """That of all rows, in the warning of a report and in its dry run, where those with a number are private."""
    path, plan = tmp_path / "x.csv", tmp_path / "plan.toml"
    path.write_text("pay,kind\n" + "5,a\n" * rows)
    text = f'epsilon = 2\nrecords = {rows}\ncolumns.pay = {{bounds = "private", missing = "drop"}}\n'
    text += 'columns.kind.categories = ["a", "b", "c"]\n'
    for by, n in (("", rows), ('by = "kind"\n', rows // 3)):
        plan.write_text(f'{text}[[release]]\nstatistic = "mean"\ncolumn = "pay"\nshare = 1\n{by}')
        told = [run(capsys, path, plan, *more).err for more in ([], ["--dry-run"])]
        few = f"n is private, and presumed to be {n:,}: {n:,} records are fewer than the 498 that this release requires"
        assert [few in each for each in told] == [n < 498] * 2
        assert "presumed to be at least 100" not in "".join(told)
    plan.write_text(f'{text}[[release]]\nstatistic = "count"\nby = "kind"\nshare = 1\n')
    assert f"about 0.851 for n = {rows // 3:,}." in run(capsys, path, plan, "--dry-run").out


def test_private_groups_within_private_bounds_warn(recwarn):
    """As the release from all records does: n of each is presumed to be at least 100."""
    table = dpf.Table({"pay": [5.0] * 900, "kind": ["a"] * 900}, epsilon=1, delta=1e-6, neighbors="add-remove")
    with pytest.warns(dpf.UtilityWarning, match="presumed to be at least 100: 100 records are fewer than"):
        table.mean("pay", by="kind", bounds="private", share=1)


def test_several_files_of_one_report(capsys, files, tmp_path):
    """For one charge, and with the same numbers; a file that cannot be written is refused before."""
    given = [files[0], "--epsilon", "4", "--bounds", "pay=0,200", "--seed", "3", "--release", "mean of pay"]
    paths = [str(tmp_path / f"report{ending}") for ending in (".json", ".csv", ".html")]
    found = json.loads(run(capsys, *given, *(part for path in paths for part in ("-o", path)), "--json").out)
    assert found["output"] == paths
    assert json.loads(Path(paths[0]).read_text())["releases"] == found["releases"]
    lines = Path(paths[1]).read_text().splitlines()
    assert lines[1].startswith('"mean of pay, with interval",,')
    assert "<html" in Path(paths[2]).read_text()
    again = str(tmp_path / "again.md")
    for outputs, message in (
        ([again, "-"], "-o - is standard output, and must be the only one"),
        ([again, again], "-o must not name a file twice"),
        ([again, paths[0]], "it exists"),
    ):
        assert message in run(capsys, *given, *(part for path in outputs for part in ("-o", path)), code=2).err
        assert not Path(again).exists()
    run(capsys, *given, "--dry-run", "-o", again, "-o", str(tmp_path / "dry.csv"))
    assert Path(again).exists()
