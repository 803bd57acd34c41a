"""Keeps the Node object of this machine true, and vouches for it by a lease, as a kubelet does.

The lease is the only thing that is written again and again. The object is written where it differs from what there is
to say, which is looked at whenever somebody changed it, or the machine did. When the agent stops nothing is written: a
node that comes back within the lease's time was never away, and one that does not is found silent by those who watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from shoal.api.coordination import LEASES, NODE_LEASE_NAMESPACE
from shoal.api.core import NODES
from shoal.api.meta import Document, format_micro_time, now
from shoal.cluster.node.process.layout import NODE_NAME
from shoal.cluster.node.process.machine.facts import read_shortage
from shoal.cluster.node.process.machine.gpus import Gpus
from shoal.cluster.node.process.machine.node_object import SHORTFALLS, Presence, is_foreign, new_node, node_patch
from shoal.cluster.node.process.machine.nvml import Gpu, read_gpus
from shoal.kube import About, AlreadyExists, ApiError, ConnectionFault, Manager, NotFound

log = structlog.get_logger("shoal.cluster.node.process")

RENEW_EVERY = 10.0
LEASE_SECONDS = 40
LOOK_EVERY = 10.0
LOOK_FOR_GPUS_EVERY = 60.0
_AGAIN_AFTER = 2.0
_CATCH_UP = 5.0

_NODES = NODES.documents()
_LEASES = LEASES.documents()


class NodeTaken(Exception):
    """There is a node of our name that another agent speaks for."""

    def __init__(self) -> None:
        super().__init__(
            f'the node "{NODE_NAME}" exists and another agent speaks for it: '
            f"delete it (kubectl delete node {NODE_NAME}), or start without this machine as a node (--no-local-node)"
        )


class NodeKeeper:
    """The agent as far as it concerns the node itself."""

    def __init__(
        self,
        manager: Manager,
        presence: Presence,
        gpus: Gpus,
        *,
        disk: Path,
        look_for_gpus: Callable[[], Sequence[Gpu]] = read_gpus,
        renew_every: float = RENEW_EVERY,
        look_every: float = LOOK_EVERY,
        look_for_gpus_every: float = LOOK_FOR_GPUS_EVERY,
    ) -> None:
        self._client = manager.client
        self._events = manager.events
        self._nodes = manager.cache.informer(_NODES, field_selector=f"metadata.name={NODE_NAME}")
        self._nodes.subscribe(lambda change: self._stirred.set())
        self._stirred = asyncio.Event()
        self._gpus = gpus
        self._look_for_gpus = look_for_gpus
        self._renew_every = renew_every
        self._look_every = look_every
        self._look_for_gpus_every = look_for_gpus_every
        self._disk = disk
        self.presence = msgspec.structs.replace(presence, gpus=gpus.found)
        self.registered = asyncio.Event()
        """Set once the node can be bound to."""

    def change(self, **parts: Any) -> None:
        """Says something else of the node from now on, such as ``problem`` where no pod can run."""
        changed = msgspec.structs.replace(self.presence, **parts)
        if changed != self.presence:
            self.presence = changed
            self._stirred.set()

    async def run(self) -> None:
        """Registers the node and keeps it until cancelled; raises NodeTaken."""
        if self.presence.shortfalls:
            log.warning("this machine does not allow all that pods may expect", shortfalls=self.presence.shortfalls)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep(), name="node")
                group.create_task(self._vouch(), name="node lease")
                group.create_task(self._watch_shortage(), name="node shortage")
                group.create_task(self._watch_gpus(), name="node gpus")
        except* NodeTaken as taken:
            raise taken.exceptions[0] from None

    async def _keep(self) -> None:
        while True:
            self._stirred.clear()
            try:
                await self._correct()
            except (ApiError, ConnectionFault) as error:
                log.warning("the node could not be written: trying again", node=NODE_NAME, error=str(error))
                await asyncio.sleep(_AGAIN_AFTER)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_every):
                    await self._stirred.wait()

    async def _correct(self) -> None:
        """One look at the object, and one write where it is needed."""
        node = self._nodes.get(NODE_NAME)
        if node is None:
            await self._register()
            return
        if is_foreign(node.content):
            raise NodeTaken
        if node.metadata.deletion_timestamp is None and (patch := node_patch(node.content, self.presence, now())):
            # As a kubelet does, labels and annotations are written along with the status.
            with suppress(NotFound):
                written = await self._client.strategic_patch(_NODES, NODE_NAME, patch, subresource="status")
                self._tell(node, written)
                await self._caught_up(written)
        self.registered.set()

    async def _register(self) -> None:
        try:
            written = await self._client.create(_NODES, new_node(self.presence, now()))
        except AlreadyExists:
            written = await self._client.get(_NODES, NODE_NAME)
        else:
            log.info("the node is registered", node=NODE_NAME, gpus=len(self.presence.gpus))
            self._tell(None, written)
            self.registered.set()
        await self._caught_up(written)
        self._stirred.set()

    def _tell(self, before: Document | None, after: Document) -> None:
        """Events of what changed for those who look after the node."""
        about = About.of(_NODES, after)
        shortfalls = after.metadata.annotations.get(SHORTFALLS, "")
        if shortfalls and (before is None or before.metadata.annotations.get(SHORTFALLS, "") != shortfalls):
            self._events.warning(about, "NodeDegraded", shortfalls)
        was, is_now = _readiness(before), _readiness(after)
        if was != is_now:
            state = "NodeReady" if is_now == "True" else "NodeNotReady"
            self._events.normal(about, state, f"Node {NODE_NAME} status is now: {state}")

    async def _caught_up(self, written: Document) -> None:
        """Waits until we see what we wrote, so that it is not written again."""
        with suppress(TimeoutError, ValueError):
            async with asyncio.timeout(_CATCH_UP):
                await self._nodes.wait_for_version(int(written.metadata.resource_version))

    async def _vouch(self) -> None:
        await self.registered.wait()
        while True:
            try:
                await self._renew()
            except (ApiError, ConnectionFault) as error:
                log.warning("the lease of the node was not renewed: trying again", node=NODE_NAME, error=str(error))
                await asyncio.sleep(_AGAIN_AFTER)
            else:
                await asyncio.sleep(self._renew_every)

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": NODE_NAME,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(datetime.now(UTC)),
        }
        try:
            await self._client.merge_patch(_LEASES, NODE_NAME, {"spec": spec}, NODE_LEASE_NAMESPACE)
        except NotFound:
            metadata: dict[str, Any] = {"name": NODE_NAME, "namespace": NODE_LEASE_NAMESPACE}
            if (node := self._nodes.get(NODE_NAME)) is not None:
                owner = {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME, "uid": node.metadata.uid}
                metadata["ownerReferences"] = [owner]
            await self._client.create(_LEASES, {"metadata": metadata, "spec": spec}, NODE_LEASE_NAMESPACE)

    async def _watch_shortage(self) -> None:
        while True:
            with suppress(OSError):
                self.change(shortage=await asyncio.to_thread(read_shortage, self._disk))
            await asyncio.sleep(self._look_every)

    async def _watch_gpus(self) -> None:
        while True:
            await asyncio.sleep(self._look_for_gpus_every)
            found = await asyncio.to_thread(self._look_for_gpus)
            if list(found) != list(self._gpus.found):
                log.info("the GPUs of the node changed", before=len(self._gpus.found), now=len(found))
                self._gpus.found = found
                self.change(gpus=found)


def _readiness(node: Document | None) -> str:
    conditions = (node.content.get("status") or {}).get("conditions") or () if node is not None else ()
    return next((str(one["status"]) for one in conditions if one["type"] == "Ready"), "")
