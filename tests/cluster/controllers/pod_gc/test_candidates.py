from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Pod, PodSpec, PodStatus, Taint
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.pod_gc.candidates import OUT_OF_SERVICE, cannot_end, has_ended, is_removed, surplus

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_pod(
    name: str = "p", *, phase: str = "Running", reason: str = "", age: int = 0, node: str = "", deleting: bool = False
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            creation_timestamp=START - timedelta(seconds=age),
            deletion_timestamp=START if deleting else None,
            deletion_grace_period_seconds=0 if deleting else None,
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase, reason=reason),
    )


def a_node(*, ready: bool, taints: list[str]) -> Node:
    condition = NodeCondition(type="Ready", status="True" if ready else "False")
    return Node(
        spec=NodeSpec(taints=[Taint(key=key, effect="NoExecute") for key in taints]),
        status=NodeStatus(conditions=[condition]),
    )


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_has_ended_in_its_last_phases(phase: str, expected: bool) -> None:
    assert has_ended(a_pod(phase=phase)) is expected


@pytest.mark.parametrize(
    ("pods", "count", "expected"),
    [
        pytest.param([a_pod("a", age=1), a_pod("b", age=2)], 1, ["b"], id="the oldest"),
        pytest.param([a_pod("b"), a_pod("a")], 1, ["a"], id="of the same age the first by name"),
        pytest.param(
            [a_pod("old", phase="Failed", age=9), a_pod("evicted", phase="Failed", reason="Evicted")],
            1,
            ["evicted"],
            id="an evicted one before older ones",
        ),
        pytest.param([a_pod("a", age=1), a_pod("b", age=2), a_pod("c", age=3)], 2, ["c", "b"], id="as many as asked"),
    ],
)
def test_surplus_takes_the_evicted_and_then_the_oldest(pods: list[Pod], count: int, expected: list[str]) -> None:
    assert [pod.metadata.name for pod in surplus(pods, count)] == expected


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(a_pod(deleting=True), None, True, id="to go, and never had a node"),
        pytest.param(a_pod(), None, False, id="not to go"),
        pytest.param(a_pod(deleting=True, node="n"), None, False, id="its node is gone: an orphan"),
        pytest.param(
            a_pod(deleting=True, node="n"), a_node(ready=False, taints=[OUT_OF_SERVICE]), True, id="out of service"
        ),
        pytest.param(a_pod(deleting=True, node="n"), a_node(ready=False, taints=[]), False, id="merely not ready"),
        pytest.param(
            a_pod(deleting=True, node="n"),
            a_node(ready=True, taints=[OUT_OF_SERVICE]),
            False,
            id="it is ready after all",
        ),
        pytest.param(a_pod(node="n"), a_node(ready=False, taints=[OUT_OF_SERVICE]), False, id="nobody wants it to go"),
    ],
)
def test_a_pod_cannot_end_where_no_node_answers_for_it(pod: Pod, node: Node | None, expected: bool) -> None:
    assert cannot_end(pod, node) is expected


def test_a_pod_is_removed_when_only_finalizers_hold_it() -> None:
    assert is_removed(a_pod(phase="Failed", deleting=True))
    assert not is_removed(a_pod(phase="Running", deleting=True))
    assert not is_removed(a_pod(phase="Failed"))
