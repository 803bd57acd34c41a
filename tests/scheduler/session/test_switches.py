"""Every built-in plugin that decides something can be left out: each story once with it, once without."""

from __future__ import annotations

import pytest

from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup, TopologyWish, single_pod_set
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Constraints
from shoal.scheduler.session.session import Eviction, Session
from shoal.scheduler.session.settings import PLUGINS, Settings
from tests.scheduler.builders import a_model_gpu_queue
from tests.scheduler.session.worlds import World


def without(*names: str) -> Settings:
    return Settings(plugins=tuple(name for name in PLUGINS if name not in names))


def evicted(session: Session) -> list[str]:
    names = [one.task.job.name for one in session.decisions if isinstance(one, Eviction)]
    session.close()
    return names


def test_priority_puts_the_important_job_first() -> None:
    world = World({"a": 1})
    world.job("old")
    world.job("important", priority=90)
    assert list(world.placed()) == ["important-0"]
    assert list(world.placed(without("priority"))) == ["old-0"]


def below_and_at_its_minimum() -> tuple[World, Job]:
    world = World({"a": 2})
    satisfied = world.job("satisfied", pods=2, least=1)
    [first, _] = satisfied.tasks.values()
    world.start(first, "a")
    world.job("lacking")
    return world, satisfied


def test_elastic_puts_the_job_first_that_lacks_something() -> None:
    world, _ = below_and_at_its_minimum()
    assert list(world.placed()) == ["lacking-0"]
    assert list(world.placed(without("elastic"))) == ["satisfied-1"]


def test_the_order_of_plugins_is_the_order_of_their_says() -> None:
    world, satisfied = below_and_at_its_minimum()
    satisfied.priority = 90
    assert list(world.placed()) == ["satisfied-1"]
    rest = tuple(name for name in PLUGINS if name not in ("priority", "elastic"))
    assert list(world.placed(Settings(plugins=(*rest, "elastic", "priority")))) == ["lacking-0"]


@pytest.mark.parametrize(
    ("plugin", "ranks"),
    [
        pytest.param("kubeflow", [(1, 0, 0), (0, 0, 0)], id="kubeflow: who leads comes first"),
        pytest.param("ray", [(0, 1, 0), (0, 0, 0)], id="ray: the head comes first"),
        pytest.param("taskorder", [(0, 0, 5), (0, 0, -5)], id="taskorder: the more important pod comes first"),
    ],
)
def test_pods_of_a_job_come_by_role_and_priority(plugin: str, ranks: list[tuple[int, int, int]]) -> None:
    world = World({"a": 1})
    world.job("job", pods=2, least=1, ranks=ranks)
    assert list(world.placed()) == ["job-1"]
    assert list(world.placed(without(plugin))) == ["job-0"]


def test_subgrouporder_serves_the_subgroup_first_that_lacks_something() -> None:
    world = World({"a": 2})
    root = SubGroup(name="", pod_sets=[PodSet("alpha", 1), PodSet("beta", 1)], min_children=1)
    job = world.job("job", pods=4, root=root)
    for index, task in enumerate(list(job.tasks.values())):
        job.remove(task)
        task.subgroup = "alpha" if index < 2 else "beta"
        job.add(task)
    first = next(iter(job.tasks.values()))
    world.start(first, "a")
    assert list(world.placed()) == ["job-2"]
    assert list(world.placed(without("subgrouporder"))) == ["job-1"]


def test_predicates_keep_pods_off_nodes_that_do_not_want_them() -> None:
    world = World({"a": 1})
    world.job("job")
    world.cluster.nodes.nodes[0].is_unschedulable = True
    assert world.placed() == {}
    assert world.placed(without("predicates")) == {"job-0": "a"}


def test_topology_keeps_a_gang_together() -> None:
    labels = {"a": {"rack": "one"}, "b": {"rack": "two"}}
    world = World({"a": 1, "b": 1}, labels=labels, topologies={"t": Topology("t", ("rack",))})
    world.job("gang", pods=2, root=single_pod_set(2, TopologyWish("t", required="rack")))
    assert world.placed() == {}
    assert world.placed(without("topology")) == {"gang-0": "a", "gang-1": "b"}


def test_minruntime_protects_who_has_just_started() -> None:
    world = World({"a": 1}, queues=(a_model_gpu_queue("q", quota=1, preempt_min_runtime=60.0),))
    world.job("running", on="a", priority=10, last_start=world.now)
    world.job("urgent", priority=90)
    assert evicted(world.decide(None, "preempt")) == []
    assert evicted(world.decide(without("minruntime"), "preempt")) == ["running"]


def test_proportion_holds_queues_to_their_limits() -> None:
    world = World({"a": 4}, queues=(a_model_gpu_queue("q", quota=1, limit=1),))
    world.job("job", pods=2)
    assert world.placed() == {}
    assert world.placed(without("proportion")) == {"job-0": "a", "job-1": "a"}


def test_proportion_serves_the_queue_first_that_has_less() -> None:
    world = World({"a": 2}, queues=(a_model_gpu_queue("q", quota=1), a_model_gpu_queue("poor", quota=1, created=1.0)))
    world.job("rich", on="a")
    world.job("more")
    world.job("poor", queue="poor")
    assert list(world.placed()) == ["poor-0"]
    assert list(world.placed(without("proportion"))) == ["more-0"], "without it, the older queue comes first"


def test_proportion_takes_back_what_another_queue_has_too_much() -> None:
    world = World({"a": 2}, queues=(a_model_gpu_queue("q", quota=1), a_model_gpu_queue("poor", quota=1, created=1.0)))
    for name in ("first", "second"):
        world.job(name, on="a")
    world.job("poor", queue="poor")
    assert evicted(world.decide(None, "reclaim")) == ["second"]
    assert evicted(world.decide(without("proportion"), "reclaim")) == []


def test_nodeplacement_packs() -> None:
    world = World({"a": 4, "b": 4})
    world.job("running", on="b")
    world.job("job")
    assert world.placed() == {"job-0": "b"}
    assert world.placed(without("nodeplacement")) == {"job-0": "a"}


def test_nominatednode_prefers_the_node_that_was_named() -> None:
    world = World({"a": 4, "b": 4})
    [task] = world.job("job").tasks.values()
    task.constraints = Constraints(nominated_node="b")
    assert world.placed() == {"job-0": "b"}
    assert world.placed(without("nominatednode")) == {"job-0": "a"}


def test_resourcetype_keeps_nodes_with_gpus_for_those_who_want_them() -> None:
    world = World({"a": 4, "b": 0})
    world.job("job", gpus=0)
    assert world.placed() == {"job-0": "b"}
    assert world.placed(without("resourcetype")) == {"job-0": "a"}


def test_nodeavailability_prefers_what_is_free_at_once() -> None:
    world = World({"a": 1, "b": 1})
    [ending] = world.job("ending", on="a").tasks.values()
    assert ending.hold is not None
    world.cluster.nodes.change(ending.hold, Status.RELEASING)
    ending.become(Status.RELEASING)
    world.job("job")
    assert world.placed() == {"job-0": "b"}
    assert world.placed(without("nodeavailability")) == {}, "it waits for the first node by name"


def test_gpusharingorder_prefers_a_device_that_is_shared_already() -> None:
    world = World({"a": 2, "b": 2})
    [sharing] = world.job("sharing", portion=0.5).tasks.values()
    world.start(sharing, "b", ("device",))
    world.job("wide", on="a")
    world.job("part", portion=0.25)
    keeps = without("nodeplacement")
    assert world.placed(keeps) == {"part-0": "b"}
    assert world.placed(without("nodeplacement", "gpusharingorder")) == {"part-0": "a"}


def test_a_configuration_that_is_older_than_the_ways_of_searching_has_both() -> None:
    near, far = "sg-nodelocalgreedy", "sg-multinodegang"
    table = {names: tuple(map(without(*names).searches, (near, far))) for names in ((), (near,), (far,), (near, far))}
    assert table == {(): (True, True), (near,): (False, True), (far,): (True, False), (near, far): (True, True)}


@pytest.mark.parametrize("left_out", ["sg-nodelocalgreedy", "sg-multinodegang"])
@pytest.mark.parametrize("pods", [1, 2])
def test_each_way_of_searching_finds_victims_alone(left_out: str, pods: int) -> None:
    world = World({"a": 1, "b": 1})
    for name in ("a", "b"):
        world.job(f"on-{name}", on=name, priority=10)
    world.job("gang", pods=pods, priority=90)
    assert len(evicted(world.decide(without(left_out), "preempt"))) == pods
