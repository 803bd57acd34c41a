"""How many objects of a kind use the same of a quota, by namespace: kept while they come and go, not counted anew.

A hundred thousand pods come from a few hundred templates. What decides an object's use is its face; objects of one face
are counted together, and to sum up a namespace is to look at its faces. Only namespaces that somebody has asked about
are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from shoal.api.core import Pod, Service, is_finished
from shoal.api.core.volumes import PersistentVolumeClaim
from shoal.api.meta import HasMetadata
from shoal.cluster.apiserver.admission.quota_usage import Measure
from shoal.cluster.pod_resources import Amounts
from shoal.kube import Change, Informer

T = TypeVar("T", bound=HasMetadata)


@dataclass
class Group:
    """Objects of one face: how many, and one of them as plain values."""

    example: dict[str, Any]
    count: int = 0
    _usage: Amounts | None = None

    def usage(self, measure: Measure, now: datetime) -> Amounts:
        """What each of them uses."""
        if self.example["metadata"].get("deletionTimestamp") is not None:
            # A pod that should have been gone by now is not charged any more: the answer changes with time.
            return measure.usage(self.example, now)
        if self._usage is None:
            self._usage = measure.usage(self.example, now)
        return self._usage


class Ledger(Generic[T]):
    """The objects of a kind; ``on_change`` hears of each namespace in which one went or uses something else now."""

    def __init__(self, informer: Informer[T], face: Callable[[T], bytes], on_change: Callable[[str], None]) -> None:
        self._informer = informer
        self._face = face
        self._on_change = on_change
        self._namespaces: dict[str, dict[bytes, Group]] = {}
        informer.subscribe(self._hear)

    def groups(self, namespace: str) -> Iterable[Group]:
        """The objects of a namespace by what they use."""
        groups = self._namespaces.get(namespace)
        if groups is None:
            groups = self._namespaces[namespace] = {}
            for found in self._informer.items(namespace):
                self._add(groups, found)
        return groups.values()

    def forget(self, namespace: str) -> None:
        """Nobody asks about a namespace any more."""
        self._namespaces.pop(namespace, None)

    def _add(self, groups: dict[bytes, Group], found: T) -> None:
        face = self._face(found)
        group = groups.get(face)
        if group is None:
            group = groups[face] = Group(msgspec.to_builtins(found))
        group.count += 1

    def _hear(self, change: Change[T]) -> None:
        namespace = change.latest.metadata.namespace
        groups = self._namespaces.get(namespace)
        if groups is None:
            return
        before, after = change.before, change.after
        if before is not None:
            face = self._face(before)
            if after is not None and self._face(after) == face:
                return
            groups[face].count -= 1
            if not groups[face].count:
                del groups[face]
        if after is not None:
            self._add(groups, after)
        if before is not None:
            # What is new was charged when it was made.
            self._on_change(namespace)


def pod_face(pod: Pod) -> bytes:
    """What decides the use of a pod, and the scopes that it is in."""
    spec, metadata = pod.spec, pod.metadata
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return _ENCODER.encode(
        (
            [(each.name, each.resources) for each in spec.containers],
            [(each.name, each.resources, each.restart_policy) for each in spec.init_containers],
            spec.overhead,
            spec.resources,
            spec.active_deadline_seconds,
            spec.priority_class_name,
            spec.affinity,
            is_finished(pod),
            (metadata.deletion_timestamp, metadata.deletion_grace_period_seconds),
            [(each.name, each.resources, each.allocated_resources) for each in statuses if each.resources is not None],
        )
    )


def service_face(service: Service) -> bytes:
    """What decides the use of a service."""
    spec = service.spec
    chosen = sum(1 for port in spec.ports if port.node_port)
    return _ENCODER.encode((spec.type, len(spec.ports), chosen, spec.allocate_load_balancer_node_ports))


def claim_face(claim: PersistentVolumeClaim) -> bytes:
    """What decides the use of a claim, and the scopes that it is in."""
    spec, status = claim.spec, claim.status
    return _ENCODER.encode(
        (
            claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class"),
            spec.storage_class_name,
            spec.resources.requests,
            spec.volume_attributes_class_name,
            status.allocated_resources,
            status.current_volume_attributes_class_name,
            status.modify_volume_status,
        )
    )


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
