"""What goes wrong around TrainJobs on a whole cluster: each comes to its end all the same, or says what hinders it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shoal.cluster.kubernetes import AdminApi, Refused, Unreachable
from tests.e2e.training.conftest import FAILS_FAST, TRAINER, add_runtime_that_fails_fast, condition, simulated
from tests.support.kube_fixture import namespace_for
from tests.support.shoal_up import Shoal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

ON_KUBE = pytest.param("kube", marks=[pytest.mark.kube, pytest.mark.slow])
WITHIN = 60.0
MERGE = "application/merge-patch+json"
Object = dict[str, Any]


@pytest.fixture(scope="module", params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    with simulated(tmp_path_factory.mktemp("faults"), request, engine=request.param) as shoal:
        yield shoal


@dataclass(frozen=True)
class Stage:
    """A namespace in which training runs."""

    admin: AdminApi
    namespace: str

    def path(self, kind: str, name: str = "") -> str:
        group = {
            "trainjobs": TRAINER,
            "trainingruntimes": TRAINER,
            "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
            "jobs": "/apis/batch/v1",
        }.get(kind, "/api/v1")
        return f"{group}/namespaces/{self.namespace}/{kind}{f'/{name}' if name else ''}"

    def get(self, kind: str, name: str) -> Object | None:
        try:
            found: Object = self.admin.request("GET", self.path(kind, name))
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        return found

    def all(self, kind: str) -> list[Object]:
        found: list[Object] = self.admin.request("GET", self.path(kind))["items"]
        return found

    def delete(self, kind: str, name: str) -> None:
        self.admin.request("DELETE", self.path(kind, name))

    def submit(self, name: str, *, run_time: str = "2s", **spec: Any) -> None:
        """A run of two nodes, each of which takes so long."""
        pods = {"metadata": {"annotations": {"shoal.dev/sim-run-time": run_time}}}
        job = {"name": "node", "template": {"spec": {"template": pods}}}
        patch = {
            "manager": "tests.shoal.dev/faults",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
        }
        self.admin.request(
            "POST",
            self.path("trainjobs"),
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": name},
                "spec": {
                    "runtimeRef": {"name": "torch-distributed"},
                    "trainer": {"numNodes": 2},
                    "runtimePatches": [patch],
                    **spec,
                },
            },
        )

    def job(self, name: str) -> Object:
        found = self.get("trainjobs", name)
        assert found is not None
        return found

    def until(self, name: str, holds: Callable[[Object], object], what: str) -> Object:
        """A TrainJob, as soon as something holds for it."""
        try:
            wait_until(lambda: holds(self.job(name)), what, within=WITHIN)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.job(name).get('status')}\n{self.warnings()}") from None
        return self.job(name)

    def until_complete(self, name: str) -> Object:
        return self.until(name, lambda job: condition(job, "Complete"), f"{name} to be complete")

    def until_told(self, name: str, text: str) -> None:
        """A TrainJob says what is in its way: in its status, and in an event that the Kubeflow SDK shows."""
        self.until(name, lambda job: text in last_error(job), f"{name} to say {text!r}")
        wait_until(
            lambda: any(text in said for said in self.warnings(about=name)), f"an event of {name} to say {text!r}"
        )

    def warnings(self, *, about: str = "") -> list[str]:
        """The messages of events that warn, of a kind that has no need of any other API to be seen."""
        found = [event for event in self.all("events") if event["type"] == "Warning"]
        return [
            event["message"]
            for event in found
            if event.get("firstTimestamp") and about in ("", event["involvedObject"]["name"])
        ]


@pytest.fixture
def stage(shoal: Shoal, request: pytest.FixtureRequest) -> Iterator[Stage]:
    with namespace_for(request.node.originalname, shoal.admin) as name:
        yield Stage(shoal.admin, name)


def last_error(job: Object) -> str:
    return str(job.get("status", {}).get("lastError", {}).get("message", ""))


def test_a_job_set_that_somebody_deletes_is_made_again_and_the_run_ends_well(stage: Stage) -> None:
    stage.submit("a")
    wait_until(lambda: len(stage.all("pods")) == 2, "the pods")
    before = stage.get("jobsets", "a")
    assert before is not None
    stage.delete("jobsets", "a")
    wait_until(
        lambda: (now := stage.get("jobsets", "a")) and now["metadata"]["uid"] != before["metadata"]["uid"],
        "another JobSet",
        within=WITHIN,
    )
    stage.until_complete("a")

    stage.delete("jobsets", "a")
    wait_until(lambda: not stage.all("pods"), "the pods to go", within=WITHIN)
    assert stage.get("jobsets", "a") is None
    assert condition(stage.job("a"), "Complete")


def test_a_run_outlives_its_runtime(stage: Stage) -> None:
    add_runtime_that_fails_fast(stage.admin, stage.namespace, like="torch-distributed")
    stage.submit("a", runtimeRef={"kind": "TrainingRuntime", "name": FAILS_FAST})
    wait_until(lambda: len(stage.all("pods")) == 2, "the pods")
    stage.delete("trainingruntimes", FAILS_FAST)
    stage.delete("jobsets", "a")  # what is made again is made of what was written down
    made = stage.until_complete("a")
    assert last_error(made) == ""
    found = stage.get("jobsets", "a")
    assert found is not None
    assert found["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] == 0


def test_a_run_whose_runtime_is_gone_for_good_says_so_until_there_is_one(stage: Stage) -> None:
    add_runtime_that_fails_fast(stage.admin, stage.namespace, like="torch-distributed")
    stage.submit("a", suspend=True, runtimeRef={"kind": "TrainingRuntime", "name": FAILS_FAST})
    wait_until(lambda: stage.get("jobsets", "a"), "the JobSet")
    stage.delete("trainingruntimes", FAILS_FAST)
    stage.delete("configmaps", "a-runtime-snapshot")
    stage.until_told("a", f"TrainingRuntime '{FAILS_FAST}' does not exist")

    add_runtime_that_fails_fast(stage.admin, stage.namespace, like="torch-distributed")
    stage.admin.request("PATCH", stage.path("trainjobs", "a"), {"spec": {"suspend": False}}, content_type=MERGE)
    assert last_error(stage.until_complete("a")) == ""


@pytest.mark.parametrize(
    ("limit", "where"),
    [
        pytest.param("count/jobsets.jobset.x-k8s.io", "the TrainJob", id="no JobSet"),
        pytest.param("count/jobs.batch", "the JobSet", id="no Job"),
        pytest.param("pods", "the Job", id="no pods"),
    ],
)
def test_a_quota_that_refuses_is_told_and_waited_for(stage: Stage, limit: str, where: str) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {limit: "0"}}}
    stage.admin.request("POST", stage.path("resourcequotas"), quota)
    wait_until(
        lambda: ((stage.get("resourcequotas", "none") or {}).get("status") or {}).get("hard") == {limit: "0"},
        "the quota to count",
    )
    stage.submit("a")
    if where == "the TrainJob":
        stage.until_told("a", "exceeded quota: none")
    else:
        about = {"the JobSet": "a", "the Job": "a-node-0"}[where]
        wait_until(
            lambda: any("exceeded quota: none" in said for said in stage.warnings(about=about)),
            f"{where} to say that the quota is exceeded",
            within=WITHIN,
        )
    assert not condition(stage.job("a"), "Failed")
    stage.delete("resourcequotas", "none")
    assert last_error(stage.until_complete("a")) == ""


def test_a_webhook_that_is_down_is_told_and_waited_for(stage: Stage) -> None:
    configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    name = f"down-{stage.namespace}"[:60].rstrip("-")
    selector = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    webhook = {
        "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
        "rules": [
            {
                "apiGroups": ["jobset.x-k8s.io"],
                "apiVersions": ["*"],
                "resources": ["jobsets"],
                "operations": ["CREATE"],
            }
        ],
        "namespaceSelector": selector,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    stage.admin.request("POST", configurations, {"metadata": {"name": name}, "webhooks": [webhook]})
    try:
        # A webhook holds as soon as the server has heard of it, which it does not say.
        probe = {"metadata": {"name": "probe"}, "spec": {"replicatedJobs": []}}
        kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
        wait_until(lambda: "down.example.com" in refusal(stage, "jobsets", kind | probe), "the webhook to be asked")
        stage.submit("a")
        stage.until_told("a", 'failed calling webhook "down.example.com"')
        assert stage.get("jobsets", "a") is None
    finally:
        stage.admin.request("DELETE", f"{configurations}/{name}")
    assert last_error(stage.until_complete("a")) == ""


def refusal(stage: Stage, kind: str, body: Object) -> str:
    """What a request is refused with that only tries something out."""
    try:
        stage.admin.request("POST", f"{stage.path(kind)}?dryRun=All", body)
    except Refused as refused:
        return str(refused)
    return ""


@pytest.mark.slow
def test_controllers_that_are_killed_amid_their_work_leave_nothing_undone_or_doubled(
    shoal: Shoal, stage: Stage
) -> None:
    names = [f"run-{number}" for number in range(12)]
    killed = 0
    for number, name in enumerate(names):
        submit_in_spite_of_all(stage, name)
        part = shoal.part("controllers")
        if number % 3 == 2 and part["state"] == "running":
            os.kill(part["pid"], signal.SIGKILL)
            killed += 1
    assert killed >= 3
    for name in names:
        stage.until_complete(name)
    assert sorted(one["metadata"]["name"] for one in stage.all("jobsets")) == sorted(names)
    assert sorted(one["metadata"]["name"] for one in stage.all("jobs")) == sorted(f"{name}-node-0" for name in names)
    hosts = sorted(pod["spec"]["hostname"] for pod in stage.all("pods"))
    assert hosts == sorted(f"{name}-node-0-{index}" for name in names for index in range(2))


def submit_in_spite_of_all(stage: Stage, name: str) -> None:
    """As somebody does who tries again: what checks a TrainJob is among what was killed."""

    def is_taken() -> bool:
        try:
            stage.submit(name, run_time="1s")
        except Unreachable:
            return False
        except Refused as refused:
            return refused.status == 409
        return True

    wait_until(is_taken, f"{name} to be taken", within=WITHIN)
