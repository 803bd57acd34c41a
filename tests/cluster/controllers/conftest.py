"""Real controllers on a real (embedded) API server, in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.in_process_cluster import Cluster, in_process_cluster, writes_of

__all__ = ["Cluster", "cluster", "writes_of"]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server with nothing in it but what it makes itself."""
    async with in_process_cluster(tmp_path / "server") as found:
        yield found
