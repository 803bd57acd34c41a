"""Keeps the slices that mirror Endpoints of services without a selector."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.api.core import ENDPOINTS, SERVICES
from shoal.cluster.controllers.endpoint_slices.mirroring import Skipped, is_to_be_mirrored, plan_mirror
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from shoal.cluster.controllers.endpoint_slices.writing import Slices
from shoal.kube import About, Key, Manager
from shoal.kube.informer import Change


class MirrorController:
    """Keeps slices equal to the Endpoints that somebody wrote for a service."""

    MANAGER: ClassVar[str] = "endpointslicemirroring-controller.k8s.io"

    def __init__(self, manager: Manager, *, limit: int) -> None:
        self.slices = Slices(manager, self.MANAGER)
        self._endpoints = manager.cache.informer(ENDPOINTS)
        self._services = manager.cache.informer(SERVICES)
        self._events = manager.events
        self._limit = limit

    async def reconcile(self, key: Key) -> None:
        """Reads Endpoints and the slices that mirror them, and writes what differs."""
        endpoints = self._endpoints.store.get(key)
        service = self._services.store.get(key)
        existing = self.slices.of(key)
        if endpoints is None or not is_to_be_mirrored(endpoints) or service is None or service.spec.selector:
            await self.slices.carry_out(Plan(delete=existing))
            return
        plan, skipped = plan_mirror(endpoints, existing, limit=self._limit, manager=self.MANAGER)
        if plan:
            self._tell(About.of(ENDPOINTS, endpoints), skipped)
        await self.slices.carry_out(plan, may_create=not endpoints.metadata.is_deleting)

    def _tell(self, about: About, skipped: Skipped) -> None:
        if skipped.invalid:
            message = f"Skipped {skipped.invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._events.warning(about, "InvalidIPAddress", message)
        if skipped.surplus:
            self._events.warning(
                about,
                "TooManyAddressesToMirror",
                f"A max of {self._limit} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped.invalid + skipped.surplus} addresses were skipped",
            )


def has_gained_or_lost_selector(change: Change[Any]) -> bool:
    """Whether it became another's business to make slices for a service, or its own."""
    if change.before is None or change.after is None:
        return not change.latest.spec.selector
    return bool(change.before.spec.selector) != bool(change.after.spec.selector)
