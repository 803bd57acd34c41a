"""Whatever pods come, end and are evicted: no zone of a node that refuses pods is ever given or promised twice."""

from __future__ import annotations

import random

import pytest

from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import ACTIONS
from tests.scheduler.numa.builders import GPU, Stage

ZONES = [{GPU: "4", "cpu": "16"}, {GPU: "2", "cpu": "8"}, {GPU: "4", "cpu": "16"}]


def least_left(session: Session) -> int:
    """What is left of the zone, and of the resource of it, of which least is left."""
    assert session.numa is not None
    rooms = [session.numa._ledger.room(row) for row in session.numa._rows]
    return min(nano for room in rooms for zone in room.later for nano in zone.values())


@pytest.mark.parametrize("seed", range(8))
def test_no_zone_is_given_twice(seed: int) -> None:
    chance = random.Random(seed)
    stage = Stage()
    for node in range(3):
        policy = chance.choice(["single-numa-node", "restricted"])
        own = chance.sample(ZONES, k=2)
        stage.node(f"n{node}", *own, policy=policy, scope=chance.choice(["pod", "container"]))
    there: list[str] = []
    for turn in range(8):
        for place in range(chance.randint(1, 4)):
            name = f"p{turn}-{place}"
            asks = [
                {GPU: str(chance.randint(1, 4)), "cpu": str(chance.randint(1, 12))}
                for _ in range(chance.choice([1, 1, 2]))
            ]
            stage.pod(
                name, *asks, priority=chance.choice([10, 50, 60]), quality=chance.choice(["Guaranteed", "Burstable"])
            )
            there.append(name)
        if turn % 3 == 2:
            gone = there.pop(chance.randrange(len(there)))
            stage.mirror.noted.pods["default", gone] = None
        session = stage.decide(*ACTIONS)
        assert least_left(session) >= 0
        stage.carry_out(session)
