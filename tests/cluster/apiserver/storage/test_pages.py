from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.apiserver.storage import Compacted, Page, Store, TooNew
from tests.cluster.apiserver.storage.objects import delete, write


def names(page: Page) -> list[str]:
    return [f"{record.namespace}/{record.name}" for record in page.records]


async def test_objects_are_listed_in_the_order_of_their_paths(store: Store) -> None:
    """As a real server lists them: the namespace team-1 comes before team, since ``-`` comes before ``/``."""
    for namespace, name in [("team", "b"), ("team-1", "c"), ("team", "a"), ("alpha", "z"), ("team", "a-b")]:
        await write(store, name, namespace=namespace)
    assert names(store.page("pods", None)) == ["alpha/z", "team-1/c", "team/a", "team/a-b", "team/b"]
    assert names(store.page("pods", "team")) == ["team/a", "team/a-b", "team/b"]
    assert names(store.page("pods", "nowhere")) == []
    assert names(store.page("nodes", None)) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6], ids=lambda limit: f"by-{limit}")
async def test_pages_follow_each_other_without_gap_or_repetition(store: Store, limit: int) -> None:
    for namespace, name in [("x", "1"), ("x", "2"), ("x-y", "1"), ("z", "1"), ("z", "2")]:
        await write(store, name, namespace=namespace)
    whole, found, after, given = names(store.page("pods", None)), [], None, 0
    while True:
        page = store.page("pods", None, after=after, limit=limit)
        found += names(page)
        given += len(page.records)
        if page.next is None:
            assert page.remaining is None
            break
        assert page.remaining == 5 - given
        after = page.next
    assert found == whole


async def test_a_page_goes_on_behind_an_object_that_is_gone(store: Store) -> None:
    for name in "abcd":
        await write(store, name)
    page = store.page("pods", None, limit=2)
    await delete(store, "b")
    assert names(store.page("pods", None, after=page.next)) == ["default/c", "default/d"]


async def test_a_selected_page_is_full_and_does_not_say_how_much_follows(store: Store) -> None:
    for number in range(10):
        await write(store, f"p{number}", labels={"even": str(number % 2 == 0)})
    page = store.page("pods", None, limit=2, after=("default", "p1"), selects=lambda r: r.labels["even"] == "True")
    assert names(page) == ["default/p2", "default/p4"]
    assert (page.next, page.remaining) == (("default", "p4"), None)
    last = store.page("pods", None, limit=2, after=("default", "p5"), selects=lambda r: r.labels["even"] == "True")
    assert (names(last), last.next) == (["default/p6", "default/p8"], None)


async def test_pages_at_one_revision_show_one_state_whatever_happens_meanwhile(store: Store) -> None:
    for name in "bdfh":
        await write(store, name, round=1)
    first = store.page("pods", None, limit=1)
    await write(store, "a", round=2)
    await write(store, "d", round=2)
    await delete(store, "f")
    await write(store, "e", round=2)
    await delete(store, "h")
    await write(store, "h", round=2)
    second = store.page("pods", None, at=first.revision, after=first.next, limit=1)
    assert (names(second), second.remaining, second.revision) == (["default/d"], 2, first.revision)
    rest = store.page("pods", "default", at=first.revision, after=second.next)
    assert names(rest) == ["default/f", "default/h"]
    assert {record.fields["round"] for record in [*second.records, *rest.records]} == {"1"}
    assert names(store.page("pods", None)) == ["default/a", "default/b", "default/d", "default/e", "default/h"]


async def test_a_state_is_told_as_long_as_the_history_reaches_back_to_it(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, history=3, synchronous="OFF")
    revisions = [(await write(store, "a", round=number)).revision for number in range(5)]
    kept = store.page("pods", None, at=revisions[1])
    assert [record.fields["round"] for record in kept.records] == ["1"]
    with pytest.raises(Compacted) as refusal:
        store.page("pods", None, at=revisions[0])
    assert refusal.value.oldest == revisions[1]
    with pytest.raises(TooNew) as too_new:
        store.page("pods", None, at=store.revision + 1)
    assert too_new.value.newest == store.revision
    await store.close()


async def test_the_history_is_bounded_in_bytes_as_well(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, history_bytes=10_000, synchronous="OFF")
    revisions = [(await write(store, "a", size=3_000)).revision for _ in range(10)]
    with pytest.raises(Compacted) as refusal:
        store.watch("pods", None, since=revisions[0])
    assert revisions[-4] <= refusal.value.oldest < revisions[-1]
    await store.close()


async def test_after_a_restart_the_history_begins_anew(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, synchronous="OFF")
    before = (await write(store, "a")).revision
    newest = (await write(store, "b")).revision
    await store.close()
    again = await Store.open(tmp_path, synchronous="OFF")
    assert again.revision == newest
    for refused in (lambda: again.page("pods", None, at=before), lambda: again.watch("pods", None, since=before)):
        with pytest.raises(Compacted):
            refused()
    assert names(again.page("pods", None, at=newest)) == ["default/a", "default/b"]
    again.watch("pods", None, since=newest).close()
    await again.close()
