"""When a queue may take back what others use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import NONE, WITHOUT_LIMIT, Amounts
from shoal.scheduler.shares.reclaim import is_candidate, is_fair, may_reclaim, where_they_part
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_queue
from tests.scheduler.shares.builders import ANY, a_tree, gpus, set_amounts

ONE = Amounts(1000, 1000, 1)


def times(count: float) -> Amounts:
    return ONE.times(count)


# Fair share, held, asked.
GATE = [
    ("nothing held", (times(2), NONE, ONE), True),
    ("something held", (times(3), ONE, ONE), True),
    ("exactly the fair share", (times(2), ONE, ONE), True),
    ("exactly the fair share in some", (times(2), ONE, Amounts(500, 1000, 0)), True),
    ("beyond the fair share in one", (Amounts(3000, 3000, 1), ONE, ONE), False),
    ("beyond in all", (Amounts(1500, 1500, 1), ONE, ONE), False),
    ("beyond in what is not asked for", (Amounts(3000, 3000, 0), ONE, Amounts(1000, 1000, 0)), False),
    ("parts that make a whole", (gpus(0.3), gpus(0.1), gpus(0.2)), True),
]


@pytest.mark.parametrize(("figures", "expected"), [case[1:] for case in GATE], ids=[case[0] for case in GATE])
def test_a_queue_reclaims_up_to_its_fair_share(figures: tuple[Amounts, Amounts, Amounts], expected: bool) -> None:
    fair_share, held, asked = figures
    tree = a_tree(a_model_queue("q"))
    set_amounts(tree, "q", fair_share=fair_share, allocated=held)

    assert may_reclaim(tree, "q", asked, is_preemptible=True) is expected


# Quota, what is held by jobs that cannot be evicted.
FIRM_GATE = [
    ("below quota", (times(2), NONE), True),
    ("exactly the quota", (ONE, NONE), True),
    ("beyond the quota in some", (Amounts(1000, 500, 0), NONE), False),
    ("something held, below quota", (times(3), ONE), True),
    ("no quota", (NONE, NONE), False),
    ("held and asked are beyond it", (Amounts(1500, 1500, 1), ONE), False),
    ("held alone is beyond it", (Amounts(3000, 3000, 0), ONE), False),
    ("an unlimited quota", (WITHOUT_LIMIT, times(9)), True),
]


@pytest.mark.parametrize(("figures", "expected"), [case[1:] for case in FIRM_GATE], ids=[case[0] for case in FIRM_GATE])
def test_what_cannot_be_evicted_reclaims_up_to_its_quota(figures: tuple[Amounts, Amounts], expected: bool) -> None:
    quota, held = figures
    tree = a_tree(a_model_queue("q", quota=quota))
    set_amounts(tree, "q", fair_share=times(20), allocated=held, non_preemptible=held)

    assert may_reclaim(tree, "q", ONE, is_preemptible=False) is expected
    assert may_reclaim(tree, "q", ONE, is_preemptible=True)


def of_gpus(figures: Mapping[str, tuple[str, float, float, float]]) -> QueueTree:
    """Queues by name: parent, quota, fair share and what is held, in GPUs."""
    tree = a_tree(*(a_model_queue(name, parent, quota=gpus(quota)) for name, (parent, quota, _, _) in figures.items()))
    for name, (_, _, fair_share, held) in figures.items():
        set_amounts(tree, name, fair_share=gpus(fair_share), allocated=gpus(held))
    return tree


DEEP = {
    "top": ("", 0, 0, 0),
    "mid-1": ("top", 0, 0, 0),
    "mid-2": ("top", 0, 0, 0),
    "leaf-1a": ("mid-1", 0, 0, 0),
    "leaf-1b": ("mid-1", 0, 0, 0),
    "leaf-2": ("mid-2", 0, 0, 0),
    "other": ("", 0, 0, 0),
}
PARTING = [
    ("leaf-1a", "leaf-1b", "leaf-1a", "leaf-1b"),
    ("leaf-1a", "leaf-2", "mid-1", "mid-2"),
    ("leaf-1a", "other", "top", "other"),
    ("leaf-1a", "leaf-1a", "leaf-1a", "leaf-1a"),
    ("mid-1", "leaf-1a", "mid-1", "mid-1"),
]


@pytest.mark.parametrize(("left", "right", "of_left", "of_right"), PARTING)
def test_queues_meet_where_their_ancestries_part(left: str, right: str, of_left: str, of_right: str) -> None:
    tree = of_gpus(DEEP)

    assert tuple(share.name for share in where_they_part(tree[left], tree[right])) == (of_left, of_right)


# The reclaimer's quota; the victim's quota, fair share and what it holds; what is asked for.
CANDIDATES: list[tuple[str, Amounts, dict[str, Amounts], Amounts, bool]] = [
    ("beyond quota, the victim beyond its share",
     NONE, {"quota": gpus(1), "fair": gpus(2), "held": gpus(3)}, gpus(1), True),
    ("beyond quota, the victim at its share",
     NONE, {"quota": gpus(1), "fair": gpus(2), "held": gpus(2)}, gpus(1), False),
    ("beyond quota, the victim beyond its share of something else",
     NONE, {"quota": ONE, "fair": ONE, "held": Amounts(2000, 0, 0)}, gpus(1), True),
    ("beyond quota, a victim without bounds", NONE, {"quota": WITHOUT_LIMIT, "held": times(50)}, gpus(1), False),
    ("within quota, the victim over quota",
     times(9), {"quota": gpus(1), "fair": gpus(9), "held": gpus(2)}, gpus(1), True),
    ("within quota, the victim at its quota", times(9), {"quota": gpus(2), "held": gpus(2)}, gpus(1), True),
    ("within quota, the victim under it", times(9), {"quota": gpus(3), "held": gpus(2)}, gpus(1), False),
    ("within quota, the victim over in another resource that is asked for",
     times(9), {"quota": times(2), "held": Amounts(3000, 1000, 1)}, ONE, True),
    ("within quota, the victim over in a resource that nobody asks for",
     times(9), {"quota": times(2), "held": Amounts(3000, 1000, 1)}, gpus(1), False),
    ("within quota, the victim's quota has no bound: it cannot be under it",
     times(9), {"quota": Amounts(0, 0, ANY), "held": gpus(2)}, gpus(1), True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("quota", "victim", "asked", "expected"), [x[1:] for x in CANDIDATES], ids=[x[0] for x in CANDIDATES]
)
def test_victims_are_first_chosen_where_the_ancestries_part(
    quota: Amounts, victim: dict[str, Amounts], asked: Amounts, expected: bool
) -> None:
    tree = a_tree(
        a_model_queue("left", quota=quota),
        a_model_queue("right", quota=victim.get("quota", NONE)),
        a_model_queue("reclaimer", "left", quota=WITHOUT_LIMIT),
        a_model_queue("victim", "right", quota=WITHOUT_LIMIT),
    )
    set_amounts(tree, "right", fair_share=victim.get("fair", NONE), allocated=victim.get("held", NONE))

    assert is_candidate(tree, "reclaimer", asked, "victim") is expected


def test_a_queue_is_no_victim_of_itself() -> None:
    tree = of_gpus({"q": ("", 9, 9, 3)})

    assert not is_candidate(tree, "q", gpus(1), "q")


ONE_DEPARTMENT = {"default": ("", 5, 5, 5), "p1": ("default", 3, 3, 2), "p2": ("default", 2, 2, 3)}
TWO_DEPARTMENTS = {
    "d1": ("", 3, 3, 2), "d2": ("", 2, 2, 3), "p1": ("d1", 3, 3, 2), "p2": ("d2", 2, 2, 3),
}  # fmt: skip
DEEP_LEFT = {"left-top": ("", 1, 1, 0), "left-mid": ("left-top", 1, 1, 0), "left-leaf": ("left-mid", 1, 1, 0)}
DEEP_RIGHT = {"right-top": ("", 1, 1, 2), "right-mid": ("right-top", 1, 1, 2), "right-leaf": ("right-mid", 1, 1, 2)}
BRANCH = {
    "top": ("", 2, 2, 2), "mid1": ("top", 1, 1, 0.5), "mid2": ("top", 1, 1, 1.5),
    "left-leaf1": ("mid1", 1, 1, 0), "left-leaf2": ("mid1", 0, 0, 0.5), "right-leaf": ("mid2", 1, 1, 1.5),
}  # fmt: skip
PROJECTS = {
    "d1": ("", 4, 4, 4), "d1-p1": ("d1", 3, 1, 0), "d1-p2": ("d1", 1, 3, 4),
    "d2": ("", 3, 3, 7), "d2-p1": ("d2", 3, 3, 7),
}  # fmt: skip

# Queues; the reclaimer's queue; the victims' queues with their pieces; whether it is fair. All ask for one GPU.
PLANS: list[tuple[str, dict[str, Any], str, list[tuple[str, list[float]]], bool]] = [
    ("from beyond the fair share to below it", ONE_DEPARTMENT, "p1", [("p2", [1])], True),
    ("from exactly the fair share", ONE_DEPARTMENT | {"p2": ("default", 2, 2, 2)}, "p1", [("p2", [1])], False),
    ("from below the fair share", ONE_DEPARTMENT | {"p2": ("default", 2, 2, 1)}, "p1", [("p2", [1])], False),
    ("for quota, from beyond quota within the fair share",
     ONE_DEPARTMENT | {"p2": ("default", 2, 3, 3)}, "p1", [("p2", [1])], True),
    ("by one who has his fair share already",
     ONE_DEPARTMENT | {"p1": ("default", 3, 3, 3)}, "p1", [("p2", [1])], False),
    ("within a department that has too much", ONE_DEPARTMENT | {"default": ("", 1, 1, 3)}, "p1", [("p2", [1])], True),
    ("between departments", TWO_DEPARTMENTS, "p1", [("p2", [1])], True),
    ("between departments, from exactly the fair share",
     TWO_DEPARTMENTS | {"d2": ("", 2, 2, 2), "p2": ("d2", 2, 2, 2)}, "p1", [("p2", [1])], False),
    ("between departments, for quota",
     TWO_DEPARTMENTS | {"d1": ("", 3, 3, 1), "p1": ("d1", 3, 3, 1), "d2": ("", 2, 4, 3), "p2": ("d2", 2, 4, 3)},
     "p1", [("p2", [1])], True),
    ("over three levels", DEEP_LEFT | DEEP_RIGHT, "left-leaf", [("right-leaf", [2])], True),
    ("over three levels, the own root would have too much",
     DEEP_LEFT | DEEP_RIGHT | {"left-top": ("", 1, 1, 1), "oq-leaf": ("left-top", 0, 0, 1)},
     "left-leaf", [("right-leaf", [2])], False),
    ("the own parent would have too much", BRANCH, "left-leaf1", [("right-leaf", [1.5])], False),
    ("the own parent gives some of it",
     BRANCH, "left-leaf1", [("right-leaf", [1.5]), ("left-leaf2", [0.5])], True),
    ("the own department has too much, but the other has more, by fair share",
     PROJECTS, "d1-p1", [("d2-p1", [1])], True),
    ("a second piece is no longer beyond the fair share", ONE_DEPARTMENT, "p1", [("p2", [1, 1])], False),
    ("pieces of one gang are one", ONE_DEPARTMENT, "p1", [("p2", [2])], True),
    ("a second victim of the same queue finds it reduced", ONE_DEPARTMENT, "p1", [("p2", [1]), ("p2", [1])], False),
    ("nobody loses anything", ONE_DEPARTMENT, "p1", [("p2", [])], True),
]  # fmt: skip


@pytest.mark.parametrize(("figures", "queue", "victims", "expected"), [x[1:] for x in PLANS], ids=[x[0] for x in PLANS])
def test_a_plan_is_fair(
    figures: dict[str, Any], queue: str, victims: list[tuple[str, list[float]]], expected: bool
) -> None:
    tree = of_gpus(figures)
    taken = [(name, [gpus(piece) for piece in pieces], True) for name, pieces in victims]

    assert is_fair(tree, (queue, gpus(1), True), taken) is expected


FIRM = [
    ("within quota everywhere", {"p1": ("default", 2, 3, 1)}, {}, True),
    ("preemptible jobs beyond the parent's quota do not matter", {"default": ("", 3, 5, 5)}, {}, True),
    ("the parent's quota is full", {"default": ("", 3, 5, 5)}, {"default": 3}, False),
    ("the own quota is full", {}, {"p1": 3, "default": 3}, False),
]


@pytest.mark.parametrize(("changes", "held", "expected"), [case[1:] for case in FIRM], ids=[case[0] for case in FIRM])
def test_what_cannot_be_evicted_stays_within_quota_at_every_ancestor(
    changes: dict[str, Any], held: dict[str, float], expected: bool
) -> None:
    tree = of_gpus(ONE_DEPARTMENT | changes)
    for name, count in held.items():
        tree[name].allocated_non_preemptible = gpus(count)

    assert is_fair(tree, ("p1", gpus(1), False), [("p2", [gpus(1)], True)]) is expected


def test_only_resources_that_change_hands_are_weighed() -> None:
    tree = of_gpus({"d1": ("", 4, 4, 4), "p1": ("d1", 1, 1, 1), "d2": ("", 3, 3, 7), "p2": ("d2", 3, 3, 7)})
    set_amounts(tree, "d1", fair_share=Amounts(1000, 0, 4), allocated=Amounts(3000, 0, 4))
    set_amounts(tree, "d2", fair_share=Amounts(1000, 0, 3), allocated=Amounts(1000, 0, 7))

    assert is_fair(tree, ("p1", gpus(1), True), [("p2", [gpus(1)], True)])
    assert not is_fair(tree, ("p1", Amounts(1, 0, 1), True), [("p2", [gpus(1)], True)])
    assert not is_fair(tree, ("p1", gpus(1), True), [("p2", [Amounts(1, 0, 1)], True)])


@pytest.mark.parametrize(("multiplier", "expected"), [(1.0, True), (1.5, True), (1.6, False), (2.0, False)])
def test_the_own_saturation_may_be_made_to_count_for_more(multiplier: float, expected: bool) -> None:
    """The reclaimer's side would have 5 of 4, the other 6 of 3: 1.25 against 2."""
    tree = of_gpus(PROJECTS)

    made = is_fair(tree, ("d1-p1", gpus(1), True), [("d2-p1", [gpus(1)], True)], saturation_multiplier=multiplier)

    assert made is expected


def test_without_a_fair_share_nobody_is_protected_by_saturation() -> None:
    tree = of_gpus({"a": ("", 0, 0, 1), "b": ("", 0, 0, 3)})

    assert is_fair(tree, ("a", gpus(1), True), [("b", [gpus(1)], True)])


def test_a_plan_that_was_tried_is_judged_by_what_was_before() -> None:
    tree = of_gpus(ONE_DEPARTMENT)
    before = tree.copy_of_amounts()
    victims = [("p2", [gpus(1)], True)]

    tree.give_back("p2", gpus(1), is_preemptible=True)
    tree.take("p1", gpus(1), is_preemptible=True)

    assert is_fair(tree, ("p1", gpus(1), True), victims, at=before)
    assert not is_fair(tree, ("p1", gpus(1), True), victims)


count = st.integers(0, 4).map(float)


@given(
    figures=st.fixed_dictionaries(
        {name: st.tuples(st.just(parent), count, count, count) for name, (parent, _, _, _) in DEEP.items()}
    ),
    pieces=st.lists(count, max_size=3),
    is_preemptible=st.booleans(),
)
def test_judging_changes_nothing_and_never_helps_who_has_too_much(
    figures: dict[str, Any], pieces: list[float], is_preemptible: bool
) -> None:
    tree = of_gpus(figures)
    before = tree.copy_of_amounts()
    noted = list(tree.changes)

    fair = is_fair(tree, ("leaf-1a", gpus(1), is_preemptible), [("leaf-2", [gpus(x) for x in pieces], True)])

    assert tree.copy_of_amounts() == before
    assert tree.changes == noted
    own, other = tree["mid-1"], tree["mid-2"]
    if fair and pieces and not other.allocated.exceeds_somewhere(other.allocatable):
        assert own.allocated.plus(gpus(1)).is_within(own.queue.quota)
        assert other.allocated.exceeds_somewhere(other.queue.quota)
