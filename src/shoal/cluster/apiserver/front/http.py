"""The HTTP server: connections in, calls out, and answers back as responses, streams and WebSockets."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from urllib.parse import parse_qs

import structlog
from aiohttp import WSMsgType, web
from aiohttp.http import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict

from shoal.cluster.apiserver.calls import Answer, Call, Streaming, Tunnel, Upgrade, refusal_answer
from shoal.cluster.apiserver.front.connections import READING_SECONDS, Connection, Server
from shoal.cluster.apiserver.refusals import bad_request, timeout, too_large
from shoal.cluster.apiserver.service import Service
from shoal.cluster.upgraded import Upgraded

BODY_LIMIT = 3 * 1024 * 1024
BODY_SECONDS = 60.0
"""How long a body may take to arrive; Kubernetes gives a whole request as long."""

_GZIP_FROM = 128 * 1024
_PIECE = 256 * 1024
_GZIP_WINDOW = 31
_LARGEST_MESSAGE = 16 << 20
_PING_SECONDS = 20.0
_GOODBYE_SECONDS = 0.25

_log = structlog.get_logger(__name__)
_NO_HTTP = (HttpProcessingError, web.RequestPayloadError)
_connections = logging.getLogger(f"{__name__}.connections")
_connections.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], _NO_HTTP)))
"""What aiohttp has to say. That a client does not speak HTTP is told to the client, not with a traceback to the log."""


class HttpFront:
    """Turns HTTP requests into calls of a service.

    ``is_trusted`` where only the owner can connect: a socket in a folder of their own.
    """

    def __init__(self, service: Service, *, is_trusted: bool = False) -> None:
        self._service = service
        self._is_trusted = is_trusted
        self._lasting: set[asyncio.Task[object]] = set()
        self._is_ending = False

    def server(self) -> Server:
        """The aiohttp server; a request whose client has gone is cancelled, and a watch with it."""

        loop = asyncio.get_running_loop()

        def request(*parts: object) -> web.BaseRequest:
            return web.BaseRequest(*parts, loop, client_max_size=BODY_LIMIT)  # type: ignore[misc, arg-type]

        return Server(
            self.handle,
            request_factory=request,
            handler_cancellation=True,
            # Kubernetes takes bodies as they are: nobody compresses them but one who wants to keep us busy unpacking.
            auto_decompress=False,
            access_log=None,
            logger=_connections,
            keepalive_timeout=600,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        connection = request.protocol
        if not isinstance(connection, Connection):
            return await self._handle(request, None)
        connection.begin()
        return await self._handle(request, connection)

    async def _handle(self, request: web.BaseRequest, connection: Connection | None) -> web.StreamResponse:
        try:
            call = self._call(request)
        except ValueError:
            return await _whole(request, refusal_answer(bad_request("the URL cannot be decoded")))
        reply = await self._service.answer(call)
        if connection is not None and call.is_authenticated:
            connection.authenticated()
        if isinstance(reply, Answer):
            return await _whole(request, reply)
        if connection is not None:
            connection.patience = reply.patience if isinstance(reply, Streaming) else None
        task = asyncio.current_task()
        assert task is not None
        self._lasting.add(task)
        if self._is_ending:
            task.cancel()
        try:
            if isinstance(reply, Streaming):
                return await self._stream(request, reply)
            if isinstance(reply, Tunnel):
                return await _tunnel(request, reply)
            return await _upgrade(request, reply)
        finally:
            self._lasting.discard(task)
            if connection is not None:
                connection.patience = READING_SECONDS

    def end_lasting(self) -> None:
        """Ends the answers that would go on: at its end a server need not wait for watches."""
        self._is_ending = True
        for task in self._lasting:
            task.cancel()

    async def _stream(self, request: web.BaseRequest, reply: Streaming) -> web.StreamResponse:
        headers = {"Content-Type": reply.content_type, "Cache-Control": "no-cache, private", **reply.headers}
        response = web.StreamResponse(status=reply.status, headers=headers)
        if request.version >= HttpVersion11:
            response.enable_chunked_encoding()
        chunks = reply.chunks
        try:
            await response.prepare(request)
            try:
                async for chunk in chunks:
                    async with asyncio.timeout(reply.patience):
                        await response.write(chunk)
                    if self._is_ending:
                        break
            except asyncio.CancelledError:
                if not self._is_ending:
                    raise
            async with asyncio.timeout(_GOODBYE_SECONDS if self._is_ending else reply.patience):
                await response.write_eof()
        except TimeoutError:
            # Whoever reads nothing for so long is cut off, and may come back.
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass
        finally:
            if hasattr(chunks, "aclose"):
                await chunks.aclose()
        return response

    def _call(self, request: web.BaseRequest) -> Call:
        url = request.rel_url
        raw_query = url.raw_query_string
        transport = request.transport
        headers: dict[str, str] = {}
        impersonation: list[tuple[str, str]] = []
        for name, value in request.headers.items():
            lower = name.lower()
            headers[lower] = value
            if lower.startswith("impersonate-"):
                impersonation.append((name, value))
        return Call(
            method=request.method,
            path=url.path,
            query=parse_qs(raw_query, keep_blank_values=True, max_num_fields=200) if raw_query else {},
            headers=headers,
            impersonation=impersonation,
            load=(lambda: _body(request)) if request.body_exists else None,
            body_size=BODY_LIMIT if request.content_length is None else min(request.content_length, BODY_LIMIT),
            certificate=_certificate(transport),
            is_trusted=self._is_trusted,
        )


async def _body(request: web.BaseRequest) -> bytes:
    """The body; refused where it is too long, does not come in time or cannot be read."""
    if (request.content_length or 0) > BODY_LIMIT:
        raise too_large(f"Request entity too large: limit is {BODY_LIMIT}")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large(f"Request entity too large: limit is {BODY_LIMIT}") from None
    except web.RequestPayloadError:
        raise bad_request("the body of the request cannot be read") from None
    except TimeoutError:
        raise timeout("Timeout: request did not complete within the allotted timeout", retry_after=0) from None


def _certificate(transport: asyncio.Transport | None) -> bytes | None:
    """The client's certificate, which the TLS layer has verified."""
    session = transport.get_extra_info("ssl_object") if transport is not None else None
    return None if session is None else session.getpeercert(binary_form=True)


async def _whole(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    headers = CIMultiDict({"Content-Type": answer.content_type, "Cache-Control": "no-cache, private", **answer.headers})
    if answer.status == 204:
        del headers["Content-Type"]
    for warning in answer.warnings:
        headers.add("Warning", warning)
    body = answer.body
    size = len(body) if isinstance(body, bytes) else sum(map(len, body))
    if size < _GZIP_FROM:
        content = body if isinstance(body, bytes) else b"".join(body)
        return web.Response(status=answer.status, body=content, headers=headers)
    pieces = [body] if isinstance(body, bytes) else body
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        pieces = [await asyncio.to_thread(_compressed, pieces)]
        size = len(pieces[0])
        headers.update({"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
    headers["Content-Length"] = str(size)
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    if request.method != "HEAD":
        for piece in _of_one_size(pieces):
            # Piece by piece, so that a long answer leaves room for others in between.
            await response.write(piece)
            await asyncio.sleep(0)
    await response.write_eof()
    return response


def _of_one_size(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are neither long nor many."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            joined = b"".join(held)
            for start in range(0, size, _PIECE):
                yield joined[start : start + _PIECE]
            held, size = [], 0
    if held:
        yield b"".join(held)


async def _upgrade(request: web.BaseRequest, reply: Upgrade) -> web.StreamResponse:
    response = web.WebSocketResponse(protocols=[reply.protocol], max_msg_size=_LARGEST_MESSAGE)
    if not response.can_prepare(request):
        return await _whole(request, refusal_answer(bad_request("Upgrade request required: connect by WebSocket")))
    await response.prepare(request)
    pings = asyncio.create_task(_keep_pinging(response))
    try:
        await reply.serve(_ServerSocket(response))
    except ConnectionError:
        pass
    finally:
        pings.cancel()
        await response.close()
    return response


async def _tunnel(request: web.BaseRequest, reply: Tunnel) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.force_close()
    await response.prepare(request)
    with suppress(ConnectionError):
        await reply.serve(Upgraded(request.protocol.set_parser, request.transport, response.write))
    return response


async def _keep_pinging(response: web.WebSocketResponse) -> None:
    """Shows life, and finds a client that is gone. Nobody waits for pongs: while input is held back none are read."""
    with suppress(ConnectionError):
        while not response.closed:
            await asyncio.sleep(_PING_SECONDS)
            await response.ping()


class _ServerSocket:
    def __init__(self, response: web.WebSocketResponse) -> None:
        self._response = response

    async def send(self, data: bytes) -> None:
        await self._response.send_bytes(data)

    async def messages(self) -> AsyncIterator[bytes]:
        async for message in self._response:
            if message.type is WSMsgType.BINARY:
                yield message.data
            elif message.type is WSMsgType.TEXT:
                yield message.data.encode()


def _compressed(pieces: Sequence[bytes]) -> bytes:
    """Quick rather than small: the client is near."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])
