"""What a queue's status says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.scheduling_run_ai import Queue, QueueStatus
from shoal.scheduler.queues.ledger import Use
from shoal.scheduler.queues.quotas import held as held_figures
from shoal.scheduler.queues.status import queue_status
from shoal.scheduler.queues.tree import Orphaned
from shoal.scheduler.resource_lists import amounts_of
from tests.support.builders.queues import a_queue

EARLIER, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
LOST = Orphaned("ParentNotFound", "gone")


def of(queue: Queue, *, orphaned: Orphaned | None = None, children: tuple[str, ...] = (), **held: Any) -> QueueStatus:
    use = Use(allocated=amounts_of({name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in held.items()}))
    return queue_status(queue, children=children, use=use, orphaned=orphaned, now=NOW)


def conditions(status: QueueStatus) -> dict[str, str]:
    return {condition.type: condition.status for condition in status.conditions}


def test_a_queue_of_nothing_says_nothing() -> None:
    assert of(a_queue("a")) == QueueStatus()


def test_children_are_in_order() -> None:
    assert of(a_queue("a"), children=("c", "b")).child_queues == ["b", "c"]


@pytest.mark.parametrize(
    ("quotas", "held", "is_over"),
    [
        pytest.param({"gpu": 2}, {"gpu": "2"}, False, id="as much as the quota"),
        pytest.param({"gpu": 2}, {"gpu": "2500m"}, True, id="more"),
        pytest.param({"gpu": -1}, {"gpu": "2500"}, False, id="unlimited"),
        pytest.param({"gpu": 1, "cpu": 1500}, {"cpu": "1500m"}, False, id="a quota of CPU is in thousandths"),
        pytest.param({"gpu": 1, "cpu": 1500}, {"cpu": "1501m"}, True, id="and not a thousandth more"),
        pytest.param({"memory": 1000}, {"memory": "1G"}, False, id="a quota of memory is in megabytes"),
        pytest.param({"memory": 1000}, {"memory": "1Gi"}, True, id="and a gibibyte is more than a gigabyte"),
        pytest.param({}, {"cpu": "1m"}, True, id="without a quota all is surplus"),
    ],
)
def test_over_quota_is_what_holds_more_than_it_is_guaranteed(
    quotas: dict[str, Any], held: dict[str, Any], is_over: bool
) -> None:
    assert conditions(of(a_queue("a", quota=quotas), **held)) == ({"OverQuota": "True"} if is_over else {})


def test_a_condition_says_false_once_it_has_been_true_and_keeps_the_time_of_its_change() -> None:
    old = [
        {"type": "OverQuota", "status": "True", "lastTransitionTime": EARLIER.isoformat()},
        {"type": "Orphan", "status": "True", "lastTransitionTime": EARLIER.isoformat()},
    ]
    queue = a_queue("a", quota={"gpu": 1}, status={"conditions": old})
    status = of(queue, orphaned=LOST)
    assert conditions(status) == {"OverQuota": "False", "Orphan": "True"}
    assert [each.last_transition_time for each in status.conditions] == [NOW, EARLIER]


def test_the_same_again_is_the_same() -> None:
    first = of(a_queue("a", quota={"gpu": 1}), orphaned=LOST, children=("b",), gpu="3", memory="1024Mi")
    later = datetime(2027, 1, 1, tzinfo=UTC)
    queue = a_queue("a", quota={"gpu": 1})
    use = Use(allocated=amounts_of({"nvidia.com/gpu": 3, "memory": "1Gi"}))
    again = queue_status(
        msgspec.structs.replace(queue, status=first), children=["b"], use=use, orphaned=LOST, now=later
    )
    assert again == first


def test_conditions_of_others_stay() -> None:
    old = [{"type": "Paused", "status": "True"}]
    status = of(a_queue("a", status={"conditions": old}), orphaned=LOST)
    assert conditions(status) == {"Paused": "True", "Orphan": "True"}


@pytest.mark.parametrize(
    ("resource", "amount", "gpus"),
    [
        ("nvidia.com/gpu", "1", 1.0),
        ("amd.com/gpu", "2", 2.0),
        ("nvidia.com/mig-3g.20gb", "2", 6.0),
        ("gpu.nvidia.com", "1", 1.0),
        ("run.ai/gpu.memory", "4000", 0.0),
        ("nvidia.com/gpu.shared", "4", 0.0),
    ],
)
def test_gpus_of_every_kind_count_in_devices(resource: str, amount: str, gpus: float) -> None:
    assert held_figures(amounts_of({resource: amount})).gpus == gpus
