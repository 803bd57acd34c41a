"""``shoal apiserver``: the embedded Kubernetes API alone, in the foreground."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Annotated

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError
from shoal.cli.output import write
from shoal.cli.up import DATA_DIR, DataDirOption, checked_address, shortest

EXAMPLES = {
    "shoal apiserver": "Serve on 127.0.0.1:7443, and stop with Ctrl-C",
    "shoal apiserver --data-dir /tmp/try --api-port 0": "Serve on any free port",
    "kubectl --kubeconfig .shoal/kubeconfig get namespaces": "Use it from another terminal",
}


def apiserver(
    data_dir: DataDirOption = DATA_DIR,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="The IP address that the server listens on.")
    ] = "127.0.0.1",
    api_port: Annotated[
        int, typer.Option("--api-port", min=0, max=65535, help="The port; 0 means any free one.")
    ] = 7443,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable/--no-durable",
            help="Wait for the disk before a write is answered; without it a power cut may lose the last writes.",
        ),
    ] = True,
) -> None:
    """Run the embedded Kubernetes API server alone: no controllers, no nodes.

    Says "Shoal is ready" when it can be used, by the kubeconfig in the data dir.
    What it holds stays in the data dir, also after a crash.
    """
    address = checked_address(bind)
    place = DataDir(data_dir)
    with place.held(os.getpid()), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(place, bind=address, port=api_port, durable=durable))
    write("Shoal is stopped\n")


async def _serve(place: DataDir, *, bind: str, port: int, durable: bool) -> None:
    from shoal.cluster.apiserver.server import PortTaken, ServerOptions, serving  # noqa: PLC0415
    from shoal.cluster.apiserver.storage import DataDirInUse, StoreUnreadable  # noqa: PLC0415
    from shoal.kube import configure_logs  # noqa: PLC0415

    configure_logs()

    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        async with serving(ServerOptions(data_dir=place.path, bind=bind, port=port, durable=durable)) as server:
            place.write_endpoints({"api": server.url})
            write(f"Shoal is ready: api {server.url}, kubeconfig {shortest(server.kubeconfig)}\n")
            await asked.wait()
    except (PortTaken, DataDirInUse, StoreUnreadable) as error:
        raise CommandError(str(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one: it answers about twice as many requests."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
