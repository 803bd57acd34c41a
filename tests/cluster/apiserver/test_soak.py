"""A day of a busy cluster in half a minute: what is made goes again, and the server ends as large as it was.

The server runs in this process, so that its objects and tasks can be counted. Most requests are handed to its service;
watches, lists and tokens come over real connections. It is measured at rest: first when everything that is bounded has
filled (the history, the caches, the series of metrics), then after each round of the same work.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import itertools
import os
import random
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yaml

from shoal.cluster.apiserver.calls import Answer, Call
from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving
from tests.cluster.apiserver.hostile import DEFINITIONS, definition
from tests.cluster.apiserver.processes import open_descriptors, resident_bytes, threads
from tests.support.network.sessions import https_session

WARM_UP_CHANGES = 24_000
"""More than the 20,000 changes that the history holds: from there on it drops one for each that it takes in."""
WARM_UP_KINDS = 340
"""Each leaves some series of metrics, of which at most a thousand are kept."""
ROUNDS = 5
ROUND_CHANGES = 9_000
ROUND_KINDS = 20
WRITERS = 8
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MiB = 1024 * 1024
MEMORY = 16 * MiB
"""What may come on top in all rounds together: the holes that the allocator leaves between pieces of many sizes."""
OBJECTS = 0.01
"""The part by which Python's objects and blocks of memory may become more: how full the caches are varies a little."""
FILES = 48 * MiB
"""The log of at most 16 MB before it is folded in, and a database whose free pages are given back beyond 16 MB."""


@dataclass(frozen=True)
class Size:
    """How large a server is at rest."""

    memory: int
    blocks: int
    objects: int
    tasks: int
    descriptors: int
    threads: int
    files: int
    series: int
    revision: int


class Soak:
    """A server and those who use it, one round of work after another."""

    def __init__(self, server: ApiServer, data_dir: Path) -> None:
        self.server = server
        self.data_dir = data_dir
        self.numbers = itertools.count()

    async def ask(self, method: str, path: str, body: Any = None, *, media: str = "application/json") -> Any:
        """The status and the value of an answer that is no fault."""
        path, _, text = path.partition("?")
        query = {name: [value] for name, _, value in (pair.partition("=") for pair in text.split("&") if pair)}
        content = b"" if body is None else msgspec.json.encode(body)
        call = Call(
            method=method, path=path, query=query, headers={"content-type": media}, body=content, is_trusted=True
        )
        answer = await self.server.core.service.answer(call)
        assert isinstance(answer, Answer)
        told = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        assert answer.status < 500, (method, path, told[:300])
        return answer.status, msgspec.json.decode(told) if answer.content_type == "application/json" else told

    async def round(self, *, changes: int, kinds: int) -> None:
        """So many changes and kinds, with watchers that come and go meanwhile."""
        until = self.server.core.state.store.revision + changes
        stop = asyncio.Event()
        async with self.connected() as session, asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(self.come_and_go(session, stop))
            async with asyncio.TaskGroup() as working:
                for writer in range(WRITERS):
                    working.create_task(self.write(writer, until))
                working.create_task(self.define(kinds))
            stop.set()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections as the admin."""
        config = yaml.safe_load(self.server.kubeconfig.read_text())
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        trusting = ssl.create_default_context(cadata=authority)
        async with https_session(trusting, base_url=self.server.url, headers=headers) as session:
            yield session

    async def write(self, writer: int, until: int) -> None:
        """Creates, patches, applies and deletes, always names that were never there before."""
        chance = random.Random(writer)
        while self.server.core.state.store.revision < until:
            for number in itertools.islice(self.numbers, 20):
                path = f"{CONFIG_MAPS}/writer{writer}-{number}"
                made = a_config_map(path, {"n": str(number % 7), "writer": str(writer)}, chance.randrange(900))
                assert (await self.ask("POST", CONFIG_MAPS, made))[0] == 201
                patch = {"data": {"a": "y" * chance.randrange(900)}}
                await self.ask("PATCH", path, patch, media="application/merge-patch+json")
                applied = {**a_config_map(path, {}, 10), "data": {"b": str(number)}}
                query = f"?fieldManager=manager{number % 5}"
                await self.ask("PATCH", path + query, applied, media="application/apply-patch+yaml")
                if number % 2:
                    assert (await self.ask("DELETE", path))[0] == 200
            await self.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=writer={writer}")

    async def come_and_go(self, session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
        """Watches for a moment, with a selector of its own, and leaves in the middle."""
        while not stop.is_set():
            number = next(self.numbers)
            query = {"watch": "1", "labelSelector": f"n={number % 7}", "fieldSelector": f"metadata.name!=x{number}"}
            async with session.get(CONFIG_MAPS, params=query) as response:
                assert response.status == 200
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await response.content.readline()
                response.close()
            for path in (f"{CONFIG_MAPS}?limit=20&labelSelector=n%3D{number % 7},m!%3D{number}", "/openapi/v3"):
                async with session.get(path) as response:
                    assert response.status == 200
                    await response.read()

    async def define(self, kinds: int) -> None:
        """Installs kinds, makes objects of them and removes both; has tokens issued, and asks for what is not there."""
        for number in itertools.islice(self.numbers, kinds):
            plural, kind = f"things{number}", f"Thing{number}"
            await self.ask("POST", DEFINITIONS, definition(plural, kind))
            path = f"/apis/example.com/v1/namespaces/default/{plural}"
            made = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "it"}, "spec": {"size": 1}}
            await self.until(201, "POST", path, made)
            applied = {**made, "spec": {"color": "blue", "items": [{"name": "x"}]}}
            query = "?fieldManager=m&force=true"
            assert (await self.ask("PATCH", f"{path}/it{query}", applied, media="application/apply-patch+yaml"))[
                0
            ] == 200
            await self.ask("GET", path)
            await self.ask("GET", "/openapi/v3/apis/example.com/v1")
            await self.ask("GET", "/apis/example.com/v1")
            await self.ask("DELETE", f"{DEFINITIONS}/{plural}.example.com")
            await self.until(404, "GET", path)
            await self.ask("POST", f"{ACCOUNTS}/busy/token", {"spec": {"expirationSeconds": 3600}})
            await self.ask("GET", f"/no/such/path/{number}")
            await self.ask("GET", f"/api/v1/nonsense{number}")

    async def until(self, status: int, method: str, path: str, body: Any = None) -> None:
        """Asks until it is answered so."""
        async with asyncio.timeout(30):
            while (await self.ask(method, path, body))[0] != status:
                await asyncio.sleep(0)

    async def size(self) -> Size:
        """The size once the last connection has ended and the last removed kind is gone."""
        async with asyncio.timeout(20):
            while (await self.ask("GET", DEFINITIONS))[1]["items"] or len(asyncio.all_tasks()) > 20:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        _, metrics = await self.ask("GET", "/metrics")
        assert b"nonsense" not in metrics
        gc.collect()
        process = os.getpid()
        return Size(
            memory=resident_bytes(process),
            blocks=sys.getallocatedblocks(),
            objects=len(gc.get_objects()),
            tasks=len(asyncio.all_tasks()),
            descriptors=open_descriptors(process),
            threads=threads(process),
            files=sum(path.stat().st_size for path in self.data_dir.rglob("*") if path.is_file()),
            series=metrics.count(b"\n"),
            revision=self.server.core.state.store.revision,
        )


def a_config_map(path: str, labels: dict[str, str], size: int) -> dict[str, Any]:
    metadata = {"name": path.rpartition("/")[2], "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * size}}


@pytest.fixture
def thawed() -> Iterator[None]:
    """A server tells the collector to leave alone what is there when it starts; other tests want it back."""
    yield
    gc.unfreeze()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("thawed")
async def test_a_busy_server_stays_as_large_as_it_is(tmp_path: Path) -> None:
    async with serving(ServerOptions(data_dir=tmp_path / "data", port=0, durable=False)) as server:
        soak = Soak(server, tmp_path / "data")
        await soak.ask("POST", ACCOUNTS, {"metadata": {"name": "busy"}})
        began = time.monotonic()
        await soak.round(changes=WARM_UP_CHANGES, kinds=WARM_UP_KINDS)
        sizes = [await soak.size()]
        print(f"warm after {time.monotonic() - began:.0f} s: {sizes[0]}")
        for number in range(ROUNDS):
            await soak.round(changes=ROUND_CHANGES, kinds=ROUND_KINDS)
            sizes.append(await soak.size())
            print(f"round {number + 1} after {time.monotonic() - began:.0f} s: {sizes[-1]}")
        assert (await soak.ask("GET", CONFIG_MAPS))[1]["items"] == []
    warm, last = sizes[0], sizes[-1]
    assert last.revision - warm.revision >= 40_000
    assert last.memory - warm.memory < MEMORY
    assert last.blocks - warm.blocks < OBJECTS * warm.blocks
    assert last.objects - warm.objects < OBJECTS * warm.objects
    assert last.tasks <= warm.tasks
    assert last.threads <= warm.threads + 2
    assert last.descriptors <= warm.descriptors + 2
    assert max(size.files for size in sizes) < FILES
    # At most a thousand series of 29 lines, however many kinds came and went.
    assert max(size.series for size in sizes) < 30_000
