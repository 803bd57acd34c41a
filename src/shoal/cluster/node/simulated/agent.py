"""All of it together: the controllers of nodes and pods, the lease, the pools and the socket, on one manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import structlog

from shoal.api.core import NODES, PODS, Node
from shoal.cluster import networks
from shoal.cluster.indexes import all_pods
from shoal.cluster.node.addresses import Addresses
from shoal.cluster.node.kubelet import SecurePort, serving
from shoal.cluster.node.simulated.kubelet import SimulatedKubelet
from shoal.cluster.node.simulated.node_status import internal_ip
from shoal.cluster.node.simulated.nodes import NodeKeeper, is_down, is_ours
from shoal.cluster.node.simulated.pods import PodKeeper
from shoal.cluster.node.simulated.pools import Pool
from shoal.kube import ApiError, ConnectionFault, Controller, Manager, Watch
from shoal.kube.changes import field_changed

log = structlog.get_logger("shoal.cluster.node.simulated")

SOCKET = "simulated.sock"
POD_NETWORK = networks.SIMULATED_POD_NETWORK
NODE_NETWORK = "10.192.0.0/14"
POD_WORKERS = 64
"""Status patches under way at once: a server of one core is busy with half as many."""
NODE_WORKERS = 32
_AGAIN_AFTER = 5.0


def add_simulated_nodes(
    manager: Manager, *, sockets: Path, pools: Sequence[Pool], port: SecurePort | None = None
) -> None:
    """Adds the agent of all simulated nodes.

    ``sockets`` is the folder in which the API server believes agents' sockets; ``port`` is where one that knows none
    finds the agent. The nodes of ``pools`` are made where they are missing; those of a pool beyond its size go, and
    those of pools that are not given stay.
    """
    socket = sockets.absolute() / SOCKET
    nodes = manager.cache.informer(NODES)
    pods = all_pods(manager)
    number = port.number if port is not None else None
    node_keeper = NodeKeeper(manager.client, nodes, Addresses(NODE_NETWORK), socket=str(socket), port=number)
    pod_keeper = PodKeeper(manager.client, manager.events, pods, nodes, Addresses(POD_NETWORK))
    start_order = pod_keeper.start_order
    kubelet = SimulatedKubelet(nodes, pods)
    manager.add(Controller("simulated-nodes", NODES, node_keeper.reconcile, workers=NODE_WORKERS))
    manager.add(
        Controller(
            "simulated-pods",
            PODS,
            pod_keeper.reconcile,
            when=pod_keeper.concerns,
            watches=[
                Watch(resource=NODES, keys=pod_keeper.on_node, when=field_changed(_presence)),
                Watch(resource=PODS, keys=start_order.released, when=start_order.matters),
            ],
            workers=POD_WORKERS,
        )
    )

    async def serve() -> None:
        async with serving(kubelet, socket, port):
            await asyncio.Event().wait()

    async def populate() -> None:
        while True:
            try:
                await node_keeper.populate(pools)
            except* (ApiError, ConnectionFault) as errors:
                log.error("not all simulated nodes could be made: trying again", error=str(errors.exceptions[0]))
            else:
                return
            await asyncio.sleep(_AGAIN_AFTER)

    manager.add_leader_task(serve)
    manager.add_leader_task(node_keeper.vouch)
    manager.add_leader_task(populate)


def _presence(node: Node) -> tuple[bool, bool, str]:
    """What of a node matters to the pods on it."""
    return is_ours(node), is_down(node), internal_ip(node.status)
