"""The cluster's names for pods in the machine's own network, where no DNS of ours can be asked: by hosts files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.contents import Contents, HostEntry
from shoal.cluster.node.process.network import PROXIED_SERVICES, SERVING_SLICES, host_entries
from shoal.kube import Informer, Manager

_GATHER = 0.05
"""Seconds in which further changes are waited for: a rollout makes many, and each file is written anew for one."""


def name_publisher(manager: Manager, contents: Contents, pods: Informer[PodDetails]) -> Callable[[], Awaitable[None]]:
    """What keeps the hosts files true to the services and pods there are."""
    services = manager.cache.informer(PROXIED_SERVICES)
    slices = manager.cache.informer(SERVING_SLICES)
    stirred = asyncio.Event()
    services.subscribe(lambda change: stirred.set())
    slices.subscribe(lambda change: stirred.set())
    pods.subscribe(lambda change: stirred.set())

    def names(namespace: str) -> list[HostEntry]:
        found = host_entries(services.items(), slices.items(), pods.items(), namespace=namespace)
        return [HostEntry(address, names) for address, names in found]

    async def publish() -> None:
        while True:
            await stirred.wait()
            await asyncio.sleep(_GATHER)
            stirred.clear()
            contents.publish_names(names)

    return publish
