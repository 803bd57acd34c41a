"""The HTTP ports of ``shoal up``: a page that says how the cluster is, the metrics of all components, and their health.

The portal will stand here. It is a client of the other processes: what they do not answer is told as such.
"""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from shoal import __version__
from shoal.cli.children import Main, Reporter
from shoal.cli.data_dir import DataDir
from shoal.cli.listeners import Listener
from shoal.cli.processes.allowed_hosts import AllowedHosts
from shoal.cli.processes.exposition import merged
from shoal.cli.processes.loops import run_loop, stop_signalled
from shoal.cli.processes.relaying import Relay
from shoal.cli.processes.sites import serve_on
from shoal.kube import ApiError, Client, Connection, ConnectionFault, HttpTransport, configure_logs

_ANSWERS_WITHIN = 2.0
_OF_THE_SCHEDULER = ("/api/v1/visualizer", "/api/v1/scheduler")
_PAGE = (Path(__file__).parent / "page.html").read_text()


def portal_process(
    place: DataDir,
    ports: Mapping[str, Listener],
    sources: Mapping[str, Callable[[], Connection]],
    endpoints: Mapping[str, str],
    scheduler: Path | None,
    hosts: AllowedHosts,
) -> Main:
    """The process that serves these ports for some hosts; ``sources`` are the components to ask, by name.

    ``scheduler`` is the socket of what answers for the scheduler, if anything does.
    """

    def main(reporter: Reporter) -> None:
        configure_logs()
        components = {name: source() for name, source in sources.items()}
        run_loop(_serve(place, ports, components, endpoints, scheduler, hosts, reporter))

    return main


async def _serve(
    place: DataDir,
    ports: Mapping[str, Listener],
    sources: Mapping[str, Connection],
    endpoints: Mapping[str, str],
    scheduler: Path | None,
    hosts: AllowedHosts,
    reporter: Reporter,
) -> None:
    asked = stop_signalled()
    async with AsyncExitStack() as stack:
        components = {}
        for name, connection in sources.items():
            components[name] = Client(HttpTransport(connection, environ={}), timeout=_ANSWERS_WITHIN)
            stack.push_async_callback(components[name].close)
        answers = Answers(place, components, endpoints)
        sites: Sequence[tuple[Listener, list[web.RouteDef]]] = [
            (
                ports["portal"],
                [
                    web.get("/", answers.page),
                    web.get("/summary", answers.summary),
                    *answers.health_routes(),
                    *_relayed(stack, scheduler),
                ],
            ),
            (ports["metrics"], [web.get("/metrics", answers.metrics)]),
            (ports["health"], answers.health_routes()),
        ]
        for listener, routes in sites:
            await serve_on(stack, listener, routes, hosts=hosts)
        reporter.ready()
        await asked.wait()


def _relayed(stack: AsyncExitStack, scheduler: Path | None) -> list[web.RouteDef]:
    """What the scheduler's process answers here as it does on its own port."""
    if scheduler is None:
        return []
    relay = Relay(scheduler, name="scheduler")
    stack.push_async_callback(relay.close)
    return [web.route("*", path + "{rest:(/.*)?}", relay.pass_on) for path in _OF_THE_SCHEDULER]


class Answers:
    """Answers requests by asking the components."""

    def __init__(self, place: DataDir, components: Mapping[str, Client], endpoints: Mapping[str, str]) -> None:
        self._place = place
        self._components = components
        self._endpoints = endpoints

    def health_routes(self) -> list[web.RouteDef]:
        """``/healthz`` answers while this process does, ``/readyz`` where every component is ready."""
        return [
            web.get("/healthz", self.alive),
            web.get("/livez", self.alive),
            web.get("/readyz", self.ready),
        ]

    async def alive(self, _request: web.Request) -> web.Response:
        """Whether this process answers."""
        return web.Response(text="ok")

    async def ready(self, request: web.Request) -> web.Response:
        """Whether every component is ready; names those that are not."""
        problems = await self._of_each(self._problem)
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in problems.items()]
        failed = any(problems.values())
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        lines.append("readyz check failed" if failed else "readyz check passed")
        return web.Response(status=503 if failed else 200, text="\n".join(lines) + "\n")

    async def metrics(self, _request: web.Request) -> web.Response:
        """The metrics of all components that answer."""
        pages = await self._of_each(lambda client: _text(client, "/metrics"))
        found = {name: page for name, page in pages.items() if page is not None}
        missing = "".join(f"# {name} does not answer\n" for name in pages if name not in found)
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(text=missing + merged(found), headers=headers)

    async def summary(self, _request: web.Request) -> web.Response:
        """How the cluster is, for machines."""
        return web.json_response(await self._summary())

    async def page(self, _request: web.Request) -> web.Response:
        """How the cluster is, for people."""
        return web.Response(text=_page(await self._summary()), content_type="text/html")

    async def _summary(self) -> dict[str, Any]:
        counts: dict[str, Any] = {}
        if "controllers" in self._components:
            said = await _text(self._components["controllers"], "/summary")
            counts = json.loads(said) if said else {}
        parts = [{"name": part.name, "state": part.state, "restarts": part.restarts} for part in self._place.parts()]
        return {
            "version": __version__,
            "endpoints": dict(self._endpoints),
            "kubeconfig": str(self._place.kubeconfig),
            "parts": parts,
            **counts,
        }

    async def _of_each(self, ask: Callable[[Client], Awaitable[str | None]]) -> dict[str, str | None]:
        answers = await asyncio.gather(*map(ask, self._components.values()))
        return dict(zip(self._components, answers, strict=True))

    async def _problem(self, client: Client) -> str | None:
        try:
            await asyncio.wait_for(client.read_path("/readyz"), _ANSWERS_WITHIN)
        except (ApiError, ConnectionFault, TimeoutError) as error:
            return str(error) or "no answer"
        return None


async def _text(client: Client, path: str) -> str | None:
    try:
        return (await asyncio.wait_for(client.read_path(path), _ANSWERS_WITHIN)).decode()
    except (ApiError, ConnectionFault, TimeoutError):
        return None


def _page(summary: Mapping[str, Any]) -> str:
    nodes = summary.get("nodes", {})
    pods = summary.get("pods", {})
    facts = [
        ("nodes", f"{nodes.get('ready', 0)} of {nodes.get('total', 0)} ready" if nodes else "not known"),
        ("pods", ", ".join(f"{count} {phase}" for phase, count in pods.items()) or "none"),
        *((name, address) for name, address in summary["endpoints"].items()),
        ("kubeconfig", summary["kubeconfig"]),
    ]
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in facts)
    parts = "".join(
        f'<tr><td>{html.escape(part["name"])}</td><td class="{html.escape(part["state"])}">{html.escape(part["state"])}'
        f"</td><td>{part['restarts']}</td></tr>"
        for part in summary["parts"]
    )
    return _PAGE.format(
        version=html.escape(summary["version"]),
        facts=rows,
        parts=parts,
        kubeconfig=html.escape(summary["kubeconfig"]),
    )
