"""TrainJobs in gangs of every scheduler: all nodes start or none does, with nothing more than a queue's label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.training.conftest import add_runtime, simulated
from tests.e2e.training.stage import WITHIN, Stage
from tests.support.clusters.both_engines import ON_KUBE
from tests.support.clusters.real import namespace_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

GROUPS = {
    "volcano": "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    "koord-scheduler": "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/{}/podgroups",
    "a-shard-of-kai": "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups",
}
Object = dict[str, Any]


@pytest.fixture(scope="module", params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    """Two nodes of eight GPUs."""
    with simulated(tmp_path_factory.mktemp("gangs"), request, engine=request.param) as shoal:
        yield shoal


@pytest.fixture
def stage(shoal: Shoal, request: pytest.FixtureRequest) -> Iterator[Stage]:
    with namespace_for(request.node.originalname, shoal.admin) as name:
        for scheduler in (*GROUPS, "kai-scheduler", "default-scheduler"):
            add_runtime(shoal.admin, name, scheduler, like="torch-distributed", pod={"schedulerName": scheduler})
        yield Stage(shoal.admin, name)


def submit(stage: Stage, name: str, *, nodes: int, scheduler: str) -> None:
    """A run that needs so many nodes whole, for five seconds."""
    trainer = {"numNodes": nodes, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}}}
    queue = {"kai.scheduler/queue": "default-queue"}
    runtime = {"kind": "TrainingRuntime", "name": scheduler}
    stage.submit(name, run_time="5s", labels=queue, runtimeRef=runtime, trainer=trainer)


def pods(stage: Stage, name: str) -> list[Object]:
    return [pod for pod in stage.all("pods") if pod["metadata"]["name"].startswith(f"{name}-")]


@pytest.mark.parametrize("scheduler", GROUPS)
def test_the_scheduler_is_told_in_its_own_words(stage: Stage, scheduler: str) -> None:
    submit(stage, "pair", nodes=2, scheduler=scheduler)
    wait_until(lambda: len(pods(stage, "pair")) == 2, "both pods", within=WITHIN)
    [group] = stage.admin.request("GET", GROUPS[scheduler].format(stage.namespace))["items"]
    assert group["spec"]["minMember"] == 2
    assert group["metadata"]["ownerReferences"][0]["kind"] == "PodGang"
    assert {pod["spec"]["schedulerName"] for pod in pods(stage, "pair")} == {scheduler}

    def named() -> int:
        gang = stage.get("podgangs", "pair")
        return len(gang["spec"]["podgroups"][0]["podReferences"]) if gang else 0

    wait_until(lambda: named() == 2, "the gang to name its pods", within=WITHIN)
    if scheduler != "a-shard-of-kai":  # which nobody is here
        stage.until_complete("pair")


@pytest.mark.parametrize("scheduler", ["volcano", "koord-scheduler", "kai-scheduler", "default-scheduler"])
def test_a_gang_that_does_not_fit_holds_no_node(stage: Stage, scheduler: str) -> None:
    submit(stage, "triple", nodes=3, scheduler=scheduler)
    wait_until(lambda: len(pods(stage, "triple")) == 3, "three pods", within=WITHIN)
    submit(stage, "pair", nodes=2, scheduler=scheduler)
    stage.until_complete("pair")
    assert not [pod for pod in pods(stage, "triple") if pod["spec"].get("nodeName")]


def test_the_pod_gang_that_the_documentation_shows_runs(stage: Stage) -> None:
    text = (Path(__file__).parents[3] / "docs" / "scheduler-backends.md").read_text()
    [manifest] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    gang, job = yaml.safe_load_all(manifest)
    stage.admin.request("POST", stage.path("podgangs"), gang)
    stage.admin.request("POST", stage.path("jobs"), job)

    def succeeded() -> int:
        found = stage.get("jobs", "sweep")
        return int(found["status"].get("succeeded", 0)) if found else 0

    wait_until(lambda: succeeded() == 4, "all four pods to end well", within=WITHIN)
    assert all(
        pod["metadata"]["annotations"]["scheduling.volcano.sh/group-name"] == "sweep" for pod in stage.all("pods")
    )
