"""The devices that there are, and who reaches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.api.resource_k8s_io import Device, NodeSelector, ResourceSlice
from shoal.scheduler.devices.claims import is_of_gpus

DeviceKey = tuple[str, str, str]
"""Driver, pool and name: what tells a device from all others."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A device, and the nodes that reach it."""

    driver: str
    pool: str
    device: Device
    node: str
    """The only node; "" where ``selector`` says which, or where all do."""
    selector: NodeSelector | None

    @property
    def key(self) -> DeviceKey:
        """What tells it from all others."""
        return self.driver, self.pool, self.device.name

    @property
    def terms(self) -> list[Mapping[str, Any]] | None:
        """The nodes, as terms of a node selector; None: all."""
        if self.node:
            return [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.node]}]}]
        if self.selector is None:
            return None
        return [msgspec.to_builtins(term) for term in self.selector.node_selector_terms]


def offers_of(slices: Iterable[ResourceSlice]) -> list[Offer]:
    """The devices of slices, by name. Of a pool only the latest generation counts, once all of it is there."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in slices:
        pools.setdefault((one.spec.driver, one.spec.pool.name), []).append(one)
    found: list[Offer] = []
    for members in pools.values():
        latest = max(one.spec.pool.generation for one in members)
        whole = [one for one in members if one.spec.pool.generation == latest]
        if len(whole) >= whole[0].spec.pool.resource_slice_count:
            found += [offer for one in whole for offer in _offers(one)]
    return sorted(found, key=lambda offer: offer.key)


def gpus_by_node(slices: Iterable[ResourceSlice]) -> dict[str, int]:
    """How many GPUs each node hands out by claims."""
    counts: dict[str, int] = {}
    for one in slices:
        if one.spec.node_name and is_of_gpus(one.spec.driver):
            counts[one.spec.node_name] = counts.get(one.spec.node_name, 0) + len(one.spec.devices)
    return counts


def _offers(one: ResourceSlice) -> Iterable[Offer]:
    spec = one.spec
    for device in spec.devices:
        place = device if spec.per_device_node_selection else spec
        yield Offer(spec.driver, spec.pool.name, device, place.node_name, place.node_selector)
