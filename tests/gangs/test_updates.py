"""How a change of templates goes through the replicas of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.grove import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueSetUpdate,
    ReplicaUpdate,
)
from shoal.gangs.hashes import generation_hash, template_hash
from shoal.gangs.plan import standalone_cliques
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.updates import (
    advance,
    expected_hashes,
    has_seen_templates,
    is_clique_updated,
    is_group_updated,
    is_replica_updated,
    next_replica,
    start,
    updating_replicas,
)
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed
from tests.gangs.groups.observed import MADE, NOW, WELL, a_clique, a_group, ago, breached, scheduled

LATER = NOW + timedelta(minutes=1)
NEVER = (scheduled("False", MADE), breached("True", MADE))
BROKEN = (scheduled("True"), breached("True", ago(minutes=5)))
EXPIRED = (scheduled("True"), breached("True", ago(hours=5)))


def the_set(version: int = 1, *, replicas: int = 3, groups: bool = False, **status: Any) -> PodCliqueSet:
    """A set of the given version of its templates, whose status knows of them unless it says otherwise."""
    pod_spec = a_pod_spec(hostname=f"version-{version}")
    strategy = status.pop("update", "RollingRecreate")
    pcs = typed(
        a_set(
            "web",
            a_clique_template("workers", pod_spec=pod_spec),
            *([a_clique_template("members", pod_spec=pod_spec)] if groups else []),
            groups=[a_scaling_group_template("group", ["members"])] if groups else [],
            replicas=replicas,
            update=strategy,
        )
    )
    status = {"current_generation_hash": generation_hash(pcs), **status}
    return msgspec.structs.replace(pcs, status=msgspec.structs.replace(pcs.status, **status))


def rolling(*in_work: int) -> PodCliqueSetUpdate:
    return PodCliqueSetUpdate(
        update_started_at=MADE,
        currently_updating=[ReplicaUpdate(replica_index=index, update_started_at=MADE) for index in in_work],
    )


def a_clique_of(pcs: PodCliqueSet, **fields: Any) -> PodClique:
    """A clique that has arrived at the templates of a set, but for what is said."""
    arrived = {
        "template_hash": expected_hashes(pcs)["workers"],
        "generation_hash": generation_hash(pcs),
        "conditions": WELL,
    }
    return a_clique(**{**arrived, **fields})


def a_replica(
    index: int,
    clique: PodClique | None,
    *,
    group: PodCliqueScalingGroup | None = None,
    members: Sequence[PodClique] = (),
) -> ReplicaSeen:
    return ReplicaSeen(
        index=index,
        cliques={} if clique is None else {f"web-{index}-workers": clique},
        groups={} if group is None else {f"web-{index}-group": group},
        members=members,
    )


OLD, NEW = the_set(1), the_set(2)


# What is updated


@pytest.mark.parametrize(
    ("clique", "expected"),
    [
        pytest.param(a_clique_of(NEW), True, id="all has arrived"),
        pytest.param(None, False, id="it is not there"),
        pytest.param(a_clique_of(NEW, deleting=True), False, id="it is going"),
        pytest.param(a_clique_of(OLD), False, id="it is of the old template"),
        pytest.param(
            a_clique_of(NEW, current_hash=expected_hashes(OLD)["workers"]), False, id="its pods are of the old template"
        ),
        pytest.param(a_clique_of(NEW, generation_hash=generation_hash(OLD)), False, id="it has not told of the set"),
        pytest.param(a_clique_of(NEW, ready=1), False, id="too few pods are ready"),
        pytest.param(a_clique_of(NEW, updated=1), False, id="too few pods are new"),
        pytest.param(
            a_clique_of(NEW, replicas=1, ready=1, updated=1), True, id="all pods there are, below its minimum"
        ),
    ],
)
def test_a_clique_is_updated(clique: PodClique | None, expected: bool) -> None:
    [planned] = standalone_cliques(NEW, 0)

    assert is_clique_updated(NEW, planned, clique) is expected
    assert is_clique_updated(NEW, planned, clique, hashes=expected_hashes(NEW)) is expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param(a_group(generation_hash=generation_hash(NEW)), True, id="all has arrived"),
        pytest.param(None, False, id="it is not there"),
        pytest.param(a_group(generation_hash=generation_hash(NEW), deleting=True), False, id="it is going"),
        pytest.param(a_group(generation_hash=generation_hash(OLD)), False, id="it is of the old templates"),
        pytest.param(
            a_group(generation_hash=generation_hash(NEW), replicas=3, minimum=2, available=1),
            False,
            id="too few replicas are available",
        ),
        pytest.param(
            a_group(generation_hash=generation_hash(NEW), replicas=3, minimum=2, available=2),
            True,
            id="enough replicas are available",
        ),
        pytest.param(
            a_group(generation_hash=generation_hash(NEW), replicas=0, minimum=1), True, id="it was scaled to nothing"
        ),
    ],
)
def test_a_group_is_updated(group: PodCliqueScalingGroup | None, expected: bool) -> None:
    assert is_group_updated(NEW, group) is expected


def test_a_replica_is_updated_once_its_cliques_and_its_groups_are() -> None:
    pcs = the_set(2, groups=True)
    clique, group = a_clique_of(pcs), a_group(generation_hash=generation_hash(pcs))

    assert is_replica_updated(pcs, a_replica(0, clique, group=group))
    assert not is_replica_updated(pcs, a_replica(0, clique))
    assert not is_replica_updated(pcs, a_replica(0, None, group=group))


def test_the_expected_hashes_are_those_of_the_templates() -> None:
    [clique] = NEW.spec.template.cliques

    assert expected_hashes(NEW) == {"workers": template_hash(clique, "")}
    assert expected_hashes(NEW) != expected_hashes(OLD)


# How an update begins


def test_the_first_hash_is_only_stored() -> None:
    pcs = the_set(1, current_generation_hash="")

    status = start(pcs, "new", NOW)

    assert status == msgspec.structs.replace(pcs.status, current_generation_hash="new")
    assert status.update_progress is None


def test_the_same_hash_changes_nothing() -> None:
    assert start(NEW, generation_hash(NEW), NOW) is NEW.status


def test_a_changed_hash_opens_an_update_and_counts_anew() -> None:
    pcs = the_set(1, updated_replicas=3)

    status = start(pcs, "new", NOW)

    assert (status.current_generation_hash, status.updated_replicas) == ("new", 0)
    assert status.update_progress == PodCliqueSetUpdate(update_started_at=NOW)


def test_an_update_on_delete_is_opened_and_closed_at_once() -> None:
    status = start(the_set(1, update="OnDelete"), "new", NOW)

    assert status.update_progress == PodCliqueSetUpdate(update_started_at=NOW, update_ended_at=NOW)


def test_a_change_in_the_middle_begins_anew_with_the_replica_in_work() -> None:
    status = start(the_set(2, update_progress=rolling(2)), "newer", NOW)

    assert status.update_progress is not None
    assert status.update_progress.update_started_at == NOW
    assert status.update_progress.currently_updating == [ReplicaUpdate(replica_index=2, update_started_at=NOW)]


@pytest.mark.parametrize(
    ("pcs", "expected"),
    [
        pytest.param(the_set(1), frozenset(), id="there was no update"),
        pytest.param(the_set(1, update_progress=rolling()), frozenset(), id="none is chosen"),
        pytest.param(the_set(1, update_progress=rolling(2)), frozenset({2}), id="one is in work"),
        pytest.param(
            the_set(1, update_progress=msgspec.structs.replace(rolling(2), update_ended_at=NOW)),
            frozenset(),
            id="the update is over",
        ),
        pytest.param(
            the_set(1, update="OnDelete", update_progress=rolling(2)), frozenset(), id="nothing rolls on delete"
        ),
    ],
)
def test_the_replicas_in_work(pcs: PodCliqueSet, expected: frozenset[int]) -> None:
    assert updating_replicas(pcs) == expected


def test_a_status_that_knows_of_other_templates_is_told_apart() -> None:
    assert has_seen_templates(NEW)
    assert not has_seen_templates(the_set(2, current_generation_hash=generation_hash(OLD)))


# Which replica is next


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param({0: WELL, 1: WELL, 2: WELL}, 0, id="the first of those that are well"),
        pytest.param({0: WELL, 1: BROKEN, 2: WELL}, 1, id="one that is broken before those that are well"),
        pytest.param({0: WELL, 1: BROKEN, 2: None}, 2, id="one without scheduled pods before all"),
        pytest.param({0: None, 1: BROKEN, 2: None}, 0, id="the first of those without scheduled pods"),
        pytest.param({0: WELL, 1: EXPIRED, 2: WELL}, 0, id="one whose time is up comes when it is made anew"),
        pytest.param({0: WELL, 1: EXPIRED, 2: BROKEN}, 2, id="broken, and its time is not up"),
    ],
)
def test_the_replica_whose_update_costs_least_is_next(conditions: Mapping[int, Any], expected: int) -> None:
    left = [
        a_replica(index, a_clique_of(OLD, conditions=told or NEVER, ready=2 if told else 0))
        for index, told in conditions.items()
    ]

    assert next_replica(NEW, left, NOW) == expected


def test_a_replica_whose_groups_have_scheduled_pods_is_not_empty() -> None:
    pcs = the_set(2, groups=True)
    empty = a_clique_of(OLD, conditions=NEVER, ready=0)
    with_members = a_replica(0, empty, group=a_group(), members=[a_clique(ready=1)])

    assert next_replica(pcs, [with_members, a_replica(1, empty, group=a_group())], NOW) == 1


# How an update goes on


def progress_of(pcs: PodCliqueSet, replicas: Sequence[ReplicaSeen]) -> PodCliqueSetUpdate:
    progress = advance(pcs, replicas, NOW)
    assert progress is not None
    return progress


def in_work(progress: PodCliqueSetUpdate) -> list[int]:
    return [replica.replica_index for replica in progress.currently_updating]


def test_without_an_update_there_is_no_progress() -> None:
    assert advance(NEW, [a_replica(index, a_clique_of(NEW)) for index in range(3)], NOW) is None


def test_the_first_replica_is_chosen_and_all_are_counted() -> None:
    pcs = the_set(2, update_progress=rolling())

    progress = progress_of(pcs, [a_replica(0, a_clique_of(OLD)), a_replica(1, a_clique_of(NEW)), a_replica(2, None)])

    # The third has no pods at all: it costs nothing.
    assert progress.currently_updating == [ReplicaUpdate(replica_index=2, update_started_at=NOW)]
    assert (progress.updated_pod_cliques_count, progress.total_pod_cliques_count) == (1, 3)
    assert (progress.update_started_at, progress.update_ended_at) == (MADE, None)


def test_a_replica_is_held_until_it_is_updated() -> None:
    pcs = the_set(2, update_progress=rolling(1))
    old = [a_replica(index, a_clique_of(OLD)) for index in range(3)]

    assert progress_of(pcs, old).currently_updating == rolling(1).currently_updating
    half = [old[0], a_replica(1, a_clique_of(NEW, ready=1)), old[2]]
    assert in_work(progress_of(pcs, half)) == [1]
    done = [old[0], a_replica(1, a_clique_of(NEW)), old[2]]
    assert in_work(progress_of(pcs, done)) == [0]


def test_an_update_ends_when_all_replicas_are_updated() -> None:
    pcs = the_set(2, groups=True, update_progress=rolling(2))
    group = a_group(generation_hash=generation_hash(pcs))

    progress = progress_of(pcs, [a_replica(index, a_clique_of(pcs), group=group) for index in range(3)])

    assert progress == PodCliqueSetUpdate(
        update_started_at=MADE,
        update_ended_at=NOW,
        updated_pod_cliques_count=3,
        total_pod_cliques_count=3,
        updated_pod_clique_scaling_groups_count=3,
        total_pod_clique_scaling_groups_count=3,
    )


def test_an_update_of_nothing_ends_at_once() -> None:
    assert progress_of(the_set(2, replicas=0, update_progress=rolling()), []).update_ended_at == NOW


def test_an_update_that_has_ended_stays_as_it_was() -> None:
    ended = msgspec.structs.replace(rolling(), update_ended_at=MADE, updated_pod_cliques_count=3)
    pcs = the_set(2, update_progress=ended)

    assert progress_of(pcs, [a_replica(0, a_clique_of(OLD))]) is ended


def test_a_replica_in_work_that_is_scaled_away_is_not_waited_for() -> None:
    pcs = the_set(2, replicas=2, update_progress=rolling(2))

    assert in_work(progress_of(pcs, [a_replica(index, a_clique_of(OLD)) for index in range(3)])) == [0]


def test_an_update_goes_on_past_a_replica_that_has_no_room() -> None:
    pcs = the_set(2, replicas=2, update_progress=rolling(1))
    no_room = a_replica(1, a_clique_of(NEW, ready=0, conditions=NEVER))
    old_and_no_room = a_replica(1, a_clique_of(OLD, ready=0, conditions=NEVER))

    assert in_work(progress_of(pcs, [a_replica(0, a_clique_of(OLD)), old_and_no_room])) == [1]
    assert in_work(progress_of(pcs, [a_replica(0, a_clique_of(OLD)), no_room])) == [0]


def test_a_replica_that_lost_its_pods_to_its_update_is_waited_for() -> None:
    pcs = the_set(2, replicas=2, groups=True, update_progress=rolling(1))
    was_well = a_group("web-1-group", available=0, conditions=[breached("Unknown", ago(seconds=3))])
    old = a_replica(0, a_clique_of(OLD), group=a_group())
    away = a_replica(1, a_clique_of(pcs, ready=0, conditions=[scheduled("False", ago(seconds=3))]), group=was_well)

    assert in_work(progress_of(pcs, [old, away])) == [1]


def test_on_delete_counts_follow_the_pods_while_the_update_stays_closed() -> None:
    closed = PodCliqueSetUpdate(update_started_at=MADE, update_ended_at=MADE)
    pcs = the_set(2, replicas=2, update="OnDelete", update_progress=closed)

    progress = progress_of(pcs, [a_replica(0, a_clique_of(NEW)), a_replica(1, a_clique_of(OLD))])

    assert progress == msgspec.structs.replace(closed, updated_pod_cliques_count=1, total_pod_cliques_count=2)


def test_an_update_that_rolls_is_closed_when_the_set_turns_to_on_delete() -> None:
    progress = progress_of(the_set(2, update="OnDelete", update_progress=rolling(1)), [a_replica(0, a_clique_of(OLD))])

    assert (progress.update_ended_at, progress.currently_updating) == (NOW, [])


# All of it together: a world in which the chosen replica, and no other, comes to be updated

STATES = st.sampled_from(["well", "broken", "expired", "lost", "never", "missing"])


class World:
    """The replicas of a set whose stand-alone cliques take the new template's label at once, and pods in their turn."""

    def __init__(self, states: Sequence[str], versions: Sequence[int]) -> None:
        self.states = list(states)
        self.versions = list(versions)
        self.version = max(versions)
        self.pcs = the_set(self.version, replicas=len(states), update_progress=rolling())
        self.ready = [state in ("well", "broken", "expired") for state in states]

    def seen(self) -> list[ReplicaSeen]:
        told = {
            "well": WELL,
            "broken": BROKEN,
            "expired": EXPIRED,
            "lost": (scheduled("False", ago(hours=1)), breached("True", ago(hours=1))),
            "never": NEVER,
        }
        replicas = []
        for index, state in enumerate(self.states):
            of_pods = the_set(self.versions[index])
            clique = a_clique_of(
                self.pcs,
                current_hash=expected_hashes(of_pods)["workers"],
                generation_hash=generation_hash(of_pods),
                ready=2 if self.ready[index] else 0,
                conditions=told.get(state, NEVER),
            )
            replicas.append(a_replica(index, None if state == "missing" else clique))
        return replicas

    def step(self, index: int, *, is_second: bool) -> None:
        """The chosen replica first loses its pods, and then has new ones; one that has no room gets no further."""
        if self.states[index] == "missing":
            self.states[index] = "never"
        if not is_second:
            self.ready[index] = False
        elif self.states[index] != "never":
            self.states[index], self.ready[index] = "well", True
        self.versions[index] = self.version

    def change(self) -> None:
        status = start(self.pcs, generation_hash(the_set(self.version + 1)), NOW)
        self.version += 1
        changed = the_set(self.version, replicas=len(self.states))
        self.pcs = msgspec.structs.replace(changed, status=status)

    def advance(self) -> PodCliqueSetUpdate:
        progress = progress_of(self.pcs, self.seen())
        status = msgspec.structs.replace(self.pcs.status, update_progress=progress)
        self.pcs = msgspec.structs.replace(self.pcs, status=status)
        return progress


@given(
    replicas=st.lists(st.tuples(STATES, st.integers(1, 2)), min_size=1, max_size=6),
    changes=st.sets(st.integers(0, 14), max_size=3),
)
def test_from_any_state_updates_end_one_replica_at_a_time_and_skip_none(
    replicas: list[tuple[str, int]], changes: set[int]
) -> None:
    world = World([state for state, _ in replicas], [version for _, version in replicas])
    before: list[int] = []
    for moment in range(100):
        progress = world.advance()
        if progress.update_ended_at is not None and moment > max(changes, default=0):
            break
        chosen = in_work(progress)
        assert len(chosen) <= 1
        if before and chosen != before:
            # It moves on only from a replica that has arrived, whatever changed meanwhile.
            [left] = before
            assert world.versions[left] == world.version
            assert world.ready[left] or world.states[left] == "never"
        for index in chosen:
            world.step(index, is_second=chosen == before)
        before = chosen
        if moment in changes:
            world.change()
    else:
        raise AssertionError("the update does not end")

    assert set(world.versions) == {world.version}, "a replica was skipped"
    assert world.pcs.status.current_generation_hash == generation_hash(world.pcs)
    assert updating_replicas(world.pcs) == frozenset()
