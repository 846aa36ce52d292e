"""The scripts of assurance/timing: ties to the sources, and their statistics; nothing that needs valgrind."""

import re
import sys

import numpy as np
import pytest
from scipy.stats import binom

from assurance.timing import __main__ as command
from assurance.timing import taint
from assurance.timing.distinguish import advantage
from assurance.timing.expected import CONTROLS, EXPECTED, REASONS


def test_expected_lines_are_in_the_sources():
    for case, lines in EXPECTED.items():
        for _, file, text, why in lines:
            source = [line.strip() for line in taint.source_of(file).read_text().splitlines()]
            assert any(line.startswith(text) for line in source), (case, text)
            assert why in REASONS
    assert {why for lines in EXPECTED.values() for *_, why in lines} == set(REASONS)


def test_every_case_is_run():
    driver = taint.SOURCE.read_text()
    defined = re.findall(r"^CASE\((\w+)\)", driver, re.MULTILINE)
    assert taint.cases() == defined
    assert set(EXPECTED) | set(CONTROLS) <= set(defined)
    assert taint.flags()[:3] == ["-O3", "-ffp-contract=off", "-fno-math-errno"]


def test_an_unexpected_branch_has_no_reason():
    expected = taint.Report("uniform", "branch", "draws.h", "if ((uint64_t)product < n) {")
    assert taint.reason(expected) == "rejected word"
    for changed in ({"case": "rounded_laplace"}, {"kind": "address"}, {"file": "bits.h"}, {"text": "if (word & 1)"}):
        assert taint.reason(expected._replace(**changed)) is None


@pytest.mark.parametrize(("name", "share"), [("shoulders", 2**-3), ("tails", 2**-8)])
def test_a_chunk_rarely_has_more_large_draws_than_are_treated(name, share):
    """P(more) <= 2^-38 for each length of a chunk: the formulas of src/shared/normal.h."""
    text = taint.source_of("normal.h").read_text()
    [terms] = re.findall(
        rf"dpfast_{name}\(int32_t n\)\n.*\n.*\(int32_t\)\(n \* (\S+) \+ (\S+) \* __builtin_sqrt\(n\) \+ (\S+)\)", text
    )
    a, b, c = (float.fromhex(term) if "x" in term else float(term) for term in terms)
    assert a == share
    n = np.arange(1, 1025)
    most = np.minimum((a * n + b * np.sqrt(n) + c).astype(int), n)
    assert binom.sf(most, n, share).max() <= 2.0**-38
    fewer = np.minimum((a * n + 0.6 * b * np.sqrt(n) + c).astype(int), n)
    assert binom.sf(fewer, n, share).max() > 2.0**-38  # a control


def test_the_advantage_of_times_that_differ():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 4000), rng.normal(2, 1, 4000)
    found = advantage(first, second)
    assert found.lower < 0.683 < found.upper  # Phi(1) - Phi(-1)
    assert found.lower > 0.6
    assert found.releases < 10
    same = advantage(first, rng.normal(0, 1, 4000), level=1 - 1e-9)
    assert same.lower < 0 < same.upper
    assert same.releases == np.inf


def test_without_valgrind_the_exact_parts_are_skipped(monkeypatch, capsys):
    monkeypatch.setattr(command.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["timing", "--quick"])
    assert command.main() == 0
    assert capsys.readouterr().out.startswith("SKIPPED: the exact checks of time need valgrind")
