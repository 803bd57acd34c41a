"""The queues as a tree, with what each holds, wants and is entitled to."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import NONE, UNLIMITED, WITHOUT_LIMIT, Amounts
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_queue
from tests.scheduler.shares.builders import ANY, a_tree, gpus

THREE_LEVELS = (
    a_model_queue("company"),
    a_model_queue("lab", "company"),
    a_model_queue("team", "lab"),
    a_model_queue("other", "company"),
)


def test_a_queue_knows_its_place() -> None:
    tree = a_tree(*THREE_LEVELS)

    team = tree["team"]
    assert [share.name for share in team.path] == ["team", "lab", "company"]
    assert [share.name for share in tree["company"].children] == ["lab", "other"]
    assert [share.name for share in tree.roots] == ["company"]
    assert team.is_leaf
    assert not tree["lab"].is_leaf
    assert team.parent is tree["lab"]


def test_parents_come_before_their_children() -> None:
    tree = a_tree(*reversed(THREE_LEVELS))

    seen: set[str] = set()
    for share in tree:
        assert share.parent is None or share.parent.name in seen
        seen.add(share.name)


LEFT_OUT = {
    "an orphan": ([a_model_queue("orphan", "gone")], set()),
    "all below an orphan": (
        [a_model_queue("orphan", "gone"), a_model_queue("child", "orphan"), a_model_queue("leaf", "child")],
        set(),
    ),
    "a queue that is its own parent": ([a_model_queue("self", "self"), a_model_queue("root")], {"root"}),
    "queues in a circle, and what hangs on them": (
        [
            a_model_queue("a", "b"),
            a_model_queue("b", "c"),
            a_model_queue("c", "a"),
            a_model_queue("leaf", "a"),
            a_model_queue("root"),
        ],
        {"root"},
    ),
    "nothing of a sound tree": (list(THREE_LEVELS), {"company", "lab", "team", "other"}),
}


@pytest.mark.parametrize(("queues", "kept"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_has_no_root_is_left_out(queues: list[Queue], kept: set[str]) -> None:
    tree = a_tree(*queues)

    assert {share.name for share in tree} == kept
    assert all((queue.name in tree) == (queue.name in kept) for queue in queues)


@given(parents=st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_any_heap_of_queues_becomes_a_tree(parents: list[int]) -> None:
    queues = [a_model_queue(f"q{place}", "" if up < 0 else f"q{up}") for place, up in enumerate(parents)]

    tree = a_tree(*queues)

    for share in tree:
        assert share.path[-1].parent is None
        assert all(lower.parent is upper for lower, upper in zip(share.path, share.path[1:], strict=False))
    assert len(tree.roots) == parents.count(-1)


def test_where_the_hierarchy_does_not_count_all_compete_side_by_side() -> None:
    queues = {queue.name: queue for queue in (*THREE_LEVELS, a_model_queue("alone"), a_model_queue("lost", "gone"))}

    tree = QueueTree.of(queues, full_hierarchy=False)

    assert {share.name for share in tree["default"].children} == {"lab", "team", "other", "lost"}
    assert {share.name for share in tree.roots} == {"default", "alone"}
    assert tree["default"].queue.quota == tree["default"].queue.limit == WITHOUT_LIMIT
    assert all(share.is_leaf for share in tree["default"].children)


def test_a_queue_that_is_called_like_the_parent_of_all_keeps_its_place() -> None:
    queues = {"root": a_model_queue("root"), "default": a_model_queue("default", "root")}

    tree = QueueTree.of(queues, full_hierarchy=False)

    assert tree["default"].is_leaf
    assert tree["default"].parent is not None


def test_what_a_queue_holds_its_ancestors_hold_too() -> None:
    tree = a_tree(*THREE_LEVELS)

    tree.take("team", Amounts(500, 100, 1), is_preemptible=True)
    tree.take("other", Amounts(500, 100, 2), is_preemptible=False)

    assert tree["team"].allocated == tree["lab"].allocated == Amounts(500, 100, 1)
    assert tree["company"].allocated == Amounts(1000, 200, 3)
    assert tree["company"].allocated_non_preemptible == Amounts(500, 100, 2)
    assert tree["lab"].allocated_non_preemptible == NONE


def test_a_request_is_what_is_held_and_what_is_asked_for() -> None:
    tree = a_tree(*THREE_LEVELS)

    tree.take("team", gpus(1), is_preemptible=True)
    tree.ask("team", gpus(4))
    tree.unask("team", gpus(1))

    assert tree["team"].request == tree["company"].request == gpus(4)
    assert tree["other"].request == NONE


def test_a_queue_without_a_place_holds_nothing() -> None:
    tree = a_tree(a_model_queue("orphan", "gone"), a_model_queue("root"))

    tree.take("orphan", gpus(1), is_preemptible=True)
    tree.ask("unknown", gpus(1))

    assert tree["root"].allocated == NONE
    assert tree.get("orphan") is None


ALLOCATABLE = [
    ("the fair share, where it is more than the quota", (4, ANY, 6), 6),
    ("the quota, where it is more than the fair share", (4, ANY, 2), 4),
    ("never more than the limit", (4, 3, 6), 3),
    ("a limit of 0 is nothing", (4, 0, 6), 0),
    ("with an unlimited quota, the limit", (ANY, 9, 2), 9),
    ("with neither, no bound", (ANY, ANY, 2), UNLIMITED),
]


@pytest.mark.parametrize(("figures", "expected"), [case[1:] for case in ALLOCATABLE], ids=[x[0] for x in ALLOCATABLE])
def test_what_a_queue_may_have(figures: tuple[float, float, float], expected: float) -> None:
    quota, limit, fair_share = figures
    tree = a_tree(a_model_queue("a", quota=gpus(quota), limit=gpus(limit)))

    tree["a"].fair_share = gpus(fair_share)

    assert tree["a"].allocatable.gpu == expected


def test_children_divide_what_their_parent_got() -> None:
    even = Amounts(1, 1, 1)
    tree = a_tree(
        a_model_queue("left", weight=even),
        a_model_queue("right", weight=even, quota=gpus(6)),
        a_model_queue("left-1", "left", weight=even),
        a_model_queue("left-2", "left", weight=even, quota=gpus(1)),
        a_model_queue("right-1", "right", weight=even),
    )
    for name in ("left-1", "left-2", "right-1"):
        tree.ask(name, Amounts(4000, 0, 20))

    tree.divide(Amounts(8000, 0, 12), k=1.0)

    # 12 GPUs: 6 for the quota of the right, 3 and 3 of the rest; the left's 3 are 1 of quota, 1 and 1 of the rest.
    assert {share.name: share.fair_share.gpu for share in tree} == {
        "left": 3, "right": 9, "left-1": 1, "left-2": 2, "right-1": 9,
    }  # fmt: skip
    assert tree["left"].fair_share.cpu == 4000
    assert tree["left-1"].fair_share.cpu == 2000
    assert tree.total == Amounts(8000, 0, 12)


def test_a_division_replaces_the_one_before() -> None:
    tree = a_tree(a_model_queue("a", quota=gpus(4)))
    tree.ask("a", gpus(3))
    tree.divide(gpus(8), k=1.0)
    tree.unask("a", gpus(2))

    tree.divide(gpus(8), k=1.0)

    assert tree["a"].fair_share == gpus(1)


def test_a_copy_of_the_amounts_stays_as_it_was() -> None:
    tree = a_tree(*THREE_LEVELS)
    tree.take("team", gpus(1), is_preemptible=False)

    copy = tree.copy_of_amounts()
    tree.take("team", gpus(1), is_preemptible=False)

    assert copy["lab"].allocated == copy["company"].allocated_non_preemptible == gpus(1)


@pytest.mark.parametrize(("held", "portion"), [(0.1, 5e-7), (0.2, 0.0013045), (1.0, 1.5e-6)])
def test_a_portion_between_two_millionths_leaves_no_trace(held: float, portion: float) -> None:
    tree = a_tree(a_model_queue("q"))
    tree.take("q", gpus(held), is_preemptible=True)

    tree.take("q", gpus(portion), is_preemptible=True)
    tree.give_back("q", gpus(portion), is_preemptible=True)

    assert tree["q"].allocated == gpus(held)


portions = st.one_of(
    st.integers(0, 16).map(float),
    st.integers(0, 300).map(lambda hundredths: hundredths / 100),
    st.integers(1, 80).map(lambda memory: memory / 81),
)
some_amounts = st.builds(Amounts, st.integers(0, 10**6).map(float), st.integers(0, 2**45).map(float), portions)


moves = st.tuples(st.sampled_from(["team", "other"]), some_amounts, st.booleans())


@given(before=st.lists(moves, max_size=8), during=st.lists(moves, max_size=20), order=st.randoms())
def test_giving_back_in_any_order_leaves_exactly_what_was(
    before: list[tuple[str, Amounts, bool]], during: list[tuple[str, Amounts, bool]], order: Random
) -> None:
    tree = a_tree(*THREE_LEVELS)
    for name, amounts, is_preemptible in before:
        tree.take(name, amounts, is_preemptible=is_preemptible)
        tree.ask(name, amounts)
    at_first = {share.name: (share.allocated, share.allocated_non_preemptible, share.asked) for share in tree}

    for name, amounts, is_preemptible in during:
        tree.take(name, amounts, is_preemptible=is_preemptible)
        tree.ask(name, amounts)
    for name, amounts, is_preemptible in order.sample(during, len(during)):
        tree.give_back(name, amounts, is_preemptible=is_preemptible)
        tree.unask(name, amounts)

    assert {share.name: (share.allocated, share.allocated_non_preemptible, share.asked) for share in tree} == at_first
