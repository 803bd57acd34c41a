"""Real controllers of gangs on a real (embedded) API server that knows Grove's kinds, in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.api import grove, kai_scheduler, scheduler_grove_io, scheduling_run_ai
from shoal.cli.processes.api import define
from tests.support.in_process_cluster import Cluster, in_process_cluster

OURS = (
    *grove.DEFINITIONS,
    *scheduler_grove_io.DEFINITIONS,
    *kai_scheduler.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server with Grove's and KAI's kinds, no webhooks, and no controllers but those that a test starts."""
    async with in_process_cluster(tmp_path / "server") as found:
        await define(found.client, OURS)
        yield found
