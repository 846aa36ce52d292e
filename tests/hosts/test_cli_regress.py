"""The command that releases a regression, against the functions of the library."""

import json

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main

PUBLIC = ["--radius", "2", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = X @ [2.0, -1.0] + rng.normal(size=3000)
    path = tmp_path / "x.csv"
    path.write_text(
        "y,other,b,a\n" + "".join(f"{t!r},z,{b!r},{a!r}\n" for (a, b), t in zip(X.tolist(), y.tolist(), strict=True))
    )
    return X, y, str(path)


def release(capsys, path, *options):
    assert main(["regress", path, "--features", "a", "b", "--label", "y", *PUBLIC, "--seed", "7", *options]) == 0
    return capsys.readouterr().out


MODELS = {
    "linear": ({"label_bound": 5.0}, dpf.linear_regression),
    "logistic": ({"model": "logistic"}, dpf.glm),
    "poisson": ({"model": "poisson", "label_bound": 9.0}, dpf.glm),
    "huber": ({"model": "huber", "label_bound": 5.0, "bound": 1.5}, dpf.glm),
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
    assert lines[5] == ("(read as type number; a record with empty or non-numeric cells counts as one at both centers)")


def test_centers(capsys, data):
    X, y, path = data
    options = ["--label-bound", "5", "--center", "0.5", "-0.5", "--label-center", "1"]
    report = json.loads(release(capsys, path, *options, "--json"))
    rows, given = dpf.Chunks([np.column_stack([X, y])]), {"radius": 2.0, "epsilon": 1.0, "delta": "1e-6"}
    centers = {"label_bound": 5.0, "center": [0.5, -0.5], "label_center": 1.0}
    fit = dpf.linear_regression(rows, rng=Generator(PCG64(7)), **given, **centers)
    assert report["coefficients"] == fit.coefficients.tolist()


@pytest.mark.parametrize("cell", ["7", "", "x", "nan", "inf"])
def test_the_type_of_the_outcome_does_not_depend_on_cells(capsys, tmp_path, cell):
    path = tmp_path / "x.csv"
    path.write_text(f"a,y\n1,2\n{cell},{cell}\n3\n" + "1,2\n" * 400)
    for model in ("linear", "logistic"):
        bound = ["--label-bound", "5"] if model == "linear" else ["--model", model]
        given = ["regress", str(path), "--features", "a", "--label", "y", *PUBLIC, *bound, "--json"]
        assert main(given) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["n"], np.isfinite(report["coefficients"]).all()) == (403, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--model linear needs --label-bound"),
        (["--label-bound", "5", "--bound", "1"], "--model linear does not take --bound"),
        (["--model", "logistic", "--label-bound", "5"], "--model logistic does not take --label-bound"),
        (["--model", "logistic", "--label-center", "5"], "--label-center is for --model linear"),
        (["--model", "huber", "--label-bound", "5"], "--model huber needs --bound"),
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
    assert capsys.readouterr().err == "dpfast: error: no column 'c' in the header\n"
