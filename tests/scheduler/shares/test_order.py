"""Which of two queues is served first."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import NONE, UNLIMITED, WITHOUT_LIMIT, Amounts
from shoal.scheduler.shares.order import before, divisors_of, dominant_share, first_of_equals, is_chain
from shoal.scheduler.shares.tree import QueueTree, Share
from tests.scheduler.builders import a_model_queue
from tests.scheduler.shares.builders import ANY, a_tree, gpus, set_amounts

TOTAL = Amounts(100, 100, 100)


def two(left: dict[str, Any], right: dict[str, Any]) -> QueueTree:
    """Queues "left" and "right", of which left is the younger: by age alone, right is first."""
    kinds = ("quota", "limit", "priority")
    tree = a_tree(
        a_model_queue("left", created=2, **{key: left[key] for key in kinds if key in left}),
        a_model_queue("right", created=1, **{key: right[key] for key in kinds if key in right}),
    )
    for name, figures in (("left", left), ("right", right)):
        set_amounts(tree, name, allocated=figures.get("held", NONE), fair_share=figures.get("fair", NONE))
    return tree


def all_of(count: float) -> Amounts:
    return Amounts(count, count, count)


# Each case: the left queue, the right queue, and who is first. What is not said is nothing, quota and fair share too.
PENDING: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("1: over the fair share of everything is last, whatever else",
     {"fair": all_of(2), "held": all_of(1)},
     {"fair": all_of(2), "held": all_of(3), "quota": all_of(9), "priority": 900}, "left"),
    ("1: over the fair share of two of three is not over",
     {"fair": all_of(4), "held": all_of(2)},
     {"fair": Amounts(2, 2, 4), "held": Amounts(3, 3, 4), "quota": all_of(9)}, "right"),
    ("2: within quota with the job is first, before priority",
     {"fair": all_of(9), "held": gpus(1), "quota": gpus(2), "job": gpus(1)},
     {"fair": all_of(9), "quota": NONE, "priority": 900, "job": gpus(1)}, "left"),
    ("2: the job counts towards the quota",
     {"fair": all_of(9), "held": gpus(1), "quota": gpus(2), "job": gpus(2)},
     {"fair": all_of(9), "held": gpus(1), "quota": gpus(2), "job": gpus(1)}, "right"),
    ("2: parts of GPUs are added as people add them",
     {"fair": all_of(9), "held": gpus(0.1), "quota": gpus(0.3), "job": gpus(0.2)},
     {"fair": all_of(9), "priority": 900, "job": gpus(0.2)}, "left"),
    ("2: an unlimited quota is never exceeded",
     {"fair": all_of(9), "held": gpus(50), "quota": WITHOUT_LIMIT, "job": gpus(9)},
     {"fair": all_of(9), "priority": 900, "job": gpus(1)}, "left"),
    ("3: the higher priority is first, before shares",
     {"fair": gpus(9), "held": gpus(5), "priority": 101, "job": gpus(1)},
     {"fair": gpus(9), "held": gpus(1), "job": gpus(1)}, "left"),
    ("4: who would use what he may have nothing of is last",
     {"fair": gpus(9), "held": gpus(8), "job": gpus(1)},
     {"fair": gpus(9), "job": Amounts(1, 0, 1)}, "left"),
    ("4: … though he would have the smaller share of what he may have",
     {"fair": gpus(0.001), "held": gpus(8), "job": gpus(1)},
     {"fair": gpus(9), "job": Amounts(1, 0, 1)}, "left"),
    ("5: the smaller share with the job is first",
     {"fair": gpus(8), "held": gpus(1), "job": gpus(1)},
     {"fair": gpus(8), "held": NONE, "job": gpus(4)}, "left"),
    ("5: the largest of the three parts counts",
     {"fair": all_of(8), "held": Amounts(6, 0, 0), "job": gpus(1)},
     {"fair": all_of(8), "held": Amounts(0, 0, 4), "job": gpus(1)}, "right"),
    ("5: without a bound, parts are of the whole cluster",
     {"quota": WITHOUT_LIMIT, "held": gpus(30), "job": gpus(10)},
     {"quota": WITHOUT_LIMIT, "limit": all_of(50), "held": gpus(30), "job": gpus(1)}, "left"),
    ("6: of equal shares with the job, the smaller without it is first",
     {"fair": gpus(8), "held": gpus(1), "job": gpus(3)},
     {"fair": gpus(8), "held": gpus(2), "job": gpus(2)}, "left"),
    ("7: who may have less is first",
     {"fair": gpus(4), "held": NONE, "job": NONE},
     {"fair": gpus(8), "held": NONE, "job": NONE}, "left"),
    ("7: less of one and more of another is not less",
     {"fair": Amounts(1, 0, 9)},
     {"fair": Amounts(9, 0, 1)}, "right"),
    ("8: the older is first",
     {"fair": gpus(4), "job": gpus(1)},
     {"fair": gpus(4), "job": gpus(1)}, "right"),
    ("upstream: starved of its fair share",
     {"quota": gpus(2), "fair": gpus(99), "held": gpus(20)},
     {"quota": gpus(2), "fair": gpus(2)}, "right"),
    ("upstream: starved of its quota, at a lower priority",
     {"quota": gpus(2), "fair": gpus(99), "held": gpus(20), "priority": 1},
     {"quota": gpus(2), "fair": gpus(2), "priority": 0}, "right"),
    ("upstream: by priority where both are satisfied",
     {"quota": gpus(2), "fair": gpus(99), "held": gpus(20), "priority": 1},
     {"quota": gpus(2), "fair": gpus(2), "held": gpus(3), "priority": 0}, "left"),
    ("upstream: by priority, beyond quota and below fair share",
     {"quota": gpus(2), "fair": gpus(99), "held": gpus(20), "priority": 1},
     {"quota": gpus(2), "fair": gpus(80), "held": gpus(3), "priority": 0}, "left"),
    ("upstream: the smaller request of GPU memory",
     {"quota": gpus(50), "fair": gpus(50), "held": gpus(40), "job": gpus(1)},
     {"quota": gpus(50), "fair": gpus(50), "held": gpus(40), "job": gpus(2)}, "left"),
    ("upstream: the larger request of GPU memory",
     {"quota": gpus(50), "fair": gpus(50), "held": gpus(40), "job": gpus(3.2)},
     {"quota": gpus(50), "fair": gpus(50), "held": gpus(40), "job": gpus(0.8)}, "right"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "first"), [case[1:] for case in PENDING], ids=[case[0] for case in PENDING])
def test_queues_with_a_next_job(left: dict[str, Any], right: dict[str, Any], first: str) -> None:
    tree = two(left, right)
    jobs = left.get("job", NONE), right.get("job", NONE)

    is_left = before(tree["left"], tree["right"], total=TOTAL, left_job=jobs[0], right_job=jobs[1])
    is_right = before(tree["right"], tree["left"], total=TOTAL, left_job=jobs[1], right_job=jobs[0])

    assert (is_left, is_right) == (first == "left", first == "right")


VICTIMS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("what victims give back is gone already",
     {"fair": gpus(4), "held": gpus(8), "victims": gpus(6)},
     {"fair": gpus(4), "held": gpus(8), "victims": gpus(2)}, "left"),
    ("victims do not count towards the quota",
     {"fair": gpus(9), "quota": gpus(4), "held": gpus(4), "victims": gpus(1)},
     {"fair": gpus(9), "quota": gpus(4), "held": gpus(5), "victims": gpus(5)}, "left"),
    ("no share is less than none",
     {"fair": gpus(4), "held": gpus(2), "victims": gpus(9)},
     {"fair": gpus(4), "held": gpus(3), "victims": gpus(3)}, "left"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "first"), [case[1:] for case in VICTIMS], ids=[case[0] for case in VICTIMS])
def test_queues_with_victims(left: dict[str, Any], right: dict[str, Any], first: str) -> None:
    tree = two(left, right)

    assert first == (
        "left"
        if before(
            tree["left"], tree["right"], total=TOTAL, left_victims=left["victims"], right_victims=right["victims"]
        )
        else "right"
    )


DOMINANT = [
    ("cpu", (Amounts(50, 10, 1), Amounts(100, 100, 100)), 0.5),
    ("memory", (Amounts(50, 80, 1), Amounts(100, 100, 100)), 0.8),
    ("gpu", (Amounts(50, 80, 90), Amounts(100, 100, 100)), 0.9),
    ("what one may have nothing of counts a thousandfold", (Amounts(2, 80, 90), Amounts(0, 100, 100)), 2000.0),
    ("nothing of nothing is nothing", (NONE, NONE), 0.0),
]


@pytest.mark.parametrize(("figures", "expected"), [case[1:] for case in DOMINANT], ids=[case[0] for case in DOMINANT])
def test_the_dominant_share_is_the_largest_part(figures: tuple[Amounts, Amounts], expected: float) -> None:
    assert dominant_share(*figures) == expected


def test_what_has_no_bound_is_measured_by_the_whole_cluster() -> None:
    tree = a_tree(a_model_queue("a", quota=Amounts(UNLIMITED, 5, UNLIMITED), limit=Amounts(ANY, ANY, 7)))

    assert divisors_of(tree["a"], Amounts(1000, 1000, 1000)) == Amounts(1000, 5, 7)


def with_shares(*shares: tuple[str, float, Amounts]) -> list[Share]:
    """Queues by name, age and what they may have."""
    tree = a_tree(*(a_model_queue(name, created=created) for name, created, _ in shares))
    for name, _, may in shares:
        tree[name].fair_share = may
    return [tree[name] for name, _, _ in shares]


# a may have less than b; c is neither more nor less than either. By age: b, then c, then a: a circle.
CIRCLE = with_shares(("a", 3, Amounts(1, 1, 1)), ("b", 1, Amounts(2, 2, 2)), ("c", 2, Amounts(3, 0, 0)))


def test_three_queues_may_go_in_a_circle() -> None:
    a, b, c = CIRCLE

    assert before(a, b, total=TOTAL)
    assert before(b, c, total=TOTAL)
    assert before(c, a, total=TOTAL)
    assert not is_chain(CIRCLE)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_out_of_a_circle_the_oldest_that_none_goes_before_by_share_is_first(order: tuple[int, ...]) -> None:
    shares = [CIRCLE[place] for place in order]

    assert shares[first_of_equals(shares)].name == "c"
    assert shares[first_of_equals(shares, last=True)].name == "c"
    assert shares[first_of_equals(shares[:1])] is shares[0]


small = st.integers(0, 4).map(float)
amounts = st.builds(Amounts, small, small, small)
figures = st.fixed_dictionaries({
    "quota": st.one_of(amounts, st.just(WITHOUT_LIMIT)),
    "limit": st.one_of(amounts, st.just(WITHOUT_LIMIT)),
    "priority": st.sampled_from([1, 2]),
    "held": amounts,
    "fair": amounts,
    "job": amounts,
    "victims": st.one_of(st.just(NONE), amounts),
})  # fmt: skip


@given(left=figures, right=figures)
def test_of_two_queues_exactly_one_is_first(left: dict[str, Any], right: dict[str, Any]) -> None:
    tree = two(left, right)

    def is_before(one: str, other: str) -> bool:
        of = {"left": left, "right": right}
        return before(
            tree[one],
            tree[other],
            total=TOTAL,
            left_job=of[one]["job"],
            right_job=of[other]["job"],
            left_victims=of[one]["victims"],
            right_victims=of[other]["victims"],
        )

    assert is_before("left", "right") != is_before("right", "left")


@given(shares=st.lists(st.tuples(st.integers(0, 3), amounts), min_size=1, max_size=5), seed=st.randoms())
def test_the_first_of_equals_does_not_depend_on_where_they_stand(
    shares: list[tuple[int, Amounts]], seed: Random
) -> None:
    made = with_shares(*((f"q{place}", float(age), may) for place, (age, may) in enumerate(shares)))
    shuffled = list(made)
    seed.shuffle(shuffled)

    for last in (False, True):
        assert made[first_of_equals(made, last=last)] is shuffled[first_of_equals(shuffled, last=last)]
    if len(made) == 2:
        first = first_of_equals(made)
        assert before(made[first], made[1 - first], total=TOTAL)
        assert first_of_equals(made, last=True) == 1 - first
