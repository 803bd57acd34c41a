"""Making and deleting the pods of an owner by the dozen, and telling of each in an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.api.core import PODS, Pod
from shoal.api.meta import OwnerReference
from shoal.cluster.controllers.batches import slow_start
from shoal.kube import About, ApiError, Client, Conflict, NotFound, Recorder, Writer


async def make_pods(
    count: int,
    body_of: Callable[[int], Mapping[str, Any]],
    *,
    owner: OwnerReference,
    about: About,
    writer: Writer,
    events: Recorder,
) -> tuple[list[Pod], Exception | None]:
    """Makes so many pods, a few first; those that were made, and what went wrong first, if anything.

    In a namespace that is being emptied nothing can be made, and nothing has to be: that is no failure.
    """
    made: list[Pod] = []

    async def make_one(number: int) -> None:
        try:
            pod = await writer.create(PODS, body_of(number), owner=owner)
        except ApiError as error:
            if not _is_closing(error):
                events.warning(about, "FailedCreate", f"Error creating: {error.message}")
            raise
        made.append(pod)
        events.normal(about, "SuccessfulCreate", f"Created pod: {pod.metadata.name}")

    _, error = await slow_start(count, make_one)
    return made, None if error is not None and _is_closing(error) else error


async def delete_pods(pods: Sequence[Pod], *, about: About, client: Client, events: Recorder) -> Exception | None:
    """Deletes pods, and gives what went wrong first, if anything."""

    async def delete_one(pod: Pod) -> None:
        metadata = pod.metadata
        try:
            await client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except (NotFound, Conflict):
            return  # gone, or another pod of that name by now
        except ApiError as error:
            events.warning(about, "FailedDelete", f"Error deleting: {error.message}")
            raise
        events.normal(about, "SuccessfulDelete", f"Deleted pod: {metadata.name}")

    results = await asyncio.gather(*map(delete_one, pods), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
    return next((result for result in results if isinstance(result, Exception)), None)


def _is_closing(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.has_cause("NamespaceTerminating")
