"""A pod's files, kept up to date for as long as it runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.contents import VolumeProblem
from shoal.cluster.node.process.pods import sandbox
from shoal.cluster.node.process.pods.sandbox import Sandbox
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.pods.builders import NOW
from tests.support.waiting import eventually


class Files:
    """Files that are due when the test says so, and how often they were written."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.problems = 0
        self.writes = 0

    def next_refresh(self, _pod: PodDetails) -> float | None:
        return self.seconds

    async def refresh(self, _pod: PodDetails) -> None:
        self.writes += 1
        self.seconds = None
        if self.problems:
            self.problems -= 1
            raise VolumeProblem("the disk is full")


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def kept(files: Files, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    monkeypatch.setattr(sandbox, "LOOKS_EVERY", 0.05)
    monkeypatch.setattr(sandbox, "_STALE_AGAIN", 0.2)
    means: Any = SimpleNamespace(contents=files, warn=lambda _pod, _reason, message: told.append(message))
    return Sandbox(cast("Any", means), address="", is_there=True)


async def test_what_is_due_is_written_though_the_time_until_then_was_slept_through(kept: Sandbox, files: Files) -> None:
    files.seconds = 3000.0
    keeping = asyncio.create_task(kept.keep_fresh(a_local_pod))
    await asyncio.sleep(0.2)
    assert files.writes == 0
    files.seconds = 0.0  # as the clock says when the machine wakes
    await eventually(lambda: files.writes == 1)
    keeping.cancel()


async def test_what_has_changed_is_written_at_once_and_what_failed_again(
    kept: Sandbox, files: Files, told: list[str]
) -> None:
    files.problems = 1
    keeping = asyncio.create_task(kept.keep_fresh(a_local_pod))
    kept.refresh()
    await eventually(lambda: files.writes == 2)
    assert told == ["the disk is full"]
    await asyncio.sleep(0.3)
    assert files.writes == 2
    keeping.cancel()


def test_it_is_opened_again_when_that_is_due_and_not_later_because_the_clock_was_set_back(kept: Sandbox) -> None:
    kept.due = NOW + timedelta(seconds=10)
    assert not kept.is_due(NOW)
    assert kept.is_due(NOW + timedelta(seconds=10))
    assert kept.is_due(NOW - timedelta(hours=1))
