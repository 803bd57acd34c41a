"""The status of a PodGang has several writers, and its conditions are one list: nobody undoes what another said."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.gangs.backends.controller import add_backends
from shoal.gangs.backends.registry import Backends
from shoal.gangs.caches import Caches
from shoal.gangs.podgangs import add_podgangs
from shoal.gangs.settings import GangSettings
from shoal.kube import Conflict, EventType, Manager
from tests.gangs.builders import a_clique_template, a_set
from tests.gangs.podgangs.actors import Workload, answers, is_initialized, set_pod
from tests.support.clusters.in_process import Cluster
from tests.support.waiting.at_rest import at_rest

SAID = 40


def both(manager: Manager) -> None:
    """The two of our controllers that write there; a backend does not wait for the other one's next write."""
    caches, backends = Caches(manager), Backends.load(manager)
    add_podgangs(manager, caches, GangSettings(default_scheduler="kai-scheduler"), backends)
    add_backends(manager, caches, backends, good_news=0.0)


async def stranger(cluster: Cluster, chance: random.Random) -> None:
    """Somebody else, who counts in a condition of its own and writes back the whole list, as one must."""
    for number in range(1, SAID + 1):
        while True:
            gang = await cluster.read(POD_GANGS, "web-0")
            assert gang is not None
            conditions = [one for one in gang["status"]["conditions"] if one["type"] != "Audited"]
            mine = {"type": "Audited", "status": "True", "reason": "Counted", "message": str(number)}
            mine["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            version = gang["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "status": {"conditions": [*conditions, mine]}}
            try:
                await cluster.client.merge_patch(POD_GANGS.documents(), "web-0", patch, "default", subresource="status")
                break
            except Conflict:
                continue
        await asyncio.sleep(chance.choice([0, 0, 0.005, 0.02]))


async def nodes(cluster: Cluster, pods: list[str], chance: random.Random, is_over: asyncio.Event) -> None:
    """Pods that are ready, and are not, and are ready again."""
    while not is_over.is_set():
        await set_pod(cluster, chance.choice(pods), ready=chance.random() < 0.5)
        await asyncio.sleep(chance.choice([0, 0.005, 0.01]))
    for pod in pods:
        await set_pod(cluster, pod, ready=True)


@asynccontextmanager
async def recorded(cluster: Cluster) -> AsyncIterator[list[PodGang]]:
    """Every state in which the gang was, from now on."""
    states: list[PodGang] = []

    async def follow() -> None:
        async for event in cluster.client.watch(POD_GANGS, "default", initial_events=True):
            if event.object is not None and event.type in (EventType.ADDED, EventType.MODIFIED):
                states.append(event.object)

    task = asyncio.create_task(follow())
    try:
        yield states
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("seed", range(3))
async def test_whoever_writes_keeps_what_others_have_said(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    workload = await Workload.create(cluster, a_set("web", a_clique_template("a", 3)))
    [clique] = (await workload.make_cliques()).values()
    pods = await workload.make_pods(clique, 3)
    async with cluster.controllers(both) as manager:
        await workload.gang_when("web-0", is_initialized)
        is_over = asyncio.Event()
        async with recorded(cluster) as states, asyncio.TaskGroup() as tasks:
            tasks.create_task(nodes(cluster, pods, chance, is_over))
            await stranger(cluster, chance)
            is_over.set()
        gang = await workload.gang_when("web-0", lambda gang: gang["status"]["phase"] == "Running")
        await at_rest(manager)
    assert said_by_stranger(gang["status"]["conditions"]) == SAID
    assert answers(gang) == {
        **dict.fromkeys(("Initialized", "Scheduled", "Ready", "BackendReady", "Audited"), "True"),
        "Unhealthy": "False",
    }
    assert lost(states) == []


def said_by_stranger(conditions: list[dict[str, Any]]) -> int:
    return next(int(one["message"]) for one in conditions if one["type"] == "Audited")


def lost(states: list[PodGang]) -> list[str]:
    """What was said in one state and not any more in the next, or was said before and came back."""
    found, said, count = [], set[str](), 0
    for state in states:
        types = {condition.type for condition in state.status.conditions}
        found += [f"{kind} is gone at {state.metadata.resource_version}" for kind in said - types]
        said |= types
        now = next((int(one.message) for one in state.status.conditions if one.type == "Audited"), 0)
        if now < count:
            found.append(f"{count} became {now} at {state.metadata.resource_version}")
        count = max(count, now)
    return found
