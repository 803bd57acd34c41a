"""An API server that knows pods alone: it lists them, and sends changes as fast as they are read.

``python -m bench.holding.server`` prints the port it took. The first two parts of the path say what there is to see:
below ``/10000/2000`` are 10,000 pods, and a watch brings 2,000 changes of them and then stays silent.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Iterable, Iterator

import msgspec
import uvloop
from aiohttp import web

from bench.holding.pods import VERSION_DIGITS, pod_json

CHANGED = 2000
"""Changes go round among this many pods."""
FIRST_CHANGE = 10**9
_AT_ONCE = 256 * 1024


async def pods(request: web.Request) -> web.StreamResponse:
    count, changes = int(request.match_info["pods"]), int(request.match_info["changes"])
    if request.query.get("watch") not in ("true", "True"):
        return web.Response(body=page(request, count), content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    initial = request.query.get("sendInitialEvents") == "true"
    for chunk in gathered(initial_frames(count) if initial else change_frames(min(count, CHANGED), changes)):
        await response.write(chunk)
    await asyncio.Event().wait()
    return response


def page(request: web.Request, count: int) -> bytes:
    """One page of the list, by the rules of limit and continue."""
    first = int(request.query.get("continue") or 0)
    last = min(count, first + int(request.query.get("limit") or count))
    metadata = {"resourceVersion": str(count)} | ({"continue": str(last)} if last < count else {})
    items = b",".join(pod_json(number, number + 1) for number in range(first, last))
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":' + msgspec.json.encode(metadata)
    return head + b',"items":[' + items + b"]}"


def initial_frames(count: int) -> Iterator[bytes]:
    """A streaming list: everything there is, and a bookmark that says so."""
    for number in range(count):
        yield b'{"type":"ADDED","object":' + pod_json(number, number + 1) + b"}\n"
    annotations = {"k8s.io/initial-events-end": "true"}
    mark = {"kind": "Pod", "apiVersion": "v1"}
    mark_metadata = {"resourceVersion": str(count), "annotations": annotations}
    yield msgspec.json.encode({"type": "BOOKMARK", "object": {**mark, "metadata": mark_metadata}}) + b"\n"


def change_frames(among: int, count: int) -> Iterator[bytes]:
    """That many changes, each with a newer version than the one before."""
    templates = changed(among)
    for number in range(count):
        head, tail = templates[number % among]
        yield head + str(FIRST_CHANGE + number).zfill(VERSION_DIGITS).encode() + tail


@functools.cache
def changed(among: int) -> list[tuple[bytes, bytes]]:
    """Frames of changed pods, cut where the version goes."""
    mark = 10**VERSION_DIGITS - 1
    halves = []
    for number in range(among):
        frame = b'{"type":"MODIFIED","object":' + pod_json(number, mark) + b"}\n"
        head, _, tail = frame.partition(str(mark).encode())
        halves.append((head, tail))
    return halves


def gathered(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Frames in pieces that are worth a write."""
    waiting: list[bytes] = []
    size = 0
    for frame in frames:
        waiting.append(frame)
        size += len(frame)
        if size >= _AT_ONCE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


async def serve() -> None:
    application = web.Application()
    application.router.add_get("/{pods}/{changes}/api/v1/pods", pods)
    application.router.add_get("/{pods}/{changes}/api/v1/namespaces/{namespace}/pods", pods)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    changed(CHANGED)
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # when the input ends, so does the server, whoever still listens


if __name__ == "__main__":
    uvloop.run(serve())
