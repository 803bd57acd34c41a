"""All of it together on one manager, for as long as the runtime has a network, and again in the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import structlog

from shoal.api.core.pod_details import POD_DETAILS
from shoal.cluster.node.process.layout import NODE_NAME
from shoal.cluster.node.process.network.announcing import Announcer
from shoal.cluster.node.process.network.balance import API_SERVER, Backend, Machine
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.dns import DnsServer
from shoal.cluster.node.process.network.names import Names
from shoal.cluster.node.process.network.opening import NetworkRuntime
from shoal.cluster.node.process.network.proxy import Proxy
from shoal.cluster.node.process.network.turns import allow_many
from shoal.cluster.node.process.network.views import PROXIED_SERVICES, SERVING_SLICES
from shoal.kube import Manager

log = structlog.get_logger("shoal.cluster.node.process.network")

_SOON, _AGAIN_AFTER = 0.05, 1.0
"""Seconds until it is begun anew: in another network, or where something failed in this one."""


def add_network(
    manager: Manager,
    *,
    runtime: Callable[[], Awaitable[NetworkRuntime]],
    api: tuple[str, int],
    others: Mapping[tuple[str, str], tuple[str, int]] | None = None,
    node: str = NODE_NAME,
) -> None:
    """Adds the names and the services of the node's network.

    ``api`` is the address and port of the API server, on this machine: pods reach it as the service ``kubernetes``.
    ``others`` are the same of other services that the cluster itself runs there, by namespace and name.
    ``runtime`` gives a connection to the runtime, and another one when that is lost: its network was lost with it, so
    all sockets are made anew then. Where pods have no network of their own nothing is done, not even watched.
    All that is written to the API is the status of load balancers, and events of ports that are in use.
    """
    own = {API_SERVER: api, **(others or {})}
    machine = {name: Backend(*address, is_on_machine=True) for name, address in own.items()}
    made: list[_Parts] = []

    async def serve() -> None:
        while True:
            connected = await runtime()
            if connected.facts.has_network and not connected.closed.is_set():
                if not made:
                    allow_many()
                    made.append(await _followed(manager, node, machine))
                await _serve_in(connected, made[0])
            else:
                await connected.closed.wait()
            await asyncio.sleep(_SOON if connected.closed.is_set() else _AGAIN_AFTER)

    manager.add_service(serve)


class _Parts(NamedTuple):
    """What is made once, and serves in one network after the other."""

    dns: DnsServer
    proxy: Proxy
    announcer: Announcer


async def _followed(manager: Manager, node: str, machine: Machine) -> _Parts:
    """Begins to follow what names and services are made of, and waits for the first picture."""
    services = manager.cache.informer(PROXIED_SERVICES)
    slices = manager.cache.informer(SERVING_SLICES)
    pods = manager.cache.informer(POD_DETAILS, field_selector=f"spec.nodeName={node}")
    catalogue = Catalogue()
    announcer = Announcer(catalogue, manager.client, manager.events)
    proxy = Proxy(catalogue, node=node, machine=machine, on_problem=announcer.mark)
    services.subscribe(catalogue.service_changed)
    slices.subscribe(catalogue.slice_changed)
    pods.subscribe(catalogue.pod_changed)
    for informer in (services, slices, pods):
        await informer.wait_for_sync()
    return _Parts(DnsServer(Names(catalogue)), proxy, announcer)


async def _serve_in(runtime: NetworkRuntime, made: _Parts) -> None:
    """Serves in one network until that is lost, or something fails that would have to be begun anew."""
    translates = runtime.facts.has_translation
    parts = [
        asyncio.create_task(made.dns.run(runtime), name="dns"),
        asyncio.create_task(made.proxy.run(runtime, translates=translates), name="proxy"),
        asyncio.create_task(made.announcer.run(made.proxy.problems), name="announcer"),
    ]
    lost = asyncio.create_task(runtime.closed.wait(), name="network lost")
    log.info("names and services are served in the network of the pods")
    try:
        await asyncio.wait([*parts, lost], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (*parts, lost):
            task.cancel()
        outcomes = await asyncio.gather(*parts, lost, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not runtime.closed.is_set():
            log.error("names and services are interrupted, and begun anew", problem=repr(outcome))
