"""What is said of queues when they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.scheduling_run_ai import Queue
from shoal.scheduler.admission.queues import blocked_deletion, queue_problems, queue_warnings, quota_warnings
from tests.support.builders.queues import a_queue
from tests.support.schemas.corpus import needs_corpus, upstream_samples


def made(name: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> Queue:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status or {}}, Queue)


def test_a_queue_says_its_part_of_each_resource() -> None:
    assert list(queue_problems(a_queue())) == []
    [problem] = queue_problems(made("team", {"priority": 5}))
    assert str(problem).startswith("spec.resources: Required value")


@pytest.mark.parametrize("field", ["preemptMinRuntime", "reclaimMinRuntime"])
@pytest.mark.parametrize(
    ("text", "is_refused"), [("", False), ("90s", False), ("0s", False), ("1 hour", True), ("-5s", True)]
)
def test_a_minimal_runtime_is_a_duration(field: str, text: str, is_refused: bool) -> None:
    found = [problem.path for problem in queue_problems(made("team", {"resources": {}, field: text}))]
    assert found == ([f"spec.{field}"] if is_refused else [])


def test_a_queue_with_queues_below_it_stays() -> None:
    denied = blocked_deletion(a_queue("research", status={"childQueues": ["b", "a"]}))
    assert denied is not None
    assert denied.code == 403
    assert "'research'" in denied.message
    assert "a, b" in denied.message
    assert blocked_deletion(a_queue("research")) is None


def test_a_queue_that_is_its_own_parent_is_warned_of() -> None:
    assert len(list(queue_warnings(a_queue("loop", "loop")))) == 1
    assert list(queue_warnings(a_queue("fine", "other"))) == []


QUOTAS: dict[str, tuple[Queue, list[Queue], list[str]]] = {
    "a root alone": (a_queue("top", quota={"gpu": 8}), [], []),
    "a child within its parent": (a_queue("a", "top", quota={"gpu": 4}), [a_queue("top", quota={"gpu": 8})], []),
    "a child with as much as its parent": (
        a_queue("a", "top", quota={"gpu": 8}),
        [a_queue("top", quota={"gpu": 8})],
        [],
    ),
    "a child beyond its parent": (
        a_queue("a", "top", quota={"gpu": 9}),
        [a_queue("top", quota={"gpu": 8})],
        [
            "queue 'a' has a gpu quota of 9, more than the 8 of its parent 'top'",
            "the queues in 'top' have gpu quotas of 9 together, more than its own 8",
        ],
    ),
    "children beyond their parent together": (
        a_queue("b", "top", quota={"cpu": 1500}),
        [a_queue("top", quota={"cpu": 2000}), a_queue("a", "top", quota={"cpu": 1000})],
        ["the queues in 'top' have cpu quotas of 2500 together, more than its own 2000"],
    ),
    "the queue as it will be counts, not as it was": (
        a_queue("a", "top", quota={"memory": 100}),
        [a_queue("top", quota={"memory": 100}), a_queue("a", "top", quota={"memory": 500})],
        [],
    ),
    "a parent that covers its children no more": (
        a_queue("top", quota={"gpu": 1}),
        [
            a_queue("top", quota={"gpu": 8}),
            a_queue("a", "top", quota={"gpu": 1}),
            a_queue("b", "top", quota={"gpu": 1}),
        ],
        ["the queues in 'top' have gpu quotas of 2 together, more than its own 1"],
    ),
    "an unlimited parent covers all": (a_queue("a", "top", quota={"gpu": -1}), [a_queue("top", quota={"gpu": -1})], []),
    "an unlimited child of a limited parent": (
        a_queue("a", "top", quota={"gpu": -1}),
        [a_queue("top", quota={"gpu": 8})],
        [
            "queue 'a' has a gpu quota of unlimited, more than the 8 of its parent 'top'",
            "the queues in 'top' have gpu quotas of unlimited together, more than its own 8",
        ],
    ),
    "a parent that is not there": (a_queue("a", "nobody", quota={"gpu": 9}), [a_queue("top", quota={"gpu": 8})], []),
    "a queue that is its own parent": (a_queue("a", "a", quota={"gpu": 9}), [], []),
}


@pytest.mark.parametrize(("queue", "others", "said"), QUOTAS.values(), ids=QUOTAS)
def test_a_quota_that_nobody_covers_is_warned_of(queue: Queue, others: list[Queue], said: list[str]) -> None:
    assert [warning.message for warning in quota_warnings(queue, others)] == said


@needs_corpus
def test_the_queues_of_kais_examples_pass() -> None:
    queues = [msgspec.convert(sample, Queue) for _, sample in upstream_samples("kai") if sample["kind"] == "Queue"]
    assert queues
    assert [problem for queue in queues for problem in queue_problems(queue)] == []
