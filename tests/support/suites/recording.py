"""The pytest plugin that records which test files passed: every test of theirs ran, and none failed.

It prints the files that took longest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.support.suites.passes import Passes

SLOWEST = 10


class Recorder:
    """Sees the reports of all workers."""

    def __init__(self, passes: Passes, fingerprints: Mapping[str, str]) -> None:
        self._passes = passes
        self._fingerprints = dict(fingerprints)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.split("::")[0]
        self._seconds[file] += report.duration
        if report.failed:
            self._fingerprints.pop(file, None)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fingerprints.pop(report.nodeid.split("::")[0], None)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._passes.add(self._fingerprints)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("slowest files")
        for file, seconds in sorted(self._seconds.items(), key=lambda one: -one[1])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds:7.1f} s {file}")
