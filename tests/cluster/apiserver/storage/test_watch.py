from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.cluster.apiserver.storage import ChangeType, Overrun, Record, Store, TooNew, Watcher
from tests.cluster.apiserver.storage.objects import an_object, decoded, delete, write

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED


async def told(watcher: Watcher) -> list[tuple[str, str, int]]:
    """What is pending, with its type, name and revision."""
    async with asyncio.timeout(10):
        changes = await watcher.changes()
    return [(as_type.value, change.record.name, change.record.revision) for as_type, change in changes]


async def test_a_watcher_gets_what_was_and_then_what_comes_in_order_and_all_at_once(store: Store) -> None:
    await write(store, "before")
    since = store.revision
    await write(store, "a")
    watcher = store.watch("pods", None, since=since)
    await write(store, "a")
    await write(store, "n", storage="nodes", namespace="")
    await delete(store, "a")
    assert await told(watcher) == [("ADDED", "a", 3), ("MODIFIED", "a", 4), ("DELETED", "a", 6)]
    await write(store, "b")
    assert await told(watcher) == [("ADDED", "b", 7)]


async def test_a_watcher_sees_nothing_that_is_not_committed(store: Store) -> None:
    watcher = store.watch("pods", None, since=1)
    waiting = asyncio.create_task(watcher.changes())
    await asyncio.sleep(0)
    staged = store.put("pods", "default", "a", an_object("a"), previous=None)
    assert not waiting.done()
    record = await staged
    ((as_type, change),) = await waiting
    assert (as_type, change.record, change.previous) == (ADDED, record, None)


async def test_a_deletion_tells_the_last_state_under_its_own_revision(store: Store) -> None:
    created = await write(store, "a")
    watcher = store.watch("pods", None, since=store.revision)
    await delete(store, "a")
    ((as_type, change),) = await watcher.changes()
    assert (as_type, change.previous) == (DELETED, created)
    assert change.shown(as_type) is change.record
    assert decoded(change.record)["metadata"]["resourceVersion"] == str(change.record.revision) == "3"


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        pytest.param(None, None, ["x/a", "x/b", "y/a"], id="everything"),
        pytest.param("x", None, ["x/a", "x/b"], id="a-namespace"),
        pytest.param("x", "a", ["x/a"], id="one-object"),
        pytest.param(None, "a", ["x/a", "y/a"], id="a-name-in-every-namespace"),
    ],
)
@pytest.mark.parametrize("replayed", [True, False], ids=["from-history", "live"])
async def test_a_watcher_gets_what_it_asked_for(
    store: Store, namespace: str | None, name: str | None, expected: list[str], replayed: bool
) -> None:
    live = None if replayed else store.watch("pods", namespace, since=1, name=name)
    for place in [("x", "a"), ("x", "b"), ("y", "a")]:
        await write(store, place[1], namespace=place[0])
    watcher = live or store.watch("pods", namespace, since=1, name=name)
    found = [f"{change.record.namespace}/{change.record.name}" for _, change in await watcher.changes()]
    assert found == expected


def is_web(record: Record) -> bool:
    return record.labels.get("app") == "web"


@pytest.mark.parametrize("replayed", [True, False], ids=["from-history", "live"])
async def test_entering_a_selection_is_an_addition_and_leaving_it_a_deletion(store: Store, replayed: bool) -> None:
    live = None if replayed else store.watch("pods", None, since=1, selects=is_web)
    await write(store, "a", labels={"app": "db"})
    await write(store, "a", labels={"app": "web"}, round=1)
    await write(store, "a", labels={"app": "web"}, round=2)
    await write(store, "a", labels={"app": "db"}, round=3)
    await delete(store, "a")
    await write(store, "b", labels={"app": "web"})
    await delete(store, "b")
    watcher = live or store.watch("pods", None, since=1, selects=is_web)
    assert await told(watcher) == [
        ("ADDED", "a", 3),
        ("MODIFIED", "a", 4),
        ("DELETED", "a", 5),
        ("ADDED", "b", 7),
        ("DELETED", "b", 8),
    ]


async def test_who_leaves_a_selection_is_shown_as_it_last_was_in_it_under_the_new_revision(store: Store) -> None:
    await write(store, "a", labels={"app": "web"}, text='"resourceVersion":"2"')
    watcher = store.watch("pods", None, since=store.revision, selects=is_web)
    await write(store, "a", labels={"app": "db"}, text="new")
    ((as_type, change),) = await watcher.changes()
    assert (as_type, change.type) == (DELETED, MODIFIED)
    shown = change.shown(as_type)
    assert shown is change.shown(as_type)
    assert shown.revision == 3
    assert shown.labels == {"app": "web"}
    assert decoded(shown)["metadata"]["resourceVersion"] == "3"
    assert decoded(shown)["metadata"]["labels"] == {"app": "web"}
    assert decoded(shown)["spec"] == {"text": '"resourceVersion":"2"'}


async def test_watchers_of_one_change_share_its_encodings_and_the_history_keeps_none(store: Store) -> None:
    first, second = (store.watch("pods", namespace, since=1) for namespace in (None, "default"))
    await write(store, "a")
    ((_, one),), ((_, other),) = await first.changes(), await second.changes()
    one.frames["json"] = b"{}"
    assert other.frames == {"json": b"{}"}
    ((_, later),) = await store.watch("pods", None, since=1).changes()
    assert later.frames == {}


async def test_a_watcher_knows_how_far_it_has_seen_everything(store: Store) -> None:
    watcher = store.watch("pods", None, since=1)
    assert watcher.revision == 1
    await write(store, "n", storage="nodes", namespace="")
    assert watcher.revision == 2
    await write(store, "a")
    await write(store, "n", storage="nodes", namespace="")
    assert watcher.revision == 2, "the pod at 3 is yet to be taken"
    await watcher.changes()
    assert watcher.revision == 4


@pytest.mark.parametrize(
    ("bounds", "size"),
    [pytest.param({"behind": 3}, 0, id="count"), pytest.param({"behind_bytes": 4_000}, 1_000, id="bytes")],
)
async def test_a_slow_watcher_is_cut_off_and_the_others_go_on(
    tmp_path: Path, bounds: dict[str, int], size: int
) -> None:
    store = await Store.open(tmp_path, synchronous="OFF", **bounds)
    slow, quick = store.watch("pods", None, since=1), store.watch("pods", None, since=1)
    for number in range(6):
        await write(store, f"p{number}", size=size)
        await quick.changes()
    with pytest.raises(Overrun):
        await slow.changes()
    assert slow.revision == 1, "it must not claim to have seen what it lost"
    await write(store, "more")
    with pytest.raises(Overrun):
        await slow.changes()
    assert await told(quick) == [("ADDED", "more", 8)]
    late = store.watch("pods", None, since=1)
    assert len(await late.changes()) == 7, "what was missed before it came does not count"
    await store.close()


async def test_a_waiting_watcher_that_is_overrun_by_one_commit_is_woken(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF", behind=3)
    watcher = store.watch("pods", None, since=1)
    waiting = asyncio.create_task(watcher.changes())
    await asyncio.sleep(0)
    await asyncio.gather(*(write(store, f"p{number}") for number in range(6)))
    with pytest.raises(Overrun):
        await waiting
    await store.close()


async def test_a_faulty_selection_harms_only_its_own_watcher(store: Store) -> None:
    def breaks(record: Record) -> bool:
        raise LookupError(record.name)

    faulty, sound = store.watch("pods", None, since=1, selects=breaks), store.watch("pods", None, since=1)
    await write(store, "a")
    assert await told(sound) == [("ADDED", "a", 2)]
    with pytest.raises(LookupError):
        await faulty.changes()


async def test_a_closed_watcher_lets_its_reader_go(store: Store) -> None:
    watcher = store.watch("pods", None, since=1)
    waiting = asyncio.create_task(watcher.changes())
    await asyncio.sleep(0)
    watcher.close()
    assert await waiting == []
    await write(store, "a")
    assert await watcher.changes() == []
    assert watcher.revision == 1


async def test_a_reader_that_gives_up_waiting_loses_nothing(store: Store) -> None:
    watcher = store.watch("pods", None, since=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await watcher.changes()
    await write(store, "a")
    assert await told(watcher) == [("ADDED", "a", 2)]


async def test_closing_the_store_ends_watchers_once_they_have_read_what_there_was(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF")
    behind, waiting = store.watch("pods", None, since=1), store.watch("nodes", None, since=1)
    reader = asyncio.create_task(waiting.changes())
    await write(store, "a")
    await store.close()
    assert await reader == []
    assert await told(behind) == [("ADDED", "a", 2)]
    assert await behind.changes() == []


async def test_a_watch_cannot_begin_in_the_future(store: Store) -> None:
    with pytest.raises(TooNew):
        store.watch("pods", None, since=2)
