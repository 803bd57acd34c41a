"""What holds of gangs whatever users do, and in whatever order: all controllers at work on a server in this process.

Users make, scale, change, break and delete sets as Hypothesis chooses. Every change of every object is recorded, and
the record gone through: never more pods than were asked for, numbers that are unique, no gate lifted before the gang is
complete, no size taken back that somebody else gave. When the users have stopped all is as they asked for, and once it
is, nothing is written any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shoal.api.meta import now
from shoal.cluster.controllers.accounts import add_accounts, signer_of
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.controllers.pod_gc import add_pod_gc
from shoal.cluster.keyring import Keyring
from shoal.cluster.node.simulated import add_simulated_nodes
from shoal.gangs.everything import add_gangs
from shoal.gangs.plan import gangs_of_replica
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed
from tests.gangs.conftest import OURS
from tests.support.clusters.in_process import Cluster, in_process_cluster, writes_of
from tests.support.gangs.scheduler import gang_scheduling
from tests.support.gangs.stage import Stage, a_namespace
from tests.support.gangs.user import ACTIONS, Action, User, problems_of

SETTLES_WITHIN = 90.0
RESTS_WITHIN = 60.0
GOOD_NEWS = 0.5
"""Seconds for which that a scheduler was told stays untold: the less, the sooner all is written down."""


class World:
    """A cluster whose controllers run while a test runs something in it, for a whole module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runner = asyncio.Runner()
        self._ended = asyncio.Event()
        self.cluster: Cluster
        self.gangs: Manager

    def __enter__(self) -> World:
        self._runner.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._end())
        self._runner.close()

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Runs a scenario to its end."""
        self._runner.run(scenario)

    async def _start(self) -> None:
        started = asyncio.Event()
        self._host = asyncio.create_task(self._be_there(started))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([self._host, waiting], return_when=asyncio.FIRST_COMPLETED)
        if self._host.done():
            await self._host

    async def _end(self) -> None:
        self._ended.set()
        await self._host

    async def _be_there(self, started: asyncio.Event) -> None:
        async with (
            in_process_cluster(self._folder / "server", OURS) as self.cluster,
            self.cluster.controllers(self._surroundings),
            self.cluster.controllers(_gangs) as self.gangs,
            gang_scheduling(self.cluster.server.transport()),
        ):
            started.set()
            await self._ended.wait()

    def _surroundings(self, manager: Manager) -> None:
        keyring = Keyring(self._folder / "server" / "pki", now=now())
        add_accounts(manager, authority=keyring.authority, signer=signer_of(keyring))
        add_garbage_collector(manager)
        add_pod_gc(manager)
        add_node_lifecycle(manager)
        add_simulated_nodes(manager, sockets=self._folder / "agents", pools=[])


def _gangs(manager: Manager) -> None:
    add_gangs(manager, GangSettings(), good_news=GOOD_NEWS)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("world")) as world:
        yield world


actions = st.builds(Action, st.sampled_from(ACTIONS), st.integers(0, 11))
pauses = st.sampled_from([0.0, 0.0, 0.02, 0.1, 0.4])
Day = list[tuple[Action, float]]
a_day = st.lists(st.tuples(actions, pauses), min_size=3, max_size=12)
"""What one user does, and how long after each action it waits."""
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example is a story of seconds, and short enough to be read as it is."""
few, many = settings(max_examples=4, phases=UNSHRUNK), settings(max_examples=15, phases=UNSHRUNK)
with_room = given(days=st.tuples(a_day, a_day, a_day), update=st.sampled_from(["RollingRecreate", "OnDelete"]))
without_room = given(days=st.tuples(a_day, a_day), cpu=st.integers(1, 6))


@pytest.mark.timeout(300)
@few
@with_room
def test_whatever_users_do_it_comes_to_what_they_asked_for(world: World, days: tuple[Day, ...], update: str) -> None:
    world.run(all_at_once(world, days, cpu=60, update=update, has_room=True))


@pytest.mark.timeout(300)
@few
@without_room
def test_where_there_is_too_little_room_nothing_is_half_done(world: World, days: tuple[Day, ...], cpu: int) -> None:
    world.run(all_at_once(world, days, cpu=cpu, update="RollingRecreate", has_room=False))


@pytest.mark.slow
@pytest.mark.timeout(600)
@many
@with_room
def test_the_same_holds_for_many_users(world: World, days: tuple[Day, ...], update: str) -> None:
    world.run(all_at_once(world, days, cpu=60, update=update, has_room=True))


@pytest.mark.slow
@pytest.mark.timeout(600)
@many
@without_room
def test_the_same_holds_for_many_users_with_too_little_room(world: World, days: tuple[Day, ...], cpu: int) -> None:
    world.run(all_at_once(world, days, cpu=cpu, update="RollingRecreate", has_room=False))


async def all_at_once(world: World, days: tuple[Day, ...], *, cpu: int, update: str, has_room: bool) -> None:
    """A user for each day, all at work on sets of their own, and what becomes of it."""
    async with a_namespace(world.cluster.client) as stage:
        await stage.add_nodes(1, cpu=cpu)
        users = {f"s{number}": User(stage, f"s{number}", update=update) for number in range(len(days))}
        async with asyncio.TaskGroup() as tasks:
            for user, day in zip(users.values(), days, strict=True):
                tasks.create_task(live(user, day))
        await settled(stage, list(users), has_room=has_room)
        assert [problem for user in users.values() for problem in await user.reverted()] == []
        await at_rest(world.gangs)


async def live(user: User, day: Day) -> None:
    await user.act(Action("make"))
    for action, pause in day:
        await user.act(action)
        await asyncio.sleep(pause)


async def settled(stage: Stage, sets: list[str], *, has_room: bool) -> None:
    deadline = time.monotonic() + SETTLES_WITHIN
    while problems := [one for name in sets for one in await problems_of(stage, name, has_room=has_room)]:
        assert time.monotonic() < deadline, "\n".join(problems) + f"\n{await stage.story()}"
        await asyncio.sleep(0.05)


async def at_rest(manager: Manager) -> None:
    """Waits until nothing is to be done, not even later, all was told, and nothing follows from the last write."""
    deadline = time.monotonic() + RESTS_WITHIN
    before = -1
    while not manager.is_idle or writes_of(manager) != before:
        assert time.monotonic() < deadline, "there is always something to write"
        if manager.is_idle:
            await manager.events.flush(within=RESTS_WITHIN)
            before = writes_of(manager)
        await asyncio.sleep(0.1)


CLIQUES = ("a", "b", "c", "d", "e")
ORDERS = ("AnyOrder", "InOrder", "Explicit")


@st.composite
def set_templates(draw: st.DrawFn) -> dict[str, Any]:
    """Sets with cliques in and out of scaling groups, in any order of starting that admission lets pass."""
    chosen = CLIQUES[: draw(st.integers(1, len(CLIQUES)))]
    order = draw(st.sampled_from(ORDERS))
    cliques = []
    for number, name in enumerate(chosen):
        replicas = draw(st.integers(1, 3))
        earlier = draw(st.sets(st.sampled_from(chosen[:number]))) if number and order == "Explicit" else set()
        minimum = draw(st.integers(1, replicas))
        cliques.append(a_clique_template(name, replicas, min_available=minimum, starts_after=sorted(earlier)))
    grouped = draw(st.lists(st.sampled_from(["", "x", "y"]), min_size=len(chosen), max_size=len(chosen)))
    groups = []
    for group in ("x", "y"):
        members = [name for name, of_group in zip(chosen, grouped, strict=True) if of_group == group]
        if members:
            replicas = draw(st.integers(1, 4))
            minimum = draw(st.integers(1, replicas))
            groups.append(a_scaling_group_template(group, members, replicas, min_available=minimum))
    return a_set("web", *cliques, groups=groups, replicas=2, cliqueStartupType=f"CliqueStartupType{order}")


@given(body=set_templates(), sizes=st.tuples(st.integers(0, 6), st.integers(0, 6)))
def test_every_clique_is_in_one_gang_and_waits_for_cliques_of_that_gang_alone(
    body: dict[str, Any], sizes: tuple[int, int]
) -> None:
    """Otherwise a gang could never start: its scheduler waits for all of it, and its pods for each other."""
    pcs = typed(body)
    live = {f"web-0-{name}": size for name, size in zip(("x", "y"), sizes, strict=True)}
    gangs = [gang for replica in range(2) for gang in gangs_of_replica(pcs, replica, live)]
    names = [clique.name for gang in gangs for clique in gang.cliques]
    assert len(names) == len(set(names))
    assert len({gang.name for gang in gangs}) == len(gangs)
    for gang in gangs:
        started: set[str] = set()
        waiting = list(gang.cliques)
        while waiting:
            free = [clique for clique in waiting if {parent.clique for parent in clique.parents} <= started]
            assert free, f"{[clique.name for clique in waiting]} wait for ever"
            started |= {clique.name for clique in free}
            waiting = [clique for clique in waiting if clique not in free]
