"""How an answer travels: its headers, whether it is compressed, and whether it is sent at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from aiohttp import web

from shoal.visualizer.pages import Body, coalesced
from shoal.visualizer.publisher import Published
from shoal.visualizer.refusals import Refusal

ALLOWED = "GET, HEAD, OPTIONS"
CROSS_ORIGIN: Mapping[str, str] = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Retry-After, X-Shoal-Cycle, X-Shoal-Published",
}
PREFLIGHT: Mapping[str, str] = {
    **CROSS_ORIGIN,
    "Allow": ALLOWED,
    "Access-Control-Allow-Methods": ALLOWED,
    "Access-Control-Allow-Headers": "Authorization, Cache-Control, If-None-Match, Last-Event-ID",
    "Access-Control-Max-Age": "86400",
}
WORTH_COMPRESSING = 1400
"""Bytes: less than this travels in one packet as it is."""
_COMPRESSED_HERE = 64 * 1024
"""Larger bodies are compressed in another thread."""
_SENT_WHOLE = 1 << 20
_CHUNK_WITHIN = 30.0


async def answer(request: web.Request, published: Published, body: Body) -> web.StreamResponse:
    """Sends a body, or word that the client has it already."""
    headers = {
        **CROSS_ORIGIN,
        "ETag": body.etag,
        "Vary": "Accept-Encoding",
        "Cache-Control": "no-cache",
        "X-Shoal-Cycle": str(published.view.cycle),
        "X-Shoal-Published": _rfc3339(published.view.at),
    }
    if is_known(request.headers.get("If-None-Match", ""), body.etag):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = "application/json"
    if body.length >= WORTH_COMPRESSING and accepts_gzip(request.headers.get("Accept-Encoding", "")):
        headers["Content-Encoding"] = "gzip"
        is_quick = body.is_compressed or body.length < _COMPRESSED_HERE
        compressed = body.gzipped() if is_quick else await asyncio.to_thread(body.gzipped)
        return await _sent(request, headers, compressed.length, coalesced(compressed.pieces))
    return await _sent(request, headers, body.length, body.chunks())


async def _sent(
    request: web.Request, headers: Mapping[str, str], length: int, chunks: Iterator[bytes]
) -> web.StreamResponse:
    """Sends a small body at once, and a large one as the client takes it: many slow ones do not each hold a copy."""
    if length < _SENT_WHOLE:
        return web.Response(body=b"".join(chunks), headers=headers)
    response = web.StreamResponse(headers=headers)
    response.content_length = length
    await response.prepare(request)
    if request.method != "HEAD":
        for chunk in chunks:
            await write_or_cut_off(request, response, chunk, within=_CHUNK_WITHIN)
    await response.write_eof()
    return response


async def write_or_cut_off(request: web.Request, response: web.StreamResponse, chunk: bytes, *, within: float) -> None:
    """Writes; whoever does not take a chunk in time is cut off, so that nothing is held for them."""
    try:
        async with asyncio.timeout(within):
            await response.write(chunk)
    except TimeoutError as error:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client did not take what it asked for") from error


def refused(refusal: Refusal) -> web.Response:
    """A refusal as one line of text, which pages of other origins may read too."""
    return web.Response(
        status=refusal.status, text=refusal.sentence + "\n", headers={**CROSS_ORIGIN, **refusal.headers}
    )


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client takes gzip: named with a quality that is not 0, or covered by ``*``."""
    of_any = False
    for part in accept_encoding.split(","):
        coding, _, parameters = part.partition(";")
        wanted = _quality(parameters) > 0
        if coding.strip().lower() in ("gzip", "x-gzip"):
            return wanted
        if coding.strip() == "*":
            of_any = wanted
    return of_any


def is_known(if_none_match: str, etag: str) -> bool:
    """Whether a client has what an ETag stands for; weak and strong ones are the same here."""
    if if_none_match.strip() == "*":
        return True
    return etag.removeprefix("W/") in [known.strip().removeprefix("W/") for known in if_none_match.split(",")]


def _quality(parameters: str) -> float:
    name, _, value = parameters.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def _rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
