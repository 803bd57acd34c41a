"""What pods ask of zones."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.numa import Demand, demand_of
from tests.scheduler.numa.builders import GPU, Asked, a_container, a_numa_pod

ONE = 10**9


def unit(**amounts: int) -> tuple[tuple[str, int], ...]:
    named = {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}
    return tuple(sorted((name, amount * ONE) for name, amount in named.items()))


@pytest.mark.parametrize(
    ("quality", "asks", "minds"),
    [
        pytest.param("Guaranteed", {"cpu": "2", "memory": "1Gi"}, True, id="guaranteed"),
        pytest.param("Burstable", {"cpu": "2", GPU: "1"}, True, id="a device"),
        pytest.param("Burstable", {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "2Mi"}, False, id="no device"),
        pytest.param("BestEffort", {}, False, id="nothing at all"),
    ],
)
def test_zones_matter_to_guaranteed_pods_and_to_devices(quality: str, asks: Asked, minds: bool) -> None:
    assert (demand_of(a_numa_pod("p", asks, quality=quality)) is not None) is minds


def made(*asks: Asked, first: list[dict[str, Any]] | None = None, quality: str = "Guaranteed") -> Demand:
    found = demand_of(a_numa_pod("p", *asks, first=first or [], quality=quality))
    assert found is not None
    return found


def test_containers_are_aligned_together_or_one_before_the_other() -> None:
    first = [a_container({GPU: "3"}), a_container({GPU: "1"}, stays=True)]
    found = made({GPU: "1", "cpu": "2"}, {GPU: "1", "cpu": "1"}, first=first)
    assert found.together == (unit(gpu=1), unit(gpu=1, cpu=2), unit(gpu=1, cpu=1))
    assert found.before == (unit(gpu=3),)
    assert found.whole == unit(gpu=3, cpu=3)


PARTS = {"cpu": "500m"}


@pytest.mark.parametrize(
    ("asks", "first", "whole", "each"),
    [
        pytest.param([{"cpu": "4"}], [a_container(PARTS, stays=True)], 4, [0, 4], id="a sidecar with a part of a core"),
        pytest.param([{"cpu": "4"}], [a_container({"cpu": "1"}, stays=True)], 5, [1, 4], id="a sidecar with a core"),
        pytest.param([PARTS], [a_container({"cpu": "1"}, stays=True)], 1, [1, 0], id="a container with a part"),
        pytest.param([{"cpu": "2"}], [a_container({"cpu": "6"})], 6, [2], id="more before than after"),
        pytest.param([{"cpu": "2"}], [a_container({"cpu": "6500m"})], 2, [2], id="parts before"),
    ],
)
def test_only_whole_processors_are_aligned(
    asks: list[Asked], first: list[dict[str, Any]], whole: int, each: list[int]
) -> None:
    found = made(*asks, first=first)
    assert dict(found.whole).get("cpu", 0) == whole * ONE
    assert [dict(one).get("cpu", 0) for one in found.together] == [amount * ONE for amount in each]


def test_no_processor_is_aligned_for_a_pod_that_is_not_guaranteed() -> None:
    found = made({"cpu": "2", GPU: "1"}, quality="Burstable")
    assert (found.whole, found.together) == (unit(gpu=1), (unit(gpu=1),))


def test_pods_that_ask_for_the_same_are_equal() -> None:
    assert made({GPU: "1", "cpu": "1"}) == made({"cpu": "1000m", GPU: "1"})
    assert made({GPU: "2"}) != made({GPU: "1"}, {GPU: "1"})
