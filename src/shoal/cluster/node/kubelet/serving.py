"""HTTP for an agent: the kubelet's paths on a Unix socket and, where an API server knows no sockets, on a port."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from shoal.cluster.node.kubelet.access import SecurePort, check_access, is_by_port
from shoal.cluster.node.kubelet.answers import Kubelet, Line, LogOptions, Refused
from shoal.cluster.node.kubelet.usage import exposition, summary
from shoal.kube.probes import bound_for_owner

_TEXT = "text/plain; version=0.0.4; charset=utf-8"

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    500: "InternalError",
    501: "MethodNotAllowed",
    503: "ServiceUnavailable",
}


@asynccontextmanager
async def serving(kubelet: Kubelet, socket: Path, port: SecurePort | None = None) -> AsyncIterator[None]:
    """Serves an agent on a socket of its owner's alone for the length of a block.

    With a port it answers there too, whoever shows the right certificate.
    """
    _make_room(socket)
    app = web.Application(middlewares=[_refusals])
    app.add_routes(_Routes(kubelet).table())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
    await runner.setup()
    try:
        await web.SockSite(runner, bound_for_owner(socket), backlog=4096).start()
        if port is not None:
            # A copy is closed with the site: the port stays its owner's.
            await web.SockSite(runner, port.listener.dup(), ssl_context=port.tls).start()
        yield
    finally:
        await runner.cleanup()
        _make_room(socket)


def _make_room(socket: Path) -> None:
    socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    socket.unlink(missing_ok=True)


@web.middleware
async def _refusals(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        check_access(request)
        return await handler(request)
    except Refused as refused:
        if is_by_port(request):
            # kube-apiserver makes a Status of its own out of a kubelet's words.
            return web.Response(text=refused.message, status=refused.status)
        # As a Status, so that the API server passes the words on whatever the code is.
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        told = {"message": refused.message, "reason": _REASONS.get(refused.status, ""), "code": refused.status}
        return web.json_response(status | told, status=refused.status)


class _Routes:
    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def table(self) -> list[web.RouteDef]:
        """The paths that are answered, as a kubelet has them."""
        routes = [
            web.get("/healthz", self._health),
            web.get("/pods", self._pods),
            web.get("/containerLogs/{namespace}/{pod}/{container}", self._logs),
            web.get("/metrics/resource", self._metrics),
            web.get("/stats/summary", self._summary),
        ]
        for verb in ("exec", "attach", "run"):
            for path in (
                f"/{verb}/{{namespace}}/{{pod}}/{{container}}",
                f"/{verb}/{{namespace}}/{{pod}}/{{uid}}/{{container}}",
            ):
                routes += [web.get(path, self._connect), web.post(path, self._connect)]
        for path in ("/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"):
            routes += [web.get(path, self._connect), web.post(path, self._connect)]
        routes.append(web.get("/podConnect/{namespace}/{pod}/{uid}", self._connect))
        return routes

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _pods(self, request: web.Request) -> web.Response:
        pods = self._kubelet.pods(request.query.get("node", ""))
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})

    async def _metrics(self, request: web.Request) -> web.Response:
        usage = self._kubelet.usage(request.query.get("node", ""))
        text = exposition(usage, now=datetime.now(UTC).timestamp())
        return web.Response(body=text.encode(), headers={"Content-Type": _TEXT})

    async def _summary(self, request: web.Request) -> web.Response:
        return web.json_response(summary(self._kubelet.usage(request.query.get("node", "")), now=datetime.now(UTC)))

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        named = request.match_info
        verb = request.path.split("/", 2)[1]
        return await self._kubelet.connect(request, verb, named["namespace"], named["pod"], named.get("container", ""))

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        named = request.match_info
        options = LogOptions.of(request.query, now=datetime.now(UTC))
        lines = self._kubelet.log(named["namespace"], named["pod"], named["container"], options)
        async with aclosing(_written(lines, options)) as pieces:
            # The first one is asked for before the answer begins, so that a refusal can still be one.
            first = await anext(pieces, b"")
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            with suppress(ConnectionError):
                if first:
                    await response.write(first)
                async for piece in pieces:
                    if piece:
                        await response.write(piece)
        return response


async def _written(lines: AsyncIterator[Line | bytes], options: LogOptions) -> AsyncGenerator[bytes, None]:
    """A log as it is sent, up to its limit."""
    limit = options.limit_bytes
    try:
        async for line in lines:
            piece = line if isinstance(line, bytes) else _line(line, timestamps=options.timestamps)
            if limit is None:
                yield piece
                continue
            yield piece[:limit]
            limit -= len(piece)
            if limit <= 0:
                return
    finally:
        if isinstance(lines, AsyncGenerator):
            await lines.aclose()


def _line(line: Line, *, timestamps: bool) -> bytes:
    moment = line.at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    return (f"{moment}000Z {line.text}\n" if timestamps else f"{line.text}\n").encode()
