"""The scheduler of gangs and its visualizer as one process: however long a cycle takes, no other process waits for it.

Its plugin server answers on the plugin port, and on a Unix socket for the owner of the data dir, by which the portal
shows the visualizer on its own port; there it also answers ``/readyz`` and ``/metrics``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from shoal.cli.children import Main, Reporter
from shoal.cli.listeners import Listener
from shoal.cli.processes.allowed_hosts import AllowedHosts
from shoal.cli.processes.loops import run_loop
from shoal.cli.processes.managing import new_manager, run_manager
from shoal.cli.processes.sites import serve_on
from shoal.cli.scheduling.assembling import Setup, add_all, remembering
from shoal.kube import Connection, configure_logs


def scheduler_socket(data_dir: Path) -> Path:
    """Where the scheduler's process of a data dir answers."""
    return data_dir / "scheduler.sock"


def scheduler_process(
    setup: Setup, data_dir: Path, listener: Listener, hosts: AllowedHosts, connection: Callable[[], Connection]
) -> Main:
    """The process that schedules gangs; ``listener`` is the plugin port, which answers for some hosts."""

    def main(reporter: Reporter) -> None:
        configure_logs()
        remembered = remembering(setup, data_dir / "usage")
        run_loop(_schedule(remembered, scheduler_socket(data_dir), listener, hosts, connection(), reporter))

    return main


async def _schedule(
    setup: Setup,
    socket: Path,
    listener: Listener,
    hosts: AllowedHosts,
    connection: Connection,
    reporter: Reporter,
) -> None:
    manager = new_manager(connection, "shoal-scheduler")
    plugin_server = add_all(manager, setup)

    async def until_ready() -> None:
        await plugin_server.publisher.after(0)

    async with AsyncExitStack() as stack:
        await serve_on(stack, listener, plugin_server.routes, hosts=None if setup.needs_token else hosts)
        await run_manager(manager, reporter, socket=socket, until_ready=until_ready, routes=plugin_server.routes)
