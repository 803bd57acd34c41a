from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shoal.api.core import NodeCondition, Taint, Toleration
from shoal.api.meta import format_time
from shoal.cluster.controllers.node_lifecycle.conditions import conditions_of_silence
from shoal.cluster.controllers.node_lifecycle.eviction import patience
from shoal.cluster.controllers.node_lifecycle.taints import wanted_taints
from tests.support.builders.nodes import a_node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER = datetime(2025, 1, 1, tzinfo=UTC)


def short(taints: list[Taint]) -> list[tuple[str, str]]:
    return [(taint.key.removeprefix("node.kubernetes.io/"), taint.effect) for taint in taints]


@pytest.mark.parametrize(
    ("conditions", "cordoned", "expected"),
    [
        pytest.param({"Ready": "True"}, False, [], id="a ready node"),
        pytest.param({}, False, [], id="a node that has said nothing"),
        pytest.param({"Ready": "False"}, False, [("not-ready", "NoSchedule")], id="not ready"),
        pytest.param({"Ready": "Unknown"}, False, [("unreachable", "NoSchedule")], id="out of reach"),
        pytest.param({"Ready": "True"}, True, [("unschedulable", "NoSchedule")], id="cordoned"),
        pytest.param(
            {"MemoryPressure": "True", "DiskPressure": "True", "PIDPressure": "True", "NetworkUnavailable": "True"},
            True,
            [
                ("memory-pressure", "NoSchedule"),
                ("disk-pressure", "NoSchedule"),
                ("pid-pressure", "NoSchedule"),
                ("network-unavailable", "NoSchedule"),
                ("unschedulable", "NoSchedule"),
            ],
            id="everything at once, in the order of the conditions",
        ),
        pytest.param({"MemoryPressure": "Unknown", "Ready": "True"}, False, [], id="pressure that is not known"),
    ],
)
def test_conditions_keep_pods_away(conditions: dict[str, str], cordoned: bool, expected: list[tuple[str, str]]) -> None:
    assert (
        short(wanted_taints(a_node(ready=None, conditions=conditions, cordoned=cordoned), drives_away=False, now=NOW))
        == expected
    )


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("status", "held", "drives_away", "expected"),
    [
        pytest.param("False", [], True, [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")], id="not ready"),
        pytest.param(
            "Unknown",
            [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")],
            True,
            [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")],
            id="one follows the other",
        ),
        pytest.param("True", [(NOT_READY, "NoSchedule"), (UNREACHABLE, "NoExecute")], False, [], id="recovered"),
        pytest.param(
            "Unknown",
            [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
            False,
            [("unreachable", "NoSchedule")],
            id="taken back",
        ),
        pytest.param(
            "True",
            [("mine", "NoExecute"), (NOT_READY, "PreferNoSchedule"), ("mine", "NoSchedule")],
            False,
            [("mine", "NoExecute"), ("not-ready", "PreferNoSchedule"), ("mine", "NoSchedule")],
            id="those of others stay",
        ),
    ],
)
def test_readiness_drives_pods_away(
    status: str, held: list[tuple[str, str]], drives_away: bool, expected: list[tuple[str, str]]
) -> None:
    node = a_node(ready=status, taints=[{"key": key, "effect": effect} for key, effect in held])
    assert short(wanted_taints(node, drives_away=drives_away, now=NOW)) == expected


def test_a_taint_that_is_there_keeps_its_time() -> None:
    node = a_node(ready=False, taints=[NOT_READY])
    first, second = wanted_taints(node, drives_away=True, now=NOW)
    assert first.time_added is None
    assert second.time_added == NOW


def test_all_that_a_silent_node_said_is_unknown() -> None:
    said = {"NetworkUnavailable": "False", "Ready": "True", "MemoryPressure": "Unknown", "Mine": "True"}
    at = format_time(EARLIER)
    conditions = [{"type": kind, "status": status, "lastHeartbeatTime": at} for kind, status in said.items()]
    node = a_node(metadata={"creationTimestamp": at}, status={"conditions": conditions})
    found = {condition.type: condition for condition in conditions_of_silence(node, NOW)}
    assert list(found) == ["NetworkUnavailable", "Ready", "MemoryPressure", "Mine", "DiskPressure", "PIDPressure"]
    assert found["NetworkUnavailable"].status == "False"
    assert found["Mine"].status == "True"
    assert found["Ready"] == NodeCondition(
        type="Ready",
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        last_heartbeat_time=EARLIER,
        last_transition_time=NOW,
    )
    assert found["MemoryPressure"].reason == ""
    assert found["DiskPressure"] == NodeCondition(
        type="DiskPressure",
        status="Unknown",
        reason="NodeStatusNeverUpdated",
        message="Kubelet never posted node status.",
        last_heartbeat_time=EARLIER,
        last_transition_time=NOW,
    )


def tolerating(key: str, seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        pytest.param([], [], None, id="no taint"),
        pytest.param([], ["a"], 0.0, id="not tolerated"),
        pytest.param([tolerating("a")], ["a"], None, id="tolerated for good"),
        pytest.param([tolerating("a", 100)], ["a"], 100.0, id="tolerated for a while"),
        pytest.param([tolerating("a", 0)], ["a"], 0.0, id="tolerated for no time"),
        pytest.param([tolerating("a", -5)], ["a"], 0.0, id="tolerated for less than no time"),
        pytest.param([tolerating("a", 100), tolerating("b", 30)], ["a", "b"], 30.0, id="the least of two"),
        pytest.param([tolerating("a", 100), tolerating("b")], ["a", "b"], 100.0, id="one of them for good"),
        pytest.param([tolerating("a", 100)], ["a", "b"], 0.0, id="one of them not at all"),
        pytest.param([tolerating("a", 100), tolerating("a", 1)], ["a"], 100.0, id="the first for a taint counts"),
        pytest.param([tolerating("", 7)], ["a", "b"], 7.0, id="one for all"),
    ],
)
def test_patience_is_that_for_the_least_tolerated_taint(
    tolerations: list[Toleration], taints: list[str], expected: float | None
) -> None:
    assert patience(tolerations, [Taint(key=key, effect="NoExecute") for key in taints]) == expected
