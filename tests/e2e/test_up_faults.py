"""Whatever is killed, and whenever: a cluster under load comes back, loses nothing and does nothing twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import Binaries
from shoal.kube import Client
from tests.e2e.invariants import everything, versions, wrong
from tests.e2e.load import Load
from tests.support.clusters.both_engines import kube_options
from tests.support.clusters.client import client_to
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import is_alive, wait_until

pytestmark = pytest.mark.slow

SEED = 20260801
PARTS = ["api", "controllers", "scheduler", "portal"]
NODE_PARTS = ["containers", "node", "network"]
AT_REST = 5.0


@pytest.fixture
def shoal(tmp_path: Path) -> Iterator[Shoal]:
    # A port that stays: what the API says of its own address shall not change over a restart.
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shoal = Shoal(tmp_path / "data", "--sim=8x8:H100", f"--api-port={port}")
    yield shoal
    shoal("down")


@pytest.fixture
def with_local_node(tmp_path: Path) -> Iterator[Shoal]:
    """As people have it; what becomes of pods on this machine is in test_local_node_faults."""
    shoal = Shoal(tmp_path / "data", "--sim=8x8:H100", has_local_node=True)
    yield shoal
    shoal("down")


def all_ended(pids: list[int]) -> bool:
    return not any(map(is_alive, pids))


async def kill(shoal: Shoal, part: str) -> None:
    """Ends a part by force and waits until its successor runs."""
    before = await asyncio.to_thread(shoal.part, part)
    os.kill(before["pid"], signal.SIGKILL)
    await back(shoal, part, restarts=before["restarts"] + 1)


async def back(shoal: Shoal, part: str, *, restarts: int) -> None:
    async with asyncio.timeout(45):
        while True:
            now = await asyncio.to_thread(shoal.part, part)
            if (now["state"], now["restarts"]) == ("running", restarts):
                return
            await asyncio.sleep(0.1)


async def pause(shoal: Shoal, part: str, seconds: float) -> None:
    """Stops a part as a busy machine would, and lets it go on."""
    pid = (await asyncio.to_thread(shoal.part, part))["pid"]
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def busy(load: Load, *, writers: int, rounds: int) -> AsyncIterator[None]:
    """The load, while the block runs, and until its last write is acknowledged."""
    ended = asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        tasks.create_task(load.keep_busy(ended, writers=writers, rounds=rounds))
        yield
        ended.set()


async def settled(client: Client, *loads: Load, within: float) -> None:
    """Waits until everything is as it was asked for, with nothing left over."""
    deadline = time.monotonic() + within
    while problems := wrong(await everything(client), *loads):
        assert time.monotonic() < deadline, f"seed {SEED}, after {within:.0f} s: " + "\n".join(problems[:20])
        await asyncio.sleep(0.5)


async def at_rest(client: Client) -> dict[str, str]:
    """Waits until nothing is written for a while; gives the versions of all objects."""
    before = versions(await everything(client))
    deadline = time.monotonic() + 20
    while True:
        await asyncio.sleep(AT_REST)
        after = versions(await everything(client))
        if after == before:
            return after
        changed = {name for name, version in {*before.items()} ^ {*after.items()}}
        assert time.monotonic() < deadline, f"written at rest: {sorted(changed)}"
        before = after


@pytest.mark.timeout(200)
async def test_killed_part_by_part_under_load_it_loses_nothing_and_does_nothing_twice(shoal: Shoal) -> None:
    chance = random.Random(SEED)
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        async with client_to(shoal.kubeconfig) as client:
            load = Load(client, "under-load", seed=SEED)
            leaving = Load(client, "leaving", seed=SEED, leaves=True)
            killed: Counter[str] = Counter()
            async with busy(load, writers=2, rounds=12), busy(leaving, writers=1, rounds=3):
                for part in [*PARTS, "api", "controllers", "controllers", "api"]:
                    await asyncio.sleep(chance.uniform(0.2, 1.5))
                    await kill(shoal, part)
                    killed[part] += 1
                await pause(shoal, "api", 2)
                await pause(shoal, "controllers", 2)
            assert load.writes > 100
            await settled(client, load, leaving, within=60)
            status = shoal.status()
            assert {part["name"]: part["restarts"] for part in status["parts"]} == {"supervisor": 0, **killed}
            assert (status["ready"], status["nodes"]) == (True, {"total": 8, "ready": 8})

            # Killed all at once, it comes back as it was.
            before = await at_rest(client)
            for pid in [process.pid, *shoal.pids()]:
                os.kill(pid, signal.SIGKILL)
            process.wait()
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        async with client_to(shoal.kubeconfig) as client:
            assert await at_rest(client) == before
            assert wrong(await everything(client), load, leaving) == []


def test_when_the_supervisor_is_killed_nothing_lives_on_and_the_data_are_free_at_once(with_local_node: Shoal) -> None:
    for _ in range(2):
        with with_local_node.foreground() as (process, line):
            assert line.startswith("Shoal is ready")
            children = with_local_node.pids()
            assert len(children) == len(PARTS) + len(NODE_PARTS)
            process.kill()
            process.wait()
            wait_until(partial(all_ended, children), "all parts to end", within=2)


def test_a_start_may_follow_a_kill_at_any_moment(with_local_node: Shoal) -> None:
    """Nothing that a start leaves half done keeps the next one from working."""
    chance = random.Random(SEED)
    for _ in range(6):
        with subprocess.Popen(with_local_node.up(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0.1, 1.5))
            process.kill()
    with with_local_node.foreground() as (_, line):
        assert line.startswith("Shoal is ready")


@pytest.mark.kube
@pytest.mark.timeout(200)
async def test_the_same_holds_on_a_real_kubernetes(binaries: Binaries, tmp_path: Path) -> None:
    shoal = Shoal(tmp_path / "data", "--sim=4x8", *kube_options(binaries))
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        async with client_to(shoal.kubeconfig) as client:
            load = Load(client, "under-load", seed=SEED)
            async with busy(load, writers=2, rounds=3):
                for part in ("controllers", "kube-apiserver", "kube-controller-manager", "portal", "etcd"):
                    await kill(shoal, part)
            await settled(client, load, within=90)
    assert shoal.status()["running"] is False
