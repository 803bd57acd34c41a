"""The grouper with exactly its own rights, and what it does where they end or where kinds are missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shoal.api import scheduling_run_ai
from shoal.api.batch import JOBS
from shoal.api.core import PODS
from shoal.api.meta import Document, Resource
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.cli.processes.api import define
from shoal.kube import Manager, running
from shoal.scheduler.grouper.kinds import KNOWN_KINDS
from shoal.scheduler.grouper.rbac import RULES
from tests.scheduler.grouper.stage import (
    THINGS,
    define_kinds,
    group_of,
    grouped_pod_manifest,
    grouper,
    groups_there,
    made,
    marked_pods,
    template,
    told,
)
from tests.support.clusters.in_process import Cluster, in_process_cluster, writes_of
from tests.support.waiting.at_rest import at_rest

ROLES = Resource(
    type=Document,
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRole",
    plural="clusterroles",
    namespaced=False,
)
BINDINGS = Resource(
    type=Document,
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
)
JOB = {"metadata": {"name": "job"}, "spec": {"template": template(restartPolicy="Never")}}


@asynccontextmanager
async def with_own_rights(cluster: Cluster) -> AsyncIterator[Manager]:
    """Runs the grouper as a user who may do what its rules say and nothing else."""
    await cluster.make(ROLES, {"metadata": {"name": "grouper"}, "rules": list(RULES)})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "grouper"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "grouper"}
    await cluster.make(BINDINGS, {"metadata": {"name": "grouper"}, "roleRef": role, "subjects": [subject]})
    manager = Manager(cluster.server.transport(user="grouper", groups=("system:authenticated",)), name="grouper")
    grouper(manager)
    async with running(manager):
        yield manager


async def test_its_own_rights_are_enough(cluster: Cluster) -> None:
    job = (await cluster.make(JOBS, JOB)).content
    bad = {**JOB, "metadata": {"name": "bad", "annotations": {"kai.scheduler/batch-min-member": "few"}}}
    await cluster.make(PODS, grouped_pod_manifest("a", owner=job))
    await cluster.make(PODS, grouped_pod_manifest("b", owner=job))
    await cluster.make(PODS, grouped_pod_manifest("c", owner=(await cluster.make(JOBS, bad)).content))
    async with with_own_rights(cluster) as manager:
        await marked_pods(cluster, 2)
        await groups_there(cluster, 1)
        await told(cluster, "whole number")
        await at_rest(manager)


async def test_an_owner_that_may_not_be_read_ends_the_way_up(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    thing = await made(cluster, THINGS, "secret")
    job = await made(cluster, JOBS, "job", JOB["spec"], owner=thing)
    await cluster.make(PODS, grouped_pod_manifest("below-job", owner=job))
    await cluster.make(PODS, grouped_pod_manifest("below-thing", owner=thing))
    async with with_own_rights(cluster):
        below_job, below_thing = await marked_pods(cluster, 2)
    assert group_of(below_job) == f"pg-job-{job['metadata']['uid']}"
    assert group_of(below_thing) == f"pg-below-thing-{below_thing['metadata']['uid']}"


def test_every_kind_that_a_rule_knows_may_be_read() -> None:
    readable = {
        (group, plural)
        for rule in RULES
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        if {"get", "list", "watch"} <= set(rule["verbs"])
    }
    assert {(group, f"{kind.lower()}s") for group, kind in KNOWN_KINDS} <= readable


def test_nothing_is_allowed_by_a_wildcard() -> None:
    assert not [rule for rule in RULES if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}]


async def test_pods_wait_for_the_kind_of_their_groups(tmp_path: Path) -> None:
    async with in_process_cluster(tmp_path / "server") as cluster:
        await cluster.make(PODS, grouped_pod_manifest("solo"))
        async with cluster.controllers(grouper) as manager:
            await at_rest(manager)
            assert writes_of(manager) == 0
            await define(cluster.client, scheduling_run_ai.DEFINITIONS)
            await marked_pods(cluster, 1)
            assert len(await cluster.all(POD_GROUPS)) == 1
