"""What the node says of itself, as rules over plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.meta import format_time
from shoal.cluster.node.process.machine.facts import Shortage
from shoal.cluster.node.process.machine.node_object import (
    Presence,
    allocatable,
    capacity,
    is_foreign,
    new_node,
    node_patch,
)
from tests.cluster.node.process.machine.presences import MACHINE, a_presence, some_gpus

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def conditions(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}


def test_a_new_node_says_what_a_kubelet_says() -> None:
    node = new_node(a_presence(gpus=some_gpus(2)), NOW)
    metadata, status = node["metadata"], node["status"]
    assert metadata["name"] == metadata["labels"]["kubernetes.io/hostname"] == "local"
    assert metadata["labels"]["kubernetes.io/arch"] == "amd64"
    assert metadata["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H200"
    assert metadata["annotations"] == {"shoal.dev/agent-socket": "/data/agents/local.sock"}
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "10.88.0.1"},
        {"type": "Hostname", "address": "workstation"},
    ]
    assert status["nodeInfo"]["containerRuntimeVersion"] == "shoal://1.2.3"
    assert conditions(node) == {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
        "Ready": ("True", "KubeletReady"),
    }


def test_pods_may_ask_for_all_but_what_the_machine_must_keep_free() -> None:
    presence = a_presence(gpus=some_gpus(1), machine=msgspec.structs.replace(MACHINE, cores=1.5))
    assert capacity(presence) == {
        "cpu": "1500m",
        "memory": "16777216Ki",
        "ephemeral-storage": "104857600Ki",
        "pods": "250",
        "nvidia.com/gpu": "1",
    }
    assert allocatable(presence) == capacity(presence) | {"memory": "16674816Ki", "ephemeral-storage": "103809024Ki"}
    assert capacity(a_presence())["cpu"] == "4"


CHANGES: dict[str, tuple[Presence, dict[str, Any]]] = {
    "nothing": (a_presence(), {}),
    "gpus": (
        a_presence(gpus=some_gpus(1)),
        {
            "metadata": {
                "labels": {
                    "nvidia.com/gpu.product": "NVIDIA-H200",
                    "nvidia.com/gpu.count": "1",
                    "nvidia.com/gpu.memory": "143771",
                }
            },
            "status": {
                "capacity": capacity(a_presence(gpus=some_gpus(1))),
                "allocatable": allocatable(a_presence(gpus=some_gpus(1))),
            },
        },
    ),
    "a-data-dir-that-moved": (
        a_presence(socket="/elsewhere"),
        {"metadata": {"annotations": {"shoal.dev/agent-socket": "/elsewhere"}}},
    ),
    "the-machines-network": (
        a_presence(address="192.0.2.7"),
        {
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "192.0.2.7"},
                    {"type": "Hostname", "address": "workstation"},
                ]
            }
        },
    ),
    "a-port-of-this-machine": (
        a_presence(port=41234),
        {
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.88.0.1"},
                    {"type": "Hostname", "address": "workstation"},
                    {"type": "Loopback", "address": "127.0.0.1"},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 41234}},
            }
        },
    ),
    "images": (a_presence(images=["python:3.12"]), {"status": {"images": [{"names": ["python:3.12"]}]}}),
}


@pytest.mark.parametrize(("presence", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_only_what_changed_is_written(presence: Presence, expected: dict[str, Any]) -> None:
    assert node_patch(new_node(a_presence(), NOW), presence, NOW + timedelta(minutes=1)) == expected


def test_what_others_wrote_stays() -> None:
    node = new_node(a_presence(), NOW)
    node["metadata"]["labels"] |= {"team": "a", "nvidia.com/mig.capable": "false"}
    node["metadata"]["annotations"] |= {"note": "mine"}
    node["spec"] = {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True}
    node["status"]["capacity"] |= {"example.com/dongle": "3", "memory": "16Gi", "cpu": "4000m"}
    node["status"]["conditions"].append({"type": "NetworkUnavailable", "status": "False"})
    node["status"]["addresses"].append({"type": "ExternalIP", "address": "203.0.113.1"})
    assert node_patch(node, a_presence(), NOW) == {}


def test_gpus_that_went_are_taken_off_with_their_labels() -> None:
    patch = node_patch(new_node(a_presence(gpus=some_gpus(1)), NOW), a_presence(), NOW)
    names = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory")
    assert patch["metadata"]["labels"] == dict.fromkeys(names)
    assert patch["status"]["capacity"]["nvidia.com/gpu"] is patch["status"]["allocatable"]["nvidia.com/gpu"] is None


def test_a_heartbeat_is_written_every_five_minutes_and_tells_of_no_transition() -> None:
    node = new_node(a_presence(), NOW)
    assert node_patch(node, a_presence(), NOW + timedelta(seconds=299)) == {}
    patch = node_patch(node, a_presence(), NOW + timedelta(seconds=300))
    assert patch.keys() == {"status"}
    assert patch["status"].keys() == {"conditions"}
    assert {one["lastTransitionTime"] for one in patch["status"]["conditions"]} == {format_time(NOW)}
    assert {one["lastHeartbeatTime"] for one in patch["status"]["conditions"]} == {"2026-01-01T12:05:00Z"}


def test_a_node_that_was_given_up_says_that_it_is_there() -> None:
    node = new_node(a_presence(), NOW)
    for one in node["status"]["conditions"]:
        one |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
    later = NOW + timedelta(minutes=1)
    patch = node_patch(node, a_presence(), later)
    assert conditions(patch)["Ready"] == ("True", "KubeletReady")
    assert {one["lastTransitionTime"] for one in patch["status"]["conditions"]} == {format_time(later)}


def test_where_no_pod_can_run_the_node_is_not_ready_and_says_why() -> None:
    patch = node_patch(new_node(a_presence(), NOW), a_presence(problem="the runtime does not answer"), NOW)
    ready = patch["status"]["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "KubeletNotReady")
    assert ready["message"] == "the runtime does not answer"


def test_a_machine_that_does_not_allow_everything_is_ready_and_says_what_it_lacks() -> None:
    presence = a_presence(shortfalls=["no namespaces: they are forbidden", "no cgroups"])
    node = new_node(presence, NOW)
    assert node["metadata"]["annotations"]["shoal.dev/shortfalls"] == "no namespaces: they are forbidden\nno cgroups"
    ready = node["status"]["conditions"][-1]
    assert ready["status"] == "True"
    assert ready["message"].endswith("WARNING: no namespaces: they are forbidden; no cgroups")
    patch = node_patch(node, a_presence(), NOW)
    assert patch["metadata"] == {"annotations": {"shoal.dev/shortfalls": None}}


def test_a_shortage_is_spoken_of_at_once_and_for_five_minutes_at_least() -> None:
    short = a_presence(shortage=Shortage(memory=True, disk=True, pids=True))
    node = new_node(a_presence(), NOW)
    patch = node_patch(node, short, NOW)
    assert conditions(patch) == {
        "MemoryPressure": ("True", "KubeletHasInsufficientMemory"),
        "DiskPressure": ("True", "KubeletHasDiskPressure"),
        "PIDPressure": ("True", "KubeletHasInsufficientPID"),
        "Ready": ("True", "KubeletReady"),
    }
    node["status"]["conditions"] = patch["status"]["conditions"]
    assert node_patch(node, a_presence(), NOW + timedelta(seconds=299)) == {}
    assert conditions(node_patch(node, a_presence(), NOW + timedelta(seconds=300)))["DiskPressure"][0] == "False"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (new_node(a_presence(), NOW), False),
        ({"metadata": {"name": "local"}}, False),
        ({"metadata": {"name": "local", "annotations": {"kwok.x-k8s.io/node": "fake"}}}, True),
        ({"metadata": {}, "status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.0"}}}, True),
        ({"metadata": {}, "status": {"nodeInfo": {"containerRuntimeVersion": ""}}}, False),
    ],
    ids=["ours", "nobodys", "simulated", "a-kubelets", "made-by-hand"],
)
def test_a_node_that_another_agent_speaks_for_is_not_ours(node: dict[str, Any], expected: bool) -> None:
    assert is_foreign(node) is expected
