"""``shoal up`` on either engine: the parameters of fixtures, and the options of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support.clusters.audit import audited_options

ON_KUBE = pytest.param("kube", marks=[pytest.mark.kube, pytest.mark.slow])
ON_EMBEDDED_WITH_KUBECTL = pytest.param("embedded", marks=pytest.mark.kube)
"""kubectl is built together with the real Kubernetes."""


def engine_options(engine: str, request: pytest.FixtureRequest) -> list[str]:
    """Chooses an engine, ``embedded`` or ``kube``."""
    return kube_options(request.getfixturevalue("binaries")) if engine == "kube" else [f"--engine={engine}"]


def audited_engine_options(engine: str, request: pytest.FixtureRequest, folder: Path, *, namespace: str) -> list[str]:
    """The same; a real API server writes to a folder what accounts of a namespace ask."""
    if engine != "kube":
        return engine_options(engine, request)
    return audited_options(request.getfixturevalue("binaries"), folder, namespace=namespace)


def kube_options(binaries: Binaries) -> list[str]:
    """Chooses the real Kubernetes that was built."""
    folders = sorted({path.parent for path in (binaries.etcd, binaries.kube_apiserver)})
    return ["--engine=kube", *(f"--kube-binaries={folder}" for folder in folders)]
