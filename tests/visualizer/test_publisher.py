"""Publishing from a cycle's thread, and waiting for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from shoal.visualizer import Publisher
from tests.support.waiting import eventually
from tests.visualizer.builders import a_view


async def test_before_the_first_there_is_none() -> None:
    assert Publisher().latest is None


async def test_whoever_waits_gets_the_next_view_from_whichever_thread_it_comes() -> None:
    publisher = Publisher()
    waiting = [asyncio.create_task(publisher.after(0)) for _ in range(3)]
    await asyncio.sleep(0)
    view = a_view()
    thread = threading.Thread(target=publisher.publish, args=[view])
    thread.start()
    got = await asyncio.wait_for(asyncio.gather(*waiting), 10)
    thread.join()
    assert [published.view for published in got] == [view] * 3
    assert {published.version for published in got} == {1}


async def test_what_is_newer_already_is_not_waited_for() -> None:
    publisher = Publisher()
    publisher.publish(a_view(1))
    publisher.publish(a_view(2))
    published = await asyncio.wait_for(publisher.after(1), 10)
    assert (published.version, published.view.cycle) == (2, 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(publisher.after(2), 0.01)


async def test_nothing_is_kept_of_those_who_stopped_waiting() -> None:
    publisher = Publisher()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(publisher.after(0), 0.001)
    assert not publisher._waiting
    publisher.publish(a_view())


def test_a_loop_that_has_ended_does_not_trouble_the_scheduler() -> None:
    publisher = Publisher()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(publisher.after(0))
    loop.run_until_complete(asyncio.sleep(0))
    futures = list(publisher._waiting)
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    publisher._waiting.update(futures)  # as if it had been closed a moment later
    publisher.publish(a_view())
    assert publisher.latest is not None


async def test_a_thousand_views_from_a_thread_are_seen_in_order_and_the_last_one_is_seen() -> None:
    publisher = Publisher()
    seen: list[int] = []

    async def watch() -> None:
        version = 0
        while version < 1_000:
            published = await publisher.after(version)
            version = published.version
            seen.append(published.view.cycle)

    def publish() -> None:
        for cycle in range(1, 1_001):
            publisher.publish(a_view(cycle))

    watching = asyncio.create_task(watch())
    thread = threading.Thread(target=publish)
    thread.start()
    await eventually(watching.done, within=60)
    thread.join()
    assert seen == sorted(set(seen))
    assert seen[-1] == 1_000
