from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.clients.live.clusters import SIM, nodes_of, real_cluster
from tests.support.clusters.engines import Engine, running_shoal


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """All of ``shoal up``, with two simulated nodes."""
    with running_shoal(tmp_path_factory.mktemp("simulated") / "data", SIM) as shoal:
        yield shoal


@pytest.fixture(scope="session")
def reference(binaries: Binaries, simulated: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A real cluster with the same nodes, for whose kubelets kwok stands in."""
    with real_cluster(binaries, tmp_path_factory.mktemp("reference"), nodes_of(simulated.admin)) as cluster:
        yield cluster
