"""All of it together: the node, its pods, its answers and its usage, on one manager."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

from shoal import __version__
from shoal.api.core import CONFIG_MAPS, NODES, SECRETS, SERVICES
from shoal.api.core.pod_details import POD_DETAILS
from shoal.api.meta import PartialObject, QuantityString
from shoal.cluster.node.kubelet import SecurePort, serving
from shoal.cluster.node.process.answers import LocalKubelet
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents import ApiAddress, Contents, NodeFacts
from shoal.cluster.node.process.egress import Egress
from shoal.cluster.node.process.latest_runtime import LatestRuntime
from shoal.cluster.node.process.layout import NODE_ADDRESS, NODE_NAME, Layout
from shoal.cluster.node.process.machine import Gpus, NodeKeeper, Presence, Usage, read_gpus, read_machine
from shoal.cluster.node.process.machine.node_object import allocatable
from shoal.cluster.node.process.pods import PodKeeper
from shoal.cluster.node.process.published_names import name_publisher
from shoal.cluster.node.process.runtime.protocol import Facts
from shoal.kube import Manager

_SILENT = "what runs containers does not answer: it is being started again"


async def add_local_node(
    manager: Manager,
    layout: Layout,
    *,
    api: ApiAddress,
    port: SecurePort | None,
    egress: socket.socket | None = None,
    agents: Collection[int] = (),
) -> Callable[[], Awaitable[None]]:
    """Adds the agent of this machine, once there is a runtime; what it gives returns when pods can be bound here.

    ``api`` is where the API server answers on this machine; one that knows no sockets finds the agent at ``port``, and
    connects to pods by what listens on ``egress``. ``agents`` are the ports of all agents that it finds like that.
    """
    first = await Runtime.connect(layout.runtime_socket)
    runtime = LatestRuntime(layout.runtime_socket, first)
    machine, found = await asyncio.to_thread(lambda: (read_machine(layout.folder), read_gpus()))
    gpus = Gpus(found, layout.folder / "gpus.json")
    address = NODE_ADDRESS if first.facts.has_network else machine_address()
    presence = Presence(
        machine=machine,
        socket=str(layout.agent_socket),
        port=port.number if port is not None else None,
        version=__version__,
        address=address,
        gpus=gpus.found,
        shortfalls=first.facts.shortfalls,
    )
    nodes = NodeKeeper(manager, presence, gpus, disk=layout.folder)
    runtime.on_change(lambda is_there: nodes.change(problem="" if is_there else _SILENT))
    contents = Contents(
        manager.client,
        layout,
        _facts(first.facts, address, api, has_gpus=bool(found), allocatable=allocatable(presence)),
        services=manager.cache.informer(SERVICES),
        config_maps=manager.cache.informer(CONFIG_MAPS.view(PartialObject)),
        secrets=manager.cache.informer(SECRETS.view(PartialObject)),
        gpu_files=gpus.files,
    )
    node = manager.cache.informer(NODES, field_selector=f"metadata.name={NODE_NAME}")
    pods = manager.cache.informer(POD_DETAILS, field_selector=f"spec.nodeName={NODE_NAME}")
    keeper = PodKeeper(
        manager.client,
        manager.events,
        pods,
        connect=runtime.connect,
        contents=contents,
        gpus=gpus,
        layout=layout,
        node=lambda: node.get(NODE_NAME),
        machine_address=address,
    )
    usage = Usage(runtime, memory_capacity=machine.memory_bytes)

    async def answer() -> None:
        kubelet = LocalKubelet(keeper, runtime, usage, pods=pods.items)
        try:
            async with serving(kubelet, layout.agent_socket, port):
                await asyncio.Event().wait()
        finally:
            kubelet.close()

    for task in (answer, nodes.run, keeper.run, usage.run):
        manager.add_leader_task(task)
    if egress is not None:
        proxy = Egress(runtime if first.facts.has_network else None, agents=agents)
        manager.add_leader_task(partial(proxy.run, egress))
    if not first.facts.has_network:
        manager.add_leader_task(name_publisher(manager, contents, pods))

    async def until_registered() -> None:
        await nodes.registered.wait()

    return until_registered


def machine_address() -> str:
    """The address of this machine that others would see; its own loopback where it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address that is nobody's; a datagram socket sends nothing for this
        except OSError:
            return "127.0.0.1"
        return str(asking.getsockname()[0])


def _facts(
    facts: Facts, address: str, api: ApiAddress, *, has_gpus: bool, allocatable: Mapping[str, QuantityString]
) -> NodeFacts:
    return NodeFacts(
        address=address,
        network="private" if facts.has_network else "host",
        has_namespaces=facts.has_namespaces,
        has_all_ids=facts.has_all_ids,
        has_gpus=has_gpus,
        allocatable=allocatable,
        api_server=None if facts.has_network else api,
    )
