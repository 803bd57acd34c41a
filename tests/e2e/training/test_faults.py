"""What goes wrong around TrainJobs on a whole cluster: each comes to its end all the same, or says what hinders it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from shoal.cluster.kubernetes import Refused, Unreachable
from tests.e2e.training.conftest import FAILS_FAST, add_runtime_that_fails_fast, condition, simulated
from tests.e2e.training.stage import WITHIN, Object, Stage, last_error
from tests.support.clusters.both_engines import ON_KUBE
from tests.support.clusters.real import namespace_for
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module", params=["embedded", ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    with simulated(tmp_path_factory.mktemp("faults"), request, engine=request.param) as shoal:
        yield shoal


@pytest.fixture
def stage(shoal: Shoal, request: pytest.FixtureRequest) -> Iterator[Stage]:
    with namespace_for(request.node.originalname, shoal.admin) as name:
        yield Stage(shoal.admin, name)


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
    for number, name in enumerate(names):
        submit_in_spite_of_all(stage, name)
        if number % 3 == 2:
            wait_until(lambda: shoal.part("controllers")["state"] == "running", "the controllers to run")
            os.kill(shoal.part("controllers")["pid"], signal.SIGKILL)
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
