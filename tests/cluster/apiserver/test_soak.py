"""An hour of a busy cluster in a minute: what is made goes again, and the server ends as large as it was."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import random
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.cluster.apiserver.hostile import DEFINITIONS, definition
from tests.cluster.apiserver.processes import open_descriptors, resident_bytes, server_process, threads
from tests.support.embedded import Embedded, running_embedded

WARM_UP_CHANGES = 21_000
"""More than the 20,000 changes that the history holds: from there on it drops one for each that it takes in."""
SECONDS = 45.0
WRITERS = 8
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MiB = 1024 * 1024
GROWTH = 24 * MiB
"""What may come on top after the warm-up: the history's bytes still vary with what is written, and pieces of memory
that the allocator keeps for later use."""
FILES = 48 * MiB
"""The log of at most 16 MB before it is folded in, and a database whose free pages are given back beyond 16 MB."""


@dataclass(frozen=True)
class Size:
    """How large a server is."""

    memory: int
    descriptors: int
    threads: int
    files: int
    revision: int

    @classmethod
    async def of(cls, session: aiohttp.ClientSession, data_dir: Path) -> Size:
        process = server_process(data_dir)
        async with session.get(CONFIG_MAPS, params={"limit": "1"}) as response:
            revision = int((await response.json())["metadata"]["resourceVersion"])
        files = sum(path.stat().st_size for path in data_dir.rglob("*") if path.is_file())
        return cls(resident_bytes(process), open_descriptors(process), threads(process), files, revision)


@asynccontextmanager
async def admin(server: Embedded) -> AsyncIterator[aiohttp.ClientSession]:
    cluster = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(server.server, headers=headers, connector=connector) as session:
        yield session


async def send(session: aiohttp.ClientSession, method: str, url: str, body: Any = None, media: str = "") -> Any:
    data = None if body is None else json.dumps(body)
    async with session.request(method, url, data=data, headers={"Content-Type": media or "application/json"}) as answer:
        content = await answer.read()
        assert answer.status < 500, (method, url, content[:300])
        return answer.status, content


async def write(session: aiohttp.ClientSession, writer: int, stop: asyncio.Event) -> None:
    """Creates, patches and deletes, always names that were never there before."""
    chance = random.Random(writer)
    for number in itertools.count():
        if stop.is_set():
            return
        name = f"writer{writer}-{number}-{time.monotonic_ns()}"
        made = {
            "metadata": {"name": name, "labels": {"n": str(number % 7)}},
            "data": {"a": "x" * chance.randrange(900)},
        }
        assert (await send(session, "POST", CONFIG_MAPS, made))[0] == 201
        for _ in range(3):
            patch = {"data": {"a": "y" * chance.randrange(900)}}
            await send(session, "PATCH", f"{CONFIG_MAPS}/{name}", patch, "application/merge-patch+json")
        assert (await send(session, "DELETE", f"{CONFIG_MAPS}/{name}"))[0] == 200


async def come_and_go(session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
    """Watches for a moment, with a selector of its own, and leaves in the middle."""
    for number in itertools.count():
        if stop.is_set():
            return
        query = {"watch": "1", "labelSelector": f"n={number % 7}", "fieldSelector": f"metadata.name!=x{number}"}
        async with session.get(CONFIG_MAPS, params=query) as response:
            assert response.status == 200
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await response.content.readline()
            response.close()
        await send(session, "GET", f"{CONFIG_MAPS}?limit=20&labelSelector=n%3D{number % 7},m!%3D{number}")


async def define(session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
    """Installs a kind, makes an object of it and removes both; and another has tokens issued."""
    for number in itertools.count():
        if stop.is_set():
            return
        plural, kind = f"things{number}", f"Thing{number}"
        await send(session, "POST", DEFINITIONS, definition(plural, kind))
        path = f"/apis/example.com/v1/namespaces/default/{plural}"
        made = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "it"}, "spec": {"size": 1}}
        while (await send(session, "POST", path, made))[0] == 404 and not stop.is_set():
            await asyncio.sleep(0.01)
        await send(session, "GET", path)
        await send(session, "DELETE", f"{DEFINITIONS}/{plural}.example.com")
        await send(session, "POST", f"{ACCOUNTS}/busy/token", {"spec": {"expirationSeconds": 3600}})
        await send(session, "GET", "/openapi/v3")
        await send(session, "GET", f"/no/such/path/{number}")
        await send(session, "GET", f"/api/v1/nonsense{number}")


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_busy_server_stays_as_large_as_it_is(tmp_path: Path) -> None:
    with running_embedded(tmp_path / "data") as server:
        data_dir = server.kubeconfig.parent
        async with admin(server) as session:
            await send(session, "POST", ACCOUNTS, {"metadata": {"name": "busy"}})
            first = await Size.of(session, data_dir)
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                for writer in range(WRITERS):
                    tasks.create_task(write(session, writer, stop))
                for _ in range(3):
                    tasks.create_task(come_and_go(session, stop))
                tasks.create_task(define(session, stop))
                warm = await settled(session, data_dir, first.revision + WARM_UP_CHANGES)
                await asyncio.sleep(SECONDS)
                last = await Size.of(session, data_dir)
                stop.set()
            _, metrics = await send(session, "GET", "/metrics")
            _, listed = await send(session, "GET", CONFIG_MAPS)
        changes = last.revision - warm.revision
        print(
            f"{changes} changes in {SECONDS:.0f} s after {warm.revision - first.revision} to warm up; memory "
            f"{first.memory / MiB:.0f}, {warm.memory / MiB:.0f}, {last.memory / MiB:.0f} MiB; files "
            f"{warm.files / MiB:.1f}, {last.files / MiB:.1f} MiB; descriptors {warm.descriptors}, {last.descriptors}"
        )
        assert json.loads(listed)["items"] == []
        assert last.memory - warm.memory < GROWTH
        assert last.files < FILES
        assert last.threads <= warm.threads + 2
        assert last.descriptors <= warm.descriptors + 8
        # At most a thousand series of 29 lines, however many kinds came and went.
        assert metrics.count(b"\n") < 30_000
        assert b"nonsense" not in metrics


async def settled(session: aiohttp.ClientSession, data_dir: Path, revision: int) -> Size:
    """The size once the history is full."""
    async with asyncio.timeout(120):
        while (size := await Size.of(session, data_dir)).revision < revision:
            await asyncio.sleep(0.5)
    return size
