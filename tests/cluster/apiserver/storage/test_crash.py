"""Killing the process that writes, again and again, and looking at what is left."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
import pytest

from shoal.cluster.apiserver.storage import Record, Store
from tests.cluster.apiserver.storage.crash_writer import WRITERS

KILLS = 100
WRITER = Path(__file__).with_name("crash_writer.py")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_was_acknowledged_survives_any_kill(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    expected = Expected()
    for generation in range(KILLS):
        run_and_kill(tmp_path, generation, chance, expected)
        # Mostly it is the next child that opens what the last one left, and says what it found.
        if generation % 10 == 9:
            asyncio.run(look_inside(tmp_path))
    assert expected.opened > KILLS // 2
    assert expected.acknowledged > KILLS * 20, "the writers got to write"


class Expected:
    """What must be there, from what the writers were told had happened."""

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        """The revisions of the objects that are there, by name."""
        self.newest = 1
        self.newest_of: dict[int, int] = {}
        """The newest acknowledged revision by writer, each of which has one write under way at most."""
        self.acknowledged = self.opened = 0

    def hear(self, line: str) -> None:
        word, *rest = line.split()
        if word == "opened":
            self.compare(
                int(rest[0]), {name: int(revision) for name, revision in (each.split("@") for each in rest[1:])}
            )
            return
        name, revision = rest[0], int(rest[1])
        # They are told in the order of their revisions, of which none may come twice, in whatever life of the process.
        assert revision > self.newest, f"revision {revision} came after {self.newest}"
        self.newest = self.newest_of[writer_of(name)] = revision
        self.acknowledged += 1
        if word == "put":
            self.objects[name] = revision
        else:
            del self.objects[name]

    def compare(self, revision: int, found: dict[str, int]) -> None:
        """Beyond what was acknowledged, each writer may have got one write done that it was not told of."""
        assert revision >= self.newest, f"opened at {revision}, though {self.newest} was acknowledged"
        surprised = set()
        for name in sorted(self.objects.keys() | found.keys()):
            if found.get(name) == self.objects.get(name):
                continue
            told = self.newest_of.get(writer_of(name), 1)
            difference = f"{name} is at {found.get(name)}, acknowledged at {self.objects.get(name)}"
            assert found.get(name, revision) > told, difference
            assert writer_of(name) not in surprised, difference
            surprised.add(writer_of(name))
        self.objects, self.newest = dict(found), revision
        self.opened += 1


def writer_of(name: str) -> int:
    return int(name.removeprefix("pod-")) % WRITERS


def run_and_kill(directory: Path, generation: int, chance: random.Random, expected: Expected) -> None:
    command = [sys.executable, str(WRITER), str(directory), str(chance.randrange(1_000_000))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        # The first ones may die while they make or open the store; the others once they have written a while.
        wait = chance.uniform(0, 0.15) if generation % 4 == 0 else None
        timer = threading.Timer(wait, child.kill) if wait is not None else None
        if timer is not None:
            timer.start()
        enough = chance.randrange(1, 400)
        for number, line in enumerate(whole_lines(child.stdout)):
            expected.hear(line)
            if timer is None and number == enough:
                child.kill()
        child.wait()
        if timer is not None:
            timer.cancel()
        assert child.returncode == -9


def whole_lines(stream: IO[str]) -> Iterator[str]:
    """Lines that were printed to their end; the kill may cut the last."""
    return (line for line in stream if line.endswith("\n"))


async def look_inside(directory: Path) -> None:
    store = await Store.open(directory)
    for record in store.page("pods", None).records:
        check_whole(record, store.revision)
    await store.close()
    with contextlib.closing(sqlite3.connect(directory / "objects.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def check_whole(record: Record, newest: int) -> None:
    content = msgspec.json.decode(record.data)
    assert content["metadata"]["resourceVersion"] == str(record.revision)
    assert content["metadata"]["name"] == record.name
    assert content["ends"] == record.revision
    assert record.revision <= newest
