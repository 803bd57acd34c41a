"""What users do to gangs, one action at a time, and what must be there when they have stopped.

Actions are plain values, so that a property test can choose them and a failure can be read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.api.core import Pod, is_ready
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, PodClique, PodCliqueSet, names
from shoal.api.meta import HasMetadata, Resource
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.plan import gangs_of_replica
from shoal.kube import AlreadyExists, ApiError, Conflict, NotFound
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import MADE, Stage, one_cpu

ACTIONS = ("make", "replicas", "clique", "group", "roll", "lose", "crash", "delete")
MOST = 3
BROKEN = "shoal.dev/sim-outcome"
"""The annotation of a pod that a user has broken: nobody mends it while its clique has enough others."""
T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True)
class Action:
    """Something that a user does; ``number`` chooses a size, an image or a pod."""

    kind: str
    number: int = 0


def a_lively_set(name: str, update: str = "RollingRecreate") -> dict[str, Any]:
    """Two cliques, one of them in a scaling group, whose pods take a moment to be ready."""
    annotations = {"shoal.dev/sim-ready-delay": "50ms"}
    cliques = [
        a_clique_template("worker", 2, min_available=1, pod_spec=one_cpu(), annotations=annotations),
        a_clique_template("member", 1, pod_spec=one_cpu(), annotations=annotations),
    ]
    group = a_scaling_group_template("g", ["member"], 2)
    return a_set(name, *cliques, groups=[group], update=update, terminationDelay="1s")


class User:
    """Works on one set, and tries again until each of its writes is acknowledged."""

    def __init__(self, stage: Stage, name: str, *, update: str = "RollingRecreate") -> None:
        self._stage = stage
        self._name = name
        self._body = a_lively_set(name, update)
        self._sizes: dict[tuple[Resource[Any], str], tuple[str, int]] = {}
        """What was scaled by hand: who it was, and the size that it was given last."""

    async def act(self, action: Action) -> None:
        """Does one thing; what there is nothing to do it to is left out."""
        number = action.number
        match action.kind:
            case "make":
                await self._acknowledged(self._make)
            case "replicas":
                await self._scale(POD_CLIQUE_SETS, self._name, number % (MOST + 1))
            case "clique":
                await self._scale(POD_CLIQUES, names.clique(self._name, 0, "worker"), 1 + number % MOST)
            case "group":
                await self._scale(SCALING_GROUPS, names.scaling_group(self._name, 0, "g"), 1 + number % MOST)
            case "roll":
                await self._acknowledged(lambda: self._stage.roll(self._name, f"image-{number % MOST}"))
            case "lose":
                await self._on_a_pod(number, self._stage.lose)
            case "crash":
                await self._on_a_pod(number, self._stage.crash)
            case _:
                await self._acknowledged(lambda: self._stage.delete(self._name))

    async def _make(self) -> None:
        """Makes the set; where an earlier one is on its way out, once that is gone."""
        while True:
            try:
                await self._stage.make(self._body)
                return
            except AlreadyExists:
                if not (await self._stage.set(self._name)).metadata.is_deleting:
                    return
                await asyncio.sleep(0.05)

    async def reverted(self) -> list[str]:
        """The cliques and scaling groups that have another size than this user gave them last."""
        found = []
        for (resource, name), (uid, replicas) in self._sizes.items():
            with suppress(NotFound):
                live = await self._stage.client.get(resource, name, self._stage.namespace)
                if live.metadata.uid == uid and live.spec.replicas != replicas:
                    found.append(f"{name} was given {replicas} replicas and has {live.spec.replicas}")
        return found

    async def _scale(self, resource: Resource[Any], name: str, replicas: int) -> None:
        async def scale() -> None:
            before = await self._stage.client.get(resource, name, self._stage.namespace)
            await self._stage.scale(resource, name, replicas)
            self._sizes[resource, name] = (before.metadata.uid, replicas)

        await self._acknowledged(scale)

    async def _on_a_pod(self, number: int, do: Callable[[Pod], Awaitable[None]]) -> None:
        pods = await self._stage.pods(self._name)
        if pods:
            await self._acknowledged(lambda: do(pods[number % len(pods)]))

    async def _acknowledged(self, write: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await write()
            except NotFound:
                return
            except ApiError as error:
                if not isinstance(error, Conflict) and not error.is_retryable:
                    raise
                await asyncio.sleep(0.05)
            else:
                return


def random_actions(chance: random.Random, count: int) -> Iterator[Action]:
    """A set that is made, and then whatever comes; a deletion is followed by making it again."""
    yield Action("make")
    for _ in range(count):
        kind = chance.choice(ACTIONS)
        yield Action(kind, chance.randrange(100))
        if kind == "delete":
            yield Action("make")


async def problems_of(stage: Stage, name: str, *, has_room: bool = True) -> list[str]:
    """What is not yet as a set asks for; with ``has_room`` all of it should run by now."""
    try:
        pcs = await stage.set(name)
    except NotFound:
        return [f"{kind} are left of {name}" for kind in await _left_of(stage, name)]
    cliques = {clique.metadata.name: clique for clique in await _of_set(stage, POD_CLIQUES, name)}
    sizes = {group.metadata.name: group.spec.replicas for group in await _of_set(stage, SCALING_GROUPS, name)}
    gangs = [gang for replica in range(pcs.spec.replicas) for gang in gangs_of_replica(pcs, replica, sizes)]
    live = {gang.metadata.name for gang in await _of_set(stage, POD_GANGS, name)}
    pods = await stage.all_pods(name)
    found = [
        *_wrong_names("PodCliques", cliques, {clique.name for gang in gangs for clique in gang.cliques}),
        *_wrong_names("PodGangs", live, {gang.name for gang in gangs}),
        *(problem for clique in cliques.values() for problem in _wrong_pods(pcs, clique, pods, has_room=has_room)),
    ]
    if len(pods) != sum(clique.spec.replicas for clique in cliques.values()):
        found.append(f"{name} has {len(pods)} pods")
    progress = pcs.status.update_progress
    if has_room and progress is not None and progress.update_ended_at is None:
        found.append(f"{name} is still updated: {progress}")
    if pcs.status.observed_generation != pcs.metadata.generation:
        found.append(f"{name} was not seen whole: {pcs.status.last_errors}")
    return found


def _wrong_pods(pcs: PodCliqueSet, clique: PodClique, pods: list[Pod], *, has_room: bool) -> Iterator[str]:
    name = clique.metadata.name
    mine = [pod for pod in pods if pod.metadata.labels.get(names.CLIQUE_LABEL) == name]
    if clique.metadata.is_deleting or len(mine) != clique.spec.replicas:
        yield f"{name} has {len(mine)} pods and shall have {clique.spec.replicas}"
    if any(pod.spec.scheduling_gates for pod in mine) and has_room:
        yield f"{name} has gated pods"
    well = [pod for pod in mine if is_ready(pod)]
    broken = [pod for pod in mine if BROKEN in pod.metadata.annotations]
    if has_room and len({pod.metadata.uid for pod in (*well, *broken)}) != clique.spec.replicas:
        yield f"{name} has {len(well)} ready pods and shall have {clique.spec.replicas}"
    if clique.status.ready_replicas != len(well) or clique.status.replicas != len(mine):
        yield f"{name} says {clique.status}"
    template = next(one for one in pcs.spec.template.cliques if name.endswith(f"-{one.name}"))
    image = template.spec.pod_spec["containers"][0]["image"]
    if not pcs.spec.updates_on_delete and has_room and {pod.spec.containers[0].image for pod in mine} - {image}:
        yield f"{name} has pods of another template than {image}"


def _wrong_names(what: str, found: Any, wanted: set[str]) -> Iterator[str]:
    if set(found) != wanted:
        yield f"{what} are {sorted(found)} and shall be {sorted(wanted)}"


async def _left_of(stage: Stage, name: str) -> list[str]:
    return [resource.kind for resource in MADE if await _of_set(stage, resource, name)]


async def _of_set(stage: Stage, resource: Resource[T], name: str) -> list[T]:
    selector = f"{names.PART_OF_LABEL}={name}"
    return list((await stage.client.list(resource, stage.namespace, label_selector=selector)).items)
