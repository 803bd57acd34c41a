from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.cluster.apiserver.storage import DataDirInUse, StorageFailed, Store, StoreUnreadable
from tests.cluster.apiserver.storage.objects import an_object, delete, write

MB = 1024 * 1024


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.name != "lock"}


def size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir())


async def test_a_store_comes_back_as_it_was(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await write(store, "a", labels={"app": "web"}, nodeName="n1")
    await write(store, "n", storage="nodes", namespace="")
    await write(store, "gone")
    await delete(store, "gone")
    seen = [store.get("pods", "default", "a"), store.get("nodes", "", "n")]
    revision = store.revision
    await store.close()

    again = await Store.open(tmp_path)
    assert again.revision == revision, "a deletion's revision is remembered too"
    for before in seen:
        assert before is not None
        after = again.get("pods" if before.namespace else "nodes", before.namespace, before.name)
        assert after is not None
        for field in ("name", "revision", "data", "labels", "fields", "uid"):
            assert getattr(after, field) == getattr(before, field)
    assert again.count("pods") == 1
    assert (await write(again, "b")).revision == revision + 1
    await again.close()


async def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "made" / "here")
    await write(store, "a")
    directory = tmp_path / "made" / "here"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {
        "lock": 0o600,
        "objects.db": 0o600,
        "objects.db-wal": 0o600,
    }
    await store.close()
    assert sorted(file.name for file in directory.iterdir()) == ["lock", "objects.db"]


async def test_two_processes_cannot_open_one_store(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    program = f"""
import asyncio, pathlib
from shoal.cluster.apiserver.storage import Store
asyncio.run(Store.open(pathlib.Path({str(tmp_path)!r})))
"""
    child = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert child.returncode == 1
    assert f"{tmp_path} is in use by another process" in child.stderr
    with pytest.raises(DataDirInUse):
        await Store.open(tmp_path)
    await write(store, "a")
    await store.close()
    await (await Store.open(tmp_path)).close()


def newer(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


def foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE objects (name)")
    connection.close()


def cut_short(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def scrambled(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = random.Random(page).randbytes(64)
    file.write_bytes(content)


def half_an_object(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("""UPDATE objects SET data = CAST('{"metadata":{"uid":"' AS BLOB) WHERE name = 'pod-1'""")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(newer, "it has format 2", id="newer-format"),
        pytest.param(foreign, "a database of something else", id="foreign"),
        pytest.param(lambda file: file.write_bytes(b""), "damaged or no store", id="empty"),
        pytest.param(lambda file: file.write_bytes(b"text" * 5000), "damaged or no store", id="no-database"),
        pytest.param(cut_short, "damaged", id="cut-short"),
        pytest.param(scrambled, "damaged", id="scrambled"),
        pytest.param(half_an_object, "damaged", id="half-an-object"),
    ],
)
async def test_a_file_that_cannot_be_read_is_named_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], object], why: str
) -> None:
    store = await Store.open(tmp_path, synchronous="OFF")
    await asyncio.gather(*(write(store, f"pod-{number}", size=1_000) for number in range(100)))
    await store.close()
    spoil(tmp_path / "objects.db")
    before = contents(tmp_path)
    with pytest.raises(StoreUnreadable, match=why) as refusal:
        await Store.open(tmp_path)
    assert str(tmp_path / "objects.db") in str(refusal.value)
    assert contents(tmp_path) == before


async def test_of_a_damaged_store_the_log_is_left_alone_too(tmp_path: Path) -> None:
    live, copy = tmp_path / "live", tmp_path / "copy"
    store = await Store.open(live, synchronous="OFF")
    await asyncio.gather(*(write(store, f"pod-{number}", size=5_000) for number in range(1_000)))
    for number in range(50):
        await write(store, f"pod-{number}", size=5_000)
    shutil.copytree(live, copy)
    await store.close()
    assert (copy / "objects.db-wal").stat().st_size > 100_000
    scrambled(copy / "objects.db")
    before = contents(copy)
    with pytest.raises(StoreUnreadable):
        await Store.open(copy)
    assert contents(copy) == before


async def test_a_log_without_its_file_is_not_mistaken_for_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "objects.db-wal").write_bytes(b"all that is left")
    with pytest.raises(StoreUnreadable, match=r"objects\.db, to which it belongs, is missing"):
        await Store.open(tmp_path)
    assert (tmp_path / "objects.db-wal").read_bytes() == b"all that is left"


async def test_a_store_that_was_not_finished_being_made_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "objects.db.new").write_bytes(b"half")
    store = await Store.open(tmp_path)
    await write(store, "a")
    await store.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "objects.db"]


async def test_rewriting_the_same_objects_does_not_grow_the_files(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF", history=100)
    largest = 0
    for turn in range(500):
        for name in range(100):
            staged = store.put(
                "pods",
                "default",
                f"pod-{name}",
                an_object(f"pod-{name}", size=500 + (turn * 37 + name) % 1500),
                previous=store.latest("pods", "default", f"pod-{name}"),
            )
        await staged
        if turn % 20 == 0:
            largest = max(largest, size(tmp_path))
    assert store.revision == 50_001
    assert largest < 24 * MB, "100 objects of up to 2 KB, and a log of 16 MB"
    await store.close()
    assert size(tmp_path) < 2 * MB


async def test_deleting_most_objects_gives_the_space_back(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF")
    await asyncio.gather(*(write(store, f"pod-{number}", size=10_000) for number in range(5_000)))
    full = size(tmp_path)
    assert full > 50 * MB
    await asyncio.gather(*(delete(store, f"pod-{number}") for number in range(4_900)))
    for turn in range(2_000):
        await write(store, "pod-4999", turn=turn)
    assert size(tmp_path) < full * 0.75
    await store.close()
    assert size(tmp_path) < 20 * MB, "a few thousand free pages are kept for what comes"


async def test_a_store_that_cannot_be_made_says_so_and_leaves_the_directory_free(tmp_path: Path) -> None:
    (tmp_path / "objects.db.new").mkdir()
    with pytest.raises(StorageFailed, match=r"objects\.db could not be opened"):
        await Store.open(tmp_path)
    (tmp_path / "objects.db.new").rmdir()
    await (await Store.open(tmp_path)).close()
