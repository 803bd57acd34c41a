"""The work queue: once each, one worker a key, fresh before old, namespaces in turns, failures later each time."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.backoff import Backoff
from shoal.kube.queue import FRESH, RESYNC, RetryLimits, ShutDown, WorkQueue
from shoal.kube.store import Key


def key(name: str, namespace: str = "default") -> Key:
    return Key(namespace, name)


async def take_all(queue: WorkQueue) -> list[str]:
    taken = []
    while len(queue):
        found, _ = await queue.get()
        taken.append(found.name)
        queue.done(found)
    return taken


async def test_a_key_added_twice_is_worked_on_once() -> None:
    queue = WorkQueue("test")
    queue.add(key("a"))
    queue.add(key("a"))
    assert await take_all(queue) == ["a"]


async def test_a_key_added_while_worked_on_comes_back_when_that_is_done() -> None:
    queue = WorkQueue("test")
    queue.add(key("a"))
    found, _ = await queue.get()
    queue.add(key("a"))
    assert len(queue) == 0, "no second worker may get it now"
    queue.done(found)
    assert await take_all(queue) == ["a"]


async def test_a_resting_key_comes_back_only_when_it_is_done() -> None:
    queue = WorkQueue("test")
    queue.add(key("a"))
    found, _ = await queue.get()
    queue.add(key("a"))
    queue.rest(found)
    queue.add(key("a"))
    assert len(queue) == 0, "it rests"
    await asyncio.wait_for(queue.drained(), 1)
    queue.done(found)
    assert await take_all(queue) == ["a"], "once, however often it was asked for"


async def test_fresh_changes_go_before_resyncs() -> None:
    queue = WorkQueue("test")
    for number in range(3):
        queue.add(key(f"old-{number}"), priority=RESYNC)
    queue.add(key("new"), priority=FRESH)
    queue.add(key("old-2"), priority=FRESH)
    assert await take_all(queue) == ["new", "old-2", "old-0", "old-1"]


async def test_a_resync_does_not_lower_a_fresh_change() -> None:
    queue = WorkQueue("test")
    queue.add(key("b"))
    queue.add(key("a"))
    queue.add(key("b"), priority=RESYNC)
    assert await take_all(queue) == ["b", "a"]


async def test_namespaces_take_turns() -> None:
    queue = WorkQueue("test")
    for number in range(4):
        queue.add(key(f"many-{number}", "crowded"))
    queue.add(key("single", "quiet"))
    queue.add(key("other", "small"))
    assert await take_all(queue) == ["many-0", "single", "other", "many-1", "many-2", "many-3"]


async def test_a_delayed_key_comes_when_it_is_due_and_the_earlier_time_wins() -> None:
    queue = WorkQueue("test")
    queue.add_after(key("a"), 60)
    queue.add_after(key("a"), 0.01)
    queue.add_after(key("a"), 30)
    async with asyncio.timeout(5):
        assert (await queue.get())[0] == key("a")


async def test_a_key_added_at_once_does_not_come_again_when_its_delay_ends() -> None:
    queue = WorkQueue("test")
    queue.add_after(key("a"), 0.01)
    queue.add(key("a"))
    assert await take_all(queue) == ["a"]
    queue.add_after(key("later"), 0.03)
    async with asyncio.timeout(5):
        assert (await queue.get())[0] == key("later"), "a's old delay must have been forgotten"


async def test_delays_that_were_overtaken_are_forgotten() -> None:
    queue = WorkQueue("test")
    for _ in range(10_000):
        queue.add_after(key("a"), 86_400)
        queue.add(key("a"))
        queue.done((await queue.get())[0])
    assert len(queue._delayed) < 200


async def test_failures_wait_longer_each_time_until_one_success() -> None:
    queue = WorkQueue("test", retries=RetryLimits(backoff=Backoff(initial=0.001, cap=1), rate=1000, burst=1000))
    delays = [queue.retry(key("a")) for _ in range(4)]
    assert delays == pytest.approx([0.001, 0.002, 0.004, 0.008])
    queue.forget(key("a"))
    assert queue.retry(key("a")) == pytest.approx(0.001)


async def test_all_retries_together_are_limited() -> None:
    queue = WorkQueue("test", retries=RetryLimits(rate=10, burst=2))
    delays = [queue.retry(key(f"k{number}")) for number in range(4)]
    assert delays[:2] == [0.005, 0.005]
    assert delays[2:] == pytest.approx([0.1, 0.2], rel=0.05)


async def test_a_cancelled_worker_does_not_take_a_wake_up_with_it() -> None:
    queue = WorkQueue("test")
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(key("a"))
    first.cancel()
    async with asyncio.timeout(5):
        assert (await second)[0] == key("a")
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_closing_ends_the_workers_and_drops_what_waits() -> None:
    queue = WorkQueue("test")
    queue.add(key("a"))
    found, _ = await queue.get()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after(key("b"), 0.001)
    queue.close()
    with pytest.raises(ShutDown):
        await waiting
    drained = asyncio.create_task(queue.drained())
    await asyncio.sleep(0)
    assert not drained.done(), "a is still worked on"
    queue.done(found)
    async with asyncio.timeout(5):
        await drained


Step = tuple[str, int]


@given(st.lists(st.tuples(st.sampled_from(["add", "resync", "get", "done"]), st.integers(0, 5)), max_size=60))
def test_no_key_is_lost_or_worked_on_twice_at_once(steps: list[Step]) -> None:
    async def play() -> None:
        queue = WorkQueue("test")
        wanted: set[Key] = set()
        working: list[Key] = []
        for what, number in steps:
            chosen = key(f"k{number}", f"ns{number % 2}")
            if what in ("add", "resync"):
                queue.add(chosen, priority=FRESH if what == "add" else RESYNC)
                wanted.add(chosen)
            elif what == "get" and len(queue):
                found, _ = await queue.get()
                assert found not in working
                working.append(found)
                wanted.discard(found)
            elif what == "done" and working:
                queue.done(working.pop(0))
        for found in working:
            queue.done(found)
        while len(queue):
            found, _ = await queue.get()
            wanted.discard(found)
            queue.done(found)
        assert not wanted

    asyncio.run(play())


async def test_a_queue_is_idle_when_no_key_waits_is_worked_on_rests_or_was_put_off() -> None:
    queue = WorkQueue("test")
    seen = [queue.is_idle]
    queue.add(key("a"))
    seen.append(queue.is_idle)
    await queue.get()
    seen.append(queue.is_idle)
    queue.rest(key("a"))
    seen.append(queue.is_idle)
    queue.done(key("a"))
    seen.append(queue.is_idle)
    queue.add_after(key("a"), 3600)
    seen.append(queue.is_idle)
    assert seen == [True, False, False, False, True, False]
