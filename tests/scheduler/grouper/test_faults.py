"""The grouper where requests are refused, cut off or overtaken."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from shoal.api.batch import JOBS
from shoal.api.core import PODS
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import Manager, running
from shoal.kube.transport import Request, Response
from tests.scheduler.grouper.stage import grouped_pod_manifest, grouper, groups_there, marked_pods, template, told
from tests.support.clusters.client import until
from tests.support.clusters.faults import FaultyTransport, behind
from tests.support.clusters.in_process import Cluster
from tests.support.network.scripted import status
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

JOB = {"metadata": {"name": "job"}, "spec": {"template": template(restartPolicy="Never")}}


@asynccontextmanager
async def on_a_bad_line(cluster: Cluster) -> AsyncIterator[tuple[Manager, FaultyTransport]]:
    """The grouper with a connection on which a test causes faults; it works once the block begins."""
    line = FaultyTransport(cluster.server.transport())
    manager = Manager(line, name="grouper")
    grouper(manager)
    async with running(manager):
        await manager.wait_until_working()
        yield manager, line


def refusal(code: int, reason: str) -> Response:
    return Response(code, {}, msgspec.json.encode(status(code, reason)))


async def test_refused_writes_are_made_up_for(cluster: Cluster) -> None:
    refused: Counter[str] = Counter()

    def twice(request: Request) -> Response | None:
        if request.method != "PATCH" or "/pods/" not in request.path or refused[request.path] == 2:
            return None
        refused[request.path] += 1
        return refusal(403, "Forbidden")  # which the client does not try again by itself

    async with on_a_bad_line(cluster) as (_, line):
        line.faults.append(twice)
        await cluster.make(PODS, grouped_pod_manifest("solo"))
        await marked_pods(cluster, 1)
        await groups_there(cluster, 1)
    assert list(refused.values()) == [2]


async def test_a_pod_that_cannot_be_marked_keeps_no_other_from_it(cluster: Cluster) -> None:
    def never_b(request: Request) -> Response | None:
        is_b = request.method == "PATCH" and request.path.endswith("/b")
        return refusal(403, "Forbidden") if is_b else None

    async with on_a_bad_line(cluster) as (_, line):
        line.faults.append(never_b)
        job = (await cluster.make(JOBS, JOB)).content
        for name in ("a", "b", "c"):
            await cluster.make(PODS, grouped_pod_manifest(name, owner=job))
        pods = await marked_pods(cluster, 2)
    assert [pod["metadata"]["name"] for pod in pods] == ["a", "c"]


async def test_a_foreign_group_that_is_made_in_the_same_moment_is_given_back(cluster: Cluster) -> None:
    async def overtake(request: Request) -> None:
        name = request.path.rpartition("/")[2]
        is_ours = request.method == "PATCH" and "/podgroups/" in request.path
        if is_ours and await cluster.read(POD_GROUPS, name) is None:
            await cluster.make(POD_GROUPS, {"metadata": {"name": name}, "spec": {"schedulingBackoff": 1}})

    async with on_a_bad_line(cluster) as (manager, line):
        line.meanwhile = overtake
        await cluster.make(PODS, grouped_pod_manifest("solo"))
        await told(cluster, "is not owned by Pod solo")
        await at_rest(manager)
    (found,) = await cluster.all(POD_GROUPS)
    assert found["spec"] == {"schedulingBackoff": 1}
    assert "ownerReferences" not in found["metadata"]
    assert "annotations" not in found["metadata"]


async def test_an_owner_is_not_gone_where_only_the_picture_of_it_is_old(cluster: Cluster) -> None:
    first = (await cluster.make(JOBS, JOB)).content
    await cluster.make(PODS, grouped_pod_manifest("old", owner=first))
    async with on_a_bad_line(cluster) as (manager, _):
        await marked_pods(cluster, 1)
        (jobs,) = [informer for informer in manager.cache.informers if informer.resource.plural == "jobs"]
        await eventually(lambda: jobs.get("job", "default"))
        with behind(jobs):
            await cluster.client.delete(JOBS, "job", "default", grace_seconds=0)
            await until(lambda: _is_gone(cluster))
            second = (await cluster.make(JOBS, JOB)).content
            await cluster.make(PODS, grouped_pod_manifest("new", owner=second))
            await marked_pods(cluster, 2)


async def _is_gone(cluster: Cluster) -> bool:
    """Lets the Job go, as the collector of garbage would."""
    if await cluster.read(JOBS, "job") is None:
        return True
    await cluster.client.merge_patch(JOBS.documents(), "job", {"metadata": {"finalizers": None}}, "default")
    return False


async def test_a_watch_that_breaks_loses_nothing(cluster: Cluster) -> None:
    async with on_a_bad_line(cluster) as (_, line):
        for index in range(5):
            await cluster.make(PODS, grouped_pod_manifest(f"p-{index}"))
            line.cut_streams()
        await marked_pods(cluster, 5)
        await groups_there(cluster, 5)
