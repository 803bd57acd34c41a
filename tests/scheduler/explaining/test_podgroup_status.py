"""What PodGroups carry of why they do not start, and what evicted pods are told."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from shoal.api.scheduling_run_ai import SchedulingCondition
from shoal.scheduler.explaining import conditions, eviction_message, next_conditions, without_condition
from shoal.scheduler.session.session import Eviction
from shoal.scheduler.session.statement import Reason
from tests.scheduler.builders import a_model_gpu_queue, a_model_node
from tests.scheduler.explaining.stage import NOW, a_cluster, a_job, a_request, after_a_cycle

TWO = [a_model_node("n1"), a_model_node("n2")]
MOMENT = datetime.fromtimestamp(NOW, UTC)


def test_a_condition_carries_the_figures_of_the_queue() -> None:
    jobs = [a_job("has", on="n1", request=a_request(6)), a_job("wants", request=a_request(4))]
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a", quota=2, limit=8)], jobs)) as session:
        found = conditions(session, jobs[1], node_pool="")
    assert found is not None
    assert (found.type, found.node_pool, found.status, found.reason) == (
        "UnschedulableOnNodePool",
        "default",
        "True",
        "Unschedulable",
    )
    wire = msgspec.to_builtins(found)["reasons"]
    assert [one["reason"] for one in wire] == ["OverLimit"]
    details = wire[0]["details"]["queueDetails"]
    assert details["name"] == "a"
    assert details["queueAllocatedResources"]["nvidia.com/gpu"] == "6"
    assert details["queueResourceLimits"] == {"nvidia.com/gpu": "8"}
    assert details["podGroupRequestedResources"]["nvidia.com/gpu"] == "4"


def test_a_job_that_has_something_or_was_not_tried_carries_none() -> None:
    jobs = [a_job("grows", pods=3, needs=1, on=["n1"], request=a_request(8)), a_job("young", pods=1, needs=2)]
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a")], jobs)) as session:
        assert conditions(session, jobs[0]) is None
        assert conditions(session, jobs[1]) is None


def test_a_job_that_gives_up_after_one_attempt_names_the_pool() -> None:
    job = a_job("huge", request=a_request(16))
    with after_a_cycle(a_cluster(TWO, [a_model_gpu_queue("a")], [job])) as session:
        found = conditions(session, job, node_pool="blue", names_pool=True)
    assert found is not None
    assert found.message.startswith("node pool blue: no node has room")
    assert found.node_pool == "blue"


def _condition(message: str, pool: str = "default", number: str = "") -> SchedulingCondition:
    return SchedulingCondition(
        type="UnschedulableOnNodePool", node_pool=pool, status="True", message=message, transition_id=number
    )


def test_the_same_again_is_not_written() -> None:
    before = [_condition("full", number="3")]
    assert next_conditions(before, _condition("full"), MOMENT) is None


def test_news_takes_the_place_of_what_was_said_of_the_pool_and_comes_last() -> None:
    before = [_condition("full", number="3"), _condition("other", "blue", number="4")]
    after = next_conditions(before, _condition("full"), MOMENT)
    assert after is not None
    assert [(one.node_pool, one.transition_id) for one in after] == [("blue", "4"), ("default", "5")]
    assert after[-1].last_transition_time == MOMENT


def test_a_number_that_cannot_be_read_begins_anew() -> None:
    after = next_conditions([_condition("x", number="many")], _condition("y"), MOMENT)
    assert after is not None
    assert [one.transition_id for one in after] == ["1"]


def test_what_was_said_is_taken_back_for_one_pool() -> None:
    before = [_condition("full"), _condition("other", "blue")]
    assert without_condition(before) == [before[1]]
    assert without_condition([before[1]]) is None


def test_the_evicted_are_told_for_whom_and_by_what_right() -> None:
    queues = [a_model_gpu_queue("a", quota=8), a_model_gpu_queue("b", quota=4)]
    loser = a_job("loser", "b", pods=2, on=["n1", "n2"], request=a_request(8))
    winner = a_job("winner", "a", request=a_request(8))
    with after_a_cycle(a_cluster(TWO, queues, [loser, winner]), actions=()) as session:
        task = next(iter(loser.tasks.values()))
        said = {
            action: eviction_message(session, Eviction(task, Reason(action, evictor=winner.key)))
            for action in ("preempt", "reclaim", "consolidation", "stalegangeviction")
        }
    assert said["preempt"] == (
        "pod team/loser-0 makes room for workload team/winner of its queue, which has a higher priority"
    )
    assert "queue b uses 16 GPUs, 2 CPU cores, with a quota of 4 GPUs" in said["reclaim"]
    assert "queue a uses " in said["reclaim"]
    assert "fair share of 8 GPUs" in said["reclaim"]
    assert "priority 100" in said["reclaim"]
    assert said["consolidation"].startswith("pod team/loser-0 moves to another node")
    assert said["stalegangeviction"] == (
        "pod team/loser-0 ends with its gang, which has fewer than the 2 pods that it needs"
    )
