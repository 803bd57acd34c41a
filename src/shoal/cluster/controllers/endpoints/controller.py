"""Keeps the Endpoints of services that select pods."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core import ENDPOINTS, SERVICES, Endpoints
from shoal.api.meta import PartialObject
from shoal.cluster.controllers.backends import Members, Pacing, TriggerTimes
from shoal.cluster.controllers.endpoints.wanted import MANAGER, wanted_endpoints
from shoal.kube import About, ApiError, Conflict, Key, Manager, NotFound, Requeue
from shoal.kube.informer import Change
from shoal.kube.patches import merge_patch_between

_LEADER = "control-plane.alpha.kubernetes.io/leader"


class EndpointsController:
    """Keeps a service's Endpoints equal to what its pods are."""

    def __init__(self, manager: Manager, *, batch_period: float) -> None:
        self.members = Members(manager)
        self._endpoints = manager.cache.informer(ENDPOINTS)
        self._client = manager.client
        self._writer = manager.writer(MANAGER)
        self._events = manager.events
        self._times = TriggerTimes()
        self._pacing = Pacing(at_least=batch_period)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Reads a service's pods and its Endpoints, and writes what differs."""
        service = self.members.services.store.get(key)
        current = self._endpoints.store.get(key)
        if service is None:
            self._times.forget(key)
            self._pacing.forget(key)
            if current is not None and not await self._has_service(key):
                await self._writer.delete(ENDPOINTS, current)
            return None
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return None
        if wait := self._pacing.wait(key):
            return Requeue(after=wait)
        pods = self.members.of(service)
        self._pacing.looked(key, len(pods))
        moment = self._times.of(service, pods)
        wanted = wanted_endpoints(service, pods, current, moment)
        if wanted is not None:
            await self._write(wanted, current)
        return None

    async def _has_service(self, key: Key) -> bool:
        """Asks the server, since Endpoints that somebody wrote by hand may be seen before their service is."""
        try:
            await self._client.get(SERVICES.view(PartialObject), key.name, key.namespace)
        except NotFound:
            return False
        return True

    async def _write(self, wanted: Endpoints, current: Endpoints | None) -> None:
        where = f"{wanted.metadata.namespace}/{wanted.metadata.name}"
        try:
            if current is None:
                await self._writer.create(ENDPOINTS, msgspec.to_builtins(wanted), owner=None)
            else:
                await self._change(current, wanted)
        except Conflict:
            raise
        except ApiError as error:
            if error.has_cause("NamespaceTerminating"):
                return
            about = About.of(ENDPOINTS, wanted)
            if current is None:
                message = f"Failed to create endpoint for service {where}: {error.message}"
                self._events.warning(about, "FailedToCreateEndpoint", message)
            else:
                message = f"Failed to update endpoint {where}: {error.message}"
                self._events.warning(about, "FailedToUpdateEndpoint", message)
            raise

    async def _change(self, current: Endpoints, wanted: Endpoints) -> None:
        patch = merge_patch_between(_content(current), _content(wanted))
        metadata = current.metadata
        patch.setdefault("metadata", {})["resourceVersion"] = metadata.resource_version
        await self._client.merge_patch(
            ENDPOINTS, metadata.name, patch, metadata.namespace, field_manager=self._writer.manager
        )


def was_left_or_removed(change: Change[Any]) -> bool:
    """Whether Endpoints were removed, or were there before this process: their service may be gone by now.

    Those that elections are held with never had one.
    """
    if change.after is None:
        return True
    return change.before is None and change.is_resync and _LEADER not in change.after.metadata.annotations


def _content(found: Endpoints) -> dict[str, Any]:
    metadata = {"labels": found.metadata.labels, "annotations": found.metadata.annotations}
    return {"metadata": metadata} | ({"subsets": msgspec.to_builtins(found.subsets)} if found.subsets else {})
