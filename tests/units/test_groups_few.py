"""Groups of few records: a rule for released and public numbers, and where it is not known."""

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import dpfast as dpf
from dpfast.cli import main
from dpfast.groups.keyed import ReleasedColumn
from dpfast.mechanisms.usefulness import are_few

SMALL = dpf.Grid(0, 9, step=1)


def _median(neighbors, grid=SMALL, epsilon=1.0):
    return dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=epsilon, neighbors=neighbors)


class TestFew:
    """Groups of few records are marked by released and by public numbers, and by nothing else."""

    def test_counts_are_few_below_four_standard_errors(self):
        count = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=SMALL, epsilon=0.5, neighbors="add-remove")
        sizes = np.array([-3, 0, 1, 11, 12, 13, 500])
        expected = math.sqrt(2) / 0.5 > sizes / 4
        assert expected.tolist() == [True] * 4 + [False] * 3
        assert np.array_equal(ReleasedColumn("x", sizes.astype(float), mechanism=count).few(None), expected)

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_a_search_finds_what_each_number_would_say(self, neighbors):
        """Within bounds the least number is (log(points) + log(100)) / (epsilon q) or, if n is private, half of it."""
        sizes, floats = np.arange(1, 700), dpf.FloatGrid()
        for grid, points in ((SMALL, SMALL.size), (dpf.Grid(0, 1e6), 1000)):
            least = 2 * (math.log(points) + math.log(100)) * (0.5 if neighbors == "add-remove" else 1)
            assert np.array_equal(are_few(_median(neighbors, grid), sizes), sizes < least)
        mechanism = _median(neighbors, floats)
        each = [bool(tuple(mechanism.plan().traps_of(n))) for n in sizes.tolist()]
        assert np.array_equal(are_few(mechanism, sizes), each)
        assert 30 < sum(each) < 600
        resized = dpf.Resized(dpf.Quantiles((0.25, 0.5), grid=SMALL, epsilon=0.9), epsilon=1.0)
        assert np.diff(are_few(resized, sizes).astype(int)).tolist().count(-1) == 1

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    @pytest.mark.parametrize("grid", [SMALL, dpf.Grid(0, 999, step=1)])
    def test_enough_records_are_rarely_missed(self, neighbors, grid):
        """Of equal records, the worst, the exact law is outside of them with at most 1 %; of half as many with more."""
        mechanism = _median(neighbors, grid)
        sizes = np.arange(1, 100)
        least = int(sizes[~are_few(mechanism, sizes)][0])
        for n, is_rare in ((least, True), (least // 2, False)):
            law = mechanism.law(np.full(n, 4))
            outside = 1 - float(np.exp(law.logpmf(4)))
            assert (outside <= 0.01) is is_rare

    @pytest.mark.parametrize("hidden", [False, True])
    @pytest.mark.parametrize(("qs", "last"), [((0.25, 0.5), 9), ((0.25, 0.5, 0.75), 99), ((0.1, 0.9), 999)])
    def test_enough_records_of_several_quantiles_are_rarely_missed(self, qs, last, hidden):
        """Of equal records one of them is outside with about 1 %, and of half as many with more; alpha is 1e-9."""
        mechanism = dpf.Quantiles(qs, grid=dpf.Grid(0, last, step=1), epsilon=1.0)
        mechanism = dpf.Resized(mechanism, epsilon=1.25) if hidden else mechanism
        sizes = np.arange(1, 700)
        least, draws = int(sizes[~are_few(mechanism, sizes)][0]), 1000
        most = int(binom.isf(1e-9, draws, 0.012))
        for n, is_rare in ((least, True), (least // 2, False)):
            sources = map(np.random.default_rng, range(draws))
            released = [mechanism.release(np.full(n, 4), rng=rng) for rng in sources]
            missed = int((np.asarray(released) != 4).any(axis=1).sum())
            assert (missed <= most) is is_rare, (n, missed)

    @pytest.mark.parametrize("mechanism", [_median("replace-one"), dpf.Quantiles((0.25, 0.5), grid=SMALL, epsilon=1.0)])
    def test_an_explanation_says_how_many_records_it_takes(self, mechanism):
        sizes = np.arange(1, 700)
        least = int(sizes[~are_few(mechanism, sizes)][0])
        text = f"With fewer than about {least:,} records it may be anywhere within its bounds"
        assert text in mechanism.explanation(least - 1)
        assert text in mechanism.explanation()
        assert text not in mechanism.explanation(least)
        assert not mechanism.plan(least).traps
        [trap] = mechanism.plan(least - 1).traps
        assert trap.text.startswith(f"{least - 1:,} records are too few for this release at epsilon = 1: it may")
        assert not _median("add-remove").plan(3).traps

    def test_a_command_warns_of_few_records_within_bounds(self, tmp_path, capsys):
        """By their public number, whatever they are; with more records, or a statistic of less noise, it does not."""
        path = tmp_path / "x.csv"
        told = []
        for cells in (range(40), [""] * 40, range(400)):
            path.write_text("x\n" + "".join(f"{cell}\n" for cell in cells))
            given = [str(path), "--column", "x", "--epsilon", "0.2", "--bounds", "0", "200000"]
            assert main(["median", *given]) == 0
            told.append(capsys.readouterr().err)
            assert main(["mean", *given, "--missing", "lower"]) == 0
            assert capsys.readouterr().err == ""
        assert told[0] == told[1]
        assert told[0].startswith("dpfast: warning: 40 records are too few for this release at epsilon = 0.2: it ")
        assert told[0].endswith("it takes about 116 records, or a larger epsilon\n")
        assert told[2] == ""

    def test_by_what_is_released_or_public(self):
        labels = ["a"] * 3000 + ["b"] * 40
        x = np.full(3040, 4)
        private = {"labels": labels, "keys": "private", "partitions": dpf.PartitionSelection(5, 1e-6)}
        found = dpf.by_group(_median("add-remove", epsilon=0.1), x, **private)
        assert dict(zip(found, found.few.tolist(), strict=True)) == {"a": False, "b": True}
        keys = {"labels": labels, "keys": ["a", "b", "none"]}
        assert dpf.by_group(_median("add-remove"), x, **keys).few is None
        assert dpf.by_group(_median("replace-one", epsilon=0.1), x, **keys).few.tolist() == [False, True, False]
        estimates = dpf.interval("median", x, **keys, bounds=(0, 9), epsilon=0.4, neighbors="add-remove")
        assert estimates.few.tolist() == [False, True, True]
        assert not estimates.has_noise_intervals
        several = dpf.by_group({"m": _median("add-remove"), "n": _median("add-remove")}, x, **private)
        assert several.columns["m"].few.tolist() == [False] * len(several)
        with pytest.raises(TypeError, match=r"use columns\['m'\]\.few$"):
            _ = several.few
        assert ReleasedColumn("x", np.ones(2)).few(None) is None  # of no known mechanism


def test_reports_and_commands_mark_them_alike(tmp_path, capsys):
    """Keys with "(few)" on pages, a column in JSON and CSV, and the ends of the noise of counts."""
    path, keys = tmp_path / "x.csv", tmp_path / "keys.csv"
    path.write_text("age,kind\n" + "30,a\n" * 900 + "40,b\n" * 3)
    keys.write_text("a\nb\n")
    table = dpf.Table(str(path), epsilon=2, columns={"kind": {"categories": ["a", "b"]}}, rng=np.random.default_rng(1))
    counts = table.count(by="kind", epsilon=1)
    report = table.report()
    few = counts.few.tolist()
    assert few == [False, True]
    found = report.releases[0].columns
    assert found["few"] == few
    assert np.array_equal(np.column_stack([found["low"], found["high"]]), counts.interval())
    for text in (report.to_markdown(), report.to_html()):
        assert "b (few)" in text
        assert "a (few)" not in text
        assert "what the noise can have done, 95 %" in text
    assert ",1,few,True\n" in report.to_csv()
    given = ["count", str(path), "--group-by", "kind", "--keys", str(keys), "--epsilon", "0.5", "--seed", "1"]
    assert main(given) == 0
    assert re.fullmatch(r"a: \d+", (lines := capsys.readouterr().out.splitlines())[0])
    assert re.fullmatch(r"b: -?\d+, few records", lines[1])
    assert main([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["few"] == few


def test_a_column_of_keys_keeps_its_name():
    """Also one that is named as what a report adds to the numbers of groups."""
    for name in ("few", "low", "weight"):
        table = dpf.Table({name: ["a"] * 9}, epsilon=1, columns={name: {"categories": ["a", "b"]}})
        table.count(by=name, epsilon=1)
        report = table.report()
        assert report.releases[0].columns[name] == ["a", "b"]
        assert re.search(r"\| b( \(few\))? \|", report.to_markdown())


@pytest.mark.host
def test_a_plot_says_what_it_shows():
    """The label of numbers without a name is their statistic."""
    pytest.importorskip("matplotlib").use("agg")
    count = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=SMALL, epsilon=1, neighbors="add-remove")
    groups = {"labels": ["a"] * 9, "keys": ["a"]}
    assert dpf.by_group(count, np.ones(9), **groups).plot().get_xlabel() == "count"
    assert dpf.by_group(_median("replace-one"), np.ones(9), **groups).plot(unit="y").get_xlabel() == "median (y)"
