from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import Binaries, RealKubernetes
from tests.clients.reference import reference_server
from tests.support.clusters.real import NOT_BUILT
from tests.support.programs import kube_binaries, kubectl_minors

OWN = "1.36"
OTHER = ".".join(kubectl_minors.version().split(".")[:2])


@pytest.fixture(scope="session")
def reference(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKubernetes]:
    """A real API server without controllers: what the embedded one is compared with."""
    with reference_server(binaries, tmp_path_factory.mktemp("reference")) as server:
        yield server


@pytest.fixture(scope="session", params=[OWN, pytest.param(OTHER, marks=pytest.mark.slow)])
def kubectl_binary(request: pytest.FixtureRequest) -> Path:
    """kubectl as it is released: of the server's own minor, and of another one."""
    path = kube_binaries.binary("kubectl") if request.param == OWN else kubectl_minors.other_kubectl()
    if path is None and os.environ.get("SHOAL_REQUIRE_KUBE", "") in ("", "0"):
        pytest.skip(NOT_BUILT)
    assert path is not None, NOT_BUILT
    return path
