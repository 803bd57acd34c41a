"""What a pod asks of its node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.scheduler.pod_requests import pod_requests
from shoal.scheduler.resource_lists import written


def a_container(requests: dict[str, Any], *, is_sidecar: bool = False) -> dict[str, Any]:
    return {"resources": {"requests": requests}, **({"restartPolicy": "Always"} if is_sidecar else {})}


def cpu(amount: str, *, is_sidecar: bool = False) -> dict[str, Any]:
    return a_container({"cpu": amount}, is_sidecar=is_sidecar)


CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing": ({"containers": [{}]}, {}),
    "containers add up": ({"containers": [cpu("1"), cpu("500m")]}, {"cpu": "1500m"}),
    "resources are apart": (
        {"containers": [cpu("1"), a_container({"memory": "1Gi", "nvidia.com/gpu": 2})]},
        {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
    ),
    "a small start does not count": ({"containers": [cpu("2")], "initContainers": [cpu("1")]}, {"cpu": "2"}),
    "the largest start counts": ({"containers": [cpu("2")], "initContainers": [cpu("1"), cpu("4")]}, {"cpu": "4"}),
    "a sidecar goes on": ({"containers": [cpu("2")], "initContainers": [cpu("1", is_sidecar=True)]}, {"cpu": "3"}),
    "a start with the sidecars before it": (
        {"containers": [cpu("1")], "initContainers": [cpu("1", is_sidecar=True), cpu("3"), cpu("2", is_sidecar=True)]},
        {"cpu": "4"},
    ),
    "overhead comes on top": ({"containers": [cpu("1")], "overhead": {"cpu": "100m"}}, {"cpu": "1100m"}),
    "the pod as a whole": (
        {
            "containers": [a_container({"cpu": "1", "nvidia.com/gpu": 1})],
            "resources": {"requests": {"cpu": "4", "memory": "1Gi"}},
        },
        {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1"},
    ),
}


@pytest.mark.parametrize(("spec", "asked"), CASES.values(), ids=CASES)
def test_a_pod_asks_for_what_its_hungriest_moment_needs(spec: dict[str, Any], asked: dict[str, str]) -> None:
    assert written(pod_requests(msgspec.convert({"spec": spec}, Pod))) == asked
