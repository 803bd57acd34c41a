"""The webhooks as an API server calls them: JobSets are filled in and checked, and followers wait for their leader."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from shoal.api.jobset import JOB_SETS, names
from shoal.kube import Invalid
from shoal.kube.admission import AdmissionServer, MemoryStore, Policy, SelfMade, ServiceEndpoint, UrlEndpoint
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS
from shoal.training.jobset.admission import Lookups, job_set_webhooks, webhook_configurations
from shoal.training.jobset.admission.volumes import existing_claim_problems
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.jobset.upstream import WEBHOOKS
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.training.jobset.builders import a_job_set, a_pod_template, a_replicated_job, a_typed_set
from tests.training.jobset.conftest import JobSetWorld

RESOURCES = {resource.kind: resource for resource in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)}
RACK = "example.com/rack"


async def _nothing(*_: object) -> None:
    return None


def configurations(endpoint: ServiceEndpoint | UrlEndpoint) -> list[dict[str, Any]]:
    webhooks = job_set_webhooks(Lookups(claim=_nothing, leader=_nothing), JobSetSettings())
    return webhook_configurations(webhooks, endpoint)


def test_they_are_registered_by_objects_of_their_own_and_those_of_job_sets_at_upstreams_paths() -> None:
    found = configurations(ServiceEndpoint(name="shoal", namespace="shoal-system"))
    assert [each["metadata"]["name"] for each in found] == ["shoal-jobset-mutating", "shoal-jobset-validating"]
    assert WEBHOOKS not in [each["metadata"]["name"] for each in found]
    said = {
        webhook["clientConfig"]["service"]["path"]: (
            webhook["rules"][0]["resources"],
            webhook["rules"][0]["operations"],
            webhook["failurePolicy"],
        )
        for each in found
        for webhook in each["webhooks"]
    }
    assert said == {
        "/mutate-jobset-x-k8s-io-v1alpha2-jobset": (["jobsets"], ["CREATE"], "Fail"),
        "/validate-jobset-x-k8s-io-v1alpha2-jobset": (["jobsets"], ["CREATE", "UPDATE"], "Fail"),
        "/jobset/mutate--v1-pod": (["pods"], ["CREATE"], "Fail"),
        "/jobset/validate--v1-pod": (["pods"], ["CREATE"], "Fail"),
    }


def test_only_pods_of_job_sets_are_asked_about() -> None:
    for each in configurations(UrlEndpoint("https://here")):
        for webhook in each["webhooks"]:
            if webhook["rules"][0]["resources"] == ["pods"]:
                assert webhook["objectSelector"] == {
                    "matchExpressions": [{"key": names.JOB_SET_NAME, "operator": "Exists"}]
                }


SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
FILLED_IN = {**SPEC, "resources": {"requests": {"storage": "1024Mi"}}, "volumeMode": "Filesystem", "volumeName": "v"}


@pytest.mark.parametrize(
    ("retention", "existing", "expected"),
    [
        pytest.param("Retain", {}, [], id="none there"),
        pytest.param("Retain", {"data-train": FILLED_IN}, [], id="one that was kept"),
        pytest.param(
            "Delete",
            {"data-train": FILLED_IN},
            ["spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted"],
            id="one that is somebody's",
        ),
        pytest.param(
            "Retain",
            {"data-train": {**SPEC, "accessModes": ["ReadWriteMany"]}},
            ["spec.volumeClaimPolicies[0].templates[0].spec"],
            id="another one",
        ),
    ],
)
def test_a_claim_that_is_there_is_used_where_it_was_kept_and_is_the_same(
    retention: str, existing: dict[str, Any], expected: list[str]
) -> None:
    policy = {
        "templates": [{"metadata": {"name": "data"}, "spec": SPEC}],
        "retentionPolicy": {"whenDeleted": retention},
    }
    found = existing_claim_problems(a_typed_set(volumeClaimPolicies=[policy]), "train", existing)
    assert [each.path for each in found] == expected


@pytest.fixture
async def hooked(cluster: Cluster) -> AsyncIterator[JobSetWorld]:
    """A server that calls the webhooks."""
    webhooks = job_set_webhooks(Lookups.live(cluster.client), JobSetSettings())
    server = AdmissionServer(webhooks, host="127.0.0.1", port=0)
    serving = await SelfMade(MemoryStore(), Policy(names=("127.0.0.1",))).current()
    server.use(serving.pair)
    await server.start()
    try:
        at = UrlEndpoint(f"https://127.0.0.1:{server.port}")
        for body in webhook_configurations(webhooks, at, authorities=serving.authorities):
            await cluster.client.create(RESOURCES[body["kind"]], body)

        async def are_called() -> bool:
            made = await cluster.client.create(JOB_SETS.documents(), a_job_set(name="probe"), "default", dry_run=True)
            try:
                await cluster.client.create(JOB_SETS.documents(), a_job_set(managedBy="me"), "default", dry_run=True)
            except Invalid:
                return "successPolicy" in made.content["spec"]
            return False

        await until(are_called, within=10)
        yield JobSetWorld(cluster)
    finally:
        await server.stop()


async def test_a_job_set_is_filled_in_and_checked_when_it_is_made(hooked: JobSetWorld) -> None:
    made = await hooked.make(a_replicated_job(), failurePolicy={"rules": [{"action": "FailJobSet"}]})
    assert made["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert made["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template["spec"]["restartPolicy"] == "OnFailure"
    with pytest.raises(Invalid, match=r"spec\.successPolicy\.targetReplicatedJobs\[0\]"):
        await hooked.make(name="other", successPolicy={"operator": "All", "targetReplicatedJobs": ["nobody"]})
    with pytest.raises(Invalid, match=r"spec\.replicatedJobs\[0\]\.replicas.*field is immutable"):
        await hooked.change(replicatedJobs=[a_replicated_job(replicas=2)])


async def test_a_claim_that_exists_is_looked_up(hooked: JobSetWorld) -> None:
    await hooked.cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data-train"}, "spec": SPEC})
    mounts = [{"name": "data", "mountPath": "/data"}]
    pods = a_pod_template(containers=[{"name": "main", "image": "busybox", "volumeMounts": mounts}])
    policy = {"templates": [{"metadata": {"name": "data"}, "spec": SPEC}]}
    with pytest.raises(Invalid, match="must be Retain where the claim exists"):
        await hooked.make(a_replicated_job(pods=pods), volumeClaimPolicies=[policy])


async def test_followers_wait_for_their_leader_and_go_where_it_is(hooked: JobSetWorld) -> None:
    await hooked.cluster.make(NODES, {"metadata": {"name": "n1", "labels": {RACK: "r1"}}})
    async with hooked.running():
        job = a_replicated_job(pods=a_pod_template(), parallelism=2, completions=2)
        await hooked.make(job, annotations={names.EXCLUSIVE_TOPOLOGY: RACK})
        leader = await hooked.pod("train-workers-0")
        assert leader["spec"]["affinity"]["podAntiAffinity"]
        assert leader["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"
        assert len(await hooked.pods("train-workers-0")) == 1
        await hooked.cluster.client.bind(PODS, leader["metadata"]["name"], "default", node="n1")

        async def both() -> list[dict[str, Any]] | None:
            found = await hooked.pods("train-workers-0")
            return found if len(found) == 2 else None

        pods = await until(both, within=20)
        [follower] = [pod for pod in pods if pod["metadata"]["uid"] != leader["metadata"]["uid"]]
        assert follower["spec"]["nodeSelector"] == {RACK: "r1"}
