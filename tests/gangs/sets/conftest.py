"""A cluster for sets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gangs.sets.running_sets import Running
from tests.support.clusters.in_process import Cluster


@pytest.fixture
async def running(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Running]:
    """A cluster that fills token Secrets and collects garbage; a test starts the controllers of sets itself."""
    found = Running(cluster, tmp_path)
    async with found.surroundings():
        yield found
