"""Keeps simulated nodes presentable, vouches for them by one lease, and makes and removes the nodes of pools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from shoal.api.core import NODES, Node
from shoal.api.meta import PartialObject, Quantity, ResourceList, format_micro_time, now, parse_quantity
from shoal.cluster.node.addresses import Addresses
from shoal.cluster.node.simulated.node_status import (
    LEASE_NAME,
    internal_ip,
    new_status,
    node_annotations,
    node_patch,
    silence_patch,
)
from shoal.cluster.node.simulated.pools import (
    FAKE,
    POOL,
    Pool,
    is_simulated,
    node_labels,
    node_names,
    node_resources,
)
from shoal.cluster.node.simulated.rules import DOWN
from shoal.kube import AlreadyExists, ApiError, Change, Client, ConnectionFault, Informer, Key, NotFound
from shoal.kube.leases import LEASES

log = structlog.get_logger("shoal.cluster.node.simulated")

LEASE_NAMESPACE = "kube-node-lease"
RENEW_EVERY = 10.0
LEASE_SECONDS = 40
AT_ONCE = 64
"""Requests under way while many nodes are made."""

_NODES = NODES.view(PartialObject)
_LEASES = LEASES.documents()


def is_ours(node: Node | None) -> bool:
    """Whether a node is simulated."""
    return node is not None and is_simulated(node.metadata.annotations)


def is_down(node: Node) -> bool:
    """Whether somebody asked the agent to fall silent."""
    return node.metadata.annotations.get(DOWN) == "true"


def is_live(node: Node | None) -> bool:
    """Whether the agent acts for a node: it is simulated, up, and has an address."""
    return node is not None and is_ours(node) and not is_down(node) and bool(internal_ip(node.status))


class NodeKeeper:
    """The agent of all simulated nodes, as far as it concerns the nodes themselves."""

    def __init__(
        self, client: Client, nodes: Informer[Node], addresses: Addresses, *, socket: str, port: int | None = None
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._addresses = addresses
        self._socket = socket
        self._port = port
        self._first = asyncio.Event()
        nodes.subscribe(self._follow)

    async def reconcile(self, key: Key) -> None:
        """Sets a node's annotations and status, or withdraws the lease of one that is to be down."""
        node = self._nodes.store.get(key)
        if node is None or not is_ours(node) or node.metadata.is_deleting:
            return
        if is_down(node):
            if patch := silence_patch(node):
                await self._client.strategic_patch(_NODES, key.name, patch)
            return
        address = internal_ip(node.status) or self._addresses.take(node.metadata.name)
        patch = node_patch(node, socket=self._socket, port=self._port, address=address, now=now())
        if patch:
            # As a kubelet does, annotations are written along with the status.
            await self._client.strategic_patch(_NODES, key.name, patch, subresource="status")

    async def vouch(self) -> None:
        """Renews the lease, while there is any node to vouch for, until cancelled."""
        while True:
            if any(is_ours(node) and not is_down(node) for node in self._nodes.store):
                await self._renew()
                await asyncio.sleep(RENEW_EVERY)
            else:
                self._first.clear()
                await self._first.wait()

    async def populate(self, pools: Sequence[Pool]) -> None:
        """Makes the nodes of the pools that are missing, and removes those beyond their size."""
        for index, pool in enumerate(pools):
            wanted = list(node_names(index, pool))
            names = set(wanted)
            extra = [
                node
                for node in self._nodes.items()
                if node.metadata.labels.get(POOL) == str(index) and node.metadata.name not in names and is_ours(node)
            ]
            await _many(AT_ONCE, (_bound(self._remove, node) for node in extra))
            await _many(AT_ONCE, (_bound(self._make, name, index, pool) for name in wanted))

    async def _make(self, name: str, index: int, pool: Pool) -> None:
        labels, resources = node_labels(name, index, pool), node_resources(pool)
        seen = self._nodes.get(name)
        if seen is None:
            annotations = {FAKE: "fake", **node_annotations(self._socket)}
            metadata = {"name": name, "labels": labels, "annotations": annotations}
            status = new_status(name, resources, self._addresses.take(name), now(), port=self._port)
            try:
                await self._client.create(_NODES, {"metadata": metadata, "status": status})
            except AlreadyExists:
                return
        elif is_ours(seen) and POOL in seen.metadata.labels:
            await self._adjust(seen, labels, resources)

    async def _adjust(self, node: Node, labels: dict[str, str], resources: ResourceList) -> None:
        """Makes a node that was made for another pool of the same place what this one asks for."""
        metadata: dict[str, Any] = {}
        changed: dict[str, str | None] = {
            name: value for name, value in labels.items() if node.metadata.labels.get(name) != value
        }
        changed |= {
            name: None for name in node.metadata.labels if name.startswith("nvidia.com/gpu.") and name not in labels
        }
        if changed:
            metadata["labels"] = changed
        patch: dict[str, Any] = {"metadata": metadata} if metadata else {}
        if _amounts(node.status.capacity) != _amounts(resources):
            changes = dict.fromkeys(node.status.capacity) | resources
            patch["status"] = {"capacity": changes, "allocatable": changes}
        if patch:
            await self._client.strategic_patch(_NODES, node.metadata.name, patch, subresource="status")

    async def _remove(self, node: Node) -> None:
        try:
            await self._client.delete(_NODES, node.metadata.name, uid=node.metadata.uid)
        except NotFound:
            return

    async def _renew(self) -> None:
        """One renewal; a server that is away is no reason to end, and the next one comes soon."""
        spec = {
            "holderIdentity": LEASE_NAME,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(datetime.now(UTC)),
        }
        try:
            try:
                await self._client.merge_patch(_LEASES, LEASE_NAME, {"spec": spec}, LEASE_NAMESPACE)
            except NotFound:
                body = {"metadata": {"name": LEASE_NAME, "namespace": LEASE_NAMESPACE}, "spec": spec}
                await self._client.create(_LEASES, body, LEASE_NAMESPACE)
        except (ApiError, ConnectionFault) as error:
            log.warning("the lease of the simulated nodes was not renewed", error=str(error))

    def _follow(self, change: Change[Node]) -> None:
        """Keeps account of the addresses in use."""
        before = change.before.status if change.before is not None else None
        name = change.latest.metadata.name
        if change.after is None:
            self._addresses.release(name, internal_ip(change.latest.status))
            return
        address = internal_ip(change.after.status)
        if address and (before is None or internal_ip(before) != address):
            self._addresses.shown(name, address)
        if is_ours(change.after) and not is_down(change.after):
            self._first.set()


def _amounts(resources: ResourceList) -> dict[str, Quantity]:
    return {name: parse_quantity(amount) for name, amount in resources.items()}


def _bound(do: Callable[..., Awaitable[None]], *arguments: Any) -> Callable[[], Awaitable[None]]:
    return lambda: do(*arguments)


async def _many(at_once: int, work: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Does all of it, so many at once."""
    waiting: Iterator[Callable[[], Awaitable[None]]] = iter(work)

    async def worker() -> None:
        for one in waiting:
            await one()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
