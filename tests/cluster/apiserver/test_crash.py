"""Killing the whole server under write load, again and again, and looking at what clients find when it is back.

Two servers are killed in turn, each on its own data dir and port, so that one starts while the other is under load.
They start from a process that has loaded their modules, so that the time goes into what a kill can harm.
Every writer has names of its own and one request under way: what it was told counts, and only that one request may
have happened without its knowing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml

from tests.support.programs.command import environment

KILLS = 100
LANES = 2
WRITERS = 6
NAMES = 5
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MARKS = "/apis/example.com/v1/namespaces/default/marks"
PATHS = (CONFIG_MAPS, PODS, MARKS)
PASSINGS = "/apis/example.com/v1/namespaces/default/passings"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GONE = object()


class Lost(Exception):
    """The connection ended before the answer."""


class Server:
    """One server on one data dir and port, in one life after another."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_suffix(".log")
        self.port = 0
        self.process = 0
        """The process that serves, or will once it has started; 0 where there is none."""
        self._forking: asyncio.subprocess.Process | None = None

    async def begin(self) -> None:
        """Starts a process on the port that it had before."""
        if self._forking is None:
            with self.log.open("ab") as log:
                self._forking = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.cluster.apiserver.forking"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment(),
                )
        assert self._forking.stdin is not None
        arguments = [f"--data-dir={self.data_dir}", f"--api-port={self.port}"]
        self._forking.stdin.write(json.dumps(arguments).encode() + b"\n")
        self.process = int(await self._said("began "))

    async def ready(self) -> aiohttp.ClientSession:
        """A session as its admin, once it can be used."""
        await self._said("Shoal is ready")
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
        os.kill(self.process, signal.SIGKILL)
        assert int(await self._said("ended ", skipping="Shoal is ready")) == -signal.SIGKILL
        self.process = 0

    async def close(self) -> None:
        """Kills what is left, and lets no more be started."""
        if self.process:
            await self.kill()
        if self._forking is not None:
            assert self._forking.stdin is not None
            self._forking.stdin.close()
            await self._forking.wait()

    async def _said(self, beginning: str, *, skipping: str | None = None) -> str:
        """The rest of the next line that it says, which must begin like this."""
        assert self._forking is not None
        assert self._forking.stdout is not None
        while True:
            line = (await self._forking.stdout.readline()).decode()
            if line.startswith(beginning):
                return line.removeprefix(beginning)
            assert line.startswith(skipping or beginning), (line, self.log.read_text()[-3000:])


class Ledger:
    """What one lane's clients were told, over all lives of their server."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        """The resourceVersion of each object by its URL, as its writer knows it."""
        self.pending: dict[str, tuple[int, Any]] = {}
        """The requests without an answer, by URL: the newest version known then, and what it would leave."""
        self.newest = 0
        self.versions: dict[int, str] = {}
        """Which object each version was given to."""
        self.story: dict[str, list[Told]] = {path: [] for path in PATHS}
        """What was told of each kind's objects since its watch began."""
        self.watched: dict[str, int] = {}
        """The last version that each watch saw."""
        self.events: dict[str, dict[int, Told]] = {path: {} for path in PATHS}
        self.passing = Passing.GONE
        """What is known of the kind that comes and goes."""
        self.acknowledged = self.deletes = self.resumed = self.expired = self.lives = self.passed = 0

    def wrote(self, url: str, version: int) -> None:
        """An answer to a write."""
        self.pending.pop(url, None)
        self.acknowledged += 1
        if version == self.held.get(url):
            return  # it was so already
        self._own(url, version)
        before = self.held.get(url, 0)
        assert version > before, f"{url} went from {before} back to {version}"
        self.held[url] = version
        self._tell(url, version, is_gone=False)

    def deleted(self, url: str, version: int | None) -> None:
        """An answer to a delete, which has the version of the delete where it shows the object and no Status."""
        self.pending.pop(url)
        self.acknowledged += 1
        self.deletes += 1
        before = self.held.pop(url)
        if version is not None:
            self._own(url, version)
            assert version > before, f"{url} was deleted at {version}, after it was written at {before}"
        self._tell(url, version if version is not None else before, is_gone=True)

    def found(self, url: str, version: int | None) -> None:
        """What a write without an answer has left."""
        if version is None:
            del self.held[url]
            return
        self._own(url, version)
        self.held[url] = version
        self._tell(url, version, is_gone=False)

    def _own(self, url: str, version: int) -> None:
        owner = self.versions.setdefault(version, url)
        assert owner == url, f"version {version} of {owner} was given to {url} as well"

    def _tell(self, url: str, version: int, *, is_gone: bool) -> None:
        self.newest = max(self.newest, version)
        self.story[url.rpartition("/")[0]].append(Told(url, version, is_gone))


class Told(NamedTuple):
    """One thing that happened to an object. A delete has the version before it, where its own was not told."""

    url: str
    version: int
    is_gone: bool


class Passing(Enum):
    """What a client may count on of a kind that it installs and removes."""

    GONE = "gone"
    UNSURE = "asked for, or asked to go, without an answer"
    THERE = "there"
    GOING = "going"


async def request(session: aiohttp.ClientSession, method: str, url: str, body: Any = None, media: str = "") -> Any:
    """The answer's status and value; Lost where the server died first."""
    try:
        headers = {"Content-Type": media or "application/json"}
        data = None if body is None else json.dumps(body)
        async with session.request(method, url, data=data, headers=headers) as response:
            return response.status, await response.json(content_type=None) if response.status != 404 else {}
    except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
        raise Lost from error


def a_definition(plural: str, kind: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


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
            version = answer["metadata"].get("resourceVersion")
            if action == "delete":
                ledger.deleted(url, int(version) if version else None)
            else:
                ledger.wrote(url, int(version))


async def pass_by(session: aiohttp.ClientSession, ledger: Ledger) -> None:
    """Installs a kind with an object and removes it, until the server dies; what was left half done comes first."""
    with contextlib.suppress(Lost):
        while True:
            status, found = await request(session, "GET", f"{DEFINITIONS}/passings.example.com")
            if status == 404:
                assert ledger.passing is not Passing.THERE
                ledger.passed += ledger.passing is not Passing.GONE
                ledger.passing = Passing.UNSURE
                status, answer = await request(session, "POST", DEFINITIONS, a_definition("passings", "Passing"))
                assert status == 201, answer
                ledger.passing = Passing.THERE
                listed = await served(session, PASSINGS)
                assert listed["items"] == [], "objects of a kind that had gone"
                made = {"apiVersion": "example.com/v1", "kind": "Passing", "metadata": {"name": "it"}}
                status, answer = await request(session, "POST", PASSINGS, made)
                assert status == 201, answer
            elif "deletionTimestamp" not in found["metadata"]:
                assert ledger.passing in (Passing.THERE, Passing.UNSURE)
                ledger.passing = Passing.UNSURE
                status, answer = await request(session, "DELETE", f"{DEFINITIONS}/passings.example.com")
                assert status == 200, answer
                ledger.passing = Passing.GOING
            else:
                assert ledger.passing in (Passing.GOING, Passing.UNSURE)
                await asyncio.sleep(0.01)


async def served(session: aiohttp.ClientSession, path: str) -> Any:
    """The list of a kind, once it is served."""
    async with asyncio.timeout(30):
        while True:
            status, listed = await request(session, "GET", path)
            if status == 200:
                return listed
            await asyncio.sleep(0.01)


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
                    check_watch(ledger, path)
                    del ledger.watched[path]
                    return
                version = int(event["object"]["metadata"]["resourceVersion"])
                assert version > ledger.watched[path], f"{path}: {version} came after {ledger.watched[path]}"
                ledger.watched[path] = version
                check_whole(event["object"])
                url = f"{path}/{event['object']['metadata']['name']}"
                ledger.events[path][version] = Told(url, version, event["type"] == "DELETED")


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
            else:
                assert version is not None
                assert version > newest, f"{url} is at {version}, but {newest} was there before it was asked for"
                assert item["metadata"]["annotations"]["last"] == wanted, url
            ledger.found(url, version)
    assert min(revisions) >= ledger.newest, f"the newest version is {min(revisions)}, {ledger.newest} was acknowledged"
    ledger.newest = max(revisions)
    ledger.pending.clear()


async def one_life(server: Server, ledger: Ledger, chance: random.Random) -> None:
    """Starts the server, looks what it kept, writes and watches, and kills it at some moment."""
    await server.begin()
    if ledger.lives and chance.random() < 0.15:
        # In the middle of its start, where it opens the store and makes its first objects.
        await asyncio.sleep(chance.uniform(0.0, 0.3))
        await server.kill()
        ledger.lives += 1
        return
    async with await server.ready() as session:
        if not ledger.lives:
            await prepare(session)
        await compare(session, ledger)
        async with asyncio.TaskGroup() as tasks:
            for path in PATHS:
                tasks.create_task(watch(session, ledger, path))
            for writer in range(WRITERS):
                tasks.create_task(write(session, ledger, writer, random.Random(chance.random())))
            if chance.random() < 0.3:
                tasks.create_task(pass_by(session, ledger))
            await asyncio.sleep(chance.uniform(0.0, 0.4))
            await server.kill()
    ledger.lives += 1


async def prepare(session: aiohttp.ClientSession) -> None:
    account = {"metadata": {"name": "default"}}
    status, answer = await request(session, "POST", "/api/v1/namespaces/default/serviceaccounts", account)
    assert status in (201, 409), answer
    status, answer = await request(session, "POST", DEFINITIONS, a_definition("marks", "Mark"))
    assert status == 201, answer
    await served(session, MARKS)


async def lane(data_dir: Path, seed: int, kills: int) -> Ledger:
    """One server's lives, and at the end a look at what all of them left."""
    server, ledger, chance = Server(data_dir), Ledger(), random.Random(seed)
    try:
        while ledger.lives < kills:
            await one_life(server, ledger, chance)
        await server.begin()
        async with await server.ready() as session:
            await compare(session, ledger)
            for path in PATHS:
                check_watch(ledger, path)
            if ledger.passing is Passing.GOING:
                async with asyncio.timeout(30):
                    while (await request(session, "GET", f"{DEFINITIONS}/passings.example.com"))[0] != 404:
                        await asyncio.sleep(0.02)
    finally:
        await server.close()
    return ledger


def check_watch(ledger: Ledger, path: str) -> None:
    """A watch missed nothing that was told between the first and the last version that it saw; then both begin anew."""
    seen, story = ledger.events[path], ledger.story[path]
    if not seen:
        return
    first, last = min(seen), max(seen)
    for position, told in enumerate(story):
        if not first <= told.version <= last:
            continue
        if not told.is_gone or (told.version in seen and seen[told.version].is_gone):
            assert seen.get(told.version) == told, f"the watch of {path} missed {told}"
            continue
        # Its own version is not known: it lies before that of the next write of the same object.
        later = next((one.version for one in story[position + 1 :] if one.url == told.url), last + 1)
        if later <= last:
            gone = [one for one in seen.values() if one.url == told.url and one.is_gone]
            assert any(told.version < one.version < later for one in gone), f"the watch of {path} missed {told}"
    ledger.story[path] = [told for told in story if told.version > last]
    seen.clear()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_what_was_acknowledged_survives_any_kill(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    started = time.monotonic()
    ledgers = await asyncio.gather(
        *(lane(tmp_path / f"lane{number}", seed + number, KILLS // LANES) for number in range(LANES))
    )
    names = ("acknowledged", "deletes", "resumed", "expired", "passed", "lives")
    total = {name: sum(getattr(ledger, name) for ledger in ledgers) for name in names}
    print(f"{total} in {time.monotonic() - started:.0f} s")
    assert total["lives"] == KILLS
    assert total["acknowledged"] > KILLS * 10, "the writers got to write"
    assert total["deletes"] > KILLS
    assert total["passed"] > KILLS // 50, "the kind that comes and goes did so"
    logs = "".join((tmp_path / f"lane{number}.log").read_text() for number in range(LANES))
    assert "Traceback" not in logs, logs[-3000:]
