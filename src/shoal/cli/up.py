"""``shoal up``: a cluster on this machine, in the foreground or detached from the terminal."""

from __future__ import annotations

import ipaddress
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.components import Component, Engine, PodNetwork, chosen_components
from shoal.cli.connecting import AllowedHostOption, checked_hosts
from shoal.cli.data_dir import DataDir
from shoal.cli.output import write

if TYPE_CHECKING:
    from shoal.cluster.node.simulated.pools import Pool

EXAMPLES = {
    "shoal up": "Start, and stop with Ctrl-C",
    "shoal up --detach && shoal status": "Start in the background",
    "shoal up --sim 16x8:H100 --sim 4x0": "With 16 simulated nodes of 8 GPUs and 4 of none",
    "kubectl --kubeconfig .shoal/kubeconfig get queues": "Use it from another terminal",
    "shoal up --data-dir /tmp/try --api-port 0": "Start a second one, on any free port",
}

DATA_DIR = Path(".shoal")
DataDirOption = Annotated[
    Path, typer.Option("--data-dir", metavar="DIR", help="The folder that holds everything Shoal keeps.")
]


def _port(name: str, serves: str) -> Any:
    return typer.Option(name, min=0, max=65535, metavar="PORT", help=f"{serves}; 0 means any free port.")


def up(
    data_dir: DataDirOption = DATA_DIR,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="The IP address that servers listen on.")
    ] = "127.0.0.1",
    api_port: Annotated[int, _port("--api-port", "The Kubernetes API")] = 7443,
    http_port: Annotated[int, _port("--http-port", "The portal: a plain page until there is one")] = 8099,
    plugin_port: Annotated[int, _port("--plugin-port", "The scheduler's plugin server with the visualizer")] = 8081,
    metrics_port: Annotated[int, _port("--metrics-port", "Metrics of all components")] = 8097,
    health_port: Annotated[int, _port("--health-port", "/healthz and /readyz")] = 8096,
    sim: Annotated[
        list[str] | None,
        typer.Option(
            "--sim", metavar="NODESxGPUS[:MODEL]", help="Simulated nodes, such as 16x8:H100; may be repeated."
        ),
    ] = None,
    no_local_node: Annotated[
        bool, typer.Option("--no-local-node", help="Do not run pods on this machine: have no node local.")
    ] = False,
    pod_network: Annotated[
        PodNetwork,
        typer.Option(
            "--pod-network",
            help="Where pods on this machine live: private gives each an address of its own, and nothing leaves that "
            "network; host is the machine's own network, and its ports.",
        ),
    ] = PodNetwork.PRIVATE,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="COMPONENT,…", help=f"Run these alone: {', '.join(Component)}."),
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            "--engine",
            help="What serves the API: embedded needs nothing; kube is a real kube-apiserver and etcd. "
            "Otherwise what the data dir was made with, or embedded.",
        ),
    ] = None,
    kube_binaries: Annotated[
        list[Path] | None,
        typer.Option(
            "--kube-binaries",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="For --engine kube: a folder with etcd and kube-apiserver, may be repeated; otherwise PATH and then "
            "the cache that make kube-binaries fills are searched.",
        ),
    ] = None,
    scheduler_conf: Annotated[
        Path | None,
        typer.Option("--scheduler-conf", metavar="FILE", help="The scheduler's configuration file, in KAI's form."),
    ] = None,
    visualizer_auth: Annotated[
        Path | None,
        typer.Option(
            "--visualizer-auth",
            metavar="FILE",
            help="Bearer tokens for the visualizer, one a line. Otherwise none is needed on a loopback address, and "
            "elsewhere one of the cluster, such as that of the kubeconfig.",
        ),
    ] = None,
    allowed_host: AllowedHostOption = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once it is ready; shoal down stops it.")
    ] = False,
) -> None:
    """Start Shoal on this machine: a Kubernetes cluster with Shoal's kinds.

    Says "Shoal is ready" when all of it is. Ctrl-C or SIGTERM stops it.
    What it holds stays in the data dir, also after a crash.
    """
    checked_address(bind)
    if data_dir == Path():
        raise typer.BadParameter("name a folder of its own, such as .shoal", param_hint="--data-dir")
    components = chosen_components(only)
    pools = tuple(map(_pool, sim or ()))
    hosts = checked_hosts(allowed_host)
    place = DataDir(data_dir)
    once_ready: Callable[[str], None] | None = None
    if detach:
        once_ready = _detached(place)
        if once_ready is None:
            return
    from shoal.cli.starting import Wish, start  # noqa: PLC0415 - other commands do without

    wish = Wish(
        bind=bind,
        api_port=api_port,
        http_port=http_port,
        plugin_port=plugin_port,
        metrics_port=metrics_port,
        health_port=health_port,
        pools=pools,
        has_local_node=not no_local_node,
        pod_network=pod_network,
        components=components,
        engine=engine,
        kube_binaries=tuple(kube_binaries or ()),
        scheduler_conf=scheduler_conf,
        visualizer_auth=visualizer_auth,
        allowed_hosts=hosts,
    )
    start(wish, place, once_ready=once_ready or write)


def checked_address(bind: str) -> str:
    """The address that servers shall listen on, where it is one."""
    try:
        ipaddress.ip_address(bind)
    except ValueError:
        raise typer.BadParameter(f"{bind} is no IP address, try 127.0.0.1 or 0.0.0.0", param_hint="--bind") from None
    return bind


def _pool(text: str) -> Pool:
    from shoal.cluster.node.simulated.pools import InvalidPool, Pool  # noqa: PLC0415 - most starts do without

    try:
        return Pool.parse(text)
    except InvalidPool as error:
        raise typer.BadParameter(str(error), param_hint="--sim") from error


def _detached(place: DataDir) -> Callable[[str], None] | None:
    """Goes on as two: one in a session of its own, which gets what to call once it is ready, and one that waits for
    that, and gets None. Until then what the first one says is seen here, and from then on it is in the log.
    """
    place.make()
    reading, writing = os.pipe()
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        _replace(0, os.open(os.devnull, os.O_RDONLY))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

        def once_ready(line: str) -> None:
            _replace(2, os.dup(log))
            _replace(1, log)
            write(line)
            os.write(writing, line.encode())
            os.close(writing)

        return once_ready
    os.close(writing)
    os.close(log)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with os.fdopen(reading, "rb") as said:
            line = said.readline().decode()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it runs, or has ended: there is nothing left to cancel
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    if not line:
        _, status = os.waitpid(child, 0)
        raise typer.Exit(max(os.waitstatus_to_exitcode(status), 1))
    write(line)
    return None


def _replace(stream: int, by: int) -> None:
    os.dup2(by, stream)
    os.close(by)
