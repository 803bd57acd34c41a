"""Backends at work on the embedded server."""

from __future__ import annotations

import pytest

from tests.gangs.backends.at_work import Gangs
from tests.support.clusters.in_process import Cluster


@pytest.fixture
def gangs(cluster: Cluster) -> Gangs:
    """The cluster of gangs, which serves KAI's kinds and Workloads, and neither Koordinator's nor Volcano's."""
    return Gangs(cluster)
