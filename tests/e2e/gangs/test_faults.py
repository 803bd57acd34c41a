"""Controllers of gangs that are killed again and again while users make, scale, change and delete sets.

Whenever they are killed: all becomes as it was asked for last, there is never a pod too many, no gate is lifted too
early, nothing is left over, and once all is done nothing is written any more.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shoal.api.grove import POD_CLIQUE_SETS
from shoal.gangs.backends.controller import GOOD_NEWS
from tests.e2e.invariants import everything, versions, wrong
from tests.support.clusters.shoal_up import SHOAL, Shoal
from tests.support.gangs.stage import Stage, a_stage
from tests.support.gangs.user import User, problems_of, random_actions

pytestmark = pytest.mark.slow

SEED = 20261115
SETS = ("red", "green", "blue")
ROUNDS = 14
AT_REST = GOOD_NEWS + 1.0
"""Seconds without a write after which none is to come: what nobody waits for is put off for less."""


@pytest.mark.timeout(420)
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
async def test_an_operator_that_is_killed_again_and_again_does_nothing_twice(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    shoal = Shoal(tmp_path / "data", "--only=api,controllers,nodes")
    async with a_busy_stage(shoal, chance) as (stage, users):
        while not all(user.done() for user in users):
            with an_operator(shoal, tmp_path) as process:
                await asyncio.wait(users, timeout=chance.uniform(0.8, 3.0))
                process.kill()
        with an_operator(shoal, tmp_path):
            await settled(stage, seed)
            await at_rest(stage)
            await leave(stage)


@pytest.mark.timeout(420)
async def test_a_process_of_all_controllers_that_is_killed_does_nothing_twice(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    shoal = Shoal(tmp_path / "data", "--only=api,controllers,gangs,nodes")
    async with a_busy_stage(shoal, chance) as (stage, users):
        for restarts in range(1, 5):
            await asyncio.wait(users, timeout=chance.uniform(0.5, 3.0))
            part = await asyncio.to_thread(shoal.part, "controllers")
            os.kill(part["pid"], signal.SIGKILL)
            await back(shoal, restarts=restarts)
        await asyncio.wait(users)
        await settled(stage, SEED)
        await at_rest(stage)
        await leave(stage)


@asynccontextmanager
async def a_busy_stage(shoal: Shoal, chance: random.Random) -> AsyncIterator[tuple[Stage, list[asyncio.Task[None]]]]:
    """A cluster with room for all, and a user at work on each of the sets."""
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        async with a_stage(shoal.kubeconfig) as stage:
            await stage.add_nodes(2, cpu=60)
            users = [asyncio.create_task(work(stage, name, random.Random(chance.random()))) for name in SETS]
            yield stage, users
            for user in users:
                user.result()
        process.terminate()
        process.wait()


async def work(stage: Stage, name: str, chance: random.Random) -> None:
    user = User(stage, name)
    for action in random_actions(chance, ROUNDS):
        await user.act(action)
        await asyncio.sleep(chance.uniform(0, 1.5))


class an_operator:  # noqa: N801 - it is used as a word of a sentence
    """``shoal operator`` as a process, for the length of a block."""

    def __init__(self, shoal: Shoal, folder: Path) -> None:
        ports = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
        self._command = [SHOAL, "operator", "--enable=gangs", f"--kubeconfig={shoal.kubeconfig}", *ports]
        self._log = folder / "operator.log"

    def __enter__(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


async def back(shoal: Shoal, *, restarts: int) -> None:
    async with asyncio.timeout(90):
        while True:
            part = await asyncio.to_thread(shoal.part, "controllers")
            if (part["state"], part["restarts"]) == ("running", restarts):
                return
            await asyncio.sleep(0.1)


async def settled(stage: Stage, seed: int) -> None:
    """Waits until each set is as it was asked for last."""
    deadline = time.monotonic() + 120
    while problems := [problem for name in SETS for problem in await problems_of(stage, name)]:
        assert time.monotonic() < deadline, f"seed {seed}:\n" + "\n".join(problems[:20]) + f"\n{await stage.story()}"
        await asyncio.sleep(0.25)


async def at_rest(stage: Stage) -> None:
    """Waits until nothing at all is written for a while."""
    before = versions(await everything(stage.client))
    deadline = time.monotonic() + 5 * AT_REST
    while True:
        await asyncio.sleep(AT_REST)
        after = versions(await everything(stage.client))
        if after == before:
            return
        changed = sorted({name for name, _ in {*before.items()} ^ {*after.items()}})
        assert time.monotonic() < deadline, f"written at rest: {changed}"
        before = after


async def leave(stage: Stage) -> None:
    """Deletes all sets: nothing is left of them, nor of anything that was made on the way."""
    for name in await stage.names(POD_CLIQUE_SETS):
        await stage.delete(name)
    await stage.until_gone(*SETS)
    deadline = time.monotonic() + 60
    while problems := wrong(await everything(stage.client)):
        assert time.monotonic() < deadline, "\n".join(problems[:20])
        await asyncio.sleep(0.25)
