from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.coordination import Lease, LeaseSpec
from shoal.api.core import LEASE, Node
from shoal.api.meta import ObjectMeta, format_time
from shoal.cluster.controllers.node_lifecycle.signs_of_life import SignsOfLife
from shoal.kube import Change
from tests.support.builders.nodes import a_node

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def now(self) -> datetime:
        return START + timedelta(seconds=self.time - 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signs(clock: Clock) -> SignsOfLife:
    return SignsOfLife(grace=50, startup_grace=60, clock=clock, now=clock.now)


def a_beating_node(
    name: str = "a", *, heartbeat: int | None = 0, lease: str = "", uid: str = "1", age: float = 0
) -> Node:
    conditions = []
    if heartbeat is not None:
        moment = format_time(START + timedelta(seconds=heartbeat))
        conditions.append({"type": "Ready", "status": "True", "lastHeartbeatTime": moment})
    return a_node(
        name,
        annotations={LEASE: lease} if lease else None,
        metadata={"uid": uid, "creationTimestamp": format_time(START - timedelta(seconds=age))},
        status={"conditions": conditions},
    )


def a_lease(name: str, renewed: str) -> Lease:
    return Lease(metadata=ObjectMeta(name=name), spec=LeaseSpec(renew_time=renewed))


def seen(found: Any, before: Any = None) -> Change[Any]:
    return Change(before, found)


def test_a_node_that_is_seen_for_the_first_time_has_the_whole_grace(signs: SignsOfLife) -> None:
    signs.node_changed(seen(a_beating_node(heartbeat=-10_000)))
    assert signs.silent_in("a") == 50


def test_only_a_new_heartbeat_is_a_sign_of_life(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node(heartbeat=0)))
    clock.time += 40
    signs.node_changed(seen(a_beating_node(heartbeat=0)))
    assert signs.silent_in("a") == 10
    signs.node_changed(seen(a_beating_node(heartbeat=40)))
    assert signs.silent_in("a") == 50


def test_a_node_that_never_posted_has_the_startup_grace_from_its_creation(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node(heartbeat=None, age=45)))
    assert signs.silent_in("a") == 15
    clock.time += 10
    signs.node_changed(seen(a_beating_node(heartbeat=10, age=45)))
    assert signs.silent_in("a") == 50


def test_another_node_of_the_same_name_starts_anew(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node(uid="1")))
    clock.time += 49
    signs.node_changed(seen(a_beating_node(uid="2")))
    assert signs.silent_in("a") == 50


def test_a_lease_of_the_nodes_own_name_vouches_for_it(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node()))
    clock.time += 40
    signs.lease_changed(seen(a_lease("a", "t1")))
    assert signs.silent_in("a") == 50
    assert signs.is_vouched_for("a")


def test_one_renewal_vouches_for_a_whole_pool(signs: SignsOfLife, clock: Clock) -> None:
    for number in range(100):
        signs.node_changed(seen(a_beating_node(f"n{number}", lease="pool")))
    signs.lease_changed(seen(a_lease("pool", "t1")))
    clock.time += 45
    signs.lease_changed(seen(a_lease("pool", "t2")))
    assert {signs.silent_in(f"n{number}") for number in range(100)} == {50}
    assert signs.lapsed() == []


def test_a_lease_that_is_written_without_being_renewed_vouches_for_nothing(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node()))
    signs.lease_changed(seen(a_lease("a", "t1")))
    clock.time += 30
    signs.lease_changed(seen(a_lease("a", "t1")))
    assert signs.silent_in("a") == 20


def test_a_lease_lapses_once_and_again_after_its_next_renewal(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node(lease="pool")))
    signs.lease_changed(seen(a_lease("pool", "t1")))
    assert signs.next_lapse_in() == 50
    clock.time += 30
    signs.lease_changed(seen(a_lease("pool", "t2")))
    clock.time += 20
    assert signs.lapsed() == []
    assert signs.next_lapse_in() == 30
    clock.time += 30
    assert signs.lapsed() == ["pool"]
    assert signs.lapsed() == []
    assert list(signs.vouched_by("pool")) == ["a"]
    assert not signs.is_vouched_for("a")
    signs.lease_changed(seen(a_lease("pool", "t3")))
    clock.time += 50
    assert signs.lapsed() == ["pool"]


def test_a_deleted_lease_vouches_for_the_rest_of_its_time(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node()))
    clock.time += 40
    lease = a_lease("a", "t1")
    signs.lease_changed(seen(lease))
    signs.lease_changed(Change(lease, None))
    assert signs.silent_in("a") == 50
    clock.time += 50
    assert signs.lapsed() == ["a"]
    signs.lease_gone("a")
    assert signs.silent_in("a") == -40


def test_a_node_can_move_to_another_lease(signs: SignsOfLife) -> None:
    signs.node_changed(seen(a_beating_node(lease="pool")))
    signs.node_changed(seen(a_beating_node()))
    assert list(signs.vouched_by("pool")) == []
    assert list(signs.vouched_by("a")) == ["a"]
    signs.node_changed(Change(a_beating_node(), None))
    assert list(signs.vouched_by("a")) == []


def test_after_an_outage_of_all_every_node_has_time_again(signs: SignsOfLife, clock: Clock) -> None:
    signs.node_changed(seen(a_beating_node()))
    clock.time += 100
    signs.give_all_time()
    assert signs.silent_in("a") == 50
