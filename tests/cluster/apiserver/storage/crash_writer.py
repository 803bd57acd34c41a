"""Writes to a store as fast as it can, says what was acknowledged, and waits to be killed: ``DIRECTORY SEED``."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import msgspec

from shoal.cluster.apiserver.storage import Encoded, Record, Store

NAMES = 60
WRITERS = 12


def encoded(name: str, size: int, revision: int) -> Encoded:
    metadata = {"name": name, "uid": name, "resourceVersion": str(revision)}
    data = msgspec.json.encode({"metadata": metadata, "filling": "x" * size, "ends": revision})
    return Encoded(data=data, labels={}, fields={}, uid=name)


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write(store: Store, writer: int, chance: random.Random) -> None:
    """Each has names of its own, so that it is told of its writes in their order."""
    while True:
        name = f"pod-{chance.randrange(NAMES // WRITERS) * WRITERS + writer}"
        size = chance.choice([10, 500, 3_000, 20_000])
        latest = store.latest("pods", "default", name)

        def encode(revision: int, name: str = name, size: int = size) -> Encoded:
            return encoded(name, size, revision)

        if latest is not None and chance.random() < 0.3:
            acknowledge("removed", await store.remove("pods", "default", name, encode, previous=latest))
        else:
            acknowledge("put", await store.put("pods", "default", name, encode, previous=latest))


def acknowledge(word: str, record: Record) -> None:
    say(f"{word} {record.name} {record.revision}")


async def main(directory: Path, seed: int) -> None:
    store = await Store.open(directory)
    found = (f"{record.name}@{record.revision}" for record in store.page("pods", None).records)
    say(" ".join(["opened", str(store.revision), *found]))
    await asyncio.gather(*(write(store, writer, random.Random(seed + writer)) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
