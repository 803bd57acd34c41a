"""The fence: open only while the lease surely is ours."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from shoal.kube.client import Client, Retry
from shoal.kube.errors import ConnectionFault, NotLeading
from shoal.kube.leases import Election, Elector, Fence, FencedTransport
from shoal.kube.transport import Request
from tests.support.network.scripted import Answer, ScriptedTransport, refusal
from tests.support.waiting import eventually

GET = Request(method="GET", path="/x")
PATCH = Request(method="PATCH", path="/x", timeout=60)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_without_an_election_everything_passes() -> None:
    transport = ScriptedTransport.of(Answer({}))
    await FencedTransport(transport, Fence()).send(PATCH)
    assert transport.requests[0].timeout == 60


async def test_before_the_lease_is_ours_only_reads_pass() -> None:
    transport = ScriptedTransport.of(Answer({}))
    fence = Fence()
    fence.enforce()
    fenced = FencedTransport(transport, fence)
    await fenced.send(GET)
    with pytest.raises(NotLeading):
        await fenced.send(PATCH)
    assert len(transport.requests) == 1


async def test_a_write_has_no_longer_than_the_lease() -> None:
    clock = Clock()
    transport = ScriptedTransport.of(Answer({}))
    fence = Fence(clock=clock)
    fence.enforce()
    fence.open_until(clock.now + 4)
    await FencedTransport(transport, fence).send(PATCH)
    assert transport.requests[0].timeout == 4


async def test_a_process_that_slept_finds_the_fence_closed() -> None:
    clock = Clock()
    fence = Fence(clock=clock)
    fence.enforce()
    fence.open_until(clock.now + 4)
    clock.now += 5
    with pytest.raises(NotLeading):
        await FencedTransport(ScriptedTransport.of(), fence).send(PATCH)


async def test_a_write_that_is_slow_to_be_signed_is_cut_off_with_the_lease() -> None:
    sent: list[Request] = []

    async def slow(request: Request) -> Answer:
        await asyncio.sleep(0.2)
        sent.append(request)
        return Answer({})

    fence = Fence()
    fence.enforce()
    fence.open_until(time.monotonic() + 0.02)
    with pytest.raises(ConnectionFault, match="while the lease was still held"):
        await FencedTransport(ScriptedTransport(slow), fence).send(PATCH)
    assert sent == []


class Server:
    """Holds one lease, and does to it what a test says."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {}
        self.version = 0
        self.faults: list[Answer | float] = []

    async def answer(self, request: Request) -> Answer:
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Answer):
            return fault
        if request.method == "GET" and not self.version:
            return refusal(404, "NotFound")
        if request.method != "GET":
            body = msgspec.json.decode(request.body or b"{}")
            expected = body["metadata"].get("resourceVersion")
            if expected not in (None, str(self.version)):
                return refusal(409, "Conflict")
            self.spec |= body["spec"]
            self.version += 1
        if isinstance(fault, float):
            await asyncio.sleep(fault)
        metadata = {"name": "l", "namespace": "n", "resourceVersion": str(self.version)}
        return Answer({"metadata": metadata, "spec": self.spec})


def elector_on(server: Server, *, duration: float, renew_within: float, retry_every: float) -> Elector:
    client = Client(ScriptedTransport(server.answer), retry=Retry(within=0))
    election = Election(
        name="l", namespace="n", identity="me", duration=duration, renew_within=renew_within, retry_every=retry_every
    )
    return Elector(client, election, Fence())


async def test_a_gateway_that_answers_in_the_servers_place_does_not_cost_the_lease() -> None:
    server = Server()
    elector = elector_on(server, duration=3, renew_within=2, retry_every=0.01)
    await elector.acquire()
    server.faults += [Answer(b"<html>please sign in</html>"), refusal(503, "ServiceUnavailable")]
    holding = asyncio.create_task(elector.hold())
    version = server.version
    await eventually(lambda: server.version > version + 2)
    assert not holding.done()
    holding.cancel()


async def test_a_lease_is_given_up_though_the_last_renewal_was_cut_off() -> None:
    server = Server()
    elector = elector_on(server, duration=3, renew_within=2, retry_every=0.5)
    await elector.acquire()
    server.spec["renewTime"] = "2026-01-01T00:00:00.000000Z"
    server.version += 1  # the server took a renewal whose answer nobody waited for
    await elector.release()
    assert server.spec["holderIdentity"] == ""


async def test_a_lease_is_never_published_shorter_than_it_is_used() -> None:
    server = Server()
    await elector_on(server, duration=2.4, renew_within=2.3, retry_every=1).acquire()
    assert server.spec["leaseDurationSeconds"] == 3


@pytest.mark.parametrize("times", [(10.0, 15.0, 2.0), (15.0, 2.0, 2.0), (15.0, 10.0, 0.0)])
def test_times_that_cannot_work_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="duration > renew_within > retry_every"):
        Election(name="x", namespace="y", duration=times[0], renew_within=times[1], retry_every=times[2])
