"""What may happen to JobSets, so that any controller of them can play it; each stops where a picture is worth it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld

Story = Callable[[JobSetWorld], AsyncIterator[str]]

NEVER = a_pod_template(restartPolicy="Never")
EXCLUSIVE, LABELLED = "alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector"
IN_ORDER = {"startupPolicyOrder": "InOrder"}


def one_that_fails(name: str = "w", replicas: int = 1) -> dict[str, Any]:
    return a_replicated_job(name, replicas, pods=NEVER, backoffLimit=0)


async def runs_and_completes(world: JobSetWorld) -> AsyncIterator[str]:
    jobs = ("train-leader-0", "train-workers-0", "train-workers-1")
    await world.make(a_replicated_job("leader", group="head"), a_replicated_job("workers", 2))
    await world.has_jobs(*jobs)
    await world.ready(*jobs)
    await world.counters(leader=(1, 0, 0, 1, 0), workers=(2, 0, 0, 2, 0))
    yield "running"
    await world.end(*jobs)
    await world.condition("Completed")
    await world.counters(leader=(0, 1, 0, 0, 0), workers=(0, 2, 0, 0, 0))
    yield "done"


async def has_a_coordinator(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(
        a_replicated_job("leader", completions=2, parallelism=2),
        coordinator={"replicatedJob": "leader", "podIndex": 1},
        network={"subdomain": "net", "publishNotReadyAddresses": False},
    )
    await world.has_jobs("train-leader-0")
    await world.counters(leader=(0, 0, 0, 1, 0))
    yield "made"


async def is_placed_exclusively(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(
        a_replicated_job("a", 2),
        a_replicated_job("b", annotations={EXCLUSIVE: "rack", LABELLED: "yes"}),
        annotations={EXCLUSIVE: "zone"},
        suspend=True,
    )
    await world.has_jobs("train-a-0", "train-a-1", "train-b-0")
    await world.condition("Suspended")
    await world.counters(a=(0, 0, 0, 0, 2), b=(0, 0, 0, 0, 1))
    yield "made"


async def waits_for_what_it_depends_on(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(
        a_replicated_job("d"), a_replicated_job("m"), a_replicated_job("n", depends_on={"d": "Complete", "m": "Ready"})
    )
    await world.has_jobs("train-d-0", "train-m-0")
    await world.counters(d=(0, 0, 0, 1, 0), m=(0, 0, 0, 1, 0), n=(0, 0, 0, 0, 0))
    yield "waiting"
    await world.end("train-d-0")
    await world.ready("train-m-0")
    await world.has_jobs("train-d-0", "train-m-0", "train-n-0")
    await world.counters(d=(0, 1, 0, 0, 0), m=(1, 0, 0, 1, 0), n=(0, 0, 0, 1, 0))
    yield "started"


async def starts_in_order(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(a_replicated_job("a"), a_replicated_job("b"), startupPolicy=IN_ORDER)
    await world.has_jobs("train-a-0")
    await world.counters(a=(0, 0, 0, 1, 0), b=(0, 0, 0, 0, 0))
    yield "the first"
    await world.ready("train-a-0")
    await world.has_jobs("train-a-0", "train-b-0")
    await world.counters(a=(1, 0, 0, 1, 0), b=(0, 0, 0, 1, 0))
    yield "the second"
    await world.ready("train-b-0")
    await world.condition("StartupPolicyCompleted")
    await world.counters(a=(1, 0, 0, 1, 0), b=(1, 0, 0, 1, 0))
    yield "both"


async def is_resumed_in_order(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(a_replicated_job("a"), a_replicated_job("b"), startupPolicy=IN_ORDER, suspend=True)
    await world.has_jobs("train-a-0", "train-b-0")
    await world.condition("Suspended")
    await world.counters(a=(0, 0, 0, 0, 1), b=(0, 0, 0, 0, 1))
    yield "suspended"
    await world.change(suspend=False)
    await world.pod("train-a-0")
    await world.counters(a=(0, 0, 0, 1, 0), b=(0, 0, 0, 0, 1))
    yield "the first goes on"
    await world.ready("train-a-0")
    await world.ready("train-b-0")
    await world.condition("StartupPolicyCompleted")
    await world.condition("Suspended", "False")
    await world.counters(a=(1, 0, 0, 1, 0), b=(1, 0, 0, 1, 0))
    yield "both do"


async def fails_without_a_policy(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(one_that_fails(replicas=2))
    await world.has_jobs("train-w-0", "train-w-1")
    await world.fail("train-w-1")
    await world.condition("Failed")
    await world.has_jobs("train-w-1")
    await world.counters(w=(0, 0, 1, 0, 0))
    yield "failed"


async def fails_by_a_rule(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(one_that_fails(), failurePolicy={"maxRestarts": 3, "rules": [{"action": "FailJobSet"}]})
    await world.has_jobs("train-w-0")
    await world.fail("train-w-0")
    await world.condition("Failed")
    await world.counters(w=(0, 0, 1, 0, 0))
    yield "failed"


async def restarts_as_often_as_it_may(world: JobSetWorld) -> AsyncIterator[str]:
    rules = [
        {"name": "never", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {"action": "RestartJobSet", "onJobFailureMessagePatterns": ["^Job has"]},
    ]
    await world.make(one_that_fails(replicas=2), failurePolicy={"maxRestarts": 1, "rules": rules})
    await world.has_jobs("train-w-0", "train-w-1", restart_attempt="0")
    await world.fail("train-w-0")
    await world.has_jobs("train-w-0", "train-w-1", restart_attempt="1")
    await world.counters(w=(0, 0, 0, 2, 0))
    yield "restarted"
    await world.ready("train-w-0", "train-w-1")
    await world.condition("RestartingJobSet", "False")
    await world.counters(w=(2, 0, 0, 2, 0))
    yield "ready again"
    await world.fail("train-w-1")
    await world.condition("Failed")
    await world.has_jobs("train-w-1")
    await world.counters(w=(0, 0, 1, 0, 0))
    yield "failed"


async def restarts_without_counting(world: JobSetWorld) -> AsyncIterator[str]:
    policy = {"restartStrategy": "BlockingRecreate", "rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}
    await world.make(one_that_fails(), failurePolicy=policy)
    await world.has_jobs("train-w-0", restart_attempt="0")
    await world.fail("train-w-0")
    await world.has_jobs("train-w-0", restart_attempt="1")
    await world.counters(w=(0, 0, 0, 1, 0))
    yield "restarted"


async def succeeds_with_any_that_counts(world: JobSetWorld) -> AsyncIterator[str]:
    policy = {"operator": "Any", "targetReplicatedJobs": ["l"]}
    await world.make(a_replicated_job("l", 2), a_replicated_job("w"), successPolicy=policy)
    await world.has_jobs("train-l-0", "train-l-1", "train-w-0")
    await world.end("train-w-0")
    await world.counters(l=(0, 0, 0, 2, 0), w=(0, 1, 0, 0, 0))
    yield "another one"
    await world.end("train-l-1")
    await world.condition("Completed")
    await world.has_jobs("train-l-1", "train-w-0")
    await world.counters(l=(0, 1, 0, 0, 0), w=(0, 1, 0, 0, 0))
    yield "one of them"


async def is_suspended_changed_and_resumed(world: JobSetWorld) -> AsyncIterator[str]:
    await world.make(a_replicated_job("w"))
    await world.ready("train-w-0")
    await world.counters(w=(1, 0, 0, 1, 0))
    await world.change(suspend=True)
    await world.condition("Suspended")
    await world.counters(w=(0, 0, 0, 0, 1))
    yield "suspended"
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    pods = a_pod_template(restartPolicy="OnFailure", nodeSelector={"pool": "a"}, tolerations=tolerations)
    pods["metadata"] = {"labels": {"queue": "team"}}
    changed = a_replicated_job("w", pods=pods, completionMode="Indexed")
    await world.change(replicatedJobs=[changed], suspend=False)
    await world.pod("train-w-0")
    await world.condition("Suspended", "False")
    await world.counters(w=(0, 0, 0, 1, 0))
    yield "resumed"


async def claims_volumes(world: JobSetWorld) -> AsyncIterator[str]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "model")]
    containers = [{"name": "main", "image": "busybox", "volumeMounts": mounts}]
    policies = [
        {"templates": [{"metadata": {"name": "data", "labels": {"x": "y"}}, "spec": spec}]},
        {"templates": [{"metadata": {"name": "model"}, "spec": spec}], "retentionPolicy": {"whenDeleted": "Retain"}},
    ]
    mounting = a_replicated_job("a", pods=a_pod_template(containers=containers))
    await world.make(mounting, a_replicated_job("b"), volumeClaimPolicies=policies)
    await world.has_jobs("train-a-0", "train-b-0")
    await world.counters(a=(0, 0, 0, 1, 0), b=(0, 0, 0, 1, 0))
    yield "made"


STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        runs_and_completes,
        has_a_coordinator,
        is_placed_exclusively,
        waits_for_what_it_depends_on,
        starts_in_order,
        is_resumed_in_order,
        fails_without_a_policy,
        fails_by_a_rule,
        restarts_as_often_as_it_may,
        restarts_without_counting,
        succeeds_with_any_that_counts,
        is_suspended_changed_and_resumed,
        claims_volumes,
    )
}
