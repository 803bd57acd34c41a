from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from shoal.api.core import Pod
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.ranking import DELETION_COST, deletion_cost, first_to_go
from tests.support.builders.pods import a_condition, a_pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MONTH_AGO = NOW - timedelta(days=30)


def a_ranked_pod(
    name: str,
    *,
    node: str = "node",
    phase: str = "Running",
    ready: datetime | None = None,
    is_ready: bool = False,
    created: datetime | None = None,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    cost: str = "",
) -> Pod:
    return a_pod(
        name,
        uid=name,
        annotations={DELETION_COST: cost} if cost else None,
        created=created,
        init=[{"name": "sidecar", "restartPolicy": "Always"}, "once"],
        node=node,
        phase=phase,
        conditions=[a_condition("Ready", since=ready)] if ready or is_ready else None,
        status={
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
            "initContainerStatuses": [
                {"name": "sidecar", "restartCount": sidecar_restarts},
                {"name": "once", "restartCount": 99},
            ],
        },
    )


def order(*pods: Pod, related_on_node: dict[str, int] | None = None) -> list[str]:
    return [pod.metadata.name for pod in first_to_go(pods, related_on_node=related_on_node or {}, now=NOW)]


UNSCHEDULED = a_ranked_pod("unscheduled", node="", phase="Pending")
PENDING = a_ranked_pod("pending", phase="Pending")
UNKNOWN = a_ranked_pod("unknown", phase="Unknown")
NOT_READY = a_ranked_pod("not-ready")
READY_AT_NO_TIME = a_ranked_pod("ready-at-no-time", is_ready=True)
READY_NOW = a_ranked_pod("ready-now", ready=NOW, created=NOW)
READY_LONG = a_ranked_pod("ready-long", ready=MONTH_AGO, created=MONTH_AGO)


def test_the_less_a_pod_has_come_to_the_sooner_it_goes() -> None:
    ladder = [UNSCHEDULED, PENDING, UNKNOWN, NOT_READY, READY_AT_NO_TIME, READY_NOW, READY_LONG]
    names = [pod.metadata.name for pod in ladder]
    for shuffled in list(permutations(ladder))[::97]:
        assert order(*shuffled) == names


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(a_ranked_pod("z", ready=NOW, created=NOW, restarts=9), READY_NOW, id="restarted more often"),
        pytest.param(
            a_ranked_pod("z", ready=NOW, created=NOW, restarts=9, sidecar_restarts=9),
            a_ranked_pod("a", ready=NOW, created=NOW, restarts=9),
            id="a sidecar restarted more often",
        ),
        pytest.param(
            a_ranked_pod("z", ready=NOW, created=NOW, restarts=1),
            a_ranked_pod("a", ready=NOW, created=NOW, sidecar_restarts=9),
            id="containers count before sidecars",
        ),
        pytest.param(READY_NOW, a_ranked_pod("a", ready=NOW, created=MONTH_AGO), id="younger"),
        pytest.param(a_ranked_pod("z", ready=NOW), a_ranked_pod("a", ready=NOW, created=NOW), id="of no age at all"),
        pytest.param(
            a_ranked_pod("z", ready=NOW, created=MONTH_AGO, cost="10"),
            a_ranked_pod("a", ready=NOW, created=MONTH_AGO, cost="100"),
            id="cheaper",
        ),
        pytest.param(
            a_ranked_pod("z", ready=MONTH_AGO, cost="-1"),
            a_ranked_pod("a", ready=NOW),
            id="cheaper than one without a price",
        ),
        pytest.param(
            a_ranked_pod("z", ready=NOW - timedelta(hours=2), created=MONTH_AGO),
            a_ranked_pod("a", ready=NOW - timedelta(hours=5), created=MONTH_AGO),
            id="ready for an order of magnitude less",
        ),
        pytest.param(
            a_ranked_pod("a", ready=NOW - timedelta(hours=8), created=MONTH_AGO, restarts=0),
            a_ranked_pod("z", ready=NOW - timedelta(hours=5), created=MONTH_AGO, restarts=9),
            id="about as long ready: by uid",
        ),
        pytest.param(
            a_ranked_pod("a", node="", phase="Pending", created=NOW - timedelta(hours=8)),
            a_ranked_pod("z", node="", phase="Pending", created=NOW - timedelta(hours=5)),
            id="about as old: by uid",
        ),
    ],
)
def test_of_two_pods_the_first_goes_when_it_is(first: Pod, second: Pod) -> None:
    expected = [first.metadata.name, second.metadata.name]
    assert order(first, second) == order(second, first) == expected


def test_a_crowded_node_gives_up_a_pod_before_a_lonely_one_whatever_their_ages() -> None:
    old_in_crowd = a_ranked_pod("old", node="crowded", ready=MONTH_AGO, created=MONTH_AGO)
    young_alone = a_ranked_pod("young", node="lonely", ready=NOW, created=NOW)
    related = {"crowded": 3, "lonely": 1}
    assert order(young_alone, old_in_crowd, related_on_node=related) == ["old", "young"]


def test_readiness_and_price_count_before_the_crowd() -> None:
    ready = a_ranked_pod("ready", node="crowded", ready=NOW)
    waiting = a_ranked_pod("waiting", node="lonely")
    cheap = a_ranked_pod("cheap", node="lonely", ready=NOW, cost="-5")
    related = {"crowded": 3, "lonely": 1}
    assert order(ready, waiting, cheap, related_on_node=related) == ["waiting", "cheap", "ready"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("10", 10), ("-10", -10), ("0", 0), ("-0", 0), ("2147483647", 2147483647), ("-2147483648", -2147483648),
        ("+10", 0), ("007", 0), ("2147483648", 0), ("ten", 0), ("1.5", 0), (" 1", 0), ("", 0),
    ],
)  # fmt: skip
def test_a_price_is_a_plain_number_of_32_bits(text: str, cost: int) -> None:
    pod = Pod(metadata=ObjectMeta(annotations={DELETION_COST: text}))
    assert deletion_cost(pod) == cost
