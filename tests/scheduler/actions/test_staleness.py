"""When a gang is stale, by what it needs; and what becomes of one."""

from __future__ import annotations

import pytest

from shoal.scheduler.actions.staleness import is_stale
from shoal.scheduler.model.jobs import PodSet, SubGroup
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.session.session import Eviction
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_job
from tests.scheduler.session.worlds import World
from tests.scheduler.shares.builders import pod_sets, with_pods

RUNNING, PENDING, RELEASING = Status.RUNNING, Status.PENDING, Status.RELEASING


@pytest.mark.parametrize(
    ("statuses", "stale"),
    [
        ([RUNNING, RUNNING], False),
        ([RUNNING, PENDING], True),
        ([RUNNING, RELEASING], False),
        ([PENDING, PENDING], False),
        ([RUNNING, Status.SUCCEEDED], False),
        ([RUNNING, Status.FAILED], True),
    ],
)
def test_a_gang_of_two_is_stale_when_one_is_left(statuses: list[Status], stale: bool) -> None:
    job = a_model_job("a", "q", root=pod_sets(("default", 2)))
    for status in statuses:
        with_pods(job, 1, status)

    assert is_stale(job) is stale


@pytest.mark.parametrize(("needed", "stale"), [(None, True), (1, False)])
def test_a_subgroup_that_is_not_needed_makes_nobody_stale(needed: int | None, stale: bool) -> None:
    inner = SubGroup(name="inner", min_children=needed, pod_sets=[PodSet("x", 1), PodSet("y", 1)])
    job = a_model_job("a", "q", root=SubGroup(name="", groups=[inner]))
    with_pods(job, 1, RUNNING, pod_set="x")

    assert is_stale(job) is stale


@pytest.mark.parametrize(
    ("since", "grace", "ends"),
    [
        (None, None, False),
        (-59.0, None, False),
        (-60.0, None, True),
        (-1e6, -1.0, False),
        (None, 0.0, True),
        (-5.0, 10.0, False),
    ],
    ids=["just seen", "in time", "too long", "never", "at once", "its own grace"],
)
def test_a_stale_gang_ends_when_its_grace_is_over(since: float | None, grace: float | None, ends: bool) -> None:
    world = World({"n": 2})
    job = world.job("a", on="n", least=2, staleness_grace=grace, is_preemptible=False)
    job.stale_since = None if since is None else world.now + since

    session = world.decide(Settings(), "stalegangeviction")

    assert [type(one) for one in session.decisions] == [Eviction] * ends
    assert session.stale == ({job.key: world.now} if since is None else {})


def test_a_gang_that_is_well_again_is_told_so() -> None:
    world = World({"n": 2})
    job = world.job("a", on="n")
    job.stale_since = 5.0

    session = world.decide(Settings(), "stalegangeviction")

    assert session.stale == {job.key: None}
    assert session.decisions == []
