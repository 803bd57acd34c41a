"""Making, deleting and changing the pods of a clique: many at once, a few first, and each failure told.

New pods are made in batches of 1, 2, 4 and so on, so that a template that the server refuses, or a quota that is used
up, is met once and not a hundred times over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from shoal.api.core import PODS, Pod
from shoal.api.grove import POD_CLIQUES, PodClique
from shoal.api.meta import owner_reference
from shoal.gangs.last_errors import GangError
from shoal.kube import About, ApiError, Client, ConnectionFault, NotFound, Recorder, Writer

LARGEST_BATCH: Final = 64
"""At once, however well it goes: the server gains nothing from more."""
_NAMED: Final = 5
"""So many pods are named in an event."""

T = TypeVar("T")


@dataclass
class Failures:
    """What went wrong in a reconcile: in the status' words, and what of it is to be tried again."""

    told: list[GangError] = field(default_factory=list)
    to_retry: list[Exception] = field(default_factory=list)

    def add(self, code: str, description: str, error: Exception, *, is_awaited: bool = False) -> None:
        """Adds a failure; one that happened to several pods alike is told once.

        One that is awaited passes with an event, and is not tried again before that.
        """
        if (code, description) not in [(told.code, told.description) for told in self.told]:
            self.told.append(GangError(code, description))
        if not is_awaited:
            self.to_retry.append(error)

    def __bool__(self) -> bool:
        return bool(self.told)


class PodWrites:
    """Writes the pods of cliques, and tells of it in events on the clique."""

    def __init__(self, client: Client, writer: Writer, events: Recorder) -> None:
        self._client = client
        self._writer = writer
        self._events = events

    async def make(self, clique: PodClique, bodies: Sequence[Mapping[str, Any]], failures: Failures) -> list[Pod]:
        """Makes pods; those that were made. After a batch with a failure no further one begins."""
        owner = owner_reference(clique, POD_CLIQUES)
        made: list[Pod] = []

        async def make_one(body: Mapping[str, Any]) -> None:
            pod: Pod = await self._writer.create(PODS, body, owner=owner)
            made.append(pod)

        errors: list[Exception] = []
        begun, size = 0, 1
        while begun < len(bodies) and not errors:
            errors = await _all_at_once(make_one, bodies[begun : begun + size])
            begun, size = begun + size, min(2 * size, LARGEST_BATCH)
        self._tell(clique, "Create", "Created", made)
        for error in errors:
            if not _is_closing(error):
                self._failed(clique, "Create", error, failures)
        return made

    async def delete(self, clique: PodClique, pods: Sequence[Pod], failures: Failures) -> list[Pod]:
        """Deletes pods; those that are gone or going now."""
        gone: list[Pod] = []

        async def delete_one(pod: Pod) -> None:
            await self._writer.delete(PODS, pod, propagation=None)
            gone.append(pod)

        for begun in range(0, len(pods), LARGEST_BATCH):
            for error in await _all_at_once(delete_one, pods[begun : begun + LARGEST_BATCH]):
                self._failed(clique, "Delete", error, failures)
        self._tell(clique, "Delete", "Deleted", gone)
        return gone

    async def patch(
        self, clique: PodClique, patches: Sequence[tuple[Pod, list[dict[str, Any]]]], failures: Failures
    ) -> list[Pod]:
        """Changes pods by JSON patches; those that were changed, as they are now."""
        changed: list[Pod] = []

        async def patch_one(patch: tuple[Pod, list[dict[str, Any]]]) -> None:
            pod, operations = patch
            try:
                after = await self._client.json_patch(
                    PODS, pod.metadata.name, operations, pod.metadata.namespace, field_manager=self._writer.manager
                )
            except NotFound:
                return  # its event is on the way
            changed.append(after)

        for begun in range(0, len(patches), LARGEST_BATCH):
            for error in await _all_at_once(patch_one, patches[begun : begun + LARGEST_BATCH]):
                failures.add(
                    "ERR_REMOVE_POD_SCHEDULING_GATE", f"a pod's gate could not be lifted: {words(error)}", error
                )
        return changed

    def _tell(self, clique: PodClique, verb: str, done: str, pods: Sequence[Pod]) -> None:
        if pods:
            named = ", ".join(pod.metadata.name for pod in pods[:_NAMED])
            more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
            message = f"{done} {'pod' if len(pods) == 1 else 'pods'} {named}{more}"
            self._events.normal(About.of(POD_CLIQUES, clique), f"Pod{verb}Successful", message)

    def _failed(self, clique: PodClique, verb: str, error: Exception, failures: Failures) -> None:
        description = f"a pod could not be {verb.lower()}d: {words(error)}"
        failures.add(f"ERR_{verb.upper()}_POD", description, error)
        self._events.warning(About.of(POD_CLIQUES, clique), f"Pod{verb}Failed", description)


def words(error: Exception) -> str:
    """What the server says, less the name that it gave to the pod in vain: equal errors read equal."""
    if not isinstance(error, ApiError):
        return str(error)
    if error.causes and all(cause.field for cause in error.causes):
        return "; ".join(f"{cause.field}: {cause.message}" for cause in error.causes)
    name = error.status.details.name
    return error.message.replace(f'"{name}" ', "") if name else error.message


async def _all_at_once(work: Callable[[T], Awaitable[None]], items: Sequence[T]) -> list[Exception]:
    """Does the same to all items at once, and gives what went wrong; a fault of the program is passed on."""
    if len(items) == 1:
        results = [await _caught(work, items[0])]
    else:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_caught(work, item)) for item in items]
        results = [task.result() for task in tasks]
    return [result for result in results if result is not None]


async def _caught(work: Callable[[T], Awaitable[None]], item: T) -> Exception | None:
    try:
        await work(item)
    except (ApiError, ConnectionFault) as error:
        return error
    return None


def _is_closing(error: Exception) -> bool:
    """In a namespace that is being emptied nothing can be made, and nothing has to be."""
    return isinstance(error, ApiError) and error.has_cause("NamespaceTerminating")
