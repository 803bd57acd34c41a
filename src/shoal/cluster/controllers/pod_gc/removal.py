"""Removing a pod by force: it is failed, so that nobody takes it for running, and deleted without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.api.core import FAILED, PODS, Pod, PodCondition, is_finished
from shoal.cluster.controllers.batches import LARGEST
from shoal.cluster.controllers.pod_conditions import status_patch
from shoal.cluster.controllers.pod_gc.candidates import is_removed
from shoal.kube import Client, NotFound

FIELD_MANAGER = "pod-garbage-collector"


async def remove(client: Client, pod: Pod, condition: PodCondition | None = None) -> None:
    """Fails a pod that has not ended, with the condition that says why, and deletes it; twice is as good as once."""
    if is_removed(pod):
        return
    metadata = pod.metadata
    try:
        if not is_finished(pod):
            conditions = [condition] if condition is not None else []
            patch = status_patch(pod, *conditions, phase=FAILED, observedGeneration=metadata.generation)
            await client.strategic_patch(
                PODS, metadata.name, patch, metadata.namespace, subresource="status", field_manager=FIELD_MANAGER
            )
        await client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_seconds=0)
    except NotFound:
        return


async def remove_all(
    client: Client, pods: Sequence[Pod], *, why: Callable[[Pod], PodCondition | None] = lambda pod: None
) -> None:
    """Removes many, the first ones first. One that cannot be removed stops none of the others; its error is raised."""
    errors: list[Exception] = []
    for start in range(0, len(pods), LARGEST):
        batch = pods[start : start + LARGEST]
        results = await asyncio.gather(*(remove(client, pod, why(pod)) for pod in batch), return_exceptions=True)
        errors += [result for result in results if isinstance(result, Exception)]
    if errors:
        raise ExceptionGroup("some pods could not be removed", errors)
