"""Sums of resources: exact, and written in one way only."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.resource_lists import Amounts, add_to, amounts_of, raise_to, rewritten, written


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        pytest.param({"cpu": "1500m"}, {"cpu": "1500m"}, id="parts of a core"),
        pytest.param({"cpu": "2000m"}, {"cpu": "2"}, id="cores"),
        pytest.param({"memory": "1024Mi"}, {"memory": "1Gi"}, id="gibibytes"),
        pytest.param({"memory": "1572864Ki"}, {"memory": "1536Mi"}, id="mebibytes"),
        pytest.param({"memory": "2000M"}, {"memory": "2G"}, id="decimal bytes"),
        pytest.param({"nvidia.com/gpu": "500m"}, {"nvidia.com/gpu": "500m"}, id="half a device"),
        pytest.param({"nvidia.com/gpu": 1024}, {"nvidia.com/gpu": "1024"}, id="devices are not bytes"),
        pytest.param({"cpu": "0", "memory": "1Gi"}, {"memory": "1Gi"}, id="nothing is not written"),
        pytest.param({"cpu": "many", "memory": "1Gi"}, {"memory": "1Gi"}, id="no quantity spoils nothing"),
    ],
)
def test_amounts_are_written_in_one_way(resources: dict[str, str | int | float], said: dict[str, str]) -> None:
    assert written(amounts_of(resources)) == said


def test_what_says_the_same_stays_as_it_is_written() -> None:
    there: dict[str, str | int | float] = {"memory": "1024Mi", "cpu": 2}
    assert rewritten(there, amounts_of({"cpu": "2000m", "memory": "1Gi"})) is there
    assert rewritten(there, amounts_of({"cpu": "2"})) == {"cpu": "2"}
    assert rewritten({"cpu": "0"}, {}) == {}


def test_the_greater_of_two_is_taken_resource_by_resource() -> None:
    total: Amounts = {"cpu": 2, "memory": 1}
    raise_to(total, {"cpu": 1, "memory": 5, "pods": 1})
    assert total == {"cpu": 2, "memory": 5, "pods": 1}


QUANTITIES = st.sampled_from(["100m", "0.1", "250m", "1", "3", "1Gi", "1500Mi", "2G", "1e3", "0"])
LISTS = st.lists(st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), QUANTITIES), max_size=12)


@given(LISTS, st.randoms(use_true_random=False))
def test_what_is_added_and_taken_away_in_any_order_leaves_nothing(
    parts: list[dict[str, str | int | float]], chance: random.Random
) -> None:
    total: Amounts = {}
    for part in parts:
        add_to(total, amounts_of(part))
    chance.shuffle(parts)
    for part in parts:
        add_to(total, amounts_of(part), -1)
    assert total == {}
