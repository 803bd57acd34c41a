"""Reconciles: retried, timed, isolated from each other, and never ahead of the cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog

from shoal.api.meta import ObjectMeta, OwnerReference, PartialObject, Resource
from shoal.kube import changes, freshness
from shoal.kube.backoff import Backoff
from shoal.kube.cache import Cache
from shoal.kube.calm import BUSY, Calm
from shoal.kube.client import Client
from shoal.kube.controller import Controller, Requeue, TerminalError, Watch
from shoal.kube.informer import Change, Informer
from shoal.kube.metrics import Metrics
from shoal.kube.queue import FRESH, RESYNC, RetryLimits
from shoal.kube.store import Key
from shoal.kube.watch import EventType, WatchEvent
from tests.support.network.scripted import ScriptedTransport
from tests.support.waiting import eventually

BOOKS = Resource(type=PartialObject, group="library.example", version="v1", kind="Book", plural="books")
PAGES = Resource(type=PartialObject, group="library.example", version="v1", kind="Page", plural="pages")
QUICK = RetryLimits(backoff=Backoff(initial=0.001, cap=0.01), rate=10_000, burst=10_000)


def book(name: str, version: int = 1, **metadata: Any) -> PartialObject:
    meta = {"namespace": "default", "uid": f"uid-{name}", "resource_version": str(version)} | metadata
    return PartialObject(metadata=ObjectMeta(name=name, **meta))


def page(name: str, owner: str, version: int = 1) -> PartialObject:
    reference = OwnerReference(
        api_version="library.example/v1", kind="Book", name=owner, uid=f"uid-{owner}", controller=True
    )
    return book(name, version, owner_references=[reference])


class World:
    """A cache that the test fills by hand, and one controller on it."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[Requeue | None]], **options: Any) -> None:
        client = Client(ScriptedTransport.of())
        self.metrics: Metrics = client.metrics
        self.cache = Cache(client)
        self.controller = Controller("books", BOOKS, reconcile, **({"retries": QUICK} | options))
        self.load = 0
        calm = Calm(lambda: self.load)
        self.controller.connect(self.cache, self.metrics, lambda problem: None, calm=calm)
        self.books: Informer[PartialObject] = self.cache.informer(BOOKS)

    def has(self, *found: PartialObject) -> None:
        self.books.replace(found, [], "1")

    def sees(self, found: PartialObject, resource: Resource[PartialObject] = BOOKS) -> None:
        event = WatchEvent(EventType.MODIFIED, found.metadata.resource_version, found)
        self.cache.informer(resource).update([event])

    def count(self, metric: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(metric, {"controller": "books"} | labels) or 0


@asynccontextmanager
async def working(world: World) -> AsyncIterator[None]:
    task = asyncio.create_task(world.controller.run())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        world.controller.queue.close()
        task.cancel()
        await asyncio.wait([task])


async def test_a_failure_is_retried_until_it_passes_and_holds_up_nobody() -> None:
    tries: dict[str, int] = {}

    async def reconcile(key: Key) -> None:
        tries[key.name] = tries.get(key.name, 0) + 1
        if key.name == "bad" and tries["bad"] < 4:
            raise RuntimeError("a fault of the program")

    world = World(reconcile, workers=1)
    world.has(book("bad"), *(book(f"good-{number}") for number in range(5)))
    async with working(world):
        await eventually(lambda: tries.get("bad") == 4)
    assert {name: count for name, count in tries.items() if name != "bad"} == {f"good-{n}": 1 for n in range(5)}
    assert world.count("controller_runtime_reconcile_errors_total") == 3
    assert world.count("controller_runtime_reconcile_panics_total") == 3
    assert world.count("workqueue_retries_total", name="books") == 3


async def test_what_can_wait_is_done_after_what_has_just_changed() -> None:
    order: list[str] = []
    is_held = asyncio.Event()

    async def reconcile(key: Key) -> Requeue | None:
        order.append(key.name)
        if key.name == "late" and order.count("late") == 1:
            return Requeue(after=0.1, priority=RESYNC)
        if key.name == "holds":
            await is_held.wait()
        return None

    world = World(reconcile, workers=1)
    world.has(book("late"))
    async with working(world):
        await eventually(lambda: order == ["late"])
        world.sees(book("holds", 5))
        await eventually(
            lambda: "holds" in order and world.count("workqueue_depth", name="books", priority="-100") == 1
        )
        world.sees(book("fresh", 6))
        is_held.set()
        await eventually(lambda: order.count("late") == 2)
    assert order == ["late", "holds", "fresh", "late"]


@pytest.mark.parametrize(
    ("called_with", "asked_for", "comes_back_with"),
    [
        pytest.param(FRESH, None, FRESH, id="as urgent as it was"),
        pytest.param(RESYNC, None, RESYNC, id="no more urgent than it was"),
        pytest.param(FRESH, RESYNC, RESYNC, id="less urgent"),
        pytest.param(RESYNC, FRESH, FRESH, id="more urgent"),
    ],
)
async def test_a_requeue_comes_back_as_urgent_as_it_asks_for(
    called_with: int, asked_for: int | None, comes_back_with: int
) -> None:
    order: list[str] = []
    is_held = asyncio.Event()

    async def reconcile(key: Key) -> Requeue | None:
        order.append(key.name)
        if order == ["again"]:
            return Requeue(after=0.05, priority=asked_for)
        if key.name == "holds":
            await is_held.wait()
        return None

    world = World(reconcile, workers=1)
    world.controller.queue.add(Key("default", "again"), priority=called_with)
    async with working(world):
        await eventually(lambda: order == ["again"])
        world.controller.enqueue(Key("default", "holds"))
        await eventually(lambda: "holds" in order and len(world.controller.queue) == 1)
        waiting = {
            priority: world.count("workqueue_depth", name="books", priority=str(priority))
            for priority in (FRESH, RESYNC)
        }
        is_held.set()
        await eventually(lambda: order == ["again", "holds", "again"])
    assert waiting == {FRESH: comes_back_with == FRESH, RESYNC: comes_back_with == RESYNC}


@pytest.mark.parametrize("yields", [True, False])
async def test_a_controller_that_yields_gathers_changes_while_others_have_much_to_do(yields: bool) -> None:
    done: list[str] = []

    async def reconcile(key: Key) -> None:
        done.append(key.name)

    world = World(reconcile, workers=1, yields=yields)
    world.has(book("first"))
    async with working(world):
        await eventually(lambda: done == ["first"])
        world.load = BUSY
        world.sees(book("second", 5))  # a worker waits for it already
        await eventually(lambda: done == ["first", "second"])
        for version in range(6, 10):
            world.sees(book("third", version))
            await asyncio.sleep(0)
        world.load = 0
        await eventually(lambda: "third" in done)
    assert done.count("third") == 1 if yields else done.count("third") >= 1


async def test_a_controller_that_yields_works_on_where_it_never_gets_calm() -> None:
    done: list[str] = []

    async def reconcile(key: Key) -> None:
        done.append(key.name)

    world = World(reconcile, workers=1, yields=True)
    world.load = BUSY
    world.has(book("first"), book("second"))
    async with working(world):
        await eventually(lambda: sorted(done) == ["first", "second"])


async def test_a_terminal_error_is_not_retried_until_the_object_changes() -> None:
    tries: list[str] = []

    async def reconcile(key: Key) -> None:
        tries.append(key.name)
        if key.name == "bad":
            raise TerminalError("spec.pages must be positive: set it")

    world = World(reconcile)
    world.has(book("bad"))
    async with working(world):
        await eventually(lambda: world.count("controller_runtime_terminal_reconcile_errors_total") == 1)
        world.sees(book("other", 5))
        await eventually(lambda: "other" in tries)
        assert tries.count("bad") == 1
        world.sees(book("bad", 6))
        await eventually(lambda: tries.count("bad") == 2)


async def test_a_reconcile_past_its_deadline_is_cut_off_and_retried() -> None:
    tries = 0

    async def reconcile(key: Key) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()

    world = World(reconcile, timeout=0.02)
    world.has(book("slow"))
    async with working(world):
        await eventually(lambda: tries == 2)
    assert world.count("controller_runtime_reconcile_timeouts_total") == 1


async def test_a_cancelled_helper_of_a_reconcile_costs_no_worker() -> None:
    tries: list[str] = []

    async def reconcile(key: Key) -> None:
        tries.append(key.name)
        if tries.count(key.name) == 1:
            helper = asyncio.create_task(asyncio.Event().wait())
            helper.cancel()
            await helper

    world = World(reconcile, workers=1)
    world.has(book("a"), book("b"))
    async with working(world):
        await eventually(lambda: tries.count("a") == 2 and tries.count("b") == 2)


async def test_errors_of_things_done_at_once_are_told_apart() -> None:
    async def reconcile(key: Key) -> None:
        async def fail() -> None:
            raise TerminalError("spec.pages must be positive: set it")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            tasks.create_task(fail())

    world = World(reconcile)
    world.has(book("a"))
    async with working(world):
        await eventually(lambda: world.count("controller_runtime_terminal_reconcile_errors_total") == 1)
    assert world.count("controller_runtime_reconcile_panics_total") == 0
    assert world.count("controller_runtime_reconcile_total", result="error") == 1


async def test_a_requeue_comes_back_without_an_event() -> None:
    tries = 0

    async def reconcile(key: Key) -> Requeue | None:
        nonlocal tries
        tries += 1
        return Requeue(after=0.01) if tries < 3 else None

    world = World(reconcile)
    world.has(book("a"))
    async with working(world):
        await eventually(lambda: world.count("controller_runtime_reconcile_total", result="success") == 1)
    assert world.count("controller_runtime_reconcile_total", result="requeue_after") == 2


async def test_a_resync_reconciles_everything_again() -> None:
    tries: list[str] = []

    async def reconcile(key: Key) -> None:
        tries.append(key.name)

    world = World(reconcile, resync_every=0.02)
    world.has(book("a"), book("b"))
    async with working(world):
        await eventually(lambda: tries.count("a") >= 3 and tries.count("b") >= 3)


async def test_a_change_of_a_child_reconciles_its_owner_and_a_handed_over_child_both_owners() -> None:
    tries: list[str] = []

    async def reconcile(key: Key) -> None:
        tries.append(key.name)

    world = World(reconcile, owns=[PAGES])
    async with working(world):
        world.sees(page("p", "first", 2), PAGES)
        await eventually(lambda: tries == ["first"])
        world.sees(page("p", "second", 3), PAGES)
        await eventually(lambda: sorted(tries) == ["first", "first", "second"])


async def test_only_the_changes_that_were_asked_for_count() -> None:
    tries: list[str] = []

    async def reconcile(key: Key) -> None:
        tries.append(key.name)

    shelf = Watch(
        resource=PAGES,
        keys=lambda found: [Key("", found.metadata.labels.get("shelf", "none"))],
        when=changes.labels_changed,
    )
    world = World(reconcile, watches=[shelf], when=changes.spec_changed)
    async with working(world):
        world.sees(book("a", 2, generation=1))
        await eventually(lambda: tries == ["a"])
        world.sees(book("a", 3, generation=1))
        world.sees(book("p", 4, labels={"shelf": "s1"}), PAGES)
        await eventually(lambda: tries == ["a", "s1"])
        world.sees(book("p", 5, labels={"shelf": "s1"}, annotations={"x": "y"}), PAGES)
        world.sees(book("a", 6, generation=2))
        await eventually(lambda: tries == ["a", "s1", "a"])


async def test_a_key_waits_until_the_cache_shows_what_its_last_reconcile_wrote() -> None:
    tries: list[int] = []
    others: list[str] = []

    async def reconcile(key: Key) -> None:
        if key.name != "a":
            others.append(key.name)
            return
        tries.append(int(world.books.items()[0].metadata.resource_version))
        if len(tries) == 1:
            freshness.note_write(BOOKS, book("a", 10).metadata)

    world = World(reconcile, workers=1)
    world.has(book("a", 1))
    async with working(world):
        await eventually(lambda: len(tries) == 1)
        world.controller.enqueue(Key("default", "a"))
        world.controller.enqueue(Key("default", "b"))
        await eventually(lambda: others == ["b"])
        assert tries == [1], "the cache still shows version 1, and the only worker does not wait for it"
        world.sees(book("a", 10))
        await eventually(lambda: tries == [1, 10])


async def test_a_key_that_rests_does_not_hold_up_the_end() -> None:
    reconciled = asyncio.Event()

    async def reconcile(key: Key) -> None:
        freshness.note_write(BOOKS, book("a", 10).metadata)
        reconciled.set()

    world = World(reconcile)
    world.has(book("a", 1))
    task = asyncio.create_task(world.controller.run())
    await asyncio.wait_for(reconciled.wait(), 5)
    world.controller.queue.close()
    await asyncio.wait_for(task, 5)


async def test_every_log_line_of_a_reconcile_names_it() -> None:
    seen: list[dict[str, Any]] = []

    async def reconcile(key: Key) -> None:
        seen.append(structlog.contextvars.get_contextvars())

    world = World(reconcile)
    world.has(book("a"), book("b"))
    async with working(world):
        await eventually(lambda: len(seen) == 2)
    assert [(context["controller"], context["object"]) for context in seen] == [
        ("books", "default/a"),
        ("books", "default/b"),
    ]
    assert seen[0]["reconcile_id"] != seen[1]["reconcile_id"]


@pytest.mark.parametrize(
    ("name", "before", "after", "holds"),
    [
        pytest.param("spec_changed", {"generation": 1}, {"generation": 2}, True, id="generation"),
        pytest.param("spec_changed", {"labels": {}}, {"labels": {"a": "b"}}, False, id="labels are no spec"),
        pytest.param("labels_changed", {"labels": {}}, {"labels": {"a": "b"}}, True, id="labels"),
        pytest.param("annotations_changed", {"annotations": {}}, {"annotations": {"a": "b"}}, True, id="annotations"),
        pytest.param("annotations_changed", {"labels": {}}, {"labels": {"a": "b"}}, False, id="not annotations"),
    ],
)
def test_filters_tell_what_changed(name: str, before: dict[str, Any], after: dict[str, Any], holds: bool) -> None:
    holds_for = getattr(changes, name)
    change = Change(book("a", 1, **before), book("a", 2, **after))
    assert holds_for(change) is holds
    assert holds_for(Change(None, book("a")))
    assert holds_for(Change(book("a"), None))
    assert changes.none_of(holds_for)(change) is not holds
    assert changes.any_of(holds_for, changes.any_change)(change)
    assert changes.all_of(holds_for, changes.any_change)(change) is holds


def test_an_owner_is_found_by_kind_and_group_whatever_its_version() -> None:
    reference = OwnerReference(api_version="library.example/v1beta1", kind="Book", name="b", uid="u", controller=True)
    other = OwnerReference(api_version="elsewhere.example/v1", kind="Book", name="c", uid="v")
    found = book("p", owner_references=[reference, other])
    assert list(changes.controlling_owner(BOOKS)(found)) == [Key("default", "b")]
    assert list(changes.any_owner(BOOKS)(found)) == [Key("default", "b")]
