"""Views: what the next one shares with the one before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.api.visualizer import (
    UNLIMITED,
    Amounts,
    Bounds,
    ClusterView,
    JobView,
    NodeView,
    QueueView,
    TaskStatus,
    TaskView,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def node(name: str, *, ready: bool = True) -> NodeView:
    return NodeView(name=name, ready=ready, allocatable=Amounts(gpus=8), used=Amounts())


def job(uid: str, namespace: str = "a", **fields: Any) -> JobView:
    tasks = (TaskView(uid="t", name="t", status=TaskStatus.RUNNING),)
    return JobView(uid=uid, name=uid, namespace=namespace, queue="q", created=NOON, tasks=tasks, **fields)


def first() -> ClusterView:
    jobs = [job("1"), job("2"), job("3", "b")]
    return ClusterView.of(cycle=1, at=NOON, nodes=[node("n1"), node("n2")], queues=[QueueView(name="q")], jobs=jobs)


def test_a_cycle_that_changes_nothing_shares_everything() -> None:
    view = first()
    following = view.followed_by(cycle=2, at=NOON)
    assert following.cycle == 2
    assert following.nodes is view.nodes
    assert following.queues is view.queues
    assert following.jobs is view.jobs


def test_what_is_equal_is_the_one_that_was_there() -> None:
    view = first()
    following = view.followed_by(cycle=2, at=NOON, nodes=[node("n1")], jobs=[job("1")], queues=[QueueView(name="q")])
    assert following.nodes is view.nodes
    assert following.jobs is view.jobs
    assert following.queues is view.queues


def test_a_change_leaves_everything_else_and_the_view_before_as_they_were() -> None:
    view = first()
    following = view.followed_by(cycle=2, at=NOON, nodes=[node("n2", ready=False)], jobs=[job("1", position=4)])
    assert following.nodes["n1"] is view.nodes["n1"]
    assert (view.nodes["n2"].ready, following.nodes["n2"].ready) == (True, False)
    assert following.jobs["b"] is view.jobs["b"]
    assert following.jobs["a"]["2"] is view.jobs["a"]["2"]
    assert (view.jobs["a"]["1"].position, following.jobs["a"]["1"].position) == (None, 4)


def test_a_job_that_only_moves_up_keeps_its_tasks() -> None:
    view = first()
    following = view.followed_by(cycle=2, at=NOON, jobs=[job("1", position=4)])
    assert following.jobs["a"]["1"].tasks is view.jobs["a"]["1"].tasks


def test_what_is_gone_is_gone_and_so_is_a_namespace_without_jobs() -> None:
    view = first()
    following = view.followed_by(
        cycle=2, at=NOON, gone_nodes=["n1", "never"], gone_queues=["q"], gone_jobs=[("b", "3"), ("c", "9"), ("a", "2")]
    )
    assert set(following.nodes) == {"n2"}
    assert not following.queues
    assert {namespace: set(of) for namespace, of in following.jobs.items()} == {"a": {"1"}}
    assert set(view.jobs) == {"a", "b"}


def test_what_came_back_in_the_same_cycle_is_there() -> None:
    view = first().followed_by(cycle=2, at=NOON, nodes=[node("n1"), node("n3")], gone_nodes=["n1", "n3"])
    assert set(view.nodes) == {"n1", "n2", "n3"}


def test_nobody_can_change_a_view() -> None:
    view = first()
    with pytest.raises(AttributeError):
        view.cycle = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        view.nodes["n9"] = node("n9")  # type: ignore[index]
    with pytest.raises(TypeError):
        view.jobs["a"]["9"] = job("9")  # type: ignore[index]


def test_unlimited_is_no_number() -> None:
    assert Bounds(gpus=UNLIMITED).gpus is UNLIMITED
    with pytest.raises(TypeError):
        UNLIMITED + 1  # type: ignore[operator]
