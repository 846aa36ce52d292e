"""The command that releases a regression, against the functions of the library."""

import json
import warnings

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main

DROPPED = ["--missing", "drop", "--neighbors", "replace-one"]
PUBLIC = ["--radius", "2", "--epsilon", "1", "--delta", "1e-6", "--type", "number"]


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = X @ [2.0, -1.0] + rng.normal(size=3000)
    path = tmp_path / "x.csv"
    path.write_text(
        "y,other,b,a,sign,yes\n"
        + "".join(
            f"{t!r},z,{b!r},{a!r},{1 + (t > 0)},{'yes' if t > 0 else 'no'}\n"
            for (a, b), t in zip(X.tolist(), y.tolist(), strict=True)
        )
    )
    return X, y, str(path)


def release(capsys, path, *options):
    assert main(["regress", path, "--features", "a", "b", "--label", "y", *PUBLIC, "--seed", "7", *options]) == 0
    return capsys.readouterr().out


MODELS = {
    "linear": ({"label_bound": 5.0}, dpf.linear_regression),
    "logistic": ({"model": "logistic"}, dpf.glm),
    "poisson": ({"model": "poisson", "label_bound": 9.0}, dpf.glm),
    "huber": ({"model": "huber", "label_bound": 5.0, "k": 1.5}, dpf.glm),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("long", [False, True])
def test_models(capsys, data, monkeypatch, model, intercept, long):
    X, y, path = data
    parameters, function = MODELS[model]
    if long:
        monkeypatch.setattr("dpfast.tables.files.IN_MEMORY", 1000)
    options = ["--model", model, *([] if intercept else ["--no-intercept"])]
    if model == "logistic":
        options += ["--label", "sign", "--label-values", "1", "2"]
    for name in parameters.keys() - {"model"}:
        options += [f"--{name.replace('_', '-')}", str(parameters[name])]
    report = json.loads(release(capsys, path, *options, "--json"))
    given = {"radius": 2.0, "epsilon": 1.0, "delta": "1e-6", "intercept": intercept, **parameters}
    fit = function(dpf.Chunks([np.column_stack([X, y])]), rng=Generator(PCG64(7)), **given)
    assert report["coefficients"] == fit.coefficients.tolist()
    assert report["standard_errors"] == fit.standard_errors.tolist()
    assert (report["intercept"], report["n"], report["model"]) == (fit.intercept, 3000, model)
    assert report["low"] == fit.interval()[:, 0].tolist()


def test_text(capsys, data):
    lines = release(capsys, data[2], "--label-bound", "5").splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["estimate", "a", "b", "intercept"]
    assert abs(float(lines[1].split()[1]) - 2) < 0.3
    assert lines[4].startswith("(linear regression; 3,000 records; epsilon = 1")
    assert lines[5] == ("(read as type number; a record with empty or non-numeric cells counts as one at its centers)")


def test_centers(capsys, data):
    X, y, path = data
    options = ["--label-bound", "5", "--center", "0.5", "-0.5", "--label-center", "1"]
    report = json.loads(release(capsys, path, *options, "--json"))
    rows, given = dpf.Chunks([np.column_stack([X, y])]), {"radius": 2.0, "epsilon": 1.0, "delta": "1e-6"}
    centers = {"label_bound": 5.0, "center": [0.5, -0.5], "label_center": 1.0}
    fit = dpf.linear_regression(rows, rng=Generator(PCG64(7)), **given, **centers)
    assert report["coefficients"] == fit.coefficients.tolist()


@pytest.mark.parametrize("model", ["linear", "poisson"])
@pytest.mark.parametrize("missing", [None, "drop", "half"])
def test_a_private_number_of_records(capsys, data, model, missing):
    X, y, path = data
    with open(path, "a") as file:
        file.write("1.0,z,,0.5,1,no\n,z,0.5,0.5,1,no\n")
    parameters, function = MODELS[model]
    options = ["--model", model, "--label-bound", str(parameters["label_bound"]), "--neighbors", "add-remove"]
    options += [] if missing is None else ["--missing", missing]
    report = json.loads(release(capsys, path, *options, "--json"))
    assert (report["n"], report["neighbors"]) == (None, "add-remove")
    assert ("is left out" in report["reading"]) == (missing != "half")
    given = {"radius": 2.0, "epsilon": 1.0, "delta": "1e-6", **parameters}
    rows, labels = np.vstack([X, [[0.5, np.nan], [0.5, 0.5]]]), np.append(y, [1.0, np.nan])
    drops = None if missing == "half" else "drop"
    fit = function(rows, labels, neighbors="add-remove", missing=drops, rng=Generator(PCG64(7)), **given)
    assert report["coefficients"] == fit.coefficients.tolist()
    assert "records" not in release(capsys, path, *options).splitlines()[4].partition("; ")[0]
    if missing == "drop":  # which hides the number by itself
        alone = release(
            capsys, path, *(word for word in options if word not in ("--neighbors", "add-remove")), "--json"
        )
        assert json.loads(alone) == report


def test_categories_of_a_private_number_of_records(capsys, tmp_path):
    """Several columns of one feature, and a file without records: an outcome of the same kind."""
    path = tmp_path / "x.csv"
    given = ["regress", str(path), "--features", "a", "--categories", "a=x,y,z", "--label", "y", *PUBLIC, "--seed", "7"]
    given += ["--label-bound", "5", "--missing", "drop", "--json"]
    for cells in ("".join(f"{i % 5},{'xyz'[i % 3]}\n" for i in range(3000)), ""):
        path.write_text("y,a\n" + cells)
        assert main(given) == 0
        out, err = capsys.readouterr()
        assert (json.loads(out)["features"], err.count("\n")) == (["a=y", "a=z"], 0)


def test_a_warning_of_missing_cells_comes_before_the_charge(capsys, data, tmp_path):
    """From what is declared: nothing is known of the cells of CSV, of which none is missing here."""
    path = tmp_path / "x.ledger"
    ledger = dpf.Ledger(2, "1e-5", path=path)
    words = [
        "regress",
        data[2],
        "--features",
        "a",
        "b",
        "--label",
        "y",
        *PUBLIC,
        "--label-bound",
        "5",
        "--ledger",
        path,
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for more, told in ((["--missing", "half"], 0), (["--missing", "drop"], 0), ([], 1)):
            assert main([*map(str, words), *more, "--epsilon", "0.5"]) == 0
            err = capsys.readouterr().err
            assert err.count("\n") == told
            assert ("a missing cell of a, b, y counts as one at the centers" in err) == bool(told)
            assert ("say --missing drop to leave such records out, or --missing half" in err) == bool(told)
    assert [float(charge.profile.privacy.epsilon) for charge in ledger.charges] == [0.5, 1.0, 0.5]


def test_records_with_missing_cells_are_left_out_of_a_private_number_only(capsys, data):
    assert main(["regress", data[2], "--features", "a", "--label", "y", *PUBLIC, *DROPPED]) == 2
    assert "--missing drop makes the number of records private: it needs --neighbors" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["7", "", "x", "nan", "inf"])
def test_the_type_of_the_outcome_does_not_depend_on_cells(capsys, tmp_path, cell):
    path = tmp_path / "x.csv"
    path.write_text(f"a,y\n1,2\n{cell},{cell}\n3\n" + "1,2\n" * 400)
    for model in ("linear", "logistic"):
        bound = ["--label-bound", "5"] if model == "linear" else ["--model", model, "--label-values", "0", "2"]
        given = ["regress", str(path), "--features", "a", "--label", "y", *PUBLIC, *bound, "--json"]
        assert main(given) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["n"], np.isfinite(report["coefficients"]).all()) == (403, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "sums"], "--label-bound must be given for --method sums"),
        (["--model", "huber", "--k", "1"], "--model huber needs --label-bound"),
        (["--model", "logistic", "--method", "blocks"], "--model logistic does not take --method"),
        (["--label-bound", "5", "--k", "1"], "--model linear does not take --k"),
        (["--model", "logistic", "--label-bound", "5"], "--model logistic does not take --label-bound"),
        (["--model", "logistic", "--label-center", "5"], "--label-center is for --model linear"),
        (["--model", "huber", "--label-bound", "5"], "--model huber needs --k"),
        (["--label-bound", "5", "--center", "1", "2", "3"], "--center must be one number or 2, one for each feature"),
        (["--label-bound", "5", "--features", "a", "a"], "--features and --label must name each column once"),
        (["--label-bound", "5", "--features", "y"], "--features and --label must name each column once"),
        (["--label-bound", "5", "--radius", "-1"], "radius must be"),
    ],
)
def test_parameters_are_checked_before_the_file(capsys, options, message):
    given = ["regress", "nowhere.csv", "--features", "a", "b", "--label", "y", *PUBLIC, *options]
    assert main(given) == 2
    assert message in capsys.readouterr().err


def test_columns_that_do_not_exist(capsys, data):
    given = ["regress", data[2], "--features", "a", "c", "--label", "y", *PUBLIC, "--label-bound", "5"]
    assert main(given) == 2
    assert (
        capsys.readouterr().err
        == "dpfast: error: no column 'c' in the header: it has 'y', 'other', 'b', 'a', 'sign', 'yes'\n"
    )


def refused(capsys, *given):
    assert main(["regress", *given]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


UNTYPED = ["--radius", "2", "--epsilon", "1", "--label-bound", "5"]


def test_csv_declares_no_types(capsys, data):
    """Also a column of text would be read, as one of missing numbers."""
    for features in (["other", "a"], ["a", "b"]):
        err = refused(capsys, data[2], "--features", *features, "--label", "y", *UNTYPED)
        assert "CSV declares no types: give --type number for" in err
    err = refused(capsys, data[2], "--features", "a", "--label", "yes", *UNTYPED)
    assert "CSV declares no types" in err


def test_parquet_declares_types(capsys, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, x = str(tmp_path / "x.parquet"), np.arange(400) % 7
    columns = {"a": x / 7, "y": x, "text": x.astype(str), "flag": np.where(x > 3, "yes", "no")}
    parquet.write_table(arrow.table(columns), path)
    assert main(["regress", path, "--features", "a", "--label", "y", *UNTYPED]) == 0
    capsys.readouterr()
    for features, label in ((["a", "text"], "y"), (["a"], "flag")):
        err = refused(capsys, path, "--features", *features, "--label", label, *UNTYPED)
        assert "does not hold numbers" in err
    logistic = ["regress", path, "--features", "a", "--radius", "2", "--epsilon", "1", "--model", "logistic"]
    assert main([*logistic, "--label", "flag", "--label-values", "no", "yes"]) == 0
    capsys.readouterr()
    err = refused(capsys, *logistic[1:], "--label", "y", "--label-values", "no", "yes")
    assert "the categories of 'y', a column of integers, must be integers" in err


@pytest.mark.parametrize(("label", "values"), [("sign", ["1", "2"]), ("sign", ["1.0", "2e0"]), ("yes", ["no", "yes"])])
@pytest.mark.parametrize("turned", [False, True])
def test_labels_are_named(capsys, data, label, values, turned):
    X, y, path = data
    wanted = values[::-1] if turned else values
    report = json.loads(
        release(capsys, path, "--model", "logistic", "--label", label, "--label-values", *wanted, "--json")
    )
    public = {"model": "logistic", "radius": 2.0, "epsilon": 1.0, "delta": "1e-6"}
    labels = y <= 0 if turned else y > 0
    fit = dpf.glm(dpf.Chunks([np.column_stack([X, labels])]), rng=Generator(PCG64(7)), **public)
    assert report["coefficients"] == fit.coefficients.tolist()
    assert f"read as type number but {label}, whose unlisted cells are missing" in report["reading"]


def test_categories_of_features(capsys, tmp_path):
    path, rng = tmp_path / "x.csv", np.random.default_rng(0)
    a, place, code = (
        rng.uniform(-1, 1, 900),
        rng.choice(["north", "south", "east", "Mars"], 900),
        rng.integers(1, 4, 900),
    )
    y = a + 2.0 * (place == "south")
    rows = zip(a.tolist(), place.tolist(), code.tolist(), y.tolist(), strict=True)
    path.write_text("a,place,code,y\n" + "".join(f"{a!r},{p},{c}.0,{t!r}\n" for a, p, c, t in rows))
    given = ["regress", str(path), "--features", "place", "a", "code", "--label", "y", *PUBLIC, "--label-bound", "5"]
    listed = ["--categories", "place=north,south,east", "code=1,2,3", "--seed", "7"]
    assert main([*given, *listed, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    names = ["place=south", "place=east", "a", "code=2", "code=3"]
    assert report["features"] == names
    X = np.column_stack([place == "south", place == "east", a, code == 2, code == 3]).astype(float)
    X[place == "Mars", :2] = np.nan  # not listed
    options = {"radius": 2.0, "label_bound": 5.0, "epsilon": 1.0, "delta": "1e-6"}
    fit = dpf.linear_regression(dpf.Chunks([np.column_stack([X, y])]), rng=Generator(PCG64(7)), **options)
    assert report["coefficients"] == fit.coefficients.tolist()
    assert main([*given, *listed]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:6]] == names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "logistic"], "--model logistic needs --label-values, as in"),
        (["--label-bound", "5", "--label-values", "0", "1"], "--label-values is for --model logistic"),
        (["--model", "logistic", "--label-values", "1", "1.0"], "--label-values must give different values"),
        (["--label-bound", "5", "--categories", "c=1,2"], "--categories must name features, each of them once"),
        (
            ["--label-bound", "5", "--categories", "a=1,2", "a=1,3"],
            "--categories must name features, each of them once",
        ),
        (["--label-bound", "5", "--categories", "a=x"], "--categories must give different values, at least two"),
        (["--label-bound", "5", "--categories", "a=x,x"], "--categories must give different values, at least two"),
        (["--label-bound", "5", "--categories", "a=x,"], "--categories must give different values, at least two"),
        (["--label-bound", "5", "--categories", "a=1,2,3", "--center", "1", "2"], "--center must be one number or 3"),
    ],
)
def test_categories_are_checked_before_the_file(capsys, options, message):
    given = ["nowhere.csv", "--features", "a", "b", "--label", "y", *PUBLIC, *options]
    assert message in refused(capsys, *given)


def test_categories_that_name_nothing(capsys):
    with pytest.raises(SystemExit):
        main(["regress", "nowhere.csv", "--features", "a", "--label", "y", *PUBLIC, "--categories", "=1,2"])
    assert "must be NAME=A,B,..., as in region=north,south, not '=1,2'" in capsys.readouterr().err
