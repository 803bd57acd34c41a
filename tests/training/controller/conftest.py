"""Real controllers on a real (embedded) API server that knows Trainer's kinds, in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.api import jobset, scheduler_grove_io, scheduling_run_ai, trainer
from tests.support.clusters.in_process import in_process_cluster
from tests.training.controller.stage import Stage

KINDS = (
    *trainer.DEFINITIONS,
    *jobset.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
    *scheduler_grove_io.DEFINITIONS,
)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A server with the kinds of Trainer, JobSet, KAI and PodGangs, and the controllers that a test starts."""
    async with in_process_cluster(tmp_path / "server", KINDS) as cluster:
        yield Stage(cluster)
