"""``shoal scheduler`` as a process of its own beside a cluster: gangs start, pages answer, and a kill loses nothing."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shoal.api import kai_names as names
from tests.e2e.scheduler.builders import a_kai_pod
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.command import SHOAL, environment
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
PAGES = "/api/v1/visualizer"


@dataclass
class Scheduler:
    """One running scheduler."""

    port: int
    process: subprocess.Popen[bytes]

    def page(self, name: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{PAGES}/{name}", timeout=10) as answer:
            return json.load(answer)


@dataclass
class Stage:
    """A cluster without a scheduler, and the schedulers beside it."""

    shoal: Shoal
    folder: Path
    count: int = field(default=0)

    @contextmanager
    def scheduler(self, *arguments: str) -> Iterator[Scheduler]:
        self.count += 1
        port = free_port()
        line = [
            *SHOAL,
            "scheduler",
            f"--kubeconfig={self.shoal.kubeconfig}",
            "--schedule-period=200ms",
            f"--listen-address=127.0.0.1:{free_port()}",
            f"--plugin-server-port={port}",
            *arguments,
        ]
        with (self.folder / f"scheduler-{self.count}.log").open("wb") as log:
            process = subprocess.Popen(line, stdout=log, stderr=log, env=environment())
        try:
            yield Scheduler(port, process)
        finally:
            process.kill()
            process.wait()

    def create(self, path: str, body: dict[str, Any]) -> None:
        self.shoal.admin.request("POST", path, body)

    def placed(self) -> dict[str, str]:
        pods = self.shoal.objects(PODS)
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}

    def gang(self, name: str, pods: int, *, gpus: int) -> None:
        spec = {"minMember": pods, "queue": names.DEFAULT_QUEUE}
        self.create(
            GROUPS,
            {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec},
        )
        for index in range(pods):
            self.create(PODS, a_kai_pod(f"{name}-{index}", gpus=gpus, annotations={names.POD_GROUP: name}))


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    shoal = Shoal(tmp_path / "data", "--only=controllers,nodes", "--sim=4x8:H100")
    started = shoal.starting("--detach")
    assert started.returncode == 0, started.stderr
    try:
        yield Stage(shoal, tmp_path)
    finally:
        shoal("down")


def test_gangs_start_and_the_pages_show_them(stage: Stage) -> None:
    with stage.scheduler("--leader-elect=false") as scheduler:
        stage.gang("train", 6, gpus=4)
        wait_until(lambda: all(stage.placed().values()), "all pods to have a node", within=60)

        def is_shown() -> bool:
            return bool(scheduler.page("summary")["jobCounts"] == {"Running": 1})

        wait_until(is_shown, "the summary to show the job", within=30)
        summary = scheduler.page("summary")
        assert (summary["totalNodes"], summary["totalGPUs"], summary["allocatedGPUs"]) == (4, 32, 24)
        assert {queue["name"] for queue in scheduler.page("queues")} == {names.DEFAULT_PARENT_QUEUE}
        (job,) = scheduler.page("jobs?namespace=default")
        assert sorted(task["name"] for task in job["tasks"]) == [f"train-{index}" for index in range(6)]
        assert scheduler.page("jobs?namespace=other") == []
        taken = [slot["occupiedBy"] for node in scheduler.page("nodes") for slot in node["gpuSlots"]]
        assert sum(map(bool, taken)) == 24
        scheduler.process.send_signal(signal.SIGTERM)
        assert scheduler.process.wait(timeout=20) == 0


def test_a_scheduler_that_is_killed_leaves_nothing_half_done(stage: Stage) -> None:
    with stage.scheduler() as scheduler:
        for number in range(8):
            stage.gang(f"gang-{number}", 4, gpus=1)
        wait_until(lambda: any(stage.placed().values()), "the first pods to have a node", within=60)
        scheduler.process.kill()
        scheduler.process.wait()
    with stage.scheduler():
        wait_until(lambda: all(stage.placed().values()), "all pods to have a node", within=60)
    pods = stage.shoal.objects(PODS)
    assert len({pod["metadata"]["uid"] for pod in pods}) == 32
    used: dict[str, int] = {}
    for node in stage.placed().values():
        used[node] = used.get(node, 0) + 1
    assert max(used.values()) <= 8


def test_of_two_schedulers_one_works_and_the_other_takes_over(stage: Stage) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.NAMESPACE}}
    stage.create("/api/v1/namespaces", namespace)
    with stage.scheduler("--leader-elect") as first:
        stage.gang("one", 2, gpus=1)
        wait_until(lambda: all(stage.placed().values()), "the first gang to have nodes", within=60)
        with stage.scheduler("--leader-elect=true"):
            first.process.terminate()
            first.process.wait(timeout=20)
            stage.gang("two", 2, gpus=1)
            wait_until(lambda: all(stage.placed().values()), "the second gang to have nodes", within=90)


def test_what_is_wrong_with_flags_and_files_is_said_in_one_sentence(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("actions: allocate, juggle\n")
    for arguments, said in (
        (["--schedule-period=fast"], '--schedule-period is "fast": write a duration'),
        (["--no-such-flag"], "--no-such-flag is not known"),
        ([f"--scheduler-conf={tmp_path / 'absent'}"], "no such file or directory: name a file that can be read"),
        ([f"--scheduler-conf={wrong}"], "juggle"),
    ):
        line = [*SHOAL, "scheduler", *arguments]
        ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, env=environment())
        assert ended.returncode == 2
        assert said in ended.stderr
        assert ended.stderr.count("\n") == 1
