"""A plugin of pytest for emulated processors: some tests of each file, each for some processor time.

`python -m pytest -p assurance.platforms.limited --most 15 --seconds 20 FILE...` runs at most 15 tests of each file,
evenly spread over it, and skips the rest of a test after 20 seconds. At the end it lists the tests that it ended so,
and fails if a file has tests none of which passed.
"""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGAIN = 1.0  # seconds until the next attempt, if code swallowed the exception


def spread(tests: list[pytest.Item], most: int) -> list[pytest.Item]:
    """At most so many of the tests, the first and others at equal distances, in their order."""
    number = min(most, len(tests))
    return [tests[i * len(tests) // number] for i in range(number)]


class _Limit:
    """Ends tests, and counts by file those that passed and those that it ended."""

    def __init__(self, seconds: float, most: int | None) -> None:
        self.seconds, self.most = seconds, most
        self.passed: dict[str, int] = {}
        self.ended: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.most is None:
            return
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        kept = [item for tests in files.values() for item in spread(tests, self.most)]
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
    parser.addoption("--seconds", type=float, default=20.0, help="of a processor, for each test")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Limit(config.getoption("--seconds"), config.getoption("--most")), "limit")
