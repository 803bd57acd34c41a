"""Keeps the slices of services that select pods."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from shoal.api.core import LAST_CHANGE_TRIGGER_TIME, NODES, SERVICES, Node, Pod, Service, is_node_ready
from shoal.api.discovery_k8s_io import EndpointSlice
from shoal.api.meta import format_time
from shoal.cluster.controllers.backends import Members, Pacing, TriggerTimes
from shoal.cluster.controllers.endpoint_slices.backends_of_service import address_types, wanted_endpoints
from shoal.cluster.controllers.endpoint_slices.capacity import ZoneCapacity
from shoal.cluster.controllers.endpoint_slices.hints import shares_out_zones
from shoal.cluster.controllers.endpoint_slices.packing import plan_slices
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from shoal.cluster.controllers.endpoint_slices.writing import Slices
from shoal.cluster.controllers.endpoint_slices.zones import ZONE
from shoal.cluster.indexes import BY_NODE
from shoal.kube import About, ApiError, Conflict, Key, Manager, Requeue
from shoal.kube.informer import Change
from shoal.kube.store import key_of

_BY_SHARING = "endpoint-slices-sharing"
_ENABLED = "Topology Aware Hints has been enabled"
_DISABLED = "Topology Aware Hints has been disabled"


class EndpointSliceController:
    """Keeps a service's slices equal to what its pods are."""

    MANAGER: ClassVar[str] = "endpointslice-controller.k8s.io"

    def __init__(self, manager: Manager, *, limit: int, batch_period: float) -> None:
        self.members = Members(manager)
        self.slices = Slices(manager, self.MANAGER)
        self.members.services.add_indexes({_BY_SHARING: _by_sharing})
        self._nodes = manager.cache.informer(NODES)
        self._capacity = ZoneCapacity()
        self._nodes.subscribe(self._capacity.node_changed)
        self._events = manager.events
        self._limit = limit
        self._times = TriggerTimes()
        self._pacing = Pacing(at_least=batch_period)
        self._said_of_hints: dict[Key, dict[str, str]] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        """Reads a service's pods and slices, and writes what differs."""
        service = self.members.services.store.get(key)
        if service is None:
            self._times.forget(key)
            self._pacing.forget(key)
            self._said_of_hints.pop(key, None)
            return None
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return None
        if wait := self._pacing.wait(key):
            return Requeue(after=wait)
        pods = self.members.of(service)
        self._pacing.looked(key, len(pods))
        moment = self._times.of(service, pods)
        existing = self.slices.of(key)
        types = address_types(service)
        nowhere: list[Pod] = []
        try:
            for address_type in types:
                wanted = wanted_endpoints(service, pods, address_type, self._zone_of)
                nowhere += wanted.nowhere
                found = [each for each in existing if each.address_type == address_type]
                plan = plan_slices(
                    service,
                    wanted,
                    found,
                    address_type,
                    limit=self._limit,
                    manager=self.MANAGER,
                    zone_shares=self._capacity.shares,
                )
                self._tell_of_hints(service, plan, address_type)
                await self.slices.carry_out(_dated(plan, moment), may_create=not service.metadata.is_deleting)
            await self.slices.carry_out(Plan(delete=[each for each in existing if each.address_type not in types]))
        except Conflict:
            raise
        except ApiError as error:
            self._tell(service, error.message)
            raise
        if nowhere:
            self._tell(service, _nowhere(service, nowhere))
        return None

    def services_by_node(self, node: Node) -> Iterable[Key]:
        """The services that a node concerns: those of its pods, and those that all nodes' zones decide about."""
        pods = self.members.pods.find(BY_NODE, node.metadata.name)
        sharing = self.members.services.find(_BY_SHARING, True)
        return {key for pod in pods for key in self.members.selecting(pod)} | {key_of(each) for each in sharing}

    def _zone_of(self, node_name: str) -> str | None:
        node = self._nodes.get(node_name)
        return None if node is None else node.metadata.labels.get(ZONE, "")

    def _tell_of_hints(self, service: Service, plan: Plan, address_type: str) -> None:
        """Tells when zones begin or cease to be shared out; what was so when the process began is no news."""
        said = self._said_of_hints.setdefault(key_of(service), {})
        before = said.get(address_type)
        now = said[address_type] = plan.hint_problem or (_ENABLED if shares_out_zones(service) else "")
        if now == before or (before is None and not plan):
            return
        about = About.of(SERVICES, service)
        if now == _ENABLED:
            self._events.normal(about, "TopologyAwareHintsEnabled", f"{_ENABLED}, addressType: {address_type}")
        elif now or before == _ENABLED:
            message = f"{now or _DISABLED}, addressType: {address_type}"
            self._events.warning(about, "TopologyAwareHintsDisabled", message)

    def _tell(self, service: Service, problem: str) -> None:
        where = f"{service.metadata.namespace}/{service.metadata.name}"
        message = f"Error updating Endpoint Slices for Service {where}: {problem}"
        self._events.warning(About.of(SERVICES, service), "FailedToUpdateEndpointSlices", message)


def zone_changed(change: Change[Any]) -> bool:
    """Whether a node came, went, is in another zone now, or counts for its zone or does not any more."""
    if change.before is None or change.after is None:
        return True
    return _face(change.before) != _face(change.after)


def _face(node: Node) -> tuple[str | None, bool]:
    return node.metadata.labels.get(ZONE), is_node_ready(node)


def _by_sharing(service: Service) -> Iterable[Hashable]:
    """Finds the services whose endpoints are shared out among the zones."""
    return (True,) if shares_out_zones(service) else ()


def _dated(plan: Plan, moment: datetime | None) -> Plan:
    return Plan(
        create=[_at(new, moment) for new in plan.create],
        update=[(before, _at(after, moment)) for before, after in plan.update],
        delete=plan.delete,
    )


def _at(found: EndpointSlice, moment: datetime | None) -> EndpointSlice:
    annotations = {key: text for key, text in found.metadata.annotations.items() if key != LAST_CHANGE_TRIGGER_TIME}
    if moment is not None:
        annotations[LAST_CHANGE_TRIGGER_TIME] = format_time(moment)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=annotations))


def _nowhere(service: Service, pods: list[Pod]) -> str:
    where = f"{service.metadata.namespace}/{service.metadata.name}"
    said = [
        f"skipping Pod {pod.metadata.name} for Service {where}: Node {pod.spec.node_name} Not Found" for pod in pods
    ]
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"
