"""Every function of src/*/*.h has a harness or a reason why not, and every control changes the source as it stands."""

import re

import pytest

from assurance.headers import HEADERS, ROOT
from assurance.kernels.case import Edit, all_functions, functions_of
from assurance.kernels.cases import all_cases
from assurance.kernels.coverage import NOT_COVERED
from tests.cases import every

CASES = all_cases()


def covered():
    """Pairs of a header and a function; a name in several headers counts for those that the C file includes."""
    functions = all_functions()
    for case in CASES:
        included = {header for header, name in functions if name in case.covers} & _included(case.source)
        yield from ((header, name) for header, name in functions if header in included and name in case.covers)


def _included(source):
    """The headers of src that a file includes, also through others."""
    found, left = set(), re.findall(r'#include "(\w+\.h)"', source.read_text())
    while left:
        name = left.pop()
        if name not in found and name in HEADERS:
            found.add(name)
            left += re.findall(r'#include "(\w+\.h)"', HEADERS[name].read_text())
    return found


def reasons():
    return {(header, name) for left in NOT_COVERED.values() for header, names in left.items() for name in names.split()}


def test_every_function_has_a_harness_or_a_reason():
    known = set(covered()) | reasons()
    assert all_functions() == known, "assurance/kernels/cases or coverage.py needs an entry for each function"
    assert not set(covered()) & reasons(), "these have a harness"


def test_the_functions_that_are_covered_exist():
    names = {name for _, name in all_functions()}
    assert not {name for case in CASES for name in case.covers} - names


def test_definitions_are_found():
    text = """
    /* f(x) { */
    #define LOAD(type) for (;;) { type(value); }
    static const int TABLE[2] = {1, 2};
    typedef struct { int (*call)(void); } thing;
    static int declared(int x);
    static inline __attribute__((always_inline)) int one(int x) { if (x) { return g(x); } return 0; }
    CLONES
    static double *two(const thing *call,
                       int n)
    {
        while (n) n--;
    }
    """
    assert functions_of(text) == {"one", "two"}


each = every("case", CASES, ids=lambda case: case.name)


class TestCase:
    @each
    def test_control_changes_the_source(self, case):
        texts = {name: path.read_text() for name, path in HEADERS.items()}
        for edit in (*case.shrunk, case.control):
            changed = edit.of(texts[edit.header])
            assert changed != texts[edit.header]
            texts[edit.header] = changed

    @each
    def test_harness_exists(self, case):
        assert f"void check_{case.name}(void)\n" in case.source.read_text()


def test_names_differ():
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(HEADERS) == len(list(ROOT.glob("src/**/*.h")))


@pytest.mark.parametrize("text", ["", "one one"])
def test_text_of_a_control_must_occur_once(text):
    with pytest.raises(LookupError, match="not once"):
        Edit("x.h", "one", "two").of(text)


def test_page_lists_every_harness():
    page = (ROOT / "docs" / "assurance" / "kernels.md").read_text()
    assert [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][2:] == [
        case.name for case in CASES
    ]
