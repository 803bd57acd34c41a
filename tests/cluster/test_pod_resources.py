"""What a pod asks for as a whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.api.meta import parse_quantity
from shoal.cluster.pod_resources import pod_requests


def a_container(*, sidecar: Any = False, **requests: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    return container | ({"restartPolicy": "Always"} if sidecar else {})


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "containers are added up": (
        {"containers": [a_container(cpu="100m"), a_container(cpu="1", memory="1Gi")]},
        {},
        {"cpu": "1100m", "memory": "1Gi"},
    ),
    "the largest init container counts where it is more": (
        {
            "initContainers": [a_container(cpu="2"), a_container(cpu="3", memory="1Mi")],
            "containers": [a_container(cpu="1", memory="2Mi")],
        },
        {},
        {"cpu": "3", "memory": "2Mi"},
    ),
    "a sidecar counts with the containers": (
        {"initContainers": [a_container(cpu="1", sidecar=True)], "containers": [a_container(cpu="2")]},
        {},
        {"cpu": "3"},
    ),
    "an init container after a sidecar runs beside it": (
        {
            "initContainers": [a_container(cpu="1", sidecar=True), a_container(cpu="4")],
            "containers": [a_container(cpu="2")],
        },
        {},
        {"cpu": "5"},
    ),
    "an init container before a sidecar runs alone": (
        {
            "initContainers": [a_container(cpu="4"), a_container(cpu="1", sidecar=True)],
            "containers": [a_container(cpu="2")],
        },
        {},
        {"cpu": "4"},
    ),
    "what is asked for the pod as a whole replaces the sum": (
        {"containers": [a_container(cpu="1", memory="1Gi")], "resources": {"requests": {"cpu": "5"}}},
        {},
        {"cpu": "5", "memory": "1Gi"},
    ),
    "only processor, memory and huge pages can be asked for a pod as a whole": (
        {"containers": [a_container(**{"nvidia.com/gpu": "1"})], "resources": {"requests": {"nvidia.com/gpu": "5"}}},
        {},
        {"nvidia.com/gpu": "1"},
    ),
    "overhead comes on top": (
        {"containers": [a_container(cpu="1")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {},
        {"cpu": "1250m", "memory": "64Mi"},
    ),
    "what was given counts while it is more": (
        {"containers": [a_container(cpu="1")]},
        {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
        {"cpu": "3"},
    ),
    "what can never be given does not count": (
        {"containers": [a_container(cpu="9")]},
        {
            "containerStatuses": [
                {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
            ],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        },
        {"cpu": "3"},
    ),
    "nothing asked for is nothing": ({"containers": [{"name": "c"}]}, {}, {}),
}


@pytest.mark.parametrize(("spec", "status", "total"), CASES.values(), ids=CASES.keys())
def test_a_pod_asks_for(spec: dict[str, Any], status: dict[str, Any], total: dict[str, str]) -> None:
    pod = msgspec.convert({"spec": spec, "status": status}, Pod)
    assert pod_requests(pod) == {name: parse_quantity(value) for name, value in total.items()}
