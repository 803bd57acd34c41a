"""A running Shoal without a scheduler of its own for each module, and a stage on it for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.clusters.both_engines import ON_KUBE, engine_options
from tests.support.clusters.shoal_up import Shoal
from tests.support.gangs.stage import Stage, a_stage

on_both_engines = pytest.mark.parametrize("shoal", ["embedded", ON_KUBE], indirect=True)
"""For a whole module: its tests run on the embedded server, and on a real one."""
COMPONENTS = "--only=api,controllers,gangs,nodes"


@pytest.fixture(scope="module")
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """Shared by the tests of a module."""
    engine = engine_options(getattr(request, "param", "embedded"), request)
    shoal = Shoal(tmp_path_factory.mktemp("gangs") / "data", COMPONENTS, *engine)
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready"), f"shoal up ended ({process.wait()}): {line}"
        yield shoal
        process.terminate()
        process.wait()


@pytest.fixture
async def stage(shoal: Shoal) -> AsyncIterator[Stage]:
    """A namespace with a gang scheduler, and no nodes yet."""
    async with a_stage(shoal.kubeconfig) as stage:
        yield stage
