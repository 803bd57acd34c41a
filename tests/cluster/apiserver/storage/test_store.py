from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from shoal.cluster.apiserver.storage import Changed, ChangeType, Encoded, StorageFailed, Store
from tests.cluster.apiserver.storage.objects import an_object, decoded, delete, write


async def test_a_new_store_begins_at_revision_one_and_each_write_takes_the_next(store: Store) -> None:
    assert store.revision == 1
    first = await write(store, "a")
    second = await write(store, "b", storage="nodes", namespace="")
    gone = await delete(store, "a")
    assert [first.revision, second.revision, gone.revision] == [2, 3, 4]
    assert store.revision == 4
    assert decoded(second)["metadata"]["resourceVersion"] == "3"


async def test_a_write_is_seen_by_writers_at_once_and_by_readers_once_it_is_committed(store: Store) -> None:
    staged = store.put("pods", "default", "a", an_object("a"), previous=None)
    assert store.get("pods", "default", "a") is None
    assert store.count("pods") == 0
    assert store.revision == 1
    latest = store.latest("pods", "default", "a")
    assert latest is not None
    assert await staged is latest
    assert store.get("pods", "default", "a") is latest
    assert store.latest("pods", "default", "a") is latest
    assert store.count("pods") == 1


async def test_of_two_writers_who_saw_the_same_state_the_second_is_refused_before_anything_is_committed(
    store: Store,
) -> None:
    seen = await write(store, "a", round=0)
    first = store.put("pods", "default", "a", an_object("a", round=1), previous=seen)
    with pytest.raises(Changed) as refusal:
        store.put("pods", "default", "a", an_object("a", round=2), previous=seen)
    assert refusal.value.latest is store.latest("pods", "default", "a")
    with pytest.raises(Changed):
        store.remove("pods", "default", "a", an_object("a"), previous=seen)
    assert decoded(await first)["spec"] == {"round": 1}


async def test_a_name_is_taken_once(store: Store) -> None:
    await write(store, "a")
    with pytest.raises(Changed):
        store.put("pods", "default", "a", an_object("a"), previous=None)


async def test_writes_to_one_object_may_follow_each_other_before_the_first_is_committed(store: Store) -> None:
    created = store.put("pods", "default", "a", an_object("a", round=1), previous=None)
    second = store.latest("pods", "default", "a")
    assert second is not None
    removed = store.remove("pods", "default", "a", an_object("a", round=1), previous=second)
    assert store.latest("pods", "default", "a") is None
    again = store.put("pods", "default", "a", an_object("a", round=2), previous=None)
    revisions = [record.revision for record in await asyncio.gather(created, removed, again)]
    assert revisions == [2, 3, 4]
    final = store.get("pods", "default", "a")
    assert final is not None
    assert decoded(final)["spec"] == {"round": 2}


async def test_what_a_reader_sees_between_commits_never_runs_ahead_of_a_staged_deletion(store: Store) -> None:
    """The overlay goes on to answer for an object while any later write to it is staged."""
    writes = []
    for _ in range(3):
        writes.append(store.put("pods", "default", "a", an_object("a"), previous=None))
        await asyncio.sleep(0)  # the first commit is on its way, the rest is staged behind it
        latest = store.latest("pods", "default", "a")
        assert latest is not None
        writes.append(store.remove("pods", "default", "a", an_object("a"), previous=latest))
    for each in writes:
        await each
        assert store.latest("pods", "default", "a") is None
    assert store.revision == 7


async def test_an_encoding_that_fails_takes_no_revision(store: Store) -> None:
    def refuse(revision: int) -> Encoded:
        raise ValueError(revision)

    with pytest.raises(ValueError, match="2"):
        store.put("pods", "default", "a", refuse, previous=None)
    assert store.latest("pods", "default", "a") is None
    assert (await write(store, "a")).revision == 2


async def test_a_write_goes_on_when_its_waiter_is_gone(store: Store) -> None:
    store.put("pods", "default", "a", an_object("a"), previous=None).cancel()
    assert await store.reached(2, timeout=10)
    assert store.get("pods", "default", "a") is not None


async def test_more_writes_than_one_statement_or_commit_holds_are_all_kept(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF")
    await asyncio.gather(*(write(store, f"pod-{number}") for number in range(2_500)))
    await asyncio.gather(*(delete(store, f"pod-{number}") for number in range(0, 2_500, 2)))
    await store.close()
    again = await Store.open(tmp_path)
    assert {record.name for record in again.page("pods", None).records} == {f"pod-{n}" for n in range(1, 2_500, 2)}
    assert again.revision == 1 + 2_500 + 1_250
    await again.close()


async def test_equal_labels_and_fields_are_kept_once(store: Store) -> None:
    first = await write(store, "a", labels={"app": "web"}, nodeName="n1")
    second = await write(store, "b", labels={"app": "web"}, nodeName="n1")
    assert first.labels is second.labels
    assert first.fields is second.fields
    updated = await write(store, "a", labels={"app": "web"}, nodeName="n2")
    assert updated.labels is first.labels
    assert updated.fields == {"nodeName": "n2"}


async def test_waiting_for_a_revision_ends_when_it_is_committed_or_when_time_is_up(store: Store) -> None:
    assert await store.reached(1, timeout=0)
    assert not await store.reached(2, timeout=0.01)
    waiting = asyncio.create_task(store.reached(3, timeout=10))
    await write(store, "a")
    assert not waiting.done()
    await write(store, "b")
    assert await waiting


async def test_kinds_are_counted_apart_and_named_while_they_have_objects(store: Store) -> None:
    await write(store, "a")
    await write(store, "n", storage="nodes", namespace="")
    assert sorted(store.storages()) == ["nodes", "pods"]
    await delete(store, "a")
    assert list(store.storages()) == ["nodes"]
    assert (store.count("pods"), store.count("nodes"), store.count("unheard-of")) == (0, 1, 0)


async def test_a_closed_store_commits_what_was_staged_and_takes_no_more(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    staged = store.put("pods", "default", "a", an_object("a"), previous=None)
    await store.close()
    assert staged.result().revision == 2
    with pytest.raises(StorageFailed, match="closed"):
        store.put("pods", "default", "b", an_object("b"), previous=None)
    await store.close()


async def test_a_full_disk_fails_all_that_was_staged_and_the_store_goes_on_after_it(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    kept = await write(store, "kept", round=0)
    watcher = store.watch("pods", None, since=store.revision)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(file.stat().st_size for file in tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 4096, hard))
    try:
        first = store.put("pods", "default", "kept", an_object("kept", round=1, size=50_000), previous=kept)
        await asyncio.sleep(0)  # this one is being committed, those after it are staged upon it
        upon_it = store.latest("pods", "default", "kept")
        second = store.put("pods", "default", "kept", an_object("kept", round=2), previous=upon_it)
        other = store.put("pods", "default", "other", an_object("other"), previous=None)
        revision = kept.revision + 3
        results = await asyncio.gather(first, second, other, store.reached(revision, 10), return_exceptions=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert all(isinstance(result, StorageFailed) for result in results)
    assert len({str(result) for result in results}) == 1
    assert "objects.db could not be written" in str(results[0])
    assert store.get("pods", "default", "kept") is store.latest("pods", "default", "kept") is kept
    assert store.latest("pods", "default", "other") is None
    assert store.revision == kept.revision

    later = await write(store, "kept", round=3)
    assert later.revision == kept.revision + 4, "the revisions of the writes that failed are never used again"
    ((told, change),) = await watcher.changes()
    assert (told, change.record, change.previous) == (ChangeType.MODIFIED, later, kept)
    await store.close()
    again = await Store.open(tmp_path)
    ((name, revision),) = [(record.name, record.revision) for record in again.page("pods", None).records]
    assert (name, revision) == ("kept", later.revision)
    await again.close()
