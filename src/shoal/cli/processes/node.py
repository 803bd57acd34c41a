"""This machine as a node: what runs containers, the agent that tells it to, and the network between them.

They are processes of their own: containers go on running where the agent has to be started again, and what flows
through the network keeps nobody waiting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from shoal.cli.children import Reporter
from shoal.cli.components import PodNetwork
from shoal.cli.listeners import Listener
from shoal.cli.processes.agents import EgressPlace, agent_port
from shoal.cli.processes.loops import run_loop
from shoal.cli.processes.managing import new_manager, run_manager
from shoal.cli.supervisor import Process
from shoal.cluster.node.process.agent import add_local_node
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents import ApiAddress
from shoal.cluster.node.process.layout import NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK, Layout
from shoal.cluster.node.process.network import add_network
from shoal.kube import Connection, configure_logs

_GRACE = 3.0
"""Seconds that containers have to end by themselves when all of Shoal ends; less than a stop waits for clients."""


def local_node_processes(
    data_dir: Path,
    pod_network: PodNetwork,
    connection: Callable[[], Connection],
    *,
    api: str,
    agent: Listener | None,
    egress: EgressPlace | None,
    services: Mapping[tuple[str, str], tuple[str, int]],
) -> Iterator[tuple[Process, Path | None]]:
    """The processes of the node, and where each answers.

    ``api`` is the URL of the API server, ``agent`` where one that knows no sockets finds the node's agent, and
    ``egress`` where it connects to what is in the network of the pods.
    ``services`` are those that Shoal itself runs on this machine, by namespace and name, and where they answer.
    """
    layout = Layout(data_dir)
    layout.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = urlsplit(api)
    address = ApiAddress(server.hostname or "", server.port or 443)

    def containers(reporter: Reporter) -> None:
        """Becomes a program that has loaded next to nothing, since it is copied for every container."""
        os.set_inheritable(reporter.descriptor, True)
        os.umask(0o022)  # the roots of containers are for every user in them; others cannot enter the folder above
        os.execv(sys.executable, runtime_command(layout, pod_network, ready=reporter.descriptor))  # noqa: S606 - our own

    def node(reporter: Reporter) -> None:
        configure_logs()
        run_loop(_node(layout, connection(), reporter, address, agent, egress))

    def network(reporter: Reporter) -> None:
        configure_logs()
        run_loop(_network(layout, connection(), reporter, address, services))

    yield Process(name="containers", main=containers), None
    yield Process(name="node", main=node), layout.folder / "node.sock"
    yield Process(name="network", main=network), layout.folder / "network.sock"


def runtime_command(layout: Layout, pod_network: PodNetwork, *, ready: int) -> list[str]:
    """The command line of what runs containers; ``ready`` is the descriptor that it tells how it is by."""
    options = {
        "socket": layout.runtime_socket,
        "root": layout.root,
        "pod-network": pod_network,
        "address": NODE_ADDRESS,
        "network": POD_NETWORK,
        "services": SERVICE_NETWORK,
        "grace": _GRACE,
        "ready-fd": ready,
    }
    given = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "shoal.cluster.node.process.runtime", *given]


async def _node(
    layout: Layout,
    connection: Connection,
    reporter: Reporter,
    api: ApiAddress,
    agent: Listener | None,
    egress: EgressPlace | None,
) -> None:
    manager = new_manager(connection, "kubelet")
    port = agent_port(layout.data_dir, agent)
    until_ready = await add_local_node(
        manager,
        layout,
        api=api,
        port=port,
        egress=egress.socket if egress is not None else None,
        agents=egress.agents if egress is not None else (),
    )
    await run_manager(manager, reporter, socket=layout.folder / "node.sock", until_ready=until_ready)


async def _network(
    layout: Layout,
    connection: Connection,
    reporter: Reporter,
    api: ApiAddress,
    services: Mapping[tuple[str, str], tuple[str, int]],
) -> None:
    manager = new_manager(connection, "kube-proxy")
    add_network(manager, runtime=lambda: Runtime.connect(layout.runtime_socket), api=api, others=services)
    await run_manager(manager, reporter, socket=layout.folder / "network.sock")
