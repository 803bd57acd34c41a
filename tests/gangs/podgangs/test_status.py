"""How far a gang is, as a table of pods; and what a whole life of one looks like."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.core import Pod
from shoal.api.meta import Condition, find_condition
from shoal.api.scheduler_grove_io import PodGangStatus
from shoal.gangs.plan import base_gang
from shoal.gangs.podgangs.membership import Members, References
from shoal.gangs.podgangs.status import GangSeen, status_of
from tests.gangs.builders import a_clique_template, a_set, typed
from tests.support.builders.pods import a_pod

GANG = base_gang(typed(a_set("web", a_clique_template("a", 2, min_available=1), a_clique_template("b", 1))), 0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def members(a: str, b: str, *, is_complete: bool = True) -> Members:
    """Pods of two cliques, whose names say how they are: ``s`` has a node, ``r`` is ready too."""

    def named(name: str) -> Pod:
        answers = {"PodScheduled": str(name[-1] in "sr"), "Ready": str(name[-1] == "r")}
        return a_pod(name, namespace="n", conditions=answers)

    pods = {"web-0-a": [named(name) for name in a.split()], "web-0-b": [named(name) for name in b.split()]}
    return Members(pods=pods, is_complete=is_complete)


def seen(found: Members, *, before: References | None = None, now: References | None = None) -> GangSeen:
    named = found.references if now is None else now
    before = named if before is None else before
    return GangSeen(minimums=GANG.minimums, members=found, named_before=before, named_now=named)


def told(status: PodGangStatus) -> tuple[str, str]:
    """The phase, and a letter for each condition that is True."""
    return status.phase, "".join(one.type[0] for one in status.conditions if one.status == "True")


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("1g 2g", "3g", ("Pending", "I")),
        ("1s 2s", "3g", ("Pending", "I")),
        ("1s 2g", "3s", ("Starting", "IS")),
        ("1r 2r", "3s", ("Starting", "IS")),
        ("1r 2g", "3r", ("Running", "ISR")),
    ],
    ids=["gated", "one role has no node", "minimum on nodes", "one role is not ready", "minimum ready"],
)
def test_the_phase_goes_by_each_podgroups_minimum(a: str, b: str, answer: tuple[str, str]) -> None:
    assert told(status_of(PodGangStatus(), seen(members(a, b)), NOON)) == answer


@pytest.mark.parametrize(
    ("found", "is_initialized"),
    [
        (seen(members("1g 2g", "3g")), True),
        (seen(members("1g 2g", "3g", is_complete=False)), False),
        (seen(members("1g 2g", "3g"), now={}), False),
    ],
    ids=["whole and named", "not whole", "not named"],
)
def test_a_gang_is_initialized_once_whole_and_named(found: GangSeen, is_initialized: bool) -> None:
    assert ("I" in told(status_of(PodGangStatus(), found, NOON))[1]) is is_initialized


def test_a_life_with_a_loss_a_replacement_and_a_teardown() -> None:
    story = [
        (seen(members("", "", is_complete=False), now={}), ("Pending", "")),
        (seen(members("1r 2r", "3r")), ("Running", "ISR")),
        # The pod of b is lost, then another one takes its place.
        (seen(members("1r 2r", "", is_complete=False)), ("Pending", "IU")),
        (seen(members("1r 2r", "4g")), ("Pending", "IU")),
        (seen(members("1r 2r", "4s")), ("Starting", "ISU")),
        (seen(members("1r 2r", "4r")), ("Running", "ISR")),
        # All is torn down, and only a part is there again: whatever it names, it is not initialised.
        (seen(members("5g", "", is_complete=False), before=members("1r 2r", "4r").references), ("Pending", "")),
        (seen(members("5g", "", is_complete=False)), ("Pending", "")),
        (seen(members("5g 6g", "7g")), ("Pending", "I")),
    ]
    status = PodGangStatus()
    for step, (found, answer) in enumerate(story):
        status = status_of(status, found, NOON + timedelta(minutes=step))
        assert told(status) == answer, f"step {step}"
    ready = find_condition(status.conditions, "Ready")
    assert ready is not None
    assert ready.last_transition_time == NOON + timedelta(minutes=6)


def test_nothing_changes_where_only_a_pod_more_is_ready() -> None:
    before = status_of(PodGangStatus(), seen(members("1r 2s", "3r")), NOON)
    assert status_of(before, seen(members("1r 2r", "3r")), NOON + timedelta(hours=1)) == before


def test_conditions_of_others_stay_where_they_are() -> None:
    theirs = Condition(type="BackendReady", status="True", reason="r", message="m", last_transition_time=NOON)
    status = status_of(PodGangStatus(conditions=[theirs], placement_score=0.5), seen(members("1g", "2g")), NOON)
    assert status.conditions[0] == theirs
    assert status.placement_score == 0.5
