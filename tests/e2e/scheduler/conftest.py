"""A whole Shoal with four simulated nodes of eight GPUs, on either engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support.clusters.shoal_up import Shoal

ON_KUBE = pytest.param("kube", marks=[pytest.mark.kube, pytest.mark.slow])


@pytest.fixture(scope="module", params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """Shared by the tests of a module."""
    options = [f"--engine={request.param}", "--sim=4x8:H100"]
    if request.param == "kube":
        binaries: Binaries = request.getfixturevalue("binaries")
        folders = {path.parent for path in (binaries.etcd, binaries.kube_apiserver)}
        options += [f"--kube-binaries={folder}" for folder in folders]
    shoal = Shoal(tmp_path_factory.mktemp("scheduler") / "data", *options)
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready"), f"shoal up ended ({process.wait()}): {line}"
        yield shoal
        process.terminate()
        process.wait()
