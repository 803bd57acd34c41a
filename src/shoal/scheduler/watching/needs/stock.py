"""What is known of the objects that pods need, and who looks at which of them.

Whoever finds out what a pod needs looks through a `Look`, which remembers what it was asked for: each thing looked at
is a topic, and a change concerns the pods whose topics it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from shoal.api.core import PersistentVolume, PersistentVolumeClaim
from shoal.api.resource_k8s_io import DeviceClaim, DeviceClass, ResourceSlice
from shoal.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from shoal.scheduler.devices import Offer, offers_of
from shoal.scheduler.storage import class_of, suits

Key = tuple[str, str]
"""Namespace and name."""
Group = TypeVar("Group", str, Key)
Topic = tuple[str, str, str]
"""A kind, and namespace and name of what was looked at."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Kind(StrEnum):
    """Kinds of objects that pods need."""

    CONFIG_MAP = "ConfigMap"
    CLAIM = "PersistentVolumeClaim"
    VOLUME = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    DRIVER = "CSIDriver"
    NODE_DRIVERS = "CSINode"
    CAPACITY = "CSIStorageCapacity"
    DEVICE_CLAIM = "ResourceClaim"
    DEVICE_CLASS = "DeviceClass"
    SLICE = "ResourceSlice"
    NAMESPACE = "Namespace"


ObjectKey = tuple[Kind, str, str]
"""A kind, and namespace and name of an object."""

NODES: Topic = ("nodes", "", "")
LIMITS: Topic = ("limits", "", "")
SLICES: Topic = ("slices", "", "")


def volumes_of(storage_class: str) -> Topic:
    """All volumes of a class."""
    return "volumes of class", "", storage_class


def capacities_of(storage_class: str) -> Topic:
    """What room a class has where."""
    return "capacities of class", "", storage_class


def use_of(kind: Kind, key: Key) -> Topic:
    """Who uses a claim."""
    return f"use of {kind}", *key


def topics_of(key: ObjectKey, *values: Any | None) -> set[Topic]:
    """The topics that an object touches which was, or is, like this."""
    kind, namespace, name = key
    topics: set[Topic] = {(str(kind), namespace, name)}
    for value in values:
        if value is None:
            continue
        if kind is Kind.VOLUME:
            topics.add(volumes_of(class_of(value)))
            if (reference := value.spec.claim_ref) is not None:
                topics.add((str(Kind.CLAIM), reference.namespace, reference.name))
        elif kind is Kind.CAPACITY:
            topics.add(capacities_of(value.storage_class_name))
        elif kind is Kind.SLICE:
            topics.add(SLICES)
    return topics


@dataclass(slots=True)
class Stock:
    """The objects, by namespace and name."""

    objects: dict[Kind, dict[Key, Any]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    _of_class: dict[str, dict[str, PersistentVolume]] = field(default_factory=dict)
    _suitable: dict[str, dict[bytes, list[PersistentVolume]]] = field(default_factory=dict)
    """By class, and by what a claim asks for: the volumes that are free for it. Claims that are alike share a list."""
    _pointing: dict[Key, dict[str, PersistentVolume]] = field(default_factory=dict)
    """The volumes that are reserved for a claim of some name, or bound to it."""
    _offers: list[Offer] | None = None
    devices_version: int = 0
    """Grows whenever there are other devices."""

    def put(self, key: ObjectKey, value: Any | None) -> set[Topic]:
        """Takes an object as it is now, or that it is gone; says which topics that touches."""
        kind, namespace, name = key
        known = self.objects[kind]
        before = known.pop((namespace, name), None)
        if value is not None:
            known[namespace, name] = value
        if kind is Kind.VOLUME:
            self._sort(name, before, value)
        elif kind is Kind.SLICE:
            self._offers = None
            self.devices_version += 1
        return topics_of(key, before, value)

    def _sort(self, name: str, before: PersistentVolume | None, after: PersistentVolume | None) -> None:
        if before is not None:
            self._suitable.pop(class_of(before), None)
            _take_out(self._of_class, class_of(before), name)
            if (reference := before.spec.claim_ref) is not None:
                _take_out(self._pointing, (reference.namespace, reference.name), name)
        if after is not None:
            self._suitable.pop(class_of(after), None)
            self._of_class.setdefault(class_of(after), {})[name] = after
            if (reference := after.spec.claim_ref) is not None:
                self._pointing.setdefault((reference.namespace, reference.name), {})[name] = after

    def suitable(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes that a claim may get; where one is reserved for it, no other."""
        storage_class = class_of(claim)
        volumes = self._of_class.get(storage_class, {}).values()
        known = self._suitable.setdefault(storage_class, {})
        shape = _encode([claim.spec, class_of(claim)])
        if shape not in known:
            known[shape] = [volume for volume in volumes if volume.spec.claim_ref is None and suits(volume, claim)]
        pointing = self._pointing.get((claim.metadata.namespace, claim.metadata.name), {}).values()
        reserved = [volume for volume in pointing if class_of(volume) == storage_class and suits(volume, claim)]
        return reserved or known[shape]

    @property
    def offers(self) -> list[Offer]:
        """All devices."""
        if self._offers is None:
            self._offers = offers_of(self.objects[Kind.SLICE].values())
        return self._offers

    @property
    def slices(self) -> Mapping[Key, ResourceSlice]:
        """The slices that devices are in."""
        return self.objects[Kind.SLICE]

    @property
    def node_drivers(self) -> Mapping[Key, CSINode]:
        """What storage drivers say about nodes."""
        return self.objects[Kind.NODE_DRIVERS]


def _take_out(groups: dict[Group, dict[str, PersistentVolume]], group: Group, name: str) -> None:
    del groups[group][name]
    if not groups[group]:
        del groups[group]


@dataclass(slots=True)
class Look:
    """Looks at what is known, and remembers at what."""

    stock: Stock
    topics: set[Topic] = field(default_factory=set)

    def has_config_map(self, namespace: str, name: str) -> bool:
        """Whether a ConfigMap is there."""
        return self._at(Kind.CONFIG_MAP, namespace, name) is not None

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """A claim."""
        found: PersistentVolumeClaim | None = self._at(Kind.CLAIM, namespace, name)
        return found

    def volume(self, name: str) -> PersistentVolume | None:
        """A volume."""
        found: PersistentVolume | None = self._at(Kind.VOLUME, "", name)
        return found

    def suitable(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes that a claim may get; where one is reserved for it, no other. Shared: not to be written to."""
        self.topics.add(volumes_of(class_of(claim)))
        return self.stock.suitable(claim)

    def storage_class(self, name: str) -> StorageClass | None:
        """A class of storage."""
        found: StorageClass | None = self._at(Kind.STORAGE_CLASS, "", name)
        return found

    def driver(self, name: str) -> CSIDriver | None:
        """A storage driver."""
        found: CSIDriver | None = self._at(Kind.DRIVER, "", name)
        return found

    def capacities(self, storage_class: str) -> Iterator[CSIStorageCapacity]:
        """What room a class has where."""
        self.topics.add(capacities_of(storage_class))
        for found in self.stock.objects[Kind.CAPACITY].values():
            if found.storage_class_name == storage_class:
                yield found

    def device_claim(self, namespace: str, name: str) -> DeviceClaim | None:
        """A claim of devices."""
        found: DeviceClaim | None = self._at(Kind.DEVICE_CLAIM, namespace, name)
        return found

    def device_classes(self, claim: DeviceClaim) -> dict[str, DeviceClass]:
        """The classes that a claim asks for, as far as they are there."""
        asked = {
            one.device_class_name
            for request in claim.spec.devices.requests
            for one in (request.exactly, *request.first_available)
            if one is not None
        }
        found = {name: self._at(Kind.DEVICE_CLASS, "", name) for name in asked}
        return {name: one for name, one in found.items() if one is not None}

    def offers(self) -> list[Offer]:
        """All devices."""
        self.topics.add(SLICES)
        return self.stock.offers

    def _at(self, kind: Kind, namespace: str, name: str) -> Any:
        self.topics.add((str(kind), namespace, name))
        return self.stock.objects[kind].get((namespace, name))
