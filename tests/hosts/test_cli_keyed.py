"""Groups and their keys on the command line, against the functions of the library."""

import json

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main
from dpfast.statistics import InterquartileRange, Mean, Median, Sum, TrimmedMean, Variance

GRID = dpf.Grid(0, 100)
WORDS = ["Oslo", "Rome", 'Den "Haag"', ""]


@pytest.fixture
def data(tmp_path):
    """Pay, the city and the year of 2000 records; some cities are missing."""
    rng = np.random.default_rng(0)
    pay, city, year = rng.normal(50, 9, 2000), rng.choice(WORDS, 2000, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(0, 3, 2000)
    path = tmp_path / "x.csv"
    rows = zip(pay.tolist(), ['"{}"'.format(word.replace('"', '""')) for word in city], year.tolist(), strict=True)
    path.write_text("pay,city,year\n" + "".join(f"{p!r},{c},{y}\n" for p, c, y in rows))
    keys = tmp_path / "keys.csv"
    keys.write_text('Rome\n"Den ""Haag"""\n\nLima\n')
    return pay, [word or None for word in city.tolist()], year, str(path), str(keys)


def run(capsys, command, *options):
    code = main([command, *map(str, options)])
    return code, *capsys.readouterr()


def report(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--seed", 7, "--json")
    assert code == 0, err
    return json.loads(out)


STATISTICS = {
    "median": (Median(), dpf.InverseSensitivity, float),
    "mean": (Mean(), dpf.GlobalSensitivity, float),
    "sum": (Sum(), dpf.GlobalSensitivity, float),
    "std": (Variance(), dpf.GlobalSensitivity, np.sqrt),
    "trimmed-mean": (TrimmedMean(0.1), dpf.InverseSensitivity, float),
    "iqr": (InterquartileRange(), dpf.InverseSensitivity, float),
    "quantiles": ((0.25, 0.5, 0.75), dpf.Quantiles, np.ndarray.tolist),
}
ON_PAY = ["--column", "pay", "--bounds", 0, 100, "--epsilon", 1]


@pytest.mark.parametrize("command", STATISTICS)
def test_public_keys(capsys, data, command):
    pay, city, _, path, keys = data
    statistic, method, after = STATISTICS[command]
    found = report(capsys, command, path, *ON_PAY, "--group-by", "city", "--keys", keys)
    listed = ["Rome", 'Den "Haag"', "Lima"]
    labels = np.array(city, object)
    made = method(statistic, grid=GRID, epsilon=1.0)
    made = dpf.PresentMean(grid=GRID.with_missing("drop"), epsilon=1.0) if command == "mean" else made
    expected = dpf.by_group(made, pay, labels=labels, keys=listed, rng=Generator(PCG64(7)))
    assert found["keys"] == listed
    assert found["values"][:2] == [after(value) for value in expected.array[:2]]
    assert found["values"][2] == ([None] * 3 if command == "quantiles" else None)
    assert (found["n"], found["group_by"], found["neighbors"]) == (2000, ["city"], "replace-one")
    code, out, _ = run(capsys, command, path, *ON_PAY, "--group-by", "city", "--keys", keys)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 5)
    assert lines[1].startswith('Den "Haag": ')
    assert lines[2].startswith("Lima: no records")
    assert lines[3].startswith("(3 groups; epsilon = 1 ")
    assert lines[4].endswith("; the group of each record is public; records of other keys are left out)")


def test_groups_whose_sizes_are_private(capsys, data):
    path, keys = data[3:]
    groups = ["--group-by", "city", "--keys", keys, "--neighbors", "add-remove"]
    found = report(capsys, "mean", path, *ON_PAY, *groups)
    assert (found["n"], found["neighbors"]) == (None, "add-remove")
    assert None not in found["values"]
    assert "public" not in found["reading"]


def test_several_columns_of_keys(capsys, data, tmp_path):
    pay, city, year, path, _ = data
    keys = tmp_path / "pairs.csv"
    keys.write_text("Oslo,1\nRome,7\nRome,2\n")
    found = report(capsys, "median", path, *ON_PAY, "--group-by", "city", "year", "--keys", keys)
    assert found["keys"] == [["Oslo", "1"], ["Rome", "7"], ["Rome", "2"]]
    median = dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0)
    labels = np.array(city, object), np.array([str(y) for y in year], object)
    pairs = [("Oslo", "1"), ("Rome", "7"), ("Rome", "2")]
    expected = dpf.by_group(median, pay, labels=labels, keys=pairs, rng=Generator(PCG64(7))).array.tolist()
    assert found["values"] == [expected[0], None, expected[2]]


def test_keys_of_a_column_of_integers(capsys, data, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, keys = tmp_path / "x.parquet", tmp_path / "years.csv"
    parquet.write_table(arrow.table({"pay": data[0], "year": [None, *data[2][1:].tolist()]}), path)
    keys.write_text("2\n0\n")
    groups = ["--group-by", "year", "--keys", keys]
    found = report(capsys, "median", path, *ON_PAY, *groups)
    assert found["keys"] == [2, 0]
    assert None not in found["values"]
    keys.write_text("2\nsecret\n")
    code, _, err = run(capsys, "median", path, *ON_PAY, *groups)
    assert (code, err) == (2, "dpfast: error: the keys of a column of integers must be integers, not 'secret'\n")


@pytest.mark.parametrize("names", [["city"], ["city", "year"]])
def test_private_keys(capsys, data, tmp_path, names):
    pay, city, year, path, _ = data
    options = ["--group-by", *names, "--keys", "private", "--neighbors", "add-remove", "--delta", "1e-6"]
    ledger = dpf.Ledger("1", "1e-6", path=tmp_path / "budget", neighbors="add-remove")
    found = report(capsys, "mean", path, *ON_PAY, *options, "--ledger", tmp_path / "budget")
    half = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=0.5, neighbors="add-remove")
    cities, years = np.array(city, object), np.array([str(y) for y in year], object)
    released = dpf.by_group(
        half,
        pay,
        labels=cities if names == ["city"] else (cities, years),
        keys="private",
        partitions=dpf.PartitionSelection(0.5, "1e-6"),
        rng=Generator(PCG64(7)),
    )
    keys = [list(key) if isinstance(key, tuple) else key for key in released]
    assert (found["keys"], found["values"]) == (keys, released.array.tolist())
    assert found["keys"][0] == ('Den "Haag"' if names == ["city"] else ['Den "Haag"', "0"])
    assert (found["n"], found["epsilon"], found["delta"]) == (None, 1, ledger.spent.delta)
    assert (ledger.spent.epsilon, len(ledger.charges)) == (1, 2)
    assert run(capsys, "mean", path, *ON_PAY, *options, "--ledger", tmp_path / "budget")[0] == 4
    code, _, err = run(capsys, "median", path, *ON_PAY, *options[:-1], "0")
    assert code == 2
    assert "--keys private needs a positive --delta" in err


@pytest.mark.parametrize("command", ["median", "mean", "sum", "std", "quantiles"])
def test_intervals(capsys, data, command):
    pay, city, _, path, keys = data
    q = ["-q", 0.75] if command == "quantiles" else []
    groups = ["--group-by", "city", "--keys", keys, "--interval", 0.9]
    found = report(capsys, command, path, *ON_PAY, *q, *groups)
    expected = dpf.interval(
        dpf.statistics.Quantile(0.75) if q else command,
        pay,
        labels=np.array(city, object),
        keys=found["keys"],
        grid=GRID.with_missing("drop" if command in ("mean", "median", "quantiles") else None),
        epsilon=1.0,
        confidence=0.9,
        rng=Generator(PCG64(7)),
    )
    numbers = zip(found["values"], found["low"], found["high"], strict=True)
    assert [[*each] for each in numbers] == [*expected.array[:2].tolist(), [None] * 3]
    assert (found["confidence"], found["epsilon"]) == (0.9, 1)
    code, out, _ = run(capsys, command, path, *ON_PAY, *q, *groups)
    assert code == 0
    assert ", 90 % interval " in out.splitlines()[0]
    assert out.splitlines()[2] == "Lima: no records"


def test_counts(capsys, data):
    pay, city, _, path, keys = data
    options = [path, "--epsilon", 1, "--group-by", "city", "--keys", keys]
    labels = np.array(city, object)
    for more, x in ([], np.zeros(2000)), (["--column", "pay", "--within", 40, 50], pay):
        count, rng = dpf.statistics.Count((40, 50) if more else None), Generator(PCG64(7))
        expected = dpf.interval(count, x, labels=labels, keys=["Rome", 'Den "Haag"', "Lima"], epsilon=1.0, rng=rng)
        found = report(capsys, "count", *options, *more, "--interval")
        assert [found["values"], found["low"]] == expected.array[:, :2].T.tolist()
        assert (found["neighbors"], found["confidence"]) == ("add-remove", 0.95)
        assert found["high"] == expected.array[:, 2].tolist()
    assert report(capsys, "count", path, "--column", "pay", "--epsilon", 1, "--interval")["high"] > 1990
    private = ["--keys", "private", "--delta", "1e-6"]
    found = report(capsys, "count", *options[:-2], *private, "--interval")
    assert found["keys"] == ['Den "Haag"', "Oslo", "Rome"]
    assert np.abs(np.subtract(found["values"], found["counts"])).max() < 60
    code, out, _ = run(capsys, "count", *options[:-2], *private)
    assert "about" not in out.splitlines()[0]
    for wrong, message in (
        (["--delta", "1e-6"], "--delta of a count is for --keys private"),
        (["--group-by", "city", "--keys", keys, "--within", 1, 2], "--group-by needs --column"),
    ):
        code, _, err = run(capsys, "count", path, "--epsilon", 1, *wrong)
        assert (code, message in err) == (2, True)


@pytest.mark.parametrize("long", [False, True])
def test_partitions(capsys, data, monkeypatch, long):
    _, city, _, path, _ = data
    if long:
        monkeypatch.setattr("dpfast.tables.files.IN_MEMORY", 1000)
    found = report(capsys, "partitions", path, "--column", "city", "--epsilon", 1, "--delta", "1e-6")
    rng = Generator(PCG64(7))
    expected = dpf.partitions(np.array(city, object), epsilon=1.0, delta="1e-6", rng=rng)
    assert (found["keys"], found["counts"]) == (expected.keys.tolist(), expected.counts.tolist())
    assert found["keys"] == ['Den "Haag"', "Oslo", "Rome"]
    found = report(capsys, "partitions", path, "--column", "city", "year", "--epsilon", 1, "--delta", "1e-6")
    assert len(found["keys"]) == 9
    assert ["Rome", "0"] in found["keys"]
    code, out, _ = run(capsys, "partitions", path, "--column", "city", "--epsilon", 1, "--delta", "1e-6")
    assert (code, len(out.splitlines())) == (0, 5)
    assert "2,000" not in out


def test_partitions_among_public_keys(capsys, data):
    path, keys = data[3:]
    found = report(capsys, "partitions", path, "--column", "city", "--epsilon", 50, "--keys", keys)
    assert found["keys"] == ["Rome", 'Den "Haag"', "Lima"]
    assert (found["counts"][2], found["delta"]) == (0, 0)
    found = report(
        capsys, "partitions", path, "--column", "city", "--epsilon", 1, "--delta", 1e-6, "--contributions", 3
    )
    assert found["contributions"] == 3


def test_keys_do_not_show_control_characters(capsys, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"city,pay\n" + b"\x1b[2J,1\n" * 100 + b"\xff,1\n" * 100)
    _, out, _ = run(capsys, "partitions", path, "--column", "city", "--epsilon", 1, "--delta", "1e-6")
    assert "\x1b" not in out
    assert "'\\x1b[2J': " in out
    assert "'\\udcff': " in out


def test_the_type_of_the_outcome_does_not_depend_on_cells(capsys, tmp_path):
    path, keys = tmp_path / "x.csv", tmp_path / "keys.csv"
    keys.write_text("a\nb\n")
    shapes = set()
    for cells in ("a,1", "b,", ",1", '"a""",x', "\u00e4,nan", "a", ""):
        path.write_text("key,pay\n" + "a,5\n" * 300 + cells + "\n")
        code, out, err = run(
            capsys, "mean", path, *ON_PAY, "--group-by", "key", "--keys", keys, "--neighbors", "add-remove", "--json"
        )
        found = json.loads(out)
        kept = {name: value for name, value in found.items() if name != "values"}
        shapes.add((code, err, json.dumps(kept), *map(type, found["values"])))
    assert len(shapes) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group-by", "city"], "--group-by and --keys"),
        (["--keys", "KEYS"], "--group-by and --keys"),
        (["--group-by", "city", "--keys", "private"], "--keys private needs --neighbors add-remove"),
        (["--group-by", "city", "--keys", "nowhere.csv"], "cannot read nowhere.csv: No such file or directory"),
        (["--group-by", "town", "--keys", "KEYS"], "no column 'town' in the header"),
        (["--group-by", "city", "--keys", "KEYS", "--interval", "7"], "confidence must be strictly between 0 and 1"),
        (["--group-by", "city", "year", "--keys", "KEYS"], "without a header the column is a number from 1 to 1"),
    ],
)
def test_errors(capsys, data, options, message):
    path, keys = data[3:]
    code, out, err = run(capsys, "median", path, *ON_PAY, *(keys if option == "KEYS" else option for option in options))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_partitions_need_a_delta_or_keys(capsys):
    code, _, err = run(capsys, "partitions", "nowhere.csv", "--column", "city", "--epsilon", 1)
    assert code == 2
    assert "give either a positive --delta, such as 1e-6, or the possible keys in a file: --keys FILE" in err


@pytest.mark.parametrize("text", ["", "\n", "Rome\nRome\n"])
def test_files_without_distinct_keys(capsys, data, tmp_path, text):
    keys = tmp_path / "few.csv"
    keys.write_text(text)
    for given in (["median", data[3], *ON_PAY, "--group-by", "city"], ["partitions", data[3], "--column", "city"]):
        code, out, err = run(capsys, *given, "--epsilon", 1, "--keys", keys)
        assert (code, out) == (2, "")
        assert err.startswith("dpfast: error: --keys: ")


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_no_records(capsys, tmp_path, neighbors):
    path, keys = tmp_path / "x.csv", tmp_path / "keys.csv"
    path.write_text("key,pay\n")
    keys.write_text("a\nb\n")
    given = ["--neighbors", neighbors]
    code, out, _ = run(capsys, "partitions", path, "--column", "key", "--epsilon", 1, "--delta", 1e-6, *given)
    assert (code, out.splitlines()[0].startswith("(0 keys; ")) == (0, True)
    code, _, err = run(capsys, "mean", path, *ON_PAY, "--group-by", "key", "--keys", keys, *given)
    assert code == (0 if neighbors == "add-remove" else 2)
    assert not err or "n = 0 is public" in err


def test_a_ledger_is_charged_once_for_all_groups(capsys, data, tmp_path):
    path, keys = data[3:]
    ledger = dpf.Ledger("1", path=tmp_path / "budget")
    given = ["median", path, "--column", "pay", "--epsilon", "0.75", "--group-by", "city", "--keys", keys]
    for expected in (0, 4):
        assert run(capsys, *given, "--ledger", tmp_path / "budget")[0] == expected
    assert (len(ledger.charges), ledger.remaining.epsilon) == (1, 0.25)
    hidden = dpf.Ledger("1", "1e-6", path=tmp_path / "hidden", neighbors="add-remove")
    given = [
        "partitions",
        path,
        "--column",
        "city",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--ledger",
        tmp_path / "hidden",
    ]
    for expected in (0, 4):
        assert run(capsys, *given)[0] == expected
    assert len(hidden.charges) == 1


@pytest.mark.parametrize("encoding", [None, "utf-8", "ascii", "koi8-r"])
def test_different_bytes_are_different_keys(capsys, tmp_path, encoding):
    """Also bytes that are no text in the encoding."""
    path, names = (
        tmp_path / "x.csv",
        [b"M\xe9xico", b"M\xe8xico", "M\u00e9xico".encode(), b"\xff", b"\xfe", b'"a""\xe9"'],
    )
    path.write_bytes(b"city\n" + b"".join(name + b"\n" for name in names) * 100)
    options = [] if encoding is None else ["--encoding", encoding]
    found = report(capsys, "partitions", path, "--column", "city", "--epsilon", 50, "--delta", 1e-6, *options)
    assert len(set(found["keys"])) == len(names)
    assert all(abs(count - 100) < 5 for count in found["counts"])
    if encoding != "koi8-r":
        assert sorted(key.encode("utf-8", "surrogateescape") for key in found["keys"]) == sorted(
            [*names[:5], b'a"\xe9']
        )


def test_an_encoding_is_declared(capsys, tmp_path):
    path, keys = tmp_path / "x.csv", tmp_path / "keys.csv"
    words = ["M\u00e9xico", "M\u00e8xico", 'quo"\u00e9']
    cells = "".join('"{}"\n'.format(word.replace('"', '""')) for word in words)
    path.write_text("ville d'\u00e9t\u00e9\n" + cells * 100, "latin-1")
    keys.write_text(cells, "latin-1")
    given = ["partitions", path, "--column", "ville d'\u00e9t\u00e9", "--epsilon", 50, "--encoding", "latin-1"]
    assert set(report(capsys, *given, "--delta", 1e-6)["keys"]) == set(words)
    found = report(capsys, *given, "--keys", keys)
    assert found["keys"] == words
    assert min(found["counts"]) > 90


@pytest.mark.parametrize("name", ["utf-7", "rot13", "hex", "unicode_escape", "idna", "punycode", "cp037", "magic"])
def test_encodings_whose_decoders_may_fail_are_refused(capsys, name):
    with pytest.raises(SystemExit) as stop:
        main(["partitions", "nowhere.csv", "--column", "a", "--epsilon", "1", "--encoding", name])
    assert stop.value.code == 2
    message = "must be an encoding of text, as utf-8, latin-1 or utf-16"
    assert f"{message}, not '{name}'" in capsys.readouterr().err


def test_blank_lines_of_keys_are_no_keys(capsys, tmp_path):
    path, keys = tmp_path / "x.csv", tmp_path / "keys.csv"
    path.write_text("a,b\n1,2\n\n" * 100)
    keys.write_text("1,2\n\n2,1\n\n")
    found = report(capsys, "partitions", path, "--column", "a", "b", "--epsilon", 50, "--keys", keys)
    assert found["keys"] == [["1", "2"], ["2", "1"]]


def test_a_count_of_all_records_needs_no_column(tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 500)
    for more in ([], ["--no-header"]):
        assert main(["count", str(path), "--epsilon", "9", "--seed", "1", *more]) == 0
        assert capsys.readouterr().out.startswith(f"count = {500 + bool(more)}")
    assert main(["count", str(path), "--epsilon", "9", "--within", "0", "1"]) == 2
    assert "name one with --column" in capsys.readouterr().err
