"""Commits of the store: those who write at once share one, nobody else waits for company, and no write is lost."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.storage import Record, Store
from shoal.cluster.apiserver.storage.records import Change
from tests.cluster.apiserver.storage.objects import an_object

TOO_LONG = 25.0
"""Seconds from one commit to the next: whoever waits for it is not done in time."""


class Watched:
    """A store that takes down what is in each of its commits, and whose disk can be held up."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits: list[list[str]] = []
        self.is_free = threading.Event()
        self.is_free.set()
        self._write = store._disk.write
        store._disk.write = self._held  # type: ignore[method-assign]

    def stage(self, name: str) -> asyncio.Future[Record]:
        return self.store.put("pods", "default", name, an_object(name), previous=None)

    async def has_begun(self, commits: int) -> None:
        async with asyncio.timeout(10):
            while len(self.commits) < commits:
                await asyncio.sleep(0.001)

    def _held(self, changes: Sequence[Change]) -> None:
        self.commits.append([change.record.name for change in changes])
        assert self.is_free.wait(10)
        self._write(changes)


@asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[Watched]:
    store = await Store.open(folder, synchronous="OFF")
    found = Watched(store)
    try:
        yield found
    finally:
        found.is_free.set()
        await store.close()


def gather_for(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cluster.apiserver.storage.store._GATHER", seconds)


async def test_what_comes_soon_after_a_shared_commit_is_gathered_into_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather_for(1.0, monkeypatch)
    async with watched(tmp_path) as found, asyncio.timeout(15):
        found.is_free.clear()
        shared = [found.stage("a"), found.stage("b")]
        await found.has_begun(1)
        early = found.stage("c")
        found.is_free.set()
        await asyncio.gather(*shared)
        late = found.stage("d")
        await asyncio.gather(early, late)
        assert found.commits == [["a", "b"], ["c", "d"]]


async def test_a_single_writer_is_not_kept_waiting_for_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gather_for(TOO_LONG, monkeypatch)
    async with watched(tmp_path) as found, asyncio.timeout(15):
        found.is_free.clear()
        first = found.stage("a")
        await found.has_begun(1)
        second = found.stage("b")
        found.is_free.set()
        await asyncio.gather(first, second)
        assert found.commits == [["a"], ["b"]]


async def test_the_first_write_after_a_pause_is_committed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather_for(TOO_LONG, monkeypatch)
    async with watched(tmp_path) as found, asyncio.timeout(15):
        await asyncio.gather(found.stage("a"), found.stage("b"))
        await found.stage("c")
        assert found.commits == [["a", "b"], ["c"]]


async def test_a_store_that_is_closed_does_not_leave_behind_what_is_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather_for(0.2, monkeypatch)
    async with watched(tmp_path) as found:
        found.is_free.clear()
        shared = [found.stage("a"), found.stage("b")]
        await found.has_begun(1)
        gathered = found.stage("c")
        found.is_free.set()
        await asyncio.gather(*shared)
    assert gathered.result().name == "c"


@given(pauses=st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_every_write_is_committed_once_and_in_order_whenever_it_comes(pauses: list[int]) -> None:
    """A pause is a number of turns of the loop, the longest of them longer than a commit waits for company."""

    async def write_all(folder: Path) -> None:
        async with watched(folder) as found:
            staged = []
            for number, pause in enumerate(pauses):
                staged.append(found.stage(f"pod-{number}"))
                for _ in range(min(pause, 3)):
                    await asyncio.sleep(0)
                if pause == 4:
                    await asyncio.sleep(0.004)
            records = await asyncio.gather(*staged)
        names = [record.name for record in records]
        assert [record.revision for record in records] == list(range(2, len(names) + 2))
        assert [name for commit in found.commits for name in commit] == names
        again = await Store.open(folder)
        assert sorted(record.name for record in again.page("pods", None).records) == sorted(names)
        await again.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(write_all(Path(folder)))
