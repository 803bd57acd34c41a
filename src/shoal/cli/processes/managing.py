"""A manager as the whole work of a process: it runs until someone asks for the end, and answers on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.children import Reporter
from shoal.cli.processes.loops import stop_signalled
from shoal.kube import Connection, HttpTransport, Manager, Settings
from shoal.kube.probes import metrics_route, serving

if TYPE_CHECKING:
    from aiohttp import web

_GRACE = 2.0


def new_manager(connection: Connection, name: str) -> Manager:
    """A manager that lets go quickly when the process is asked to end."""
    return Manager(HttpTransport(connection), name=name, settings=Settings(grace=_GRACE))


async def run_manager(
    manager: Manager,
    reporter: Reporter,
    *,
    socket: Path,
    until_ready: Callable[[], Awaitable[None]] | None = None,
    routes: Sequence[web.RouteDef] = (),
) -> None:
    """Runs a manager until SIGINT or SIGTERM; ``until_ready`` returns when the process does its work.

    On a Unix socket for the owner of the data dir it answers ``/readyz``, ``/metrics`` and the given routes.
    """
    asked = stop_signalled()
    shown = [*manager.probes.routes(), metrics_route(manager.metrics.registry), *routes]

    async def tell() -> None:
        await manager.wait_until_working()
        if until_ready is not None:
            await until_ready()
        reporter.ready()

    try:
        # A manager that fails ends all of it: a process that lives on and does nothing is started again by nobody.
        async with serving(shown, f"unix:{socket}"), asyncio.TaskGroup() as tasks:
            tasks.create_task(manager.run())
            telling = tasks.create_task(tell())
            await asked.wait()
            telling.cancel()
            manager.stop()
    finally:
        await manager.client.close()
