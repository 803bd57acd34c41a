"""Jobs that are kept sorted: whatever happens to them, they are where they would be if all were sorted anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import ACTIONS, Scenario
from shoal.scheduler.session.session import Session
from tests.scheduler.actions.random_clusters import clusters
from tests.scheduler.builders import a_model_job
from tests.scheduler.shares.builders import pod_sets, with_pods

NOW = 1_000_000.0


def contents(pools: Pools) -> dict[str, object]:
    """Who is where, in order."""
    return {
        "waiting": {queue: [job.name for _, job in ranked] for queue, ranked in pools.waiting.queues()},
        "givers": {queue: [job.name for _, job in ranked] for queue, ranked in pools.givers.queues()},
        "unwell": [job.name for job in pools.unwell],
    }


def test_who_waits_who_has_something_to_give_and_who_is_unwell() -> None:
    waiting, running, half, gated, fixed = (a_model_job(name, "q", root=pod_sets(("default", 2))) for name in "abcde")
    with_pods(waiting, 2, Status.PENDING)
    with_pods(running, 2, Status.RUNNING)
    with_pods(half, 1, Status.RUNNING)
    with_pods(gated, 2, Status.GATED)
    with_pods(fixed, 2, Status.RUNNING)
    fixed.is_preemptible = False

    pools = Pools([waiting, running, half, gated, fixed])

    assert contents(pools) == {"waiting": {"q": ["a"]}, "givers": {"q": ["c", "b"]}, "unwell": ["c"]}
    assert len(pools.waiting) == 1
    assert waiting in pools.waiting
    assert gated not in pools.waiting


def test_a_job_that_is_left_alone_does_not_wait() -> None:
    job = a_model_job("a", "q")
    with_pods(job, 1, Status.PENDING)
    job.is_backed_off = True

    assert not len(Pools([job]).waiting)


def test_a_gang_that_is_well_again_is_looked_at_once_more() -> None:
    job = a_model_job("a", "q")
    with_pods(job, 1, Status.RUNNING)
    job.stale_since = 5.0
    pools = Pools([job])
    assert pools.unwell == [job]

    job.stale_since = None
    pools.look_again(job)
    assert pools.unwell == []


def test_a_job_that_changed_its_queue_is_found_where_it_was() -> None:
    job, other = a_model_job("a", "q"), a_model_job("b", "q")
    for one in (job, other):
        with_pods(one, 1, Status.PENDING)
    pools = Pools([job, other])

    job.queue, job.priority = "r", 75
    pools.look_again(job)

    assert contents(pools)["waiting"] == {"q": ["b"], "r": ["a"]}


def test_between_cycles_jobs_come_go_and_are_replaced() -> None:
    first, gone = a_model_job("a", "q"), a_model_job("b", "q")
    for one in (first, gone):
        with_pods(one, 1, Status.PENDING)
    pools = Pools([first, gone])
    again, new = a_model_job("a", "r"), a_model_job("c", "q")
    for one in (again, new):
        with_pods(one, 1, Status.PENDING)
    jobs = {job.key: job for job in (again, new)}

    pools.renew(jobs, [first.key, gone.key, new.key])

    assert contents(pools) == contents(Pools(jobs.values()))
    assert list(pools.waiting) == [new, again]


@settings(max_examples=80)
@given(clusters())
def test_pools_follow_a_cycle_and_its_being_put_back(scenario: Scenario) -> None:
    cluster = cluster_of(scenario, NOW)
    pools = Pools(cluster.jobs.values())
    before = contents(pools)
    session = Session(cluster, settings_of(scenario), now=NOW)

    cycle.run(session, ACTIONS, pools)

    assert contents(pools) == contents(Pools(cluster.jobs.values()))
    session.close()
    assert contents(pools) == before


@settings(max_examples=60)
@given(clusters())
def test_kept_pools_lead_to_the_same_decisions(scenario: Scenario) -> None:
    cluster = cluster_of(scenario, NOW)
    pools = Pools(cluster.jobs.values())
    decided = []
    for _ in range(2):
        for kept in (None, pools):
            session = Session(cluster, settings_of(scenario), now=NOW)
            cycle.run(session, ACTIONS, kept)
            decided.append([(type(one), one.task.uid) for one in session.decisions])
            session.close()

    assert decided[0] == decided[1] == decided[2] == decided[3]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(sorted(Status))), max_size=30))
def test_pools_follow_any_changes(changes: list[tuple[int, Status]]) -> None:
    jobs = [a_model_job(f"j{place}", f"q{place % 2}", created=float(-place)) for place in range(5)]
    tasks = [with_pods(job, 2, Status.PENDING) for job in jobs]
    pools = Pools(jobs)
    for place, status in changes:
        job: Job = jobs[place]
        tasks[place][status % 2].become(status)
        pools.look_again(job)

    assert contents(pools) == contents(Pools(jobs))
