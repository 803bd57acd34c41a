"""What plugins change in a cycle: where pods go, who comes first, who must wait; and that a bad one changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.plugins import NodeTable, Plugin, Plugins
from shoal.scheduler.session.failures import Refused
from shoal.scheduler.session.session import Eviction, Session
from shoal.scheduler.session.settings import PLUGINS, Settings
from tests.scheduler.session.worlds import World, places

MINE = Settings(plugins=("mine", *PLUGINS))


def mine(**functions: Any) -> Plugins:
    return Plugins([Plugin(name="mine", **functions)])


def only(*names: str) -> Any:
    return lambda nodes, task, arguments: np.isin(nodes.names, names)


def test_a_filter_decides_where_pods_may_go() -> None:
    world = World({"a": 4, "b": 4, "c": 4})
    gang = world.job("gang", pods=6)
    session = world.cycle(MINE, plugins=mine(filter=only("b", "c")))
    assert set(places(session).values()) == {"b", "c"}
    assert gang.allocated == 6
    assert places(world.decide(MINE, plugins=mine(filter=only()))) == {}


def test_a_gang_that_a_filter_leaves_too_little_room_gets_none() -> None:
    world = World({"a": 4, "b": 4})
    world.job("gang", pods=6)
    assert places(world.decide(MINE, plugins=mine(filter=only("b")))) == {}


def test_a_score_decides_among_nodes_that_will_do() -> None:
    world = World({"a": 4, "b": 4, "c": 1})
    world.job("job", pods=2, gpus=2)
    preferring_c = mine(score=lambda nodes, task, arguments: 100.0 * np.arange(len(nodes)))
    assert set(world.placed(MINE, plugins=preferring_c).values()) == {"b"}
    assert set(world.placed(MINE).values()) == {"a"}


def test_a_score_sees_what_was_placed_just_before() -> None:
    def emptiest(nodes: NodeTable, task: object, arguments: object) -> Any:
        return 100.0 * nodes.idle("gpu")

    world = World({"a": 4, "b": 4})
    world.job("gang", pods=4)
    assert sorted(world.placed(MINE, plugins=mine(score=emptiest)).values()) == ["a", "a", "b", "b"]


def test_parts_of_gpus_follow_plugins_too() -> None:
    world = World({"a": 2, "b": 2})
    world.job("part", portion=0.5)
    assert places(world.decide(MINE, plugins=mine(filter=only("b")))) == {"part-0": "b"}


def test_an_order_decides_who_comes_first_in_a_queue() -> None:
    world = World({"a": 1})
    world.job("first")
    world.job("second")
    assert list(world.placed(MINE)) == ["first-0"]
    backwards = mine(job_order=lambda job, arguments: -job.created)
    assert list(world.placed(MINE, plugins=backwards)) == ["second-0"]


def test_an_order_has_its_say_where_the_configuration_puts_it() -> None:
    world = World({"a": 1})
    world.job("important", priority=90)
    world.job("favoured")
    favour = mine(job_order=lambda job, arguments: 0.0 if job.name == "favoured" else 1.0)
    assert list(world.placed(MINE, plugins=favour)) == ["favoured-0"]
    after = Settings(plugins=(*PLUGINS, "mine"))
    assert list(world.placed(after, plugins=favour)) == ["important-0"]


def test_an_order_decides_which_pods_of_a_job_come_first() -> None:
    world = World({"a": 1})
    world.job("job", pods=3, least=1)
    backwards = mine(task_order=lambda task, arguments: -task.created)
    assert list(world.placed(MINE, plugins=backwards)) == ["job-2"]


def test_the_last_in_an_order_is_the_first_to_be_evicted() -> None:
    world = World({"a": 2})
    for name in ("keep", "lose"):
        world.job(name, on="a", priority=10)
    world.job("urgent", priority=90)
    favour = mine(job_order=lambda job, arguments: 1.0 if job.name == "keep" else 2.0)
    dislike = mine(job_order=lambda job, arguments: 2.0 if job.name == "keep" else 1.0)

    def evicted(plugins: Plugins) -> list[str]:
        session = world.decide(MINE, "preempt", plugins=plugins)
        names = [one.task.job.name for one in session.decisions if isinstance(one, Eviction)]
        session.close()
        return names

    assert evicted(favour) == ["lose"]
    assert evicted(dislike) == ["keep"]


def test_a_job_that_a_plugin_refuses_gets_nothing_and_is_told_why() -> None:
    world = World({"a": 4})
    refused = world.job("refused")
    world.job("running", on="a", priority=10)
    world.job("other")

    def validate(job: Any, arguments: object) -> str | None:
        return "no budget is left" if job.name == "refused" else None

    session = world.decide(MINE, "allocate", "reclaim", "preempt", plugins=mine(validate=validate))
    assert list(places(session)) == ["other-0"]
    assert session.failures[refused.key] == Refused("mine", "no budget is left")
    assert [one for one in session.decisions if isinstance(one, Eviction)] == []


def test_a_job_that_waits_in_vain_does_not_keep_its_queues_turn() -> None:
    """A simulation lets all that wait take their turns: one that must not start takes none."""
    world = World({"a": 1})
    world.job("running", on="a", priority=10)
    world.job("refused", priority=90)
    world.job("urgent", priority=80)

    def validate(job: Any, arguments: object) -> str | None:
        return "not now" if job.name == "refused" else None

    session = world.decide(MINE, "preempt", plugins=mine(validate=validate))
    assert [one.task.job.name for one in session.decisions if isinstance(one, Eviction)] == ["running"]


def test_a_plugin_that_fails_in_everything_changes_nothing() -> None:
    def broken(*about: object) -> Any:
        raise RuntimeError("broken")

    def a_world() -> World:
        world = World({"a": 4, "b": 4})
        world.job("running", on="a", pods=2, priority=10)
        world.job("gang", pods=5)
        world.job("other", pods=3, least=1)
        return world

    bad = mine(filter=broken, score=broken, job_order=broken, task_order=broken, validate=broken)
    actions = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
    assert a_world().placed(MINE, *actions, plugins=bad) == a_world().placed(MINE, *actions)


def test_the_same_order_counts_where_pools_are_kept_from_cycle_to_cycle() -> None:
    world = World({"a": 1})
    world.job("first")
    second = world.job("second")
    pools = Pools(world.cluster.jobs.values())
    backwards = mine(job_order=lambda job, arguments: -job.created)
    session = Session(world.cluster, MINE, now=world.now, plugins=backwards)
    cycle.run(session, ["allocate"], pools)
    assert list(places(session)) == ["second-0"]
    assert second not in pools.waiting, "kept pools follow what is decided"
    session.close()
    assert second in pools.waiting
