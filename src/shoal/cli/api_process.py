"""The embedded API server as a process: signals end it, and what keeps it from starting is one sentence."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError
from shoal.cli.output import write
from shoal.cli.up import shortest
from shoal.cluster.apiserver.server import PortTaken, ServerOptions, serving
from shoal.cluster.apiserver.storage import DataDirInUse, StoreUnreadable
from shoal.kube import configure_logs


def run_api_server(place: DataDir, *, bind: str, port: int, durable: bool) -> None:
    """Serves until SIGINT or SIGTERM, even where these were inherited as ignored or blocked."""
    configure_logs()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(place, ServerOptions(data_dir=place.path, bind=bind, port=port, durable=durable)))


async def _serve(place: DataDir, options: ServerOptions) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        async with serving(options) as server:
            place.write_endpoints({"api": server.url})
            write(f"Shoal is ready: api {server.url}, kubeconfig {shortest(server.kubeconfig)}\n")
            await asked.wait()
    except (PortTaken, DataDirInUse, StoreUnreadable) as error:
        raise CommandError(str(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one: it answers about twice as many requests."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return uvloop.new_event_loop
