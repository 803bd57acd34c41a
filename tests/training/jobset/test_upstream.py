"""Where upstream's own controller is installed, ours stands by; two never work at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.meta import PartialObject, format_micro_time, now
from shoal.kube.leases import LEASES, Lease
from shoal.training.jobset.upstream import CONFIGURATIONS, LEASE, WEBHOOKS, reason_to_stand_by
from tests.support.clusters.in_process import writes_of
from tests.support.waiting.at_rest import at_rest
from tests.training.jobset.builders import NOW
from tests.training.jobset.conftest import JobSetWorld


def a_configuration(name: str) -> PartialObject:
    return msgspec.convert({"metadata": {"name": name}}, PartialObject)


def a_lease(holder: str | None, renewed: datetime | None = NOW, *, name: str = LEASE) -> Lease:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed and format_micro_time(renewed)}
    return msgspec.convert({"metadata": {"name": name, "namespace": "jobset-system"}, "spec": spec}, Lease)


@pytest.mark.parametrize(
    ("webhooks", "leases", "expected"),
    [
        pytest.param([], [], "", id="nobody"),
        pytest.param([WEBHOOKS], [], "upstream's JobSet controller is installed", id="its webhooks"),
        pytest.param(["kueue-mutating-webhook-configuration"], [], "", id="somebody else's webhooks"),
        pytest.param([], [a_lease("one")], "is held by one", id="its lease"),
        pytest.param([], [a_lease("")], "", id="a lease that was given up"),
        pytest.param([], [a_lease(None)], "", id="a lease that nobody took"),
        pytest.param([], [a_lease("one", NOW - timedelta(seconds=20))], "is held by one", id="one that is late"),
        pytest.param([], [a_lease("one", NOW - timedelta(seconds=31))], "", id="one of a process that is gone"),
        pytest.param([], [a_lease("one", None)], "is held by one", id="one that was never renewed"),
        pytest.param([], [a_lease("one", name="other")], "", id="another lease"),
    ],
)
def test_upstream_is_known_by_its_webhooks_and_its_lease(
    webhooks: list[str], leases: list[Lease], expected: str
) -> None:
    found = reason_to_stand_by(map(a_configuration, webhooks), leases, NOW)
    assert expected in found
    assert bool(found) is bool(expected)


async def test_ours_takes_over_when_upstream_is_gone_and_stops_when_it_comes(world: JobSetWorld) -> None:
    configurations = CONFIGURATIONS.documents()
    body: dict[str, Any] = {"metadata": {"name": WEBHOOKS}}
    await world.cluster.client.create(configurations, body)
    await world.make(name="first")
    async with world.running() as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
        await world.cluster.client.delete(configurations, WEBHOOKS)
        await world.has_jobs("first-workers-0")

        held = {"holderIdentity": "upstream", "leaseDurationSeconds": 15, "renewTime": format_micro_time(now())}
        await world.cluster.make(LEASES, {"metadata": {"name": LEASE}, "spec": held})
        await at_rest(manager)
        await world.make(name="second")
        await at_rest(manager)
        assert set(await world.jobs()) == {"first-workers-0"}
        given_up = {"spec": {"holderIdentity": ""}}
        await world.cluster.client.merge_patch(LEASES.documents(), LEASE, given_up, "default")
        await world.has_jobs("first-workers-0", "second-workers-0")
