"""The HTTP ports of a process: ``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], str]
"""Says what is wrong, or nothing where all is well."""


class Probes:
    """Named checks, asked on each request."""

    def __init__(self) -> None:
        self._health: dict[str, Check] = {"ping": lambda: ""}
        self._ready: dict[str, Check] = {}

    def add_health(self, name: str, check: Check) -> None:
        """Adds a check on which the process is restarted when it fails."""
        self._health[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """Adds a check while which fails the process gets no requests."""
        self._ready[name] = check

    def routes(self) -> list[web.RouteDef]:
        """The routes of both probes; ``?verbose`` lists the checks, ``/healthz/NAME`` asks one."""

        from aiohttp import web  # noqa: PLC0415 - costs much to import, and most processes serve nothing

        def answer(checks: dict[str, Check], request: web.Request) -> web.Response:
            chosen = request.match_info.get("name", "")
            if chosen and chosen not in checks:
                return web.Response(status=404, text=f"no check {chosen}: there are {', '.join(checks)}\n")
            results = {name: check() for name, check in checks.items() if name == (chosen or name)}
            failed = any(results.values())
            lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
            verbose = failed or "verbose" in request.query
            text = "\n".join([*lines, f"{'failed' if failed else 'passed'}"]) if verbose else "ok"
            return web.Response(status=500 if failed else 200, text=text + "\n" * verbose)

        async def health(request: web.Request) -> web.Response:
            return answer(self._health, request)

        async def ready(request: web.Request) -> web.Response:
            return answer(self._ready, request)

        return [
            web.get("/healthz", health),
            web.get("/healthz/{name}", health),
            web.get("/livez", health),
            web.get("/readyz", ready),
            web.get("/readyz/{name}", ready),
        ]


def metrics_route(registry: CollectorRegistry) -> web.RouteDef:
    """Serves a registry in the format that the scraper asks for."""

    from aiohttp import web  # noqa: PLC0415 - costs much to import, and most processes serve nothing

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return web.get("/metrics", metrics)


@asynccontextmanager
async def serving(
    routes: list[web.RouteDef], address: str, *, prepare: Callable[[web.Application], None] = lambda _: None
) -> AsyncIterator[int]:
    """Serves routes on ``host:port`` (``:8080`` is every address, port 0 any free one); gives the port.

    ``unix:/path`` is a socket that its owner alone may connect to, and has no port. ``prepare`` may add to the
    application before it serves.
    """
    from aiohttp import web  # noqa: PLC0415 - costs much to import, and most processes serve nothing

    path = Path(address.removeprefix("unix:")) if address.startswith("unix:") else None
    host, _, port = address.rpartition(":")
    app = web.Application()
    app.add_routes(routes)
    prepare(app)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            if path is not None:
                await web.SockSite(runner, bound_for_owner(path)).start()
            else:
                await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"cannot listen on {address}: {why}: choose another address") from error
        yield runner.addresses[0][1] if path is None else 0
    finally:
        await runner.cleanup()


def bound_for_owner(path: Path) -> socket.socket:
    """A socket whose rights are set before it listens; for that the whole process's mask need not change."""
    if path.is_socket():
        path.unlink()
    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.bind(str(path))
        path.chmod(0o600)
    except OSError:
        bound.close()
        raise
    return bound
