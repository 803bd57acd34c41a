"""The controllers get along with the rights that they name."""

from __future__ import annotations

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS
from shoal.kube import Manager
from shoal.training.jobset.rbac import RULES
from tests.support.clusters.client import until
from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld


def test_nothing_is_allowed_by_a_wildcard() -> None:
    assert not [rule for rule in RULES if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}]


async def test_a_job_set_runs_is_suspended_restarted_and_ends_with_these_rights(world: JobSetWorld) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    containers = [{"name": "main", "image": "busybox", "volumeMounts": mounts}]
    pods = a_pod_template(restartPolicy="Never", containers=containers)
    async with world.running_with_rights(RULES) as manager:
        await world.make(
            a_replicated_job(pods=pods, backoffLimit=0),
            failurePolicy={"maxRestarts": 1},
            volumeClaimPolicies=[{"templates": [{"metadata": {"name": "data"}, "spec": spec}]}],
            ttlSecondsAfterFinished=0,
        )
        await world.has_jobs("train-workers-0")
        assert [claim["metadata"]["name"] for claim in await world.cluster.all(PERSISTENT_VOLUME_CLAIMS)]
        await world.change(suspend=True)
        await world.condition("Suspended")
        await world.change(suspend=False)
        await world.condition("Suspended", "False")
        await world.fail("train-workers-0")
        await world.has_jobs("train-workers-0", restart_attempt="1")
        await world.events("ResumeJobs", "RestartJobSetFailurePolicyAction")
        await world.end("train-workers-0")

        async def is_going() -> bool:
            found = await world.cluster.all(PERSISTENT_VOLUME_CLAIMS)
            return all("deletionTimestamp" in claim["metadata"] for claim in found)

        await until(is_going, within=10)
        assert refused_of(manager) == 0


def refused_of(manager: Manager) -> float:
    """How many requests of a manager were not allowed."""
    samples = [sample for family in manager.metrics.requests.collect() for sample in family.samples]
    return sum(sample.value for sample in samples if sample.labels["code"] == "403")
