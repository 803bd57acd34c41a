"""Events: repeats are counted, look-alikes combined, floods limited, and nothing ever waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from shoal.kube.calm import BUSY, Calm
from shoal.kube.client import Client, Retry
from shoal.kube.events import About, Limits, Recorder
from shoal.kube.transport import Request
from tests.support.network.scripted import Answer, ScriptedTransport, refusal
from tests.support.waiting import eventually

ANN = About(api_version="v1", kind="Pod", namespace="default", name="ann", uid="u1", resource_version="7")
WHOLE = About(api_version="v1", kind="Node", namespace="", name="node-1", uid="u2")


class Server:
    """Takes events, or forgets them."""

    def __init__(self) -> None:
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.forgets = False
        self.transport = ScriptedTransport(self._answer)

    async def _answer(self, request: Request) -> Answer:
        if request.method == "PATCH" and self.forgets:
            return refusal(404, "NotFound")
        self.written.append((f"{request.method} {request.path}", msgspec.json.decode(request.body or b"{}")))
        return Answer({"metadata": {"name": "e"}})


async def write(server: Server, *said: tuple[About, str, str], limits: Limits = Limits()) -> Recorder:
    recorder = Recorder(Client(server.transport, retry=Retry(within=0)), "tester", limits=limits)
    for about, reason, message in said:
        recorder.warning(about, reason, message)
    task = asyncio.create_task(recorder.run())
    await recorder.flush(within=5)
    task.cancel()
    return recorder


async def test_an_event_says_what_happened_to_whom() -> None:
    server = Server()
    await write(server, (ANN, "Failed", "it broke"))
    [(where, body)] = server.written
    assert where == "POST /api/v1/namespaces/default/events"
    assert body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "ann",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert (body["type"], body["reason"], body["message"], body["count"]) == ("Warning", "Failed", "it broke", 1)
    assert body["source"] == {"component": "tester"}


async def test_the_names_of_events_are_in_the_order_in_which_things_happened() -> None:
    server = Server()
    await write(server, *((ANN, reason, "") for reason in ("Pulled", "Created", "Started", "Killing")))
    named = {body["metadata"]["name"]: body["reason"] for _, body in server.written}
    assert [named[name] for name in sorted(named)] == ["Pulled", "Created", "Started", "Killing"]


async def test_an_object_without_namespace_has_its_events_in_default() -> None:
    server = Server()
    await write(server, (WHOLE, "Failed", "it broke"))
    assert server.written[0][0] == "POST /api/v1/namespaces/default/events"


async def test_a_repeat_is_counted_on_the_same_event() -> None:
    server = Server()
    await write(server, *[(ANN, "Failed", "it broke")] * 3)
    assert [where.split()[0] for where, _ in server.written] == ["POST", "PATCH", "PATCH"]
    assert server.written[-1][1]["count"] == 3


async def test_a_repeat_of_an_event_that_the_server_forgot_begins_anew() -> None:
    server = Server()
    server.forgets = True
    await write(server, *[(ANN, "Failed", "it broke")] * 2)
    assert [(where.split()[0], body["count"]) for where, body in server.written] == [("POST", 1), ("POST", 1)]


async def test_many_that_differ_only_in_words_become_one() -> None:
    server = Server()
    await write(server, *[(ANN, "Failed", f"try {number}") for number in range(6)], limits=Limits(similar=3))
    assert [where.split()[0] for where, _ in server.written] == ["POST"] * 3 + ["PATCH"] * 3
    assert server.written[1][1]["message"] == "try 1"
    assert server.written[2][1]["message"] == "(combined from similar events): try 2"
    assert server.written[-1][1]["message"] == "(combined from similar events): try 5"


async def test_a_flood_about_one_object_is_cut_and_counted_but_others_are_heard() -> None:
    server = Server()
    limits = Limits(burst=5, per_second=0.001)
    recorder = await write(server, *[(ANN, "Failed", "x")] * 20, (WHOLE, "Failed", "y"), limits=limits)
    assert len(server.written) == 6
    assert recorder._dropped.labels("rate limit")._value.get() == 15


async def test_an_event_that_cannot_be_written_does_not_silence_the_next() -> None:
    server = Server()
    await write(server, (ANN, "Failed", "lone surrogate \ud800"), (WHOLE, "Failed", "heard"))
    assert [body["message"] for _, body in server.written] == ["lone surrogate ?", "heard"]


async def test_recording_never_waits_however_long_the_line() -> None:
    recorder = Recorder(Client(Server().transport), "tester", limits=Limits(waiting=2))
    for number in range(5):
        recorder.normal(ANN, "Fine", str(number))
    assert recorder._dropped.labels("queue full")._value.get() == 3


async def test_an_event_lets_others_go_first_unless_too_many_wait() -> None:
    server = Server()
    limits = Limits(waiting=8, yields_for=3600)
    recorder = Recorder(Client(server.transport), "tester", limits=limits, calm=Calm(lambda: BUSY))
    for number in range(5):
        recorder.warning(ANN, f"Reason{number}", "words")
    task = asyncio.create_task(recorder.run())
    await eventually(lambda: server.written)
    await asyncio.sleep(0.01)
    task.cancel()
    assert [body["reason"] for _, body in server.written] == [
        "Reason0"
    ]  # from then on less than half of the line waits
