"""``shoal up`` on either engine: the parameters of fixtures, and the options of the command."""

from __future__ import annotations

import pytest

from shoal.cluster.kubernetes import Binaries

ON_KUBE = pytest.param("kube", marks=[pytest.mark.kube, pytest.mark.slow])
ON_EMBEDDED_WITH_KUBECTL = pytest.param("embedded", marks=pytest.mark.kube)
"""kubectl is built together with the real Kubernetes."""


def engine_options(engine: str, request: pytest.FixtureRequest) -> list[str]:
    """Chooses an engine, ``embedded`` or ``kube``."""
    return kube_options(request.getfixturevalue("binaries")) if engine == "kube" else [f"--engine={engine}"]


def kube_options(binaries: Binaries) -> list[str]:
    """Chooses the real Kubernetes that was built."""
    folders = sorted({path.parent for path in (binaries.etcd, binaries.kube_apiserver)})
    return ["--engine=kube", *(f"--kube-binaries={folder}" for folder in folders)]
