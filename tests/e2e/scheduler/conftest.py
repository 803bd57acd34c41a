"""A whole Shoal with four simulated nodes of eight GPUs, on either engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clusters.both_engines import ON_KUBE, engine_options
from tests.support.clusters.shoal_up import Shoal


@pytest.fixture(scope="module", params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """Shared by the tests of a module."""
    options = engine_options(request.param, request)
    shoal = Shoal(tmp_path_factory.mktemp("scheduler") / "data", "--sim=4x8:H100", *options)
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready"), f"shoal up ended ({process.wait()}): {line}"
        yield shoal
        process.terminate()
        process.wait()
