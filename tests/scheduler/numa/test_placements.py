"""Where pods are, by what is written of them."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api import kai_names as names
from shoal.api.scheduling_run_ai import NumaZoneAmount
from shoal.scheduler.numa import Zones, noted_zones, read_zones, written_zones, zones_text
from tests.scheduler.numa.builders import GPU, a_numa_pod

ONE = 10**9


def on(zone: str) -> Zones:
    return ((zone, (("cpu", 2 * ONE),)),)


def said(zone: str) -> str:
    return f'[{{"zone":"{zone}","amount":{{"cpu":"2"}}}}]'


ORDERED = [NumaZoneAmount(zone="ordered", amount={"cpu": "2"})]


@pytest.mark.parametrize(
    ("annotations", "ordered", "assumed", "expected"),
    [
        pytest.param(
            {names.NUMA_OBSERVED: said("seen"), names.NUMA_PREDICTED: said("guessed")},
            ORDERED,
            on("assumed"),
            on("seen"),
            id="what was observed goes before all",
        ),
        pytest.param({names.NUMA_PREDICTED: said("guessed")}, ORDERED, on("assumed"), on("ordered"), id="the order"),
        pytest.param({names.NUMA_PREDICTED: said("old")}, [], on("assumed"), on("assumed"), id="what was just given"),
        pytest.param({names.NUMA_PREDICTED: said("guessed")}, [], (), on("guessed"), id="what was predicted"),
        pytest.param({}, [], (), (), id="nobody knows"),
        pytest.param(
            {names.NUMA_OBSERVED: "{", names.NUMA_PREDICTED: said("guessed")}, [], (), on("guessed"), id="no JSON"
        ),
        pytest.param(
            {names.NUMA_OBSERVED: "[]", names.NUMA_PREDICTED: said("guessed")}, [], (), on("guessed"), id="empty"
        ),
    ],
)
def test_the_best_that_is_known_counts(
    annotations: dict[str, str], ordered: list[NumaZoneAmount], assumed: Zones, expected: Zones
) -> None:
    assert noted_zones(a_numa_pod("p", {"cpu": "2"}, annotations=annotations), ordered, assumed) == expected


def test_zones_are_written_as_kai_writes_them_and_read_again() -> None:
    zones: Zones = (("node-0", (("cpu", 2 * ONE), ("memory", 2**30 * ONE), (GPU, ONE))),)
    text = zones_text(written_zones(zones))
    assert msgspec.json.decode(text) == [{"zone": "node-0", "amount": {"cpu": "2", "memory": "1Gi", GPU: "1"}}]
    assert read_zones(text) == zones
