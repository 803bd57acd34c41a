"""Jobs that are kept sorted from cycle to cycle are sorted as if every cycle had sorted them anew."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api import kai_names as names
from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.plugins import NO_PLUGINS, Plugin, Plugins
from shoal.scheduler.session.session import Bind, Session
from shoal.scheduler.session.settings import ACTIONS, Settings
from shoal.scheduler.watching.keeping import KeptPools
from shoal.scheduler.watching.mirror import Mirror
from tests.scheduler.watching.worlds import MOMENT, SETTINGS, World, a_gpu_node, a_group, a_mirrored_pod
from tests.support.builders.queues import a_queue

ENGINE = Settings()


def contents(pools: Pools) -> dict[str, object]:
    """Who is where, in order; each job by itself, as one of the same name may be another."""
    return {
        "waiting": {queue: [id(job) for _, job in ranked] for queue, ranked in pools.waiting.queues()},
        "givers": {queue: [id(job) for _, job in ranked] for queue, ranked in pools.givers.queues()},
        "unwell": [id(job) for job in pools.unwell],
    }


def a_cycle(mirror: Mirror, kept: KeptPools, now: float) -> None:
    """One cycle as the scheduler runs it; what it gives away is assumed from then on."""
    changed, mirror.changed_jobs = mirror.changed_jobs, set()
    pools = kept.renewed(mirror.cluster.jobs, changed)
    assert pools is not None
    assert contents(pools) == contents(Pools(mirror.cluster.jobs.values()))
    session = Session(mirror.cluster, ENGINE, now=now, filters=mirror.filters, pods=mirror.pods, shares=mirror.shares)
    cycle.run(session, ACTIONS, pools)
    binds = [decision for decision in session.decisions if isinstance(decision, Bind)]
    session.close()
    assert contents(pools) == contents(Pools(mirror.cluster.jobs.values()))
    for bind in binds:
        mirror.assume(bind.task, bind.node, bind.gpu_groups, until=now + 100)


Step = tuple[str, str, Any]
"""A kind, a name, and what it is from now on; None where it goes."""
pod_names = st.sampled_from([f"p{index}" for index in range(6)])


def pods(name: str) -> st.SearchStrategy[Step]:
    """A pod of two GPUs in the group that its name says, at any point of its life."""
    fixed: dict[str, Any] = {"group": f"g{int(name[1]) % 3}", "requests": {names.NVIDIA_GPU: "2"}}
    gates = [{"name": "wait"}]
    lives: list[dict[str, Any]] = [
        {},
        {"phase": "Running", "node": "n0"},
        {"phase": "Running", "node": "n1"},
        {"phase": "Running", "node": "n0", "deleted": 0.0},
        {"schedulingGates": gates},
        {"phase": "Succeeded", "node": "n0"},
    ]
    made = st.sampled_from(lives).map(lambda life: a_mirrored_pod(name, **fixed, **life))
    return st.one_of(made, made, made, st.none()).map(lambda pod: ("pods", name, pod))


def groups(name: str) -> st.SearchStrategy[Step]:
    """Its group, of any size, in either queue."""
    made = st.builds(a_group, st.just(name), queue=st.sampled_from(["team", "other"]), members=st.integers(1, 2))
    return st.one_of(made, made, st.none()).map(lambda group: ("groups", name, group))


happenings = st.one_of(
    pod_names.flatmap(pods),
    pod_names.flatmap(pods),
    st.sampled_from(["g0", "g1", "g2"]).flatmap(groups),
    st.builds(lambda gpus: ("nodes", "n1", a_gpu_node("n1", gpus=gpus)), st.integers(0, 4)),
    st.sampled_from([5.0, 200.0]).map(lambda seconds: ("time", "", seconds)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(happenings, st.booleans()), min_size=8, max_size=40))
def test_whatever_happens_between_and_within_cycles(steps: list[tuple[Step, bool]]) -> None:
    world, mirror, kept, now = World(), Mirror(SETTINGS), KeptPools(ENGINE, NO_PLUGINS), MOMENT
    first: list[Step] = [("nodes", "n0", a_gpu_node("n0")), ("queues", "team", a_queue("team", quota=4))]
    first += [
        ("queues", "other", a_queue("other", quota=4)),
        *(("groups", f"g{index}", a_group(f"g{index}")) for index in (0, 1)),
    ]
    for (kind, name, what), has_cycle in [*((step, False) for step in first), *steps]:
        if kind == "time":
            now += what
        else:
            things = getattr(world, kind)
            if what is None:
                things.pop(name, None)
            else:
                things[name] = what
            world.tell(mirror, kind, name)
        if has_cycle:
            mirror.catch_up(now)
            a_cycle(mirror, kept, now)


def a_world() -> Mirror:
    world = World(
        pods={f"p{index}": a_mirrored_pod(f"p{index}", group=f"g{index}") for index in range(2)},
        nodes={"n0": a_gpu_node("n0")},
        queues={"team": a_queue("team", quota=4)},
        groups={f"g{index}": a_group(f"g{index}") for index in range(2)},
    )
    return world.mirror(MOMENT)


def test_a_cycle_looks_at_what_changed_alone() -> None:
    mirror, kept = a_world(), KeptPools(ENGINE, NO_PLUGINS)
    first = kept.renewed(mirror.cluster.jobs, mirror.changed_jobs)
    job = mirror.cluster.jobs["default", "g0"]
    job.is_backed_off = True

    assert first is not None
    assert kept.renewed(mirror.cluster.jobs, ()) is first
    assert job in first.waiting, "nobody said that it had changed"
    kept.renewed(mirror.cluster.jobs, [job.key])
    assert job not in first.waiting


def test_after_a_cycle_that_failed_all_jobs_are_sorted_anew() -> None:
    mirror, kept = a_world(), KeptPools(ENGINE, NO_PLUGINS)
    first = kept.renewed(mirror.cluster.jobs, ())
    kept.forget()

    again = kept.renewed(mirror.cluster.jobs, ())

    assert again is not None
    assert again is not first
    assert contents(again) == contents(Pools(mirror.cluster.jobs.values()))


def test_an_order_that_may_change_by_itself_is_not_kept() -> None:
    def job_order(job: Job, arguments: object) -> float:
        return 0.0

    plugins = Plugins([Plugin(name="mine", job_order=job_order)])
    engine = Settings(plugins=(*ENGINE.plugins, "mine"))

    assert KeptPools(engine, plugins).renewed(a_world().cluster.jobs, ()) is None
