"""Replay: what is decided upon a snapshot, and what a what-if changes."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.explaining import State
from shoal.scheduler.replaying import InvalidChange, difference, replay, with_bound, with_nodes, with_submitted
from shoal.scheduler.snapshots import Snapshot
from tests.scheduler.snapshots.documents import (
    a_busy_cluster,
    a_group_object,
    a_node_object,
    a_pod_object,
    a_queue_object,
    a_snapshot,
)


@pytest.fixture
def busy() -> Snapshot:
    return a_snapshot(**a_busy_cluster())


def test_a_replay_tells_who_gets_a_place_and_who_waits_for_what(busy: Snapshot) -> None:
    found = replay(busy)
    assert [(one.pod, one.node, one.promised) for one in found.placements] == [("small-0", "n2", False)]
    assert found.evictions == []
    (waiting,) = found.waiting
    assert (waiting.job, waiting.state, waiting.reason, waiting.position) == (
        "gang",
        State.WAITING,
        "PodSchedulingErrors",
        1,
    )
    assert "not enough GPUs (2 nodes)" in waiting.message


def test_a_replay_is_the_same_every_time_and_leaves_the_snapshot_alone(busy: Snapshot) -> None:
    assert replay(busy) == replay(busy)


def test_only_the_actions_that_are_asked_for_are_run(busy: Snapshot) -> None:
    assert replay(busy, actions=[]).placements == []


def test_jobs_that_are_asked_about_are_told_of_in_full(busy: Snapshot) -> None:
    (told,) = replay(busy, explained=[("default", "gang"), ("default", "nobody")]).explanations
    assert told.name == "gang"
    assert told.queues[0].quota.gpus == 8


def test_evictions_are_told_with_their_reason_and_those_who_wait_for_them_are_promised_a_place() -> None:
    snapshot = a_snapshot(
        nodes=[a_node_object("n1"), a_node_object("n2")],
        queues=[a_queue_object("team-a", quota=8), a_queue_object("team-b", quota=8)],
        podGroups=[
            a_group_object("much", "team-b"),
            a_group_object("more", "team-b"),
            a_group_object("mine", "team-a"),
        ],
        pods=[a_pod_object("much", node="n1"), a_pod_object("more", node="n2"), a_pod_object("mine")],
    )
    found = replay(snapshot)
    (eviction,) = found.evictions
    assert (eviction.action, eviction.evictor, eviction.job) in [
        ("reclaim", "default/mine", "much"),
        ("reclaim", "default/mine", "more"),
    ]
    assert eviction.node in ("n1", "n2")
    assert "queue team-b uses 16 GPUs" in eviction.message or "queue team-b uses 8 GPUs" in eviction.message
    assert [(one.pod, one.promised) for one in found.placements] == [("mine-0", True)]
    assert found.waiting == []


def test_more_nodes_let_the_gang_start(busy: Snapshot) -> None:
    before, after = replay(busy), replay(with_nodes(busy, [a_node_object("n3"), a_node_object("n4")]))
    changes = difference(before, after)
    assert [one.pod for one in changes.placed] == ["gang-0", "gang-1"]
    assert [one.job for one in changes.not_waiting] == ["gang"]
    assert (changes.not_placed, changes.evicted, changes.waiting) == ([], [], [])


def test_nothing_changes_where_nothing_is_otherwise(busy: Snapshot) -> None:
    changes = difference(replay(busy), replay(busy))
    assert changes.is_nothing
    assert changes.restated == []


def test_a_quota_that_is_raised_lets_a_queue_take_back() -> None:
    snapshot = a_snapshot(
        nodes=[a_node_object("n1")],
        queues=[a_queue_object("team-a", quota=0), a_queue_object("team-b", quota=8)],
        podGroups=[a_group_object("theirs", "team-b"), a_group_object("mine", "team-a")],
        pods=[a_pod_object("theirs", node="n1"), a_pod_object("mine")],
    )
    poor = with_bound(snapshot, "team-b", "gpu", "0")
    changed = with_bound(poor, "team-a", "gpu", "8")
    assert replay(snapshot).evictions == []
    changes = difference(replay(snapshot), replay(changed))
    assert [(one.pod, one.action) for one in changes.evicted] == [("theirs-0", "reclaim")]
    assert [one.pod for one in changes.placed] == ["mine-0"]


@pytest.mark.parametrize(
    ("resource", "amount", "written"),
    [
        ("gpu", "64", 64),
        ("gpu", "0.5", 0.5),
        ("cpu", "64", 64_000),
        ("cpu", "500m", 500),
        ("memory", "1T", 1e6),
        ("gpu", "unlimited", -1),
        ("memory", "-1", -1),
    ],
)
def test_amounts_are_given_as_people_write_them(busy: Snapshot, resource: str, amount: str, written: float) -> None:
    changed = with_bound(busy, "team-a", resource, amount, bound="limit")
    queue = next(one for one in changed.of("queues") if one["metadata"]["name"] == "team-a")
    assert queue["spec"]["resources"][resource]["limit"] == written
    before = next(one for one in busy.of("queues") if one["metadata"]["name"] == "team-a")
    assert before["spec"]["resources"][resource]["limit"] == -1


@pytest.mark.parametrize(
    ("queue", "resource", "amount", "said"),
    [
        ("nobody", "gpu", "8", "queue nobody is not in the snapshot: there are team-a, team-b"),
        ("team-a", "disk", "8", "disk is nothing that queues share"),
        ("team-a", "gpu", "many", "'many' is no amount"),
        ("team-a", "gpu", "-3", "'-3' is less than nothing"),
    ],
)
def test_a_bound_that_cannot_be_set_is_told_why(
    busy: Snapshot, queue: str, resource: str, amount: str, said: str
) -> None:
    with pytest.raises(InvalidChange, match=said):
        with_bound(busy, queue, resource, amount)


def a_batch_job(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "tune", "labels": {"kai.scheduler/queue": "team-a"}},
        "spec": {"parallelism": 3, **spec, "template": {"spec": {"containers": [container]}}},
    }


def test_a_job_that_is_submitted_is_grouped_and_placed(busy: Snapshot) -> None:
    changes = difference(replay(busy), replay(with_submitted(busy, [a_batch_job()])))
    assert [one.pod for one in changes.placed] == ["tune-0", "tune-1", "tune-2"]
    assert {one.queue for one in changes.placed} == {"team-a"}
    assert {one.job for one in changes.placed} == {next(iter(changes.placed)).job}


def test_a_job_has_as_many_pods_as_run_at_once(busy: Snapshot) -> None:
    changed = with_submitted(busy, [a_batch_job(completions=2)])
    assert len(changed.of("pods")) - len(busy.of("pods")) == 2


def test_who_is_limited_and_asks_for_nothing_asks_for_as_much(busy: Snapshot) -> None:
    job = a_batch_job(parallelism=1)
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "65"}
    (waits,) = difference(replay(busy), replay(with_submitted(busy, [job]))).waiting
    assert waits.message.endswith("not enough CPU cores (2 nodes)")


def test_what_no_node_has_is_told_by_its_name(busy: Snapshot) -> None:
    job = a_batch_job(parallelism=1)
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"example.com/fpga": "1"}
    (waits,) = difference(replay(busy), replay(with_submitted(busy, [job]))).waiting
    assert waits.message.endswith("not enough example.com/fpga (2 nodes)")


def test_a_gang_that_is_submitted_with_its_pods_waits_as_one(busy: Snapshot) -> None:
    group, pods = a_group_object("large", "team-a", pods=3), [a_pod_object("large", index) for index in range(3)]
    changes = difference(replay(busy), replay(with_submitted(busy, [group, *pods])))
    assert changes.placed == []
    assert [one.job for one in changes.waiting] == ["large"]


def test_a_pod_alone_is_a_gang_of_its_own(busy: Snapshot) -> None:
    pod = a_pod_object("alone", gpus=1)
    del pod["metadata"]["annotations"], pod["metadata"]["uid"]
    pod["metadata"]["labels"] = {"kai.scheduler/queue": "team-b"}
    changes = difference(replay(busy), replay(with_submitted(busy, [{"kind": "List", "items": [pod, None]}])))
    assert [(one.pod, one.queue) for one in changes.placed] == [("alone-0", "team-b")]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param({"kind": "TrainJob", "metadata": {"name": "x"}}, "a TrainJob cannot be submitted", id="kind"),
        pytest.param({"metadata": {}}, "has no kind", id="no kind"),
        pytest.param({"kind": "Pod"}, "has no name", id="no name"),
        pytest.param(a_batch_job(suspend=True), "is suspended", id="suspended"),
    ],
)
def test_what_cannot_be_submitted_is_told_why(busy: Snapshot, document: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidChange, match=said):
        with_submitted(busy, [document])


def test_nothing_cannot_be_submitted(busy: Snapshot) -> None:
    with pytest.raises(InvalidChange, match="there is nothing in it"):
        with_submitted(busy, [None])  # type: ignore[list-item]
