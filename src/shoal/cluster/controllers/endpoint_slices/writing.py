"""Carrying out what was planned for slices, and telling one's own changes of them from those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from shoal.api.discovery_k8s_io import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME, EndpointSlice
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from shoal.kube import ApiError, Key, Manager
from shoal.kube.informer import Change, Informer
from shoal.kube.patches import merge_patch_between
from shoal.kube.store import by_label

_BY_SERVICE = "endpoint-slices-service"
_GONE = "gone"


class Slices:
    """The slices that one controller keeps."""

    def __init__(self, manager: Manager, name: str) -> None:
        self._client = manager.client
        self._writer = manager.writer(name)
        self._name = name
        self._informer: Informer[EndpointSlice] = manager.cache.informer(
            ENDPOINT_SLICES, indexes={_BY_SERVICE: by_label(SERVICE_NAME)}
        )
        self._written: dict[str, str] = {}

    def of(self, key: Key) -> list[EndpointSlice]:
        """The slices of a service; those that are going are not counted."""
        return [
            each
            for each in self._informer.find(_BY_SERVICE, (key.namespace, key.name))
            if each.metadata.labels.get(MANAGED_BY) == self._name and not each.metadata.is_deleting
        ]

    def is_foreign(self, change: Change[Any]) -> bool:
        """Whether somebody else has changed a slice: what this controller wrote itself need not be looked at again."""
        if change.after is None:
            return self._written.pop(change.latest.metadata.uid, "") != _GONE
        return bool(self._written.get(change.after.metadata.uid) != change.after.metadata.resource_version)

    async def carry_out(self, plan: Plan, *, may_create: bool = True) -> None:
        """Writes what is planned; a namespace that is going takes no new slices, and needs none."""
        for new in plan.create if may_create else ():
            try:
                made = await self._writer.create(ENDPOINT_SLICES, msgspec.to_builtins(new), owner=None)
            except ApiError as error:
                if error.has_cause("NamespaceTerminating"):
                    return
                raise
            self._written[made.metadata.uid] = made.metadata.resource_version
        for before, after in plan.update:
            metadata = before.metadata
            patch = merge_patch_between(_content(before), _content(after))
            patch.setdefault("metadata", {})["resourceVersion"] = metadata.resource_version
            written = await self._client.merge_patch(
                ENDPOINT_SLICES, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
            )
            self._written[metadata.uid] = written.metadata.resource_version
        for going in plan.delete:
            # Before it is asked for: its event may be quicker than the answer.
            self._written[going.metadata.uid] = _GONE
            try:
                await self._writer.delete(ENDPOINT_SLICES, going)
            except BaseException:
                self._written.pop(going.metadata.uid, None)
                raise


def keys_of_slice(manager: str) -> Callable[[EndpointSlice], Iterable[Key]]:
    """The service that a slice is of, where this manager keeps it."""

    def keys(found: EndpointSlice) -> Iterable[Key]:
        labels = found.metadata.labels
        service = labels.get(SERVICE_NAME, "")
        return (Key(found.metadata.namespace, service),) if service and labels.get(MANAGED_BY) == manager else ()

    return keys


def _content(found: EndpointSlice) -> dict[str, Any]:
    """What of a slice a controller writes, as plain values."""
    metadata = found.metadata
    content: dict[str, Any] = {
        "metadata": {
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            "ownerReferences": msgspec.to_builtins(metadata.owner_references),
        }
    }
    if found.endpoints:
        content["endpoints"] = msgspec.to_builtins(found.endpoints)
    if found.ports:
        content["ports"] = msgspec.to_builtins(found.ports)
    return content
