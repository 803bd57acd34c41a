"""What a person meets who writes nonsense for the scheduler, and pods that are made while admission is stopped."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gangs.terminal import Terminal
from tests.e2e.scheduler.builders import a_kai_pod
from tests.support.clusters.shoal_up import Shoal

pytestmark = pytest.mark.kube
"""For kubectl alone, on the embedded server."""


@pytest.fixture
def terminal(shoal: Shoal, tmp_path: Path) -> Terminal:
    return Terminal(shoal.kubeconfig, tmp_path / "kubectl")


@pytest.fixture
def namespace(terminal: Terminal) -> Iterator[str]:
    name = f"admission-{secrets.token_hex(4)}"
    terminal.type(f"kubectl create namespace {name}")
    terminal.shows(f"kubectl get serviceaccount default -n {name} -o name", "default")
    yield name
    terminal.type(f"kubectl delete namespace {name} --wait=false")


def an_object(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})


def a_written_pod(name: str, **given: Any) -> str:
    return json.dumps(a_kai_pod(name, **given))


REFUSED = {
    "a queue without its part": (
        an_object("scheduling.run.ai/v2", "Queue", "bad", {"parentQueue": "default-parent-queue"}),
        '"bad" is invalid: spec.resources: Required value',
    ),
    "a gang with two minimums": (
        an_object("scheduling.run.ai/v2alpha2", "PodGroup", "bad", {"minMember": 1, "minSubGroup": 1}),
        '"bad" is invalid: spec.minSubGroup: Forbidden',
    ),
    "a topology with one name for two levels": (
        an_object(
            "kai.scheduler/v1alpha1",
            "Topology",
            "bad",
            {"levels": [{"nodeLabel": "zone", "alias": "rack"}, {"nodeLabel": "rack"}]},
        ),
        '"bad" is invalid: spec.levels[0].alias',
    ),
    "a shard with a strategy that nobody knows": (
        an_object("kai.scheduler/v1", "SchedulingShard", "bad", {"placementStrategy": {"gpu": "tetris"}}),
        '"bad" is invalid: spec.placementStrategy.gpu: Unsupported value',
    ),
    "a portion of more than a GPU": (
        a_written_pod("bad", annotations={"gpu-fraction": "1.5"}),
        '"bad" is invalid: metadata.annotations[gpu-fraction]: Invalid value: "1.5"',
    ),
    "a portion and an amount": (
        a_written_pod("bad", annotations={"gpu-fraction": "0.5", "gpu-memory": "1024"}),
        '"bad" is invalid: metadata.annotations[gpu-memory]: Invalid value: "1024"',
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_nonsense_is_refused_with_its_field(terminal: Terminal, namespace: str, what: str) -> None:
    body, said = REFUSED[what]
    refused = terminal.run(f"kubectl apply -n {namespace} -f -", stdin=body)
    assert refused.returncode != 0
    assert said in refused.stderr


def test_a_pod_that_shares_a_gpu_is_made_to_read_its_devices_and_runs(terminal: Terminal, namespace: str) -> None:
    terminal.type(
        f"kubectl apply -n {namespace} -f -", stdin=a_written_pod("half", annotations={"gpu-fraction": "0.5"})
    )
    pod = json.loads(terminal.type(f"kubectl get pod half -n {namespace} -o json"))
    prefix = pod["metadata"]["annotations"]["runai/shared-gpu-configmap"]
    [main] = pod["spec"]["containers"]
    assert {"NVIDIA_VISIBLE_DEVICES", "GPU_PORTION"} <= {variable["name"] for variable in main["env"]}
    terminal.shows(f"kubectl get pod half -n {namespace} -o jsonpath='{{.status.phase}}'", "Running", within=60)
    held = json.loads(terminal.type(f"kubectl get configmap {prefix}-0 -n {namespace} -o json"))["data"]
    assert held["GPU_PORTION"] == "0.50"


@contextmanager
def stopped(shoal: Shoal, part: str) -> Iterator[None]:
    """A process that is there and does nothing, for the length of a block."""
    pid = shoal.part(part)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_while_admission_is_stopped_ordinary_pods_are_made(shoal: Shoal, terminal: Terminal, namespace: str) -> None:
    with stopped(shoal, "controllers"):
        for scheduler in ("default-scheduler", "kai-scheduler"):
            terminal.type(f"kubectl create -n {namespace} -f -", stdin=a_written_pod(scheduler, scheduler=scheduler))
        terminal.type(f"kubectl label pod kai-scheduler -n {namespace} a=b")
    terminal.type(
        f"kubectl create -n {namespace} -f -", stdin=a_written_pod("half", annotations={"gpu-fraction": "0.5"})
    )
    for name in ("default-scheduler", "kai-scheduler", "half"):
        terminal.shows(f"kubectl get pod {name} -n {namespace} -o jsonpath='{{.status.phase}}'", "Running", within=60)
