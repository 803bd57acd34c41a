"""Real controllers on a real (embedded) API server that knows Trainer's kinds, in the test's own process."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.api import jobset, scheduler_grove_io, scheduling_run_ai, trainer
from shoal.cli.processes.api import define
from shoal.cluster.apiserver.in_process import serve_in_process
from tests.support.in_process_cluster import Cluster, in_process_cluster
from tests.training.controller.stage import Stage

KINDS = (
    *trainer.DEFINITIONS,
    *jobset.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
    *scheduler_grove_io.DEFINITIONS,
)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a server that has learned the kinds of Trainer, JobSet, KAI and PodGangs, which takes longest."""
    folder = tmp_path_factory.mktemp("prepared") / "server"

    async def prepare() -> None:
        async with in_process_cluster(folder) as cluster:
            await define(cluster.client, KINDS)

    asyncio.run(prepare())
    return folder


@pytest.fixture
async def stage(prepared: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    """Such a server, no webhooks, and the controllers that a test starts."""
    shutil.copytree(prepared, tmp_path / "server")
    async with serve_in_process(tmp_path / "server") as server:
        yield Stage(Cluster(server))
