"""Real controllers of the scheduler on an embedded API server that knows KAI's kinds, in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.api import kai_scheduler, scheduling_run_ai
from shoal.cli.processes.api import define
from tests.support.in_process_cluster import Cluster, in_process_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server with KAI's kinds, no webhooks, and no controllers but those that a test starts."""
    async with in_process_cluster(tmp_path / "server") as found:
        await define(found.client, (*kai_scheduler.DEFINITIONS, *scheduling_run_ai.DEFINITIONS))
        yield found
