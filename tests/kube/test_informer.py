"""The informer's picture: complete, in order, never older than before, whatever the connection does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from shoal.api.meta.objects import Object, Wire
from shoal.api.meta.resource import Resource
from shoal.kube.backoff import Backoff
from shoal.kube.client import Client, Retry
from shoal.kube.errors import ConnectionFault
from shoal.kube.freshness import Deleted, place_of
from shoal.kube.informer import Change, Informer
from shoal.kube.reflector import Pace
from tests.support.network.scripted import Answer, ScriptedTransport, bookmark, error, event, refusal
from tests.support.waiting import eventually


class BookSpec(Wire, frozen=True, kw_only=True):
    pages: int = 0


class Book(Object, frozen=True, kw_only=True):
    spec: BookSpec = BookSpec()


BOOKS = Resource(type=Book, group="library.example", version="v1", kind="Book", plural="books")
QUICK = Backoff(initial=0.001, cap=0.002)
PACE = Pace(backoff=QUICK, unserved=QUICK, idle_limit=0.2)


class Seen:
    """An informer on a script, and what its listener was told."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.transport = ScriptedTransport.of(*answers)
        client = Client(self.transport, retry=Retry(backoff=QUICK, within=0.01))
        self.informer = Informer(client, BOOKS, pace=PACE)
        self.changes: list[str] = []
        self.informer.subscribe(self._told)

    def _told(self, change: Change[Book]) -> None:
        what = "gone" if change.after is None else "new" if change.before is None else "changed"
        resync = " (resync)" if change.is_resync else ""
        self.changes.append(f"{what} {change.latest.metadata.name}@{change.latest.metadata.resource_version}{resync}")

    @property
    def held(self) -> dict[str, str]:
        return {found.metadata.name: found.metadata.resource_version for found in self.informer.items()}


@asynccontextmanager
async def following(seen: Seen) -> AsyncIterator[None]:
    task = asyncio.create_task(seen.informer.run())
    try:
        async with asyncio.timeout(10):
            await seen.informer.wait_for_sync()
            yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def streamed(*frames: Any, at: int) -> Answer:
    """A streaming list that ends its initial events at a version."""
    return Answer(frames=[*frames, bookmark(at, ends_initial_events=True)], stays_open=True)


def watching(*frames: Any) -> Answer:
    return Answer(frames=list(frames), stays_open=True)


async def test_the_first_picture_comes_by_streaming_list_and_the_watch_goes_on_from_there() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 3), event("ADDED", "b", 5), at=7),
        watching(event("MODIFIED", "a", 8), event("DELETED", "b", 9), event("ADDED", "c", 10)),
    )
    async with following(seen):
        await eventually(lambda: len(seen.changes) == 5)
    assert seen.changes == ["new a@3 (resync)", "new b@5 (resync)", "changed a@8", "gone b@9", "new c@10"]
    assert seen.held == {"a": "8", "c": "10"}
    first, second = seen.transport.requests
    assert dict(first.query)["sendInitialEvents"] == "true"
    assert dict(second.query)["resourceVersion"] == "7"


@pytest.mark.parametrize("answer", [refusal(422, "Invalid"), refusal(400, "BadRequest")])
async def test_a_server_without_streaming_lists_is_read_in_pages(answer: Answer) -> None:
    item = event("ADDED", "a", 3)["object"]
    page = Answer({"metadata": {"resourceVersion": "7"}, "items": [item]})
    seen = Seen(answer, page, watching(event("ADDED", "b", 8)))
    async with following(seen):
        await eventually(lambda: "b" in seen.held)
    assert seen.changes == ["new a@3 (resync)", "new b@8"]


async def test_a_page_token_that_expires_leads_to_one_large_read() -> None:
    item = event("ADDED", "a", 3)["object"]
    seen = Seen(
        refusal(400, "BadRequest"),
        Answer({"metadata": {"resourceVersion": "7", "continue": "t"}, "items": [item]}),
        refusal(410, "Expired"),
        Answer({"metadata": {"resourceVersion": "9"}, "items": [item]}),
        watching(),
    )
    async with following(seen):
        assert seen.held == {"a": "3"}
    assert dict(seen.transport.requests[3].query)["limit"] == "0"


async def test_a_broken_watch_resumes_from_the_last_version_seen() -> None:
    seen = Seen(
        streamed(at=7),
        Answer(frames=[event("ADDED", "a", 8), bookmark(20), ConnectionFault("reset")]),
        refusal(503, "ServiceUnavailable"),
        watching(event("MODIFIED", "a", 21)),
    )
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "21"})
    assert [dict(request.query).get("resourceVersion") for request in seen.transport.requests[1:]] == ["7", "20", "20"]
    assert seen.changes == ["new a@8", "changed a@21"]


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(Answer(frames=[error(410, "Expired")]), id="told by an ERROR event"),
        pytest.param(refusal(410, "Expired"), id="told by the answer"),
        pytest.param(Answer(frames=[error(410, "Gone")]), id="with the older reason"),
    ],
)
async def test_what_was_deleted_during_a_gap_is_told_with_its_last_state(gone: Answer) -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 3), event("ADDED", "b", 4), event("ADDED", "c", 5), at=7),
        gone,
        streamed(event("ADDED", "b", 4), event("ADDED", "c", 30), event("ADDED", "d", 31), at=40),
        watching(),
    )
    async with following(seen):
        await eventually(lambda: "d" in seen.held)
    assert seen.changes[3:] == ["gone a@3 (resync)", "changed c@30 (resync)", "new d@31 (resync)"]


async def test_an_object_made_anew_during_a_gap_is_two_lives() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 3, uid="first"), at=7),
        refusal(410, "Expired"),
        streamed(event("ADDED", "a", 30, uid="second"), at=40),
        watching(),
    )
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "30"})
    assert seen.changes == ["new a@3 (resync)", "gone a@3 (resync)", "new a@30 (resync)"]


async def test_the_picture_never_goes_backwards() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 30), at=31),
        watching(event("MODIFIED", "a", 29), event("MODIFIED", "a", 30), event("MODIFIED", "a", 32)),
    )
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "32"})
    assert seen.changes == ["new a@30 (resync)", "changed a@32"]


async def test_a_server_that_was_restored_from_a_backup_is_believed() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 300), at=310),
        refusal(410, "Expired"),
        streamed(event("ADDED", "a", 30), at=31),
        watching(event("MODIFIED", "a", 32)),
    )
    async with following(seen):
        lost = asyncio.create_task(seen.informer.wait_for_version(305))
        await eventually(lambda: seen.held == {"a": "32"})
        await lost
    assert seen.changes == ["new a@300 (resync)", "changed a@30 (resync)", "changed a@32"]


async def test_a_deletion_of_an_earlier_life_does_not_touch_the_present_one() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 30, uid="second"), at=31),
        watching(event("DELETED", "a", 29, uid="first"), event("ADDED", "end", 40)),
    )
    async with following(seen):
        await eventually(lambda: "end" in seen.held)
    assert "a" in seen.held


async def test_a_silent_connection_is_taken_for_dead() -> None:
    seen = Seen(streamed(at=7), watching(), watching(event("ADDED", "a", 8)))
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "8"})
    assert len(seen.transport.requests) == 3


async def test_a_frame_that_is_cut_or_not_json_does_not_end_the_watch() -> None:
    seen = Seen(
        streamed(at=7),
        Answer(frames=[event("ADDED", "a", 8), b'{"type":"ADDED","obj', b"###\n"]),
        watching(event("ADDED", "b", 9)),
    )
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "8", "b": "9"})
    assert dict(seen.transport.requests[2].query)["resourceVersion"] == "8"


async def test_frames_arrive_however_they_are_cut() -> None:
    data = b"".join(msgspec.json.encode(event("ADDED", name, 8 + i)) + b"\n" for i, name in enumerate("abc"))
    pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
    seen = Seen(streamed(at=7), watching(*pieces))
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "8", "b": "9", "c": "10"})


async def test_a_kind_that_is_not_served_blocks_nobody_and_is_watched_when_it_appears() -> None:
    seen = Seen(
        refusal(404, "NotFound"),
        refusal(404, "NotFound"),
        streamed(event("ADDED", "a", 3), at=7),
        watching(),
    )
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "3"})


async def test_a_kind_that_is_not_served_is_told_of_once_and_not_as_a_fault() -> None:
    seen = Seen(*[refusal(404, "NotFound")] * 6, streamed(event("ADDED", "a", 3), at=7), watching())
    with capture_logs() as told:
        async with following(seen):
            await eventually(lambda: seen.held == {"a": "3"})
    said = [(line["log_level"], line["event"]) for line in told if line["log_level"] != "debug"]
    assert said == [
        ("info", "the kind is not served: its watch begins when it appears"),
        ("info", "the kind is served now"),
    ]


async def test_it_is_told_when_a_kind_begins_and_ceases_to_be_served() -> None:
    missing = refusal(404, "NotFound")
    seen = Seen(missing, streamed(at=7), *[missing] * 3, streamed(event("ADDED", "a", 9), at=9), watching())
    told: list[bool] = []
    seen.informer.on_serving(lambda: told.append(seen.informer.is_served))
    assert not seen.informer.is_served  # nobody has asked the server yet
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "9"})
    assert told == [True, False, True]


async def test_the_objects_of_a_kind_that_is_served_no_more_are_gone() -> None:
    seen = Seen(streamed(event("ADDED", "a", 3), at=7), *[refusal(404, "NotFound")] * 3)
    async with following(seen):
        waiting = asyncio.create_task(seen.informer.wait_for_version(9))
        await eventually(lambda: not seen.held)
        await waiting
    assert seen.changes == ["new a@3 (resync)", "gone a@3 (resync)"]


async def test_a_single_404_of_a_gateway_does_not_empty_the_picture() -> None:
    seen = Seen(streamed(event("ADDED", "a", 3), at=7), refusal(404, "NotFound"), watching(event("MODIFIED", "a", 8)))
    async with following(seen):
        await eventually(lambda: seen.held == {"a": "8"})
    assert seen.changes == ["new a@3 (resync)", "changed a@8"]


async def test_an_answer_that_is_no_list_does_not_end_the_watch() -> None:
    page = Answer(b"<html>please sign in</html>")
    seen = Seen(refusal(400, "BadRequest"), page, streamed(event("ADDED", "a", 3), at=7), watching())
    async with following(seen):
        assert seen.held == {"a": "3"}


async def test_a_server_that_never_ends_its_initial_events_is_read_in_pages_next() -> None:
    page = Answer({"metadata": {"resourceVersion": "7"}, "items": [event("ADDED", "a", 3)["object"]]})
    seen = Seen(watching(event("ADDED", "a", 3)), page, watching())
    async with following(seen):
        assert seen.held == {"a": "3"}


async def test_an_object_nested_too_deep_spoils_nothing() -> None:
    def nested(name: str, version: int) -> bytes:
        text = msgspec.json.encode(event("ADDED", name, version, spec={"pages": 1}))
        return text.replace(b'"pages":1', b'"deep":' + b'{"a":' * 3000 + b"1" + b"}" * 3000) + b"\n"

    page = b'{"metadata":{"resourceVersion":"12"},"items":[%s,%s]}' % (
        nested("deep", 3)[len(b'{"type":"ADDED","object":') : -2],
        msgspec.json.encode(event("ADDED", "b", 9)["object"]),
    )
    seen = Seen(
        streamed(nested("deep", 3), event("ADDED", "a", 4), at=7),
        watching(nested("later", 8), event("ADDED", "b", 9)),
        refusal(410, "Expired"),
        refusal(400, "BadRequest"),
        Answer(page),
        watching(event("ADDED", "c", 13)),
    )
    async with following(seen):
        await eventually(lambda: "c" in seen.held)
    assert seen.held == {"b": "9", "c": "13"}
    assert [key.name for key in seen.informer.undecodable] == ["deep"]


async def test_an_object_that_broke_and_went_while_being_read_leaves_no_ghost() -> None:
    bad = {"pages": "many"}
    seen = Seen(
        streamed(event("ADDED", "a", 3), event("MODIFIED", "a", 4, spec=bad), event("DELETED", "a", 5, spec=bad), at=7),
        watching(),
    )
    async with following(seen):
        assert seen.held == {}
        assert seen.informer.undecodable == {}


async def test_an_earlier_life_does_not_stay_where_the_new_one_does_not_decode() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 3, uid="first"), at=7),
        refusal(410, "Expired"),
        streamed(event("ADDED", "a", 30, uid="second", spec={"pages": "many"}), at=40),
        watching(event("ADDED", "mark", 41)),
    )
    async with following(seen):
        await eventually(lambda: "mark" in seen.held)
        assert "a" not in seen.held


@dataclass(frozen=True, kw_only=True)
class CountingBackoff(Backoff):
    """Waits for nothing, and keeps how many failures each delay was asked for."""

    counts: list[int]

    def delay(self, failures: int, *, random: Callable[[], float] = lambda: 0.0) -> float:
        self.counts.append(failures)
        return 0.0


async def test_a_server_that_was_away_for_long_and_has_forgotten_is_read_at_once() -> None:
    away = [ConnectionFault("refused")] * 8
    seen = Seen(streamed(at=7), *away, refusal(410, "Expired"), streamed(event("ADDED", "a", 8), at=9), watching())
    counts: list[int] = []
    seen.informer._reflector._pace = Pace(backoff=CountingBackoff(initial=0.01, cap=10, counts=counts), idle_limit=5)
    async with following(seen):
        await eventually(lambda: "a" in seen.held)
    assert counts[-2:] == [8, 1]


async def test_a_streaming_list_that_never_ends_is_given_up_for_one_in_pages() -> None:
    page = Answer({"metadata": {"resourceVersion": "7"}, "items": [event("ADDED", "a", 3)["object"]]})
    seen = Seen(watching(event("ADDED", "a", 3)), page, watching())
    seen.informer._reflector._pace = Pace(backoff=QUICK, idle_limit=60, list_idle_limit=0.05)
    async with following(seen):
        assert seen.held == {"a": "3"}


async def test_reading_everything_again_and_again_becomes_slower() -> None:
    seen = Seen(*[streamed(at=7), refusal(410, "Expired")] * 500)
    seen.informer._reflector._pace = Pace(backoff=Backoff(initial=0.01, cap=10), idle_limit=0.2)
    async with following(seen):
        await asyncio.sleep(0.5)
    assert len(seen.transport.requests) < 20


async def test_an_index_that_fails_on_one_object_spares_the_others() -> None:
    seen = Seen(streamed(event("ADDED", "bad", 3), event("ADDED", "a", 4), at=7), watching())

    def broken(book: Book) -> list[str]:
        if book.metadata.name == "bad":
            raise KeyError("a fault of the index")
        return ["fine"]

    seen.informer.add_indexes({"broken": broken})
    async with following(seen):
        assert seen.held == {"a": "4"}


async def test_a_listener_that_leaves_takes_no_change_from_the_next() -> None:
    seen = Seen(streamed(at=7), watching(event("ADDED", "a", 8), event("ADDED", "b", 9)))
    told: list[str] = []

    def leaves(change: Change[Book]) -> None:
        seen.informer.unsubscribe(leaves)

    seen.informer.subscribe(leaves)
    seen.informer.subscribe(lambda change: told.append(change.latest.metadata.name))
    async with following(seen):
        await eventually(lambda: "b" in seen.held)
    assert told == ["a", "b"]


async def test_an_object_that_does_not_decode_is_reported_once_and_spoils_nothing() -> None:
    bad = {"pages": "many"}
    seen = Seen(
        streamed(event("ADDED", "bad", 3, spec=bad), event("ADDED", "a", 4), at=7),
        watching(
            event("MODIFIED", "bad", 8, spec=bad),
            event("ADDED", "b", 9),
            event("MODIFIED", "bad", 10, spec={"pages": 3}),
        ),
    )
    reported: list[str] = []
    seen.informer.on_undecodable(lambda problem: reported.append(str(problem)))
    async with following(seen):
        await eventually(lambda: "bad" in seen.held)
    assert seen.held == {"a": "4", "b": "9", "bad": "10"}
    assert reported == ["Book default/bad does not decode: Expected `int`, got `str` - at `$.spec.pages`"]
    assert seen.informer.undecodable == {}


async def test_the_last_state_that_was_understood_stays_until_the_object_is_gone() -> None:
    seen = Seen(
        streamed(event("ADDED", "a", 3), at=7),
        watching(event("MODIFIED", "a", 8, spec={"pages": "many"}), event("ADDED", "mark", 9)),
        refusal(410, "Expired"),
        streamed(event("ADDED", "a", 8, spec={"pages": "many"}), event("ADDED", "mark", 9), at=12),
        watching(event("DELETED", "a", 13, spec={"pages": "many"})),
    )
    async with following(seen):
        await eventually(lambda: "mark" in seen.held)
        assert seen.held["a"] == "3"
        await eventually(lambda: "a" not in seen.held)
    assert seen.changes == ["new a@3 (resync)", "new mark@9", "gone a@3"]


async def test_a_listener_that_fails_keeps_nothing_from_the_others() -> None:
    seen = Seen(streamed(event("ADDED", "a", 3), at=7), watching(event("ADDED", "b", 8)))

    def broken(change: Change[Book]) -> None:
        raise RuntimeError("a fault of the listener")

    seen.informer.subscribe(broken)
    late: list[str] = []
    async with following(seen):
        await eventually(lambda: "b" in seen.held)
        seen.informer.subscribe(lambda change: late.append(change.latest.metadata.name))
    assert seen.changes == ["new a@3 (resync)", "new b@8"]
    assert late == ["a", "b"], "who comes late is told what is there"


async def test_one_can_wait_for_a_version_and_for_a_deletion() -> None:
    go_on = asyncio.Event()
    seen = Seen(
        streamed(event("ADDED", "a", 3), at=7),
        watching(go_on, event("DELETED", "a", 8), bookmark(12)),
    )
    async with following(seen):
        await seen.informer.wait_for_version(7)
        version = asyncio.create_task(seen.informer.wait_for_version(11))
        deletion = asyncio.create_task(
            seen.informer.wait_for_deletion(Deleted(place_of(BOOKS), "default", "a", "uid-a"))
        )
        await asyncio.sleep(0)
        assert not version.done()
        assert not deletion.done()
        go_on.set()
        await asyncio.gather(version, deletion)
    assert seen.held == {}
