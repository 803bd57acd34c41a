"""What a container wrote, as it writes it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from shoal.kube.errors import error_from_response
from shoal.kube.transport import Request, Transport

LONGEST_LINE = 1 << 20
"""A line longer than this is given in pieces: a program that never ends one must not fill our memory."""


async def follow_logs(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    container: str = "",
    follow: bool = True,
    previous: bool = False,
    timestamps: bool = False,
    tail_lines: int | None = None,
    since_seconds: int | None = None,
    since_time: str = "",
    limit_bytes: int | None = None,
    timeout: float | None = 30.0,  # noqa: ASYNC109 - the answer's head only; the log goes on
) -> AsyncGenerator[bytes, None]:
    """A container's log, line by line, without the line ends; to its present end, or with ``follow`` to its last.

    ``previous`` is the log of the container's last life. Whoever stops early closes it with ``contextlib.aclosing``.
    """
    chunks = log_chunks(
        transport,
        namespace=namespace,
        pod=pod,
        container=container,
        follow=follow,
        previous=previous,
        timestamps=timestamps,
        tail_lines=tail_lines,
        since_seconds=since_seconds,
        since_time=since_time,
        limit_bytes=limit_bytes,
        timeout=timeout,
    )
    rest = b""
    async with aclosing(chunks):
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > LONGEST_LINE:
                yield rest
                rest = b""
    if rest:
        yield rest


async def log_chunks(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    container: str = "",
    follow: bool = True,
    previous: bool = False,
    timestamps: bool = False,
    tail_lines: int | None = None,
    since_seconds: int | None = None,
    since_time: str = "",
    limit_bytes: int | None = None,
    timeout: float | None = 30.0,  # noqa: ASYNC109 - the answer's head only; the log goes on
) -> AsyncGenerator[bytes, None]:
    """A container's log in the pieces it arrives in."""
    options = {
        "container": container,
        "follow": "true" if follow else "",
        "previous": "true" if previous else "",
        "timestamps": "true" if timestamps else "",
        "tailLines": "" if tail_lines is None else str(tail_lines),
        "sinceSeconds": "" if since_seconds is None else str(since_seconds),
        "sinceTime": since_time,
        "limitBytes": "" if limit_bytes is None else str(limit_bytes),
    }
    request = Request(
        method="GET",
        path=f"/api/v1/namespaces/{namespace}/pods/{pod}/log",
        query={name: value for name, value in options.items() if value},
        accept="*/*",
        timeout=timeout,
    )
    async with transport.stream(request) as stream:
        if stream.status >= 400:
            raise error_from_response(stream.status, await stream.read(), request=str(request))
        async for chunk in stream.chunks():
            yield chunk
