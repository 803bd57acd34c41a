"""Claims of devices: what was allocated is written to their status, with the pod as its consumer.

Where the scheduler has said which devices it is to be, it is those; where it has not, they are chosen here, of those
that the node reaches and nobody has. A claim is read when it is to be written, and written under the version that was
read; what others have is in the caches, and what was given away a moment ago in mind.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from shoal.api.core import PODS
from shoal.api.meta import Document
from shoal.api.resource_k8s_io import RESOURCE_CLAIMS, DeviceClaim, ResourceSlice
from shoal.api.scheduling_run_ai import ResourceClaimAllocation
from shoal.kube import Change, Client, NotFound
from shoal.kube.client import retry_on_conflict
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.orders import Order, Refused, Wait
from shoal.scheduler.devices import MOST_CONSUMERS, NotUnderstood, Offer, choose, offers_of
from shoal.scheduler.devices.offers import DeviceKey
from shoal.scheduler.ground import Ground

FINALIZER: Final = "resource.kubernetes.io/delete-protection"


class DeviceClaims:
    """Gives claims their devices."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._given: dict[DeviceKey, tuple[str, str]] = {}
        """Devices that were given away here, and to which claim: the cache may not show it yet."""
        self._held: dict[DeviceKey, tuple[str, str]] = {}
        """Devices that claims have, and which, as the cache shows it."""
        self._offers: dict[str, list[Offer]] | None = None
        """By the node that alone reaches them; those that others reach under ""."""
        caches.slices.subscribe(self._slice_changed)
        caches.device_claims.subscribe(self._claim_changed)

    async def prepare(self, order: Order) -> Wait | None:
        """Gives each claim its devices, unless it has them already, and makes the pod one of its consumers."""
        spec = order.request.spec
        if spec.extended_resource_claim_allocation is not None:
            raise Refused("devices behind extended resources cannot be claimed by this binder: name a ResourceClaim")
        if not (spec.resource_claim_allocations or order.pod.spec.resource_claims):
            return None
        claims = await self._claim_names(order)
        given = {one.name: one for one in spec.resource_claim_allocations}
        for called in given:
            if not claims.get(called):
                raise Refused(f"the pod has no claim {called}, or it is not made yet")
        for called, name in claims.items():
            if not name:
                raise Refused(f"the pod's claim {called} is not made yet")
            await retry_on_conflict(partial(self._give, order, name, given.get(called)))
        return None

    async def undo(self, order: Order) -> None:
        """Takes the pod from the consumers of its claims; devices that nobody consumes are free again."""
        if not (order.request.spec.resource_claim_allocations or order.pod.spec.resource_claims):
            return
        for name in (await self._claim_names(order)).values():
            if name:
                await retry_on_conflict(partial(self._take_back, order, name))

    async def _claim_names(self, order: Order) -> dict[str, str]:
        """The claims of the pod by the names that it calls them; "" where one is still to be made."""
        metadata = order.pod.metadata
        pod = (await self._client.get(PODS.documents(), metadata.name, metadata.namespace)).content
        named = {claim["name"]: claim.get("resourceClaimName", "") for claim in pod["spec"].get("resourceClaims") or ()}
        made = {
            claim["name"]: claim.get("resourceClaimName")
            for claim in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        # Of a template for which no claim is needed the status says so, by naming none.
        return {
            called: name or made.get(called) or "" for called, name in named.items() if name or made.get(called, "?")
        }

    async def _give(self, order: Order, name: str, given: ResourceClaimAllocation | None) -> None:
        claim = await self._read(order, name)
        if claim is None:
            raise Refused(f"claim {name} of devices does not exist")
        status = claim.content.get("status") or {}
        consumers = status.get("reservedFor") or []
        consumer = _consumer(order)
        is_consumer = consumer in consumers
        if status.get("allocation") and is_consumer:
            return
        if not is_consumer and len(consumers) >= MOST_CONSUMERS:
            raise Refused(f"claim {name} of devices has {MOST_CONSUMERS} users, and may have no more")
        wanted: dict[str, Any] = {} if is_consumer else {"reservedFor": [*consumers, consumer]}
        if not status.get("allocation"):
            if given is not None and given.allocation is not None:
                wanted["allocation"] = msgspec.to_builtins(given.allocation)
            else:
                wanted["allocation"] = self._chosen(order, claim)
            claim = await self._protect(claim)
        else:
            self._check_reach(order, name, status["allocation"])
        await self._write(claim, wanted)

    def _chosen(self, order: Order, claim: Document) -> dict[str, Any]:
        """Devices of the node for a claim; refuses it where there are none."""
        asked, name = msgspec.convert(claim.content, DeviceClaim), claim.metadata.name
        classes = {one.metadata.name: one for one in self._caches.device_classes.items()}
        offers = self._reached_from(order)
        try:
            choice = choose(asked, classes, offers, taken=self._taken((claim.metadata.namespace, name)))
        except NotUnderstood as what:
            raise Refused(f"claim {name} of devices is not understood: {what}") from what
        if choice is None:
            raise Refused(f"node {order.node} has no free devices for claim {name}")
        for _, offer in choice.given:
            self._given[offer.key] = claim.metadata.namespace, name
        return choice.allocation(asked)

    def _taken(self, claim_itself: tuple[str, str]) -> set[DeviceKey]:
        """The devices that others than a claim have: it may have been given some in an attempt that came to nothing."""
        for key, (namespace, name) in list(self._given.items()):
            if key in self._held or self._caches.device_claims.get(name, namespace) is None:
                del self._given[key]
        return self._held.keys() | {key for key, owner in self._given.items() if owner != claim_itself}

    def _reached_from(self, order: Order) -> list[Offer]:
        """The devices that the node reaches, by name."""
        if self._offers is None:
            self._offers = {}
            for offer in offers_of(self._caches.slices.items()):
                self._offers.setdefault(offer.node, []).append(offer)
        ground = self._ground(order)
        others = [one for one in self._offers.get("", ()) if one.terms is None or ground.selected(one.terms).all()]
        return sorted([*self._offers.get(order.node, ()), *others], key=lambda offer: offer.key)

    def _check_reach(self, order: Order, name: str, allocation: dict[str, Any]) -> None:
        terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms")
        if terms is not None and not self._ground(order).selected(terms).all():
            raise Refused(f"node {order.node} does not reach the devices of claim {name}")

    async def _take_back(self, order: Order, name: str) -> None:
        claim = await self._read(order, name)
        if claim is None:
            return
        consumers = (claim.content.get("status") or {}).get("reservedFor") or []
        others = [consumer for consumer in consumers if consumer["uid"] != order.pod.metadata.uid]
        place = claim.metadata.namespace, name
        if not others:
            self._given = {key: owner for key, owner in self._given.items() if owner != place}
        if len(others) < len(consumers):
            await self._write(claim, {"reservedFor": others} if others else {"reservedFor": None, "allocation": None})

    async def _protect(self, claim: Document) -> Document:
        """Keeps a claim with devices from going before they are given back."""
        metadata = claim.metadata
        if FINALIZER in metadata.finalizers:
            return claim
        patch = {
            "metadata": {"resourceVersion": metadata.resource_version, "finalizers": [*metadata.finalizers, FINALIZER]}
        }
        return await self._client.merge_patch(RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace)

    async def _write(self, claim: Document, status: dict[str, Any]) -> None:
        metadata = claim.metadata
        patch = {"metadata": {"resourceVersion": metadata.resource_version}, "status": status}
        await self._client.merge_patch(RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace, subresource="status")

    async def _read(self, order: Order, name: str) -> Document | None:
        try:
            return await self._client.get(RESOURCE_CLAIMS, name, order.pod.metadata.namespace)
        except NotFound:
            return None

    def _ground(self, order: Order) -> Ground:
        node = self._caches.nodes.get(order.node)
        return Ground.of_one(order.node, node.metadata.labels if node is not None else {})

    def _slice_changed(self, _: Change[ResourceSlice]) -> None:
        self._offers = None

    def _claim_changed(self, change: Change[DeviceClaim]) -> None:
        owner = change.latest.metadata.namespace, change.latest.metadata.name
        for key in [] if change.before is None else _devices(change.before):
            if self._held.get(key) == owner:
                del self._held[key]
        if change.after is not None:
            self._held.update(dict.fromkeys(_devices(change.after), owner))


def _consumer(order: Order) -> dict[str, str]:
    return {"resource": "pods", "name": order.pod.metadata.name, "uid": order.pod.metadata.uid}


def _devices(claim: DeviceClaim) -> list[DeviceKey]:
    allocation = claim.status.allocation
    results = [] if allocation is None else allocation.devices.results
    return [(one.driver, one.pool, one.device) for one in results if not one.admin_access]
