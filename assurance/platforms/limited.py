"""A plugin of pytest for emulated processors: ends each test after some processor time, and lists what it ended.

`python -m pytest -p assurance.platforms.limited --seconds 20 FILE...` skips the rest of a test after 20 seconds. At the
end it lists those tests, and fails if a file has tests none of which passed.
"""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

AGAIN = 1.0  # seconds until the next attempt, if code swallowed the exception


class _Limit:
    """Ends tests, and counts by file those that passed and those that it ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.passed: dict[str, int] = {}
        self.ended: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        def end(*_: Any) -> None:
            pytest.skip(f"ended after {self.seconds:g} s of processor time")

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
    parser.addoption("--seconds", type=float, default=20.0, help="of a processor, for each test")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Limit(config.getoption("--seconds")), "limit")
