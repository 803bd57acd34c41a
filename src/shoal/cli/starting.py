"""From what was asked of ``shoal up`` to the processes that do it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.components import GANG_SCHEDULERS, PLAIN_SCHEDULER, PROGRESS_SERVICE, Component, Engine, PodNetwork
from shoal.cli.data_dir import DataDir
from shoal.cli.listeners import Listener, check_free, listen, listen_as_before, listen_on_socket
from shoal.cli.output import shortest, write
from shoal.cli.supervisor import Plan, Process, stopping_on_signals, supervise
from shoal.kube.connection import Connection

if TYPE_CHECKING:
    from shoal.cli.processes.agents import EgressPlace
    from shoal.cli.scheduling.assembling import Setup
    from shoal.cluster.node.simulated.pools import Pool

_AGENTS_BIND = "127.0.0.1"
"""Only this machine has business with its agents, wherever the API is served."""
_LEFT_TO_US = (
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-expander-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "ephemeral-volume-controller",
)
"""The controllers of kube-controller-manager whose work is done by ``add_own_controllers``."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The options of the command."""

    bind: str
    api_port: int
    http_port: int
    plugin_port: int
    metrics_port: int
    health_port: int
    pools: tuple[Pool, ...]
    has_local_node: bool
    pod_network: PodNetwork
    components: frozenset[Component]
    engine: Engine | None
    kube_binaries: tuple[Path, ...]
    scheduler_conf: Path | None
    visualizer_auth: Path | None
    allowed_hosts: tuple[str, ...]


def start(wish: Wish, place: DataDir, *, once_ready: Callable[[str], None]) -> None:
    """Starts all of it and keeps it running until someone asks for the end; ``once_ready`` gets the line to say."""
    announced = False

    def announce(endpoints: dict[str, str]) -> None:
        nonlocal announced
        announced = True
        place.write_endpoints(endpoints)
        addresses = ", ".join(f"{name} {address}" for name, address in endpoints.items())
        once_ready(f"Shoal is ready: {addresses}, kubeconfig {shortest(place.kubeconfig)}\n")

    # What is asked in files is checked before anything is started; otherwise it is loaded while the API server starts.
    scheduler = _scheduler(wish) if wish.scheduler_conf or wish.visualizer_auth else None
    with stopping_on_signals() as stop, place.held(os.getpid()), ExitStack() as stack:
        engine = place.engine(wish.engine)
        check_free(wish.bind, {"--api-port": wish.api_port} | dict(_wanted_ports(wish).values()))
        server = (_embedded if engine is Engine.EMBEDDED else _on_kubernetes)(wish, place, stack)
        ports = _ports(wish, stack)
        place.claim(engine)
        endpoints = {"api": server.url} | ({name: port.url("http") for name, port in ports.items()})
        webhooks = _webhooks(wish, place, stack)
        progress = _progress(wish, stack)
        clients = partial(_clients, wish, place, server, ports, endpoints, webhooks, progress, scheduler)
        forget = partial(_forget_webhooks, place, server.url)
        plan = Plan(server=server.process, clients=clients, once_serving=(lambda: None) if webhooks else forget)
        supervise(plan, place, stop=stop, announce=partial(announce, endpoints))
    if not announced:
        raise typer.Abort
    write("Shoal is stopped\n")


@dataclass(frozen=True, kw_only=True)
class _Server:
    """What serves the API."""

    process: Process
    connection: Callable[[], Connection]
    """How the other processes reach it."""
    url: str
    has_controllers: bool
    """Whether it brings controllers of its own."""
    agents: Mapping[str, Listener]
    """Where it finds each agent of nodes; empty where it knows their sockets."""
    egress: EgressPlace | None = None
    """Where it connects to pods and Services; None where it asks the agents of nodes for that."""


def _embedded(wish: Wish, place: DataDir, stack: ExitStack) -> _Server:
    from shoal.api.definitions import ALL, DIALECTS  # noqa: PLC0415 - loaded once signals are heard
    from shoal.cli.processes.api import api_process  # noqa: PLC0415
    from shoal.cluster.apiserver.server import ServerOptions  # noqa: PLC0415

    listener = listen(stack, wish.bind, wish.api_port, option="--api-port")
    options = ServerOptions(data_dir=place.path, bind=wish.bind, listener=listener.socket)
    return _Server(
        process=Process(name="api", main=api_process(options, (*ALL, *DIALECTS))),
        connection=lambda: Connection(server=f"unix://{place.path / 'api.sock'}"),
        url=listener.url("https"),
        has_controllers=False,
        agents={},
    )


def _on_kubernetes(wish: Wish, place: DataDir, stack: ExitStack) -> _Server:
    from shoal.api.definitions import ALL, DIALECTS  # noqa: PLC0415 - loaded once signals are heard
    from shoal.cli.processes.agents import EgressPlace  # noqa: PLC0415
    from shoal.cli.processes.kubernetes import kubernetes_process  # noqa: PLC0415
    from shoal.cluster.kubernetes import Part, RealKubernetes, find_binaries  # noqa: PLC0415
    from shoal.kube.kubeconfig import load_connection  # noqa: PLC0415

    binaries = find_binaries(list(wish.kube_binaries))
    has_controllers = binaries.kube_controller_manager is not None and Component.CONTROLLERS in wish.components
    with ExitStack() as briefly:
        # A number that stays the same where the server has to be started again; it opens the port itself.
        listener = listen(briefly, wish.bind, wish.api_port, option="--api-port")
        port, url = listener.port, listener.url("https")
    egress_path = place.path / "agents" / "egress.sock"
    # The same ports each time, since they are written on every node.
    agents = {
        name: listen_as_before(stack, _AGENTS_BIND, place.path / "agents" / f"{name}.port")
        for name in ("local", "simulated")
    }
    egress: EgressPlace | None = None
    if Component.NODES in wish.components:
        listening = listen_on_socket(stack, egress_path)
        egress = EgressPlace(socket=listening, agents=[listener.port for listener in agents.values()])
    cluster = RealKubernetes(
        binaries,
        place.path,
        bind=wish.bind,
        port=port,
        controller_manager=has_controllers,
        verifies_kubelets=True,
        workloads=True,
        definitions=[definition.manifest() for definition in (*ALL, *DIALECTS)],
        egress=egress_path if egress is not None else None,
        extra_flags={Part.CONTROLLER_MANAGER: [f"--controllers=*,{','.join(f'-{name}' for name in _LEFT_TO_US)}"]},
    )
    return _Server(
        process=Process(name="kubernetes", main=kubernetes_process(cluster)),
        connection=lambda: load_connection(place.kubeconfig),
        url=url,
        has_controllers=has_controllers,
        agents=agents,
        egress=egress,
    )


def _has_local_node(wish: Wish) -> bool:
    return Component.NODES in wish.components and wish.has_local_node


def _wanted_ports(wish: Wish) -> dict[str, tuple[str, int]]:
    """The HTTP ports and the options that choose them, by the name of what answers there."""
    wanted: dict[str, tuple[str, int]] = {}
    if Component.PORTAL in wish.components:
        wanted["portal"] = ("--http-port", wish.http_port)
    if Component.SCHEDULER in wish.components:
        wanted["visualizer"] = ("--plugin-port", wish.plugin_port)
    if Component.PORTAL in wish.components:
        wanted |= {"metrics": ("--metrics-port", wish.metrics_port), "health": ("--health-port", wish.health_port)}
    return wanted


def _ports(wish: Wish, stack: ExitStack) -> dict[str, Listener]:
    wanted = _wanted_ports(wish)
    return {name: listen(stack, wish.bind, port, option=option) for name, (option, port) in wanted.items()}


def _webhooks(wish: Wish, place: DataDir, stack: ExitStack) -> Listener | None:
    """Where the API server finds what checks our kinds, if anything does.

    The same port each time, since it is written where the API server looks for it: what is asked while nobody answers
    there yet, or for the moment, waits.
    """
    if not wish.components & {Component.GANGS, Component.TRAINING, Component.SCHEDULER}:
        return None
    return listen_as_before(stack, _AGENTS_BIND, place.path / "agents" / "webhooks.port")


def _progress(wish: Wish, stack: ExitStack) -> Listener | None:
    """Where training programs report how far they are, if any can run; pods find it by the name of its Service."""
    if Component.TRAINING not in wish.components or not wish.has_local_node:
        return None
    return listen(stack, _AGENTS_BIND, 0, option="--no-local-node")


def _forget_webhooks(place: DataDir, server: str) -> None:
    """Takes back what an earlier run told the API server: it would refuse our kinds for want of an answer.

    Webhooks of others, and ours where they run elsewhere, are left alone.
    """
    from shoal.cli.registrations import unregister  # noqa: PLC0415 - hardly ever needed
    from shoal.cluster.kubernetes import admin_of  # noqa: PLC0415

    unregister(admin_of(place.path, server, timeout=10.0))


def _scheduler(wish: Wish) -> Setup:
    """What was asked of the scheduler, read and checked."""
    from shoal.cli.scheduling.assembling import read_setup  # noqa: PLC0415 - loaded where it is needed

    arguments = [f"--scheduler-name={name}" for name in (*GANG_SCHEDULERS, PLAIN_SCHEDULER)]
    arguments.append(f"--gangs-only={PLAIN_SCHEDULER}")
    if wish.scheduler_conf is not None:
        arguments.append(f"--scheduler-conf={wish.scheduler_conf}")
    return read_setup(arguments, wish.visualizer_auth, host=wish.bind)


def _clients(
    wish: Wish,
    place: DataDir,
    server: _Server,
    ports: dict[str, Listener],
    endpoints: dict[str, str],
    webhooks: Listener | None,
    progress: Listener | None,
    scheduler: Setup | None,
) -> list[Process]:
    """The processes beside the server; what they need is loaded here, once for all of them."""
    from shoal.cli.processes.allowed_hosts import AllowedHosts  # noqa: PLC0415 - loads aiohttp

    processes = []
    hosts = AllowedHosts.of(wish.bind, wish.allowed_hosts)
    sources = {server.process.name: server.connection}
    if wish.components - {Component.API, Component.PORTAL}:
        from shoal.cli.processes.control import ControlOptions, control_process, control_socket  # noqa: PLC0415

        options = ControlOptions(
            data_dir=place.path,
            components=wish.components,
            has_all_controllers=not server.has_controllers,
            pools=wish.pools,
            agent=server.agents.get("simulated"),
            egress=None if _has_local_node(wish) else server.egress,
            webhooks=webhooks,
            progress=progress,
        )
        processes.append(Process(name="controllers", main=control_process(options, server.connection)))
        sources["controllers"] = lambda: Connection(server=f"unix://{control_socket(place.path)}")
    plugin_socket: Path | None = None
    if "visualizer" in ports:
        from shoal.cli.processes.scheduler import scheduler_process, scheduler_socket  # noqa: PLC0415

        plugin_socket = scheduler_socket(place.path)
        setup = scheduler or _scheduler(wish)
        main = scheduler_process(setup, place.path, ports["visualizer"], hosts, server.connection)
        processes.append(Process(name="scheduler", main=main))
        sources["scheduler"] = lambda: Connection(server=f"unix://{scheduler_socket(place.path)}")
    if _has_local_node(wish):
        from shoal.cli.processes.node import local_node_processes  # noqa: PLC0415

        node = local_node_processes(
            place.path,
            wish.pod_network,
            server.connection,
            api=server.url,
            agent=server.agents.get("local"),
            egress=server.egress,
            services={PROGRESS_SERVICE: (progress.host, progress.port)} if progress is not None else {},
        )
        for process, socket in node:
            processes.append(process)
            if socket is not None:
                sources[process.name] = partial(Connection, server=f"unix://{socket}")
    if "portal" in ports:
        from shoal.cli.processes.portal import portal_process  # noqa: PLC0415

        portal = portal_process(place, ports, sources, endpoints, plugin_socket, hosts)
        processes.append(Process(name="portal", main=portal))
    gc.freeze()
    return processes
