"""What this node refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.node.process.pods.admission import refusal_of
from tests.cluster.node.process.builders import a_local_pod
from tests.support.builders.nodes import a_node

ALLOCATABLE = {"cpu": "2", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": "1"}
NODE = a_node("local", allocatable=ALLOCATABLE)


def asking(**requests: str) -> dict[str, Any]:
    named = {"gpu": "nvidia.com/gpu", "other": "example.com/other"}
    amounts = {named.get(name, name): amount for name, amount in requests.items()}
    return {"name": "main", "resources": {"requests": amounts}}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (asking(cpu="500m"), None),
        (
            asking(cpu="1500m"),
            ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"),
        ),
        (
            asking(memory="2Gi"),
            (
                "OutOfmemory",
                "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824",
            ),
        ),
        (
            asking(gpu="1"),
            (
                "OutOfnvidia.com/gpu",
                "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 1",
            ),
        ),
        (asking(other="7"), None),
    ],
    ids=["what fits", "cpu", "memory", "gpus", "what no node has"],
)
def test_what_does_not_fit(container: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert refusal_of(a_local_pod(container), NODE, [a_local_pod(asking(cpu="1", gpu="1"))]) == expected


def test_the_number_of_pods_is_limited() -> None:
    found = refusal_of(a_local_pod(), NODE, [a_local_pod()] * 3)
    assert found == ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3")


def test_a_pod_for_other_nodes_is_refused() -> None:
    words = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert refusal_of(a_local_pod(nodeSelector={"a": "b"}), NODE, []) == ("NodeAffinity", words)
    assert refusal_of(a_local_pod(nodeSelector={"a": "b"}), a_node(labels={"a": "b"}), []) is None


def test_a_pod_that_a_taint_would_drive_out_is_refused() -> None:
    node = a_node(taints=[{"key": "a", "effect": "NoExecute"}, "b"])
    words = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    assert refusal_of(a_local_pod(), node, []) == ("TaintToleration", words)
    assert refusal_of(a_local_pod(tolerations=[{"key": "a", "operator": "Exists"}]), node, []) is None


@pytest.mark.parametrize("spec", [{"hostPID": True}, {"hostIPC": True}, {"resourceClaims": [{"name": "gpu"}]}])
def test_what_cannot_be_done_here_is_refused_in_one_sentence(spec: dict[str, Any]) -> None:
    found = refusal_of(a_local_pod(**spec), None, [])
    assert found is not None
    assert found.reason == "PodFeatureUnsupported"
    assert found.message.count(". ") == 0


def test_a_node_that_is_not_known_yet_refuses_nothing_for_its_size() -> None:
    assert refusal_of(a_local_pod(asking(cpu="1000")), None, []) is None
