"""The commands of the document that asked for the visualizer, as they are written there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gangs.terminal import Terminal
from tests.support.clusters.both_engines import engine_options
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.command import SHOAL
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.alone,  # its ports are those of the document
    pytest.mark.kube,
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="there is no curl, or no jq"),
]

SUMMARY = "curl -sS http://127.0.0.1:8081/api/v1/visualizer/summary | jq ."
QUEUES = "curl -sS http://127.0.0.1:8081/api/v1/visualizer/queues  | jq ."
JOBS = "curl -sS http://127.0.0.1:8081/api/v1/visualizer/jobs    | jq ."
JOBS_OF_DEFAULT = 'curl -sS "http://127.0.0.1:8081/api/v1/visualizer/jobs?namespace=default" | jq .'
NODES = "curl -sS http://127.0.0.1:8081/api/v1/visualizer/nodes   | jq ."

CPU_ONLY_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: cpu-only-pod
  labels: {kai.scheduler/queue: default-queue}
spec:
  schedulerName: kai-scheduler
  containers:
  - name: main
    image: ubuntu
    resources: {requests: {cpu: 100m, memory: 250M}}
"""


@pytest.fixture(params=["embedded", "kube"])
def engine(request: pytest.FixtureRequest) -> list[str]:
    return engine_options(request.param, request)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def terminal_of(shoal: Shoal) -> Terminal:
    return Terminal(shoal.kubeconfig, shoal.data_dir.with_name("kubectl"))


def shown(terminal: Terminal, command: str) -> Any:
    return json.loads(terminal.type(command))


def check_pages(terminal: Terminal) -> None:
    terminal.type("kubectl apply -f -", stdin=CPU_ONLY_POD)
    terminal.type("kubectl wait --for=condition=Ready pod/cpu-only-pod --timeout=60s")

    def is_running() -> bool:
        return bool(shown(terminal, SUMMARY)["jobCounts"] == {"Running": 1})

    wait_until(is_running, "the summary to show the pod", within=30)
    summary = shown(terminal, SUMMARY)
    assert (summary["totalNodes"], summary["healthyNodes"], summary["totalGPUs"], summary["totalQueues"]) == (
        2,
        2,
        8,
        2,
    )
    (root,) = shown(terminal, QUEUES)
    assert (root["name"], [child["name"] for child in root["children"]]) == ("default-parent-queue", ["default-queue"])
    (job,) = shown(terminal, JOBS)
    assert job == shown(terminal, JOBS_OF_DEFAULT)[0]
    assert [task["name"] for task in job["tasks"]] == ["cpu-only-pod"]
    nodes = shown(terminal, NODES)
    assert [(node["status"], len(node["gpuSlots"])) for node in nodes] == [("Ready", 4), ("Ready", 4)]


def test_the_pages_of_shoal_up(data_dir: Path, engine: list[str]) -> None:
    shoal = Shoal(data_dir, *engine, "--sim=2x4", "--plugin-port=8081")
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready"), line
        check_pages(terminal_of(shoal))


def test_the_pages_of_a_scheduler_beside_a_cluster(
    data_dir: Path, engine: list[str], configured: Path, tmp_path: Path
) -> None:
    """With the flags of the document, word for word; only the program's name is ours."""
    shoal = Shoal(data_dir, *engine, "--sim=2x4", "--only=api,controllers,nodes")
    flags = (
        f"--scheduler-conf={configured} --scheduler-name=kai-scheduler --namespace=kai-scheduler "
        '--listen-address=":8080" --plugin-server-port=8081 --leader-elect=false'
    )
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready"), line
        terminal = terminal_of(shoal)
        with terminal.writing(f"{subprocess.list2cmdline(SHOAL)} scheduler {flags}", tmp_path / "scheduler.log"):
            terminal.shows(SUMMARY, "totalNodes", within=90)
            check_pages(terminal)
            terminal.shows("curl -sS http://127.0.0.1:8080/metrics", "workqueue_adds_total|e2e_scheduling_latency")


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """What a cluster with KAI has in its ConfigMap."""
    file = tmp_path / "kai-scheduler-config.yaml"
    file.write_text(
        """actions: allocate, consolidation, reclaim, preempt, stalegangeviction
tiers:
- plugins:
  - name: predicates
  - name: proportion
  - name: priority
  - name: nodeavailability
  - name: resourcetype
  - name: podaffinity
  - name: elastic
  - name: kubeflow
  - name: ray
  - name: taskorder
  - name: nominatednode
  - name: snapshot
  - name: gpupack
  - name: nodeplacement
    arguments: {cpu: binpack, gpu: binpack}
  - name: minruntime
"""
    )
    return file
