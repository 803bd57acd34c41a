"""The stream of changes: what a listener hears, and how it goes on where it was."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from shoal.api.visualizer import ClusterView, TaskStatus
from shoal.visualizer import PREFIX
from shoal.visualizer.changes import changes
from shoal.visualizer.events import Pace
from shoal.visualizer.messages import version_of
from shoal.visualizer.moments import Moment, Moments
from tests.support.waiting import eventually
from tests.visualizer.builders import NOON, a_job_view, a_node_view, a_queue_view, a_task_view, a_view
from tests.visualizer.conftest import Visualizer, running
from tests.visualizer.listening import Listener, Message


def first() -> ClusterView:
    return a_view(
        nodes=[a_node_view("n1"), a_node_view("n2")],
        queues=[a_queue_view("root"), a_queue_view("research", "root")],
        jobs=[a_job_view("a", a_task_view("p")), a_job_view("b", a_task_view("p"), namespace="team-b")],
    )


async def same_as_routes(visualizer: Visualizer, listener: Listener) -> None:
    for name in ("summary", "queues", "jobs", "nodes"):
        assert getattr(listener, name) == await visualizer.json(name)


def brief(messages: list[Message]) -> list[Any]:
    """Messages as the keys that they tell of."""
    said: list[Any] = []
    for message in messages:
        if message.event in ("nodes", "queues", "jobs"):
            upserted = [one.get("metadataName") or one["name"] for one in message.data["upserted"]]
            said.append((message.event, upserted, message.data["deleted"]))
        else:
            said.append(message.event)
    return said


async def test_a_listener_hears_everything_first_and_then_what_changes(visualizer: Visualizer) -> None:
    view = first()
    visualizer.publish(view)
    async with visualizer.listening() as listener:
        heard = await listener.cycle()
        assert heard[0].event == "reset"
        assert heard[-1] == Message("cycle", {"cycle": 1, "at": "2026-03-01T12:00:01Z"}, listener.last_id)
        assert [message.id for message in heard[:-1]] == [""] * (len(heard) - 1), "only the end has an id"
        await same_as_routes(visualizer, listener)

        view = view.followed_by(
            cycle=2, at=NOON, nodes=[a_node_view("n3")], gone_nodes=["n1"], gone_jobs=[("team-b", "uid-team-b-b")]
        )
        visualizer.publish(view)
        assert brief(await listener.cycle()) == [
            ("nodes", ["n3"], []),
            ("nodes", [], ["n1"]),
            ("jobs", [], ["uid-team-b-b"]),
            "summary",
            "cycle",
        ]
        await same_as_routes(visualizer, listener)

        view = view.followed_by(cycle=3, at=NOON, queues=[a_queue_view("research", "root", priority=7)])
        visualizer.publish(view)
        assert brief(await listener.cycle()) == [("queues", ["research"], []), "cycle"]
        await same_as_routes(visualizer, listener)


async def test_what_stays_the_same_is_not_told(visualizer: Visualizer) -> None:
    visualizer.publish(first())
    async with visualizer.listening() as listener:
        await listener.cycle()
        visualizer.publish(first())  # other objects, and they say the same
        visualizer.publish(first().followed_by(cycle=3, at=NOON, jobs=[a_job_view("c")]))
        heard = await listener.cycle()
        assert brief(heard) == [("jobs", ["c"], []), "summary", "cycle"]
        assert heard[-1].data["cycle"] == 3


async def test_a_listener_may_come_before_the_first_view(visualizer: Visualizer) -> None:
    async with visualizer.listening() as listener:
        visualizer.publish(first())
        await listener.cycle()
        await same_as_routes(visualizer, listener)


async def test_whoever_comes_back_hears_what_they_missed_and_no_more(visualizer: Visualizer) -> None:
    view = first()
    visualizer.publish(view)
    async with visualizer.listening() as listener:
        await listener.cycle()
    for cycle in range(2, 6):  # nobody listens meanwhile
        view = view.followed_by(cycle=cycle, at=NOON, nodes=[a_node_view(f"m{cycle}")], gone_nodes=[f"m{cycle - 1}"])
        visualizer.publish(view)
    async with visualizer.listening(after=listener) as again:
        assert brief(await again.cycle()) == [("nodes", ["m5"], []), "summary", "cycle"]
        await same_as_routes(visualizer, again)


async def test_whoever_missed_nothing_hears_nothing_until_something_changes(visualizer: Visualizer) -> None:
    visualizer.publish(first())
    async with visualizer.listening() as listener:
        await listener.cycle()
    async with visualizer.listening(after=listener) as again:
        visualizer.publish(first().followed_by(cycle=2, at=NOON, gone_nodes=["n1"]))
        assert brief(await again.cycle()) == [("nodes", [], ["n1"]), "summary", "cycle"]


@pytest.mark.parametrize("last", ["nonsense", "0badcafe-1", "{epoch}-77", "{epoch}-x", "{epoch}-", "{epoch}--1"])
async def test_an_id_that_is_not_known_begins_anew(visualizer: Visualizer, last: str) -> None:
    visualizer.publish(first())
    async with visualizer.listening(Last_Event_ID=last.format(epoch=visualizer.publisher.epoch)) as listener:
        assert (await listener.cycle())[0].event == "reset"
        await same_as_routes(visualizer, listener)


async def test_what_was_too_long_ago_begins_anew() -> None:
    async with running(Visualizer(moments=Moments(moments=2))) as visualizer:
        view = first()
        visualizer.publish(view)
        known: list[Listener] = []
        async with visualizer.listening() as listener:
            for cycle in range(2, 6):
                await listener.cycle()
                known.append(listener.copied())
                view = view.followed_by(cycle=cycle, at=NOON, nodes=[a_node_view(f"m{cycle}")])
                visualizer.publish(view)
            await listener.cycle()
            begins = []
            for earlier in known:
                async with visualizer.listening(after=earlier) as again:
                    begins.append((await again.cycle())[0].event)
                    await same_as_routes(visualizer, again)
            assert begins == ["reset", "reset", "reset", "nodes"]


async def test_a_listener_may_want_some_kinds_only(visualizer: Visualizer) -> None:
    view = first()
    visualizer.publish(view)
    async with visualizer.listening("?kind=summary&kind=queues") as listener:
        assert [message.event for message in await listener.cycle()] == ["reset", "summary", "queues", "cycle"]
        view = view.followed_by(cycle=2, at=NOON, nodes=[a_node_view("n1", pods=3)])
        visualizer.publish(view)
        assert [message.event for message in await listener.cycle()] == ["cycle"], "so that its id keeps up"
        visualizer.publish(view.followed_by(cycle=3, at=NOON, gone_jobs=[("team-a", "uid-team-a-a")]))
        assert [message.event for message in await listener.cycle()] == ["summary", "cycle"]


async def test_a_stream_that_has_nothing_to_say_shows_that_it_lives() -> None:
    async with running(Visualizer(pace=Pace(heartbeat=0.01))) as visualizer, visualizer.listening() as listener:
        while len(listener.comments) < 2:
            assert await listener.message() is None
        assert listener.comments == [" heartbeat"] * 2 or listener.comments == ["heartbeat"] * 2
        visualizer.publish(first())
        await listener.cycle()
        await same_as_routes(visualizer, listener)


async def test_the_stream_is_one_that_browsers_and_proxies_pass_on(visualizer: Visualizer) -> None:
    visualizer.publish(first())
    async with visualizer.session.get(f"{visualizer.base}{PREFIX}/events") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["Access-Control-Allow-Origin"] == "*"
    head = await visualizer.ask(f"{PREFIX}/events", "HEAD")
    assert (head.status, head.body) == (200, b"")


async def test_so_many_may_listen_and_the_next_is_told_to_wait() -> None:
    async with running(Visualizer(pace=Pace(listeners=1, heartbeat=0.01))) as visualizer:
        visualizer.publish(first())
        async with visualizer.listening() as listener:
            await listener.cycle()
            refused = await visualizer.get("events")
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        await eventually(lambda: visualizer.stream._listeners == 0)
        async with visualizer.listening() as another:
            await another.cycle()


async def test_nothing_is_kept_once_the_last_listener_is_gone_for_a_while() -> None:
    async with running(Visualizer(pace=Pace(heartbeat=0.01, kept_for=0.02))) as visualizer:
        visualizer.publish(first())
        assert visualizer.stream.is_idle
        async with visualizer.listening() as listener:
            await listener.cycle()
            assert not visualizer.stream.is_idle
        await eventually(lambda: visualizer.stream.is_idle)


async def test_publishing_compares_and_encodes_nothing_where_nobody_listens(visualizer: Visualizer) -> None:
    for cycle in range(1, 20):
        visualizer.publish(a_view(cycle, nodes=[a_node_view(f"n{cycle}")]))
        await asyncio.sleep(0)
    assert visualizer.stream.is_idle
    assert visualizer.library.is_empty


async def test_whoever_does_not_read_is_cut_off_and_nobody_else_waits_for_them() -> None:
    async with running(Visualizer(pace=Pace(taken_within=1.5, heartbeat=0.05))) as visualizer:
        large = "x" * 20_000
        view = a_view(jobs=[a_job_view(f"job-{i:03}", waits=large) for i in range(200)])
        visualizer.publish(view)
        host, port = visualizer.base.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as stuck:
            stuck.sendall(f"GET {PREFIX}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            await eventually(lambda: visualizer.stream._listeners == 1)
            async with visualizer.listening() as listener:
                cycle = 1
                await listener.cycle()

                def stuck_is_gone() -> bool:
                    return visualizer.stream._listeners == 1

                while not stuck_is_gone():  # more than any buffer takes, and the other one hears all of it
                    cycle += 1
                    assert cycle < 1_000
                    changed = [a_job_view(f"job-{i:03}", waits=large + str(cycle)) for i in range(200)]
                    view = view.followed_by(cycle=cycle, at=NOON, jobs=changed)
                    visualizer.publish(view)
                    while (await listener.cycle())[-1].data["cycle"] != cycle:
                        pass
                assert listener.jobs[0]["waitingReason"] == large + str(cycle)
            stuck.settimeout(10)
            last = await asyncio.to_thread(_last_of, stuck)
            assert not last.endswith(b"0\r\n\r\n"), "broken off, and not ended as if that were all"


def _last_of(connection: socket.socket) -> bytes:
    """What comes last before the other side closes the connection, which it has to."""
    last = b""
    while received := connection.recv(1 << 20):
        last = received
    return last


async def test_a_broken_object_is_gone_for_listeners_as_it_is_for_the_routes(visualizer: Visualizer) -> None:
    view = first()
    visualizer.publish(view)
    async with visualizer.listening() as listener:
        await listener.cycle()
        broken = a_job_view("a", a_task_view("p", "no status"))  # type: ignore[arg-type]
        visualizer.publish(view.followed_by(cycle=2, at=NOON, jobs=[broken]))
        heard = brief(await listener.cycle())
        assert ("jobs", [], ["uid-team-a-a"]) in heard
        assert listener.jobs == await visualizer.json("jobs")


def test_moments_are_bounded_by_their_number_and_by_what_changed() -> None:
    def kept(moments: Moments) -> list[int]:
        return [version for version in range(20) if moments.find(version) is not None]

    view = first()
    few = Moments(moments=3)
    for version in range(6):
        few.keep(Moment(version, view, b""), 1)
    assert kept(few) == [3, 4, 5]
    light = Moments(changes=10)
    for version in range(6):
        light.keep(Moment(version, view, b""), 4)
    assert kept(light) == [3, 4, 5], "from the first to the last of them eight things changed"
    light.keep(Moment(6, view, b""), 1_000)
    assert kept(light) == [6], "the newest is always kept"
    light.keep(Moment(5, view, b""), 0)
    assert kept(light) == [6]
    light.clear()
    assert kept(light) == []


def test_changes_are_found_by_identity_first_and_equality_then() -> None:
    before = first()
    assert changes(before, first()).size == 0
    after = before.followed_by(
        cycle=2,
        at=NOON,
        jobs=[a_job_view("a", a_task_view("p", TaskStatus.FAILED)), a_job_view("new", namespace="team-c")],
        gone_jobs=[("team-b", "uid-team-b-b")],
        gone_queues=["research"],
    )
    found = changes(before, after)
    assert found.size == 4
    assert found.queues == ([], ["research"])
    assert found.jobs == {
        "team-a": (["uid-team-a-a"], []),
        "team-b": ([], ["uid-team-b-b"]),
        "team-c": (["uid-team-c-new"], []),
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [("ab-12", 12), (" ab-12 ", 12), ("cd-12", None), ("12", None), ("ab-", None), ("ab-²", None)],
)
def test_ids_of_other_publishers_say_nothing(given: str, expected: int | None) -> None:
    assert version_of(given, "ab") == expected
