"""A plugin of pytest for emulated processors: some tests of each file, each for some processor time.

`python -m pytest -p assurance.platforms.limited --most 15 --seconds 20 FILE...` runs at most 15 tests of each file, of
as many functions as may be and evenly spread over it, and skips the rest of a test after 20 seconds. At the end it
lists the tests that it ended so, and fails if a file has tests none of which passed. `--part 7/3` takes every third of
the files that have tests, from the second on, as 7 leaves 1: runs whose first numbers differ share the files.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
AGAIN = 1.0  # seconds until the next attempt, if code swallowed the exception


def spread(tests: list[T], most: int) -> list[T]:
    """At most so many of the tests, the first and others at equal distances, in their order."""
    number = min(most, len(tests))
    return [tests[i * len(tests) // number] for i in range(number)]


def broad(tests: list[T], most: int, function: Callable[[T], str]) -> list[T]:
    """At most so many of the tests, spread over the first tests of all functions, then over the others."""
    firsts: dict[str, int] = {}
    for place, test in enumerate(tests):
        firsts.setdefault(function(test), place)
    kept = spread([*firsts.values()], most)
    others = sorted({*range(len(tests))} - {*firsts.values()})
    return [tests[place] for place in sorted([*kept, *spread(others, most - len(kept))])]


def function_of(test: pytest.Item) -> str:
    """What the cases of one test share."""
    return test.nodeid.partition("[")[0]


def part(text: str) -> tuple[int, int]:
    """A number and how many parts there are."""
    number, of = map(int, text.split("/"))
    return number, of


class _Limit:
    """Ends tests, and counts by file those that passed and those that it ended."""

    def __init__(self, seconds: float, most: int | None, part: tuple[int, int]) -> None:
        self.seconds, self.most, self.part = seconds, most, part
        self.passed: dict[str, int] = {}
        self.ended: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        number, of = self.part
        some = [*files.values()][number % of :: of]
        kept = [item for tests in some for item in broad(tests, self.most or len(tests), function_of)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        def end(*_: Any) -> None:
            pytest.skip(f"ended after {self.seconds:g} s of processor time")

        if not hasattr(signal, "setitimer"):  # Windows has no clock of a processor that interrupts
            return (yield)
        before = signal.signal(signal.SIGPROF, end)
        signal.setitimer(signal.ITIMER_PROF, self.seconds, AGAIN)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        file = report.nodeid.partition("::")[0]
        self.passed[file] = self.passed.get(file, 0) + report.passed
        if report.skipped and f"ended after {self.seconds:g} s" in str(report.longrepr):
            self.ended.append(report.nodeid)

    def untested(self) -> list[str]:
        """Files with tests of which none passed."""
        return [file for file, number in self.passed.items() if number == 0]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.untested() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"ended after {self.seconds:g} s of processor time: {len(self.ended)} tests")
        for name in self.ended:
            terminalreporter.line(name)
        for file in self.untested():
            terminalreporter.line(f"NO TEST PASSED: {file}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--most", type=int, help="tests of each file; without it, all")
    parser.addoption("--part", type=part, default=(0, 1), help="of the files: 1/3 for the second of three parts")
    parser.addoption("--seconds", type=float, default=20.0, help="of a processor, for each test")


def pytest_configure(config: pytest.Config) -> None:
    limit = _Limit(*map(config.getoption, ("--seconds", "--most", "--part")))
    config.pluginmanager.register(limit, "limit")
