"""The fence: open only while the lease surely is ours."""

import pytest

from shoal.kube.errors import NotLeading
from shoal.kube.leases import Election, Fence, FencedTransport
from shoal.kube.transport import Request
from tests.support.scripted import Answer, ScriptedTransport

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


@pytest.mark.parametrize("times", [(10.0, 15.0, 2.0), (15.0, 2.0, 2.0), (15.0, 10.0, 0.0)])
def test_times_that_cannot_work_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="duration > renew_within > retry_every"):
        Election(name="x", namespace="y", duration=times[0], renew_within=times[1], retry_every=times[2])
