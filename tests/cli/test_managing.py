"""A manager as the whole work of a process: it ends with the process, and the process ends with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cli.children import Reporter
from shoal.cli.exits import cause_of
from shoal.cli.processes.managing import run_manager
from shoal.kube import Manager
from tests.support.clusters.in_process import Cluster
from tests.support.waiting import eventually


class Broken(Exception):
    pass


@pytest.fixture
def told() -> Iterator[tuple[Reporter, int]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield Reporter(writing), reading
    os.close(reading)
    os.close(writing)


def told_by(reading: int) -> list[dict[str, object]]:
    try:
        return [json.loads(line) for line in os.read(reading, 4096).splitlines()]
    except BlockingIOError:
        return []


@pytest.mark.parametrize("is_ready", [True, False], ids=["while it works", "before it is ready"])
async def test_a_manager_that_fails_ends_the_process(
    cluster: Cluster, told: tuple[Reporter, int], tmp_path: Path, is_ready: bool
) -> None:
    """One that lived on and did nothing would be started again by nobody."""
    reporter, reading = told
    breaks = asyncio.Event()

    async def fail() -> None:
        await breaks.wait()
        raise Broken

    async def until_ready() -> None:
        breaks.set()
        if not is_ready:
            await asyncio.Event().wait()

    manager = Manager(cluster.server.transport(), name="fails")
    manager.add_leader_task(fail)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(20):
            await run_manager(manager, reporter, socket=tmp_path / "manager.sock", until_ready=until_ready)
    assert isinstance(cause_of(caught.value), Broken)
    assert told_by(reading) == ([{"ready": True}] if is_ready else [])


async def test_it_works_until_somebody_asks_for_the_end(
    cluster: Cluster, told: tuple[Reporter, int], tmp_path: Path
) -> None:
    reporter, reading = told
    manager = Manager(cluster.server.transport(), name="works")
    working = asyncio.create_task(run_manager(manager, reporter, socket=tmp_path / "manager.sock"))
    await eventually(lambda: told_by(reading) == [{"ready": True}], within=20)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(working, 20)
