"""Of several processes one leads; when it dies, freezes or leaves another takes over, and two never write at once."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from shoal.api.core import CONFIG_MAPS
from shoal.kube import Client, NotFound
from shoal.kube.leases import LEASES
from tests.support.clusters.client import client_to, until
from tests.support.clusters.contender import DURATION, LOST
from tests.support.clusters.engines import Engine

ROOT = Path(__file__).parents[2]
Contend = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with client_to(engine.kubeconfig) as client:
        yield client


@pytest.fixture
async def signatures(client: Client, namespace: str) -> AsyncIterator[list[str]]:
    """Who signed the ledger, in the order of the server's own versions."""
    created = await client.create(CONFIG_MAPS, {"metadata": {"name": "ledger"}}, namespace)
    signed: list[str] = []

    async def follow() -> None:
        version = created.metadata.resource_version
        while True:
            async for event in client.watch(CONFIG_MAPS, namespace, resource_version=version):
                version = event.resource_version
                if event.object is not None and event.object.metadata.name == "ledger":
                    signed.append(event.object.data.get("by", ""))

    task = asyncio.create_task(follow())
    yield signed
    task.cancel()
    await asyncio.wait([task])


@pytest.fixture
def contend(engine: Engine, namespace: str) -> Iterator[Contend]:
    started: list[subprocess.Popen[bytes]] = []

    def start(identity: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "tests.support.clusters.contender",
            str(engine.kubeconfig),
            namespace,
            identity,
        ]
        process = subprocess.Popen(command, cwd=ROOT)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


async def holder(client: Client, namespace: str) -> str:
    try:
        return (await client.get(LEASES, "ledger", namespace)).spec.holder_identity or ""
    except NotFound:
        return ""


async def until_signed(signatures: list[str], identity: str, within: float = 20.0) -> None:
    count = signatures.count(identity)

    async def signed() -> bool:
        return signatures.count(identity) > count + 5

    await until(signed, within=within)


def turns(signatures: list[str]) -> list[str]:
    return [who for who, _ in itertools.groupby(who for who in signatures if who)]


async def test_when_the_leader_is_killed_the_other_takes_over_soon_after_the_lease(
    client: Client, namespace: str, contend: Contend, signatures: list[str]
) -> None:
    first = contend("first")
    await until_signed(signatures, "first")
    contend("second")
    await until_signed(signatures, "first")
    assert await holder(client, namespace) == "first"
    first.kill()
    await until_signed(signatures, "second", within=DURATION * 3)
    assert turns(signatures) == ["first", "second"]


async def test_a_leader_that_froze_does_not_write_when_it_wakes(
    client: Client, namespace: str, contend: Contend, signatures: list[str]
) -> None:
    first = contend("first")
    await until_signed(signatures, "first")
    contend("second")
    first.send_signal(signal.SIGUSR1)
    await until_signed(signatures, "second", within=DURATION * 3)
    first.send_signal(signal.SIGCONT)
    assert await asyncio.to_thread(first.wait, 15) == LOST
    await until_signed(signatures, "second")
    assert turns(signatures) == ["first", "second"]


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(
    client: Client, namespace: str, contend: Contend, signatures: list[str]
) -> None:
    first = contend("first")
    await until_signed(signatures, "first")
    contend("second")
    first.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(first.wait, 15) == 0
    assert await holder(client, namespace) in ("", "second")
    await until_signed(signatures, "second", within=DURATION)
    assert turns(signatures) == ["first", "second"]
