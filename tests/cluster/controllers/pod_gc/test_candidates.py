from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.core import Node, Pod
from shoal.cluster.controllers.pod_gc.candidates import OUT_OF_SERVICE, cannot_end, has_ended, is_removed, surplus
from tests.support.builders.nodes import a_node
from tests.support.builders.pods import a_pod

START = datetime(2026, 1, 1, tzinfo=UTC)
GOING: dict[str, Any] = {"deleted": START, "metadata": {"deletionGracePeriodSeconds": 0}}
TAINT = {"key": OUT_OF_SERVICE, "effect": "NoExecute"}


def an_aged_pod(name: str, age: int = 0, **given: Any) -> Pod:
    return a_pod(name, created=START - timedelta(seconds=age), **given)


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_has_ended_in_its_last_phases(phase: str, expected: bool) -> None:
    assert has_ended(a_pod(phase=phase)) is expected


@pytest.mark.parametrize(
    ("pods", "count", "expected"),
    [
        pytest.param([an_aged_pod("a", 1), an_aged_pod("b", 2)], 1, ["b"], id="the oldest"),
        pytest.param([an_aged_pod("b"), an_aged_pod("a")], 1, ["a"], id="of the same age the first by name"),
        pytest.param(
            [
                an_aged_pod("old", 9, phase="Failed"),
                an_aged_pod("evicted", phase="Failed", status={"reason": "Evicted"}),
            ],
            1,
            ["evicted"],
            id="an evicted one before older ones",
        ),
        pytest.param(
            [an_aged_pod("a", 1), an_aged_pod("b", 2), an_aged_pod("c", 3)], 2, ["c", "b"], id="as many as asked"
        ),
    ],
)
def test_surplus_takes_the_evicted_and_then_the_oldest(pods: list[Pod], count: int, expected: list[str]) -> None:
    assert [pod.metadata.name for pod in surplus(pods, count)] == expected


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(a_pod(**GOING), None, True, id="to go, and never had a node"),
        pytest.param(a_pod(), None, False, id="not to go"),
        pytest.param(a_pod(**GOING, node="n"), None, False, id="its node is gone: an orphan"),
        pytest.param(a_pod(**GOING, node="n"), a_node(ready=False, taints=[TAINT]), True, id="out of service"),
        pytest.param(a_pod(**GOING, node="n"), a_node(ready=False), False, id="merely not ready"),
        pytest.param(
            a_pod(**GOING, node="n"),
            a_node(taints=[TAINT]),
            False,
            id="it is ready after all",
        ),
        pytest.param(a_pod(node="n"), a_node(ready=False, taints=[TAINT]), False, id="nobody wants it to go"),
    ],
)
def test_a_pod_cannot_end_where_no_node_answers_for_it(pod: Pod, node: Node | None, expected: bool) -> None:
    assert cannot_end(pod, node) is expected


def test_a_pod_is_removed_when_only_finalizers_hold_it() -> None:
    assert is_removed(a_pod(phase="Failed", **GOING))
    assert not is_removed(a_pod(phase="Running", **GOING))
    assert not is_removed(a_pod(phase="Failed"))
