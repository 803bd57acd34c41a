"""Queues as they are shown, and the tree of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from shoal.api.visualizer import UNLIMITED, Amounts, Bounds, QueueView, Weights
from shoal.visualizer.shapes.queues import encoded_tree, queue_shape
from tests.visualizer.builders import a_queue_view


def shown(queue: QueueView) -> Any:
    return msgspec.to_builtins(queue_shape(queue))


def tree(*queues: QueueView) -> Any:
    return msgspec.json.decode(tree_bytes(*queues))


def tree_bytes(*queues: QueueView) -> bytes:
    encoded = {queue.name: msgspec.json.encode(queue_shape(queue)) for queue in queues}
    return encoded_tree({queue.name: queue for queue in queues}, encoded)


def outline(branches: Any) -> dict[str, Any]:
    return {queue["metadataName"]: outline(queue["children"]) for queue in branches}


def test_a_queue_is_shown_with_what_it_is_due_what_it_has_and_what_it_lacks() -> None:
    queue = a_queue_view(
        "team-a",
        "research",
        display_name="Team A",
        priority=120,
        quota=Bounds(milli_cpu=4_000, memory=8e9, gpus=2),
        limit=Bounds(milli_cpu=UNLIMITED, memory=UNLIMITED, gpus=6),
        over_quota_weight=Weights(gpus=1.5, milli_cpu=1, memory=1),
        fair_share=Amounts(milli_cpu=6_000, memory=8e9, gpus=4),
        allocated=Amounts(milli_cpu=1_000, memory=9e9, gpus=2.5),
        requested=Amounts(milli_cpu=2_000, memory=9e9, gpus=8),
        allocated_non_preemptible=Amounts(gpus=1),
    )
    nothing = {"milliCPU": 0, "memory": 0, "gpu": 0, "gpus": 0}
    assert shown(queue) == {
        "name": "Team A",
        "parent": "research",
        "weight": 120,
        "resources": {
            "guaranteed": {"milliCPU": 4_000, "memory": 8 * 10**9, "gpu": 2, "gpus": 2, "unlimited": []},
            "allocated": {"milliCPU": 1_000, "memory": 9 * 10**9, "gpu": 3, "gpus": 2.5},
            "max": {"milliCPU": 0, "memory": 0, "gpu": 6, "gpus": 6, "unlimited": ["milliCPU", "memory"]},
        },
        "metadataName": "team-a",
        "priority": 120,
        "overQuotaWeight": {"milliCPU": 1, "memory": 1, "gpu": 1.5},
        "fairShare": {"milliCPU": 6_000, "memory": 8 * 10**9, "gpu": 4, "gpus": 4},
        "requested": {"milliCPU": 2_000, "memory": 9 * 10**9, "gpu": 8, "gpus": 8},
        "allocatedNonPreemptible": {**nothing, "gpu": 1, "gpus": 1},
        "starved": {"milliCPU": 1_000, "memory": 0, "gpu": 2, "gpus": 1.5},
        "borrowing": {"milliCPU": 0, "memory": 10**9, "gpu": 1, "gpus": 0.5},
    }


def test_a_queue_without_a_display_name_has_its_own() -> None:
    assert shown(a_queue_view("team-a"))["name"] == "team-a"


def test_three_levels_are_one_tree_with_links_by_the_names_of_objects() -> None:
    shown_tree = tree(
        a_queue_view("team-b", "research", display_name="A first"),
        a_queue_view("org"),
        a_queue_view("team-a", "research", display_name="Z last"),
        a_queue_view("research", "org", display_name="Research"),
    )
    assert outline(shown_tree) == {"org": {"research": {"team-a": {}, "team-b": {}}}}
    (org,) = shown_tree
    assert org["children"][0]["name"] == "Research"
    assert [team["children"] for team in org["children"][0]["children"]] == [[], []]


TREES: dict[str, tuple[list[QueueView], dict[str, Any]]] = {
    "none": ([], {}),
    "roots by name": ([a_queue_view("b"), a_queue_view("a")], {"a": {}, "b": {}}),
    "a parent that is not there": ([a_queue_view("b", "gone"), a_queue_view("a")], {"a": {}, "b": {}}),
    "its own parent": ([a_queue_view("a", "a")], {"a": {}}),
    "two in a circle": (
        [a_queue_view("b", "a"), a_queue_view("a", "b"), a_queue_view("c", "b")],
        {"a": {"b": {"c": {}}}},
    ),
    "two circles": (
        [a_queue_view("b", "a"), a_queue_view("a", "b"), a_queue_view("d", "c"), a_queue_view("c", "d")],
        {"a": {"b": {}}, "c": {"d": {}}},
    ),
}


@pytest.mark.parametrize(("queues", "expected"), TREES.values(), ids=TREES)
def test_every_queue_is_in_the_tree(queues: list[QueueView], expected: dict[str, Any]) -> None:
    assert outline(tree(*queues)) == expected
    assert list(outline(tree(*queues))) == list(expected), "in this order"


def test_a_tree_may_be_deeper_than_python_goes() -> None:
    chain = [a_queue_view(f"q{level:05}", f"q{level - 1:05}" if level else "") for level in range(5_000)]
    encoded = tree_bytes(*chain)
    assert encoded.count(b'"metadataName"') == 5_000
    assert encoded.endswith(b"]}" * 5_000 + b"]")


@given(some.dictionaries(some.sampled_from("abcdefgh"), some.sampled_from(["", "nobody", *"abcdefgh"]), max_size=8))
def test_each_queue_is_in_the_tree_once_whatever_parents_they_name(parents: dict[str, str]) -> None:
    def walk(branches: Any) -> list[str]:
        return [name for queue in branches for name in [queue["metadataName"], *walk(queue["children"])]]

    branches = tree(*(a_queue_view(name, parent) for name, parent in parents.items()))
    assert sorted(walk(branches)) == sorted(parents)
    names = [queue["metadataName"] for queue in branches]
    assert tree(*(a_queue_view(name, parents[name]) for name in sorted(parents, reverse=True))) == branches
    assert set(names) >= {name for name, parent in parents.items() if parent not in parents}
