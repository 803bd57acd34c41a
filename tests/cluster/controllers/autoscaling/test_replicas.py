"""What size a metric asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.api.meta import format_time
from shoal.cluster.controllers.autoscaling.replicas import (
    CannotCompute,
    Readiness,
    Sample,
    Tolerance,
    by_average,
    by_utilization,
    by_value,
    by_value_per_pod,
    request_of,
)
from tests.support.builders.pods import a_condition, a_pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR_AGO = NOW - timedelta(hours=1)
TOLERANCE = Tolerance(0.1, 0.1)
READINESS = Readiness(timedelta(minutes=2), timedelta(seconds=10))


def a_measured_pod(
    name: str,
    *,
    cpu: str = "1",
    phase: str = "Running",
    ready: str = "True",
    started: datetime = HOUR_AGO,
    changed: datetime = HOUR_AGO,
    deleting: bool = False,
) -> Pod:
    """A pod that has run, and been ready, for an hour."""
    return a_pod(
        name,
        containers=["c"],
        requests={"cpu": cpu} if cpu else None,
        deleted=HOUR_AGO if deleting else None,
        phase=phase,
        conditions=[a_condition("Ready", ready, since=changed)],
        status={"startTime": format_time(started)},
    )


@dataclass
class Case:
    """Pods that ask for one processor each, what they use of it in thousandths, and the size that follows."""

    used: list[int | None]
    target: int
    size: int
    current: int = 3
    special: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def pods(self) -> list[Pod]:
        return [a_measured_pod(f"p{number}", **self.special.get(number, {})) for number in range(len(self.used))]

    @property
    def samples(self) -> dict[str, Sample]:
        return {f"p{number}": Sample(value, NOW) for number, value in enumerate(self.used) if value is not None}


MINUTE_AGO = NOW - timedelta(minutes=1)
STARTING = {"ready": "False", "started": MINUTE_AGO, "changed": MINUTE_AGO}
NEVER_READY = {"ready": "False", "changed": HOUR_AGO + timedelta(seconds=5)}
ONCE_READY = {"ready": "False", "changed": NOW - timedelta(minutes=30)}
JUST_READY = {"started": MINUTE_AGO, "changed": NOW - timedelta(seconds=30)}

UTILIZATION = {
    "more use, more pods": Case([300, 500, 700], 30, 5),
    "less use, fewer pods": Case([100, 300, 500, 250, 250], 50, 3, current=5),
    "within the tolerance nothing changes": Case([1010, 1030, 1020], 100, 3),
    "within the tolerance nothing changes downwards": Case([970, 950, 930], 100, 3),
    "starting pods count as unused when growing": Case([300, 500, 700], 30, 4, special={0: STARTING}),
    "so many starting pods that nothing grows": Case([400, 500, 700], 30, 3, special={0: STARTING, 1: STARTING}),
    "a pod that was ready once is believed": Case([300, 500, 700], 30, 5, special={0: ONCE_READY}),
    "a pod that was never ready is not": Case([300, 500, 700], 30, 4, special={0: NEVER_READY}),
    "a pod ready for less than a window is not": Case([300, 500, 700], 30, 4, special={0: JUST_READY}),
    "pending pods count as unused when growing": Case([None, 500, 700], 30, 4, special={0: {"phase": "Pending"}}),
    "failed pods do not count": Case([500, 700, None], 30, 4, current=2, special={2: {"phase": "Failed"}}),
    "pods on their way out do not count": Case([500, 700, 900], 30, 4, current=2, special={2: {"deleting": True}}),
    "missing ones count as full when shrinking": Case([100, 200, None, None], 100, 3, current=4),
    "missing ones never turn shrinking into growing": Case([400, 400, None, None], 50, 4, current=4),
    "missing ones count as unused when growing": Case([1000, 1000, None], 50, 4),
    "missing ones may keep it from growing": Case([None, 1000, None], 50, 3),
}


@pytest.mark.parametrize("case", UTILIZATION.values(), ids=UTILIZATION.keys())
def test_size_by_utilization(case: Case) -> None:
    proposal = by_utilization(
        case.current, case.target, case.pods, case.samples, resource="cpu", container="", tolerance=TOLERANCE,
        readiness=READINESS, now=NOW,
    )  # fmt: skip
    assert proposal.replicas == case.size


AVERAGE = {
    "more use, more pods": Case([20000, 10000, 30000], 15000, 4),
    "less use, fewer pods": Case([12000, 12000, 12000, 12000, 12000], 20000, 3, current=5),
    "readiness does not matter": Case([50000, 15000, 30000], 15000, 7, special={0: STARTING}),
    "pending pods count as unused": Case([50000, 10000, 30000], 15000, 3, special={0: {"phase": "Pending"}}),
    "missing ones count as the target when shrinking": Case([10000, None, 10000], 20000, 2),
}


@pytest.mark.parametrize("case", AVERAGE.values(), ids=AVERAGE.keys())
def test_size_by_average(case: Case) -> None:
    proposal = by_average(
        case.current, case.target, case.pods, case.samples, tolerance=TOLERANCE, readiness=READINESS, now=NOW
    )
    assert proposal.replicas == case.size


def test_what_was_found_is_told() -> None:
    case = Case([300, 500, 700], 30, 5)
    proposal = by_utilization(
        3, 30, case.pods, case.samples, resource="cpu", container="", tolerance=TOLERANCE, readiness=READINESS, now=NOW
    )
    assert (proposal.utilization, proposal.usage) == (50, 500)


def test_size_by_one_value_for_all() -> None:
    pods = [a_measured_pod("a"), a_measured_pod("b"), a_measured_pod("c", ready="False")]
    assert by_value(3, 15000, 20000, pods, tolerance=TOLERANCE).replicas == 3  # of the two that are ready
    assert by_value(3, 15000, 15100, pods, tolerance=TOLERANCE).replicas == 3
    assert by_value(3, 15000, 60000, pods, tolerance=TOLERANCE).replicas == 8
    assert by_value(0, 1000, 2500, [], tolerance=TOLERANCE).replicas == 3


def test_size_by_a_share_for_each_pod() -> None:
    found = by_value_per_pod(3, 10000, 60000, tolerance=TOLERANCE)
    assert (found.replicas, found.usage) == (6, 20000)
    assert by_value_per_pod(3, 10000, 31000, tolerance=TOLERANCE).replicas == 3


def test_a_tolerance_may_differ_by_direction() -> None:
    case = Case([1200, 1200, 1200], 100, 3)
    for tolerance, size in ((Tolerance(0.1, 0.3), 3), (Tolerance(0.3, 0.1), 4)):
        proposal = by_utilization(
            3, 100, case.pods, case.samples, resource="cpu", container="", tolerance=tolerance, readiness=READINESS,
            now=NOW,
        )  # fmt: skip
        assert proposal.replicas == size


PROBLEMS = {
    "no pods": ([], {}, "no pods returned by selector while calculating replica count"),
    "no metrics": ([a_measured_pod("p")], {}, "did not receive metrics for targeted pods (pods might be unready)"),
    "no request": (
        [a_measured_pod("p", cpu="")],
        {"p": Sample(1, NOW)},
        "missing request for cpu in container c of Pod p",
    ),
}


@pytest.mark.parametrize(("pods", "samples", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_cannot_be_computed_says_why(pods: list[Pod], samples: dict[str, Sample], problem: str) -> None:
    with pytest.raises(CannotCompute) as caught:
        by_utilization(
            1, 50, pods, samples, resource="cpu", container="", tolerance=TOLERANCE, readiness=READINESS, now=NOW
        )
    assert str(caught.value) == problem


def test_a_request_may_be_that_of_one_container_or_of_the_pod() -> None:
    spec = {
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1"}}},
            {"name": "b", "resources": {"requests": {"cpu": "2"}}},
        ],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
            {"name": "once", "resources": {"requests": {"cpu": "9"}}},
        ],
    }
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert request_of(pod, "cpu", "") == 3500
    assert request_of(pod, "cpu", "b") == 2000
    whole = msgspec.convert({"metadata": {"name": "p"}, "spec": spec | {"resources": {"requests": {"cpu": "7"}}}}, Pod)
    assert request_of(whole, "cpu", "") == 7000
    with pytest.raises(CannotCompute, match="container x not found in Pod p"):
        request_of(pod, "cpu", "x")
