"""Killing the whole server under write load, again and again, and looking at what clients find when it is back.

Two servers are killed in turn, each on its own data dir and port, so that one starts while the other is under load.
Every writer has names of its own and one request under way: what it was told counts, and only that one request may
have happened without its knowing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import random
import signal
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.support.command import SHOAL, environment

KILLS = 200
LANES = 2
WRITERS = 6
NAMES = 5
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "marks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "marks", "singular": "mark", "kind": "Mark"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MARKS = "/apis/example.com/v1/namespaces/default/marks"
PATHS = (CONFIG_MAPS, PODS, MARKS)
GONE = object()


class Lost(Exception):
    """The connection ended before the answer."""


class Server:
    """One server on one data dir and port, in one life after another."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.port = 0
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> aiohttp.ClientSession:
        """Starts it on the port that it had before, and gives a session as its admin."""
        command = [*SHOAL, "apiserver", f"--data-dir={self.data_dir}", f"--api-port={self.port}"]
        with self.data_dir.with_suffix(".log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command, stdout=subprocess.PIPE, stderr=log, env=environment()
            )
        assert self.process.stdout is not None
        line = (await self.process.stdout.readline()).decode()
        assert line.startswith("Shoal is ready"), self.data_dir.with_suffix(".log").read_text()
        config = yaml.safe_load((self.data_dir / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        port = int(cluster["server"].rpartition(":")[2])
        assert self.port in (0, port)
        self.port = port
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        return aiohttp.ClientSession(cluster["server"], headers=headers, connector=connector)

    async def kill(self) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        assert await self.process.wait() == -signal.SIGKILL


class Ledger:
    """What one lane's clients were told, over all lives of their server."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        """The resourceVersion of each object by its URL, as its writer knows it."""
        self.pending: dict[str, tuple[int, Any]] = {}
        """The requests without an answer, by URL: the newest version known then, and what it would leave."""
        self.newest = 0
        self.versions: dict[int, str] = {}
        """Which object each version was given to."""
        self.watched: dict[str, int] = {}
        """The last version that each watch saw."""
        self.events: dict[str, dict[int, str]] = {path: {} for path in PATHS}
        self.acknowledged = self.resumed = self.expired = self.lives = 0

    def told(self, url: str, version: int, *, is_gone: bool) -> None:
        owner = self.versions.setdefault(version, url)
        assert owner == url, f"version {version} of {owner} was given to {url} as well"
        before = self.held.get(url)
        assert before is None or version > before, f"{url} went from {before} back to {version}"
        self.newest = max(self.newest, version)
        self.acknowledged += 1
        self.pending.pop(url, None)
        if is_gone:
            self.held.pop(url, None)
        else:
            self.held[url] = version


async def request(session: aiohttp.ClientSession, method: str, url: str, body: Any = None, media: str = "") -> Any:
    """The answer's status and value; Lost where the server died first."""
    try:
        headers = {"Content-Type": media or "application/json"}
        data = None if body is None else json.dumps(body)
        async with session.request(method, url, data=data, headers=headers) as response:
            return response.status, await response.json(content_type=None) if response.status != 404 else {}
    except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
        raise Lost from error


def an_object(path: str, name: str, text: str) -> dict[str, Any]:
    """An object that says the same twice, at its beginning and at its end, so that half of it would be seen."""
    metadata = {"name": name, "annotations": {"first": text, "last": text}}
    if path == PODS:
        container = {"name": "main", "image": "none"}
        return {"metadata": metadata, "spec": {"containers": [container], "automountServiceAccountToken": False}}
    if path == MARKS:
        return {"apiVersion": "example.com/v1", "kind": "Mark", "metadata": metadata, "filling": "x" * len(text)}
    return {"metadata": metadata, "data": {"filling": "x" * len(text)}}


async def write(session: aiohttp.ClientSession, ledger: Ledger, writer: int, chance: random.Random) -> None:
    """Creates, patches, updates and deletes its own objects until the server dies."""
    with contextlib.suppress(Lost):
        for _ in itertools.count():
            path = chance.choice(PATHS)
            name = f"writer{writer}-{chance.randrange(NAMES)}"
            url = f"{path}/{name}"
            # The length of a text says which write it was of, for whoever finds it.
            text = chance.choice("abc") * chance.choice([5, 300, 4_000])
            is_there = url in ledger.held
            action = chance.choice(["patch", "update", "delete"]) if is_there else "create"
            ledger.pending[url] = (ledger.newest, GONE if action == "delete" else text)
            if action == "create":
                status, answer = await request(session, "POST", path, an_object(path, name, text))
            elif action == "patch":
                patch = {"metadata": {"annotations": {"first": text, "last": text}}}
                status, answer = await request(session, "PATCH", url, patch, "application/merge-patch+json")
            elif action == "update":
                status, answer = await request(session, "GET", url)
                assert (status, int(answer["metadata"]["resourceVersion"])) == (200, ledger.held[url]), answer
                answer["metadata"]["annotations"] = {"first": text, "last": text}
                status, answer = await request(session, "PUT", url, answer)
            else:
                query = "?gracePeriodSeconds=0" if path == PODS else ""
                status, answer = await request(session, "DELETE", url + query)
            assert status in (200, 201), (action, url, answer)
            if action == "delete":
                ledger.pending.pop(url)
                ledger.held.pop(url)
                ledger.acknowledged += 1
            elif int(answer["metadata"]["resourceVersion"]) != ledger.held.get(url):
                ledger.told(url, int(answer["metadata"]["resourceVersion"]), is_gone=False)
            else:
                ledger.pending.pop(url)  # it was so already


async def watch(session: aiohttp.ClientSession, ledger: Ledger, path: str) -> None:
    """Goes on from the last version seen, whatever happened to the server meanwhile."""
    since = ledger.watched.get(path)
    if since is None:
        with contextlib.suppress(Lost):
            _, listed = await request(session, "GET", path)
            since = ledger.watched[path] = int(listed["metadata"]["resourceVersion"])
    with contextlib.suppress(aiohttp.ClientError, ConnectionError, Lost):
        options = f"watch=1&allowWatchBookmarks=true&resourceVersion={since}"
        async with session.get(f"{path}?{options}", timeout=aiohttp.ClientTimeout(total=None)) as response:
            assert response.status == 200, await response.text()
            ledger.resumed += 1
            async for line in lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    assert event["object"]["code"] == 410, event
                    ledger.expired += 1
                    del ledger.watched[path]
                    ledger.events[path].clear()
                    return
                version = int(event["object"]["metadata"]["resourceVersion"])
                assert version > ledger.watched[path], f"{path}: {version} came after {ledger.watched[path]}"
                ledger.watched[path] = version
                check_whole(event["object"])
                ledger.events[path][version] = f"{path}/{event['object']['metadata']['name']}"


async def lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines; the kill may cut the last."""
    rest = b""
    async for piece in response.content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


def check_whole(found: dict[str, Any]) -> None:
    notes = found["metadata"].get("annotations") or {}
    assert notes.get("first") == notes.get("last"), found["metadata"]["name"]


async def compare(session: aiohttp.ClientSession, ledger: Ledger) -> None:
    """What is there is what was acknowledged, and beyond that at most one write of each writer."""
    revisions = []
    for path in PATHS:
        status, listed = await request(session, "GET", path)
        assert status == 200, listed
        revisions.append(int(listed["metadata"]["resourceVersion"]))
        found = {f"{path}/{item['metadata']['name']}": item for item in listed["items"]}
        for url in sorted({*found, *(url for url in ledger.held if url.startswith(f"{path}/"))}):
            item, held = found.get(url), ledger.held.get(url)
            version = int(item["metadata"]["resourceVersion"]) if item else None
            if item is not None:
                check_whole(item)
            if version == held:
                continue
            assert url in ledger.pending, f"{url} is at {version}, acknowledged at {held}"
            newest, wanted = ledger.pending[url]
            if item is None:
                assert wanted is GONE, f"{url} is gone, acknowledged at {held}"
                del ledger.held[url]
            else:
                assert version is not None
                assert version > (held or 0), f"{url} went from {held} back to {version}"
                assert version > newest or held is None or version > held
                assert item["metadata"]["annotations"]["last"] == wanted, url
                assert ledger.versions.setdefault(version, url) == url
                ledger.held[url] = version
    assert min(revisions) >= ledger.newest, f"the newest version is {min(revisions)}, {ledger.newest} was acknowledged"
    ledger.newest = max(revisions)
    ledger.pending.clear()


async def one_life(server: Server, ledger: Ledger, chance: random.Random) -> None:
    """Starts the server, looks what it kept, writes and watches, and kills it at some moment."""
    is_early = ledger.lives and chance.random() < 0.1
    if is_early:
        # In the middle of its start, where it opens the store and makes its first objects.
        starting = asyncio.ensure_future(server.start())
        await asyncio.sleep(chance.uniform(0.05, 0.9))
        if not starting.done():
            await server.kill()
            with contextlib.suppress(AssertionError):
                await (await starting).close()
            ledger.lives += 1
            return
        session = await starting
    else:
        session = await server.start()
    async with session:
        if not ledger.lives:
            await prepare(session)
        await compare(session, ledger)
        async with asyncio.TaskGroup() as tasks:
            for path in PATHS:
                tasks.create_task(watch(session, ledger, path))
            for writer in range(WRITERS):
                tasks.create_task(write(session, ledger, writer, random.Random(chance.random())))
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            await server.kill()
    ledger.lives += 1


async def prepare(session: aiohttp.ClientSession) -> None:
    status, answer = await request(session, "POST", "/api/v1/namespaces/default/serviceaccounts", an_account())
    assert status in (201, 409), answer
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, answer = await request(session, "POST", definitions, DEFINITION)
    assert status == 201, answer
    deadline = time.monotonic() + 20
    while (await request(session, "GET", MARKS))[0] == 404:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def an_account() -> dict[str, Any]:
    return {"metadata": {"name": "default"}}


async def lane(data_dir: Path, seed: int, kills: int) -> Ledger:
    """One server's lives, and at the end a look at what all of them left."""
    server, ledger, chance = Server(data_dir), Ledger(), random.Random(seed)
    try:
        while ledger.lives < kills:
            await one_life(server, ledger, chance)
        async with await server.start() as session:
            await compare(session, ledger)
            check_watches(ledger)
    finally:
        if server.process is not None and server.process.returncode is None:
            await server.kill()
    return ledger


def check_watches(ledger: Ledger) -> None:
    """No watch missed a write that was acknowledged between the first and the last version that it saw."""
    for path, seen in ledger.events.items():
        if not seen:
            continue
        first, last = min(seen), max(seen)
        for version, url in ledger.versions.items():
            if url.startswith(f"{path}/") and first <= version <= last:
                assert seen.get(version) == url, f"the watch of {path} missed {url} at {version}"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_what_was_acknowledged_survives_any_kill(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    started = time.monotonic()
    ledgers = await asyncio.gather(
        *(lane(tmp_path / f"lane{number}", seed + number, KILLS // LANES) for number in range(LANES))
    )
    acknowledged = sum(ledger.acknowledged for ledger in ledgers)
    resumed, expired = (sum(getattr(ledger, name) for ledger in ledgers) for name in ("resumed", "expired"))
    seconds = time.monotonic() - started
    print(
        f"{KILLS} kills, {acknowledged} writes, {resumed} watches resumed, {expired} of them expired, {seconds:.0f} s"
    )
    assert sum(ledger.lives for ledger in ledgers) == KILLS
    assert acknowledged > KILLS * 10, "the writers got to write"
    logs = "".join((tmp_path / f"lane{number}.log").read_text() for number in range(LANES))
    assert "Traceback" not in logs, logs[-3000:]
