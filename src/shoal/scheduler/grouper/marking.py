"""Writing into pods which group, and which part of it, they are in: one small patch for each that does not say so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from shoal.api import kai_names
from shoal.kube import ApiError, Client, Conflict, ConnectionFault, NotFound
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GROUPED_PODS, GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted

AT_ONCE: Final = 16
"""So many pods of a group are patched at once."""


class Marking:
    """Marks pods."""

    def __init__(self, client: Client, field_manager: str) -> None:
        self._client = client
        self._field_manager = field_manager

    async def mark(self, group: GroupWanted, pods: Iterable[GroupedPod]) -> list[tuple[GroupedPod, Ungroupable]]:
        """Marks the pods of a group, and gives those that have no place in it; raises when a patch was refused.

        A pod that cannot be marked keeps no other from it.
        """
        lost: list[tuple[GroupedPod, Ungroupable]] = []
        patches: list[tuple[GroupedPod, dict[str, Any]]] = []
        for pod in pods:
            try:
                patch = wanted_marks(group, pod)
            except Ungroupable as problem:
                lost.append((pod, problem))
                continue
            if patch:
                patches.append((pod, patch))
        errors: list[Exception] = []
        for begun in range(0, len(patches), AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for pod, patch in patches[begun : begun + AT_ONCE]:
                    tasks.create_task(self._patch(pod, patch, errors))
        if errors:
            raise errors[0]
        return lost

    async def _patch(self, pod: GroupedPod, patch: dict[str, Any], errors: list[Exception]) -> None:
        metadata = {"uid": pod.metadata.uid, **patch}
        try:
            await self._client.merge_patch(
                GROUPED_PODS,
                pod.metadata.name,
                {"metadata": metadata},
                pod.metadata.namespace,
                field_manager=self._field_manager,
            )
        except (NotFound, Conflict):
            return  # the pod is gone, or another has its name: its event is on the way
        except (ApiError, ConnectionFault) as error:
            errors.append(error)


def wanted_marks(group: GroupWanted, pod: GroupedPod) -> dict[str, Any]:
    """What is to be changed in a pod's metadata; empty where it says all, or is over."""
    if pod.is_over:
        return {}
    part = group.part_of(pod)
    patch: dict[str, Any] = {}
    if pod.metadata.annotations.get(kai_names.POD_GROUP) != group.name:
        patch["annotations"] = {kai_names.POD_GROUP: group.name}
    if part and pod.metadata.labels.get(kai_names.SUBGROUP) != part:
        patch["labels"] = {kai_names.SUBGROUP: part}
    return patch
