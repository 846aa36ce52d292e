"""The pages of docs/papers: every item of the papers is registered, its functions exist, and its page shows it."""

import re
from pathlib import Path

import pytest

from bench.papers import Item, Result, resolve
from bench.papers.registry import PAPERS
from tests.cases import every

ROOT = Path(__file__).parents[2]
ITEMS = [pytest.param(paper, item, id=f"{paper.key}/{item.key}") for paper in PAPERS for item in paper.items]

# What the papers number (the slides on robustness number nothing: its lemmas and theorems).
NUMBERED = {
    "chaudhuri-hsu": "definitions-2-and-3 theorem-1 example-1 theorem-2 example-2 lemma-2 proposition-1 equation-3 "
    "lemma-1 theorem-3 example-3 proposition-3 theorem-4 theorem-5 example-4 appendix-e",
    "robustness": "lemma-exponential-mechanism score lemma-robust-private-reduction theorem-accuracy fact "
    "theorem-gaussian-mean theorem-gaussian-mean-with-delta converse",
    "smith": "lemma-2-1 lemma-2-2 algorithm-1 figure-1 lemma-3-2 lemma-3-3 theorem-3-1",
    "wasserman-zhou": "theorem-3 theorem-5 theorem-6 theorem-7 theorem-8-1 theorem-8-2 theorem-9 theorem-11 theorem-12 "
    "lemma-13 equation-17 theorem-14 theorem-15 table-1 table-2 figure-1",
    "duchi-jordan-wainwright": "equation-8 theorem-1 corollary-1 equation-10 corollary-2 theorem-2 corollary-4 "
    "equation-24 equation-25 equation-26 corollary-5 theorem-3 lemma-2 corollary-6 corollary-7 equation-39 figure-1 "
    "figure-3 figure-5 figure-6 figure-7 table-1",
}


@every("key", NUMBERED)
def test_every_numbered_item_is_registered(key):
    [paper] = [paper for paper in PAPERS if paper.key == key]
    keys = [item.key for item in paper.items]
    assert set(NUMBERED[key].split()) <= set(keys)
    assert len(set(keys)) == len(keys)


@every(("paper", "item"), ITEMS)
def test_functions_of_an_item_exist(paper, item):
    assert item.functions
    assert all(callable(resolve(name)) for name in item.functions)


def test_resolve_rejects_a_name_that_does_not_exist():
    with pytest.raises(AttributeError):
        resolve("dpfast.theory.no_such_bound")


@every("paper", PAPERS, ids=lambda paper: paper.key)
def test_the_page_has_every_item(paper):
    text = (ROOT / "docs" / "papers" / f"{paper.key}.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Items", *(item.name for item in paper.items)]
    assert all(f"`{item.key}`" in text for item in paper.items)
    assert [item.name for item in paper.items if item.error and " ".join(item.error.split()[:4]) not in text] == []


def test_an_item_is_named_by_what_precedes_its_subject():
    item = Item("Theorem 8 (2): distances", "", ("math.log",), lambda quick: Result(""))
    assert item.key == "theorem-8-2"
