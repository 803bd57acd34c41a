"""Serving HTTP on ports that were opened before the process was made."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack

from aiohttp import web

from shoal.cli.listeners import Listener
from shoal.cli.processes.allowed_hosts import AllowedHosts, refuse_other_hosts

_GRACE = 0.5


async def serve_on(
    stack: AsyncExitStack, listener: Listener, routes: Iterable[web.RouteDef], *, hosts: AllowedHosts | None
) -> None:
    """Answers on a port until the stack is closed; for all ``hosts`` where None are given."""
    app = web.Application()
    if hosts is not None:
        refuse_other_hosts(app, hosts)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener.socket).start()
