"""The order in which the jobs of all queues are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import NONE, WITHOUT_LIMIT, Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.shares.job_order import JobsByQueue, job_rank
from shoal.scheduler.shares.order import divisors_of, first_of_equals, standing
from shoal.scheduler.shares.tree import QueueTree, Share
from tests.scheduler.builders import a_model_job, a_model_queue
from tests.scheduler.shares.builders import a_tree, gpus, names, pod_sets, with_pods

EVEN = Amounts(1, 1, 1)


def one_gpu(_: Job) -> Amounts:
    return gpus(1)


def order_of(
    tree: QueueTree,
    jobs: Sequence[Job],
    *,
    next_amounts: Callable[[Job], Amounts] = one_gpu,
    is_for_victims: bool = False,
    depth: int | None = None,
) -> JobsByQueue:
    made = JobsByQueue(tree, next_amounts=next_amounts, job_key=job_rank, is_for_victims=is_for_victims, depth=depth)
    for job in jobs:
        made.push(job)
    return made


def popped(order: JobsByQueue, tree: QueueTree | None = None) -> list[str]:
    """Pops all; where a tree is given, each job gets its GPU before the next is popped."""
    made = []
    while order:
        job = order.pop()
        made.append(job.name)
        if tree is not None:
            tree.take(job.queue, gpus(1), is_preemptible=True)
    return made


def test_within_a_queue_the_higher_priority_is_first() -> None:
    tree = a_tree(a_model_queue("parent"), a_model_queue("q", "parent"))
    jobs = [a_model_job(f"p{priority}", "q", priority=priority) for priority in (150, 255, 160, 200)]

    assert popped(order_of(tree, jobs)) == ["p255", "p200", "p160", "p150"]


def test_of_equal_priority_the_older_is_first_then_the_smaller_uid() -> None:
    tree = a_tree(a_model_queue("q"))
    jobs = [a_model_job("c", "q", created=2), a_model_job("b", "q", created=1), a_model_job("a", "q", created=1)]

    assert popped(order_of(tree, jobs)) == ["a", "b", "c"]


def elastic(name: str, running: int, least: int) -> Job:
    job = a_model_job(name, "q", root=pod_sets(("default", least)))
    with_pods(job, running, Status.RUNNING)
    return job


def test_jobs_below_their_minimum_are_before_those_at_it_and_above_it() -> None:
    tree = a_tree(a_model_queue("q"))
    jobs = [elastic("above", 3, 2), elastic("at", 2, 2), elastic("below", 1, 2)]

    assert popped(order_of(tree, jobs)) == ["below", "at", "above"]


def of_sets(*running: int, needed: int | None = None) -> Job:
    """A job of pod sets that need one pod each."""
    job = a_model_job("job", "q", root=pod_sets(*((f"set-{place}", 1) for place in range(len(running))), needed=needed))
    for place, count in enumerate(running):
        with_pods(job, count, Status.RUNNING, pod_set=f"set-{place}")
    return job


STATES = [
    ("any pod set below its minimum", of_sets(5, 0), 0),
    ("all at their minimum", of_sets(1, 1), 1),
    ("one above, none below", of_sets(2, 1), 2),
    ("a subgroup that is not needed may be missing", of_sets(1, 0, needed=1), 1),
    ("a subgroup more than needed is surplus", of_sets(1, 1, needed=1), 2),
    ("too few subgroups", of_sets(1, 0, 0, needed=2), 0),
]


@pytest.mark.parametrize(("job", "state"), [case[1:] for case in STATES], ids=[case[0] for case in STATES])
def test_the_elastic_state_is_that_of_the_tree(job: Job, state: int) -> None:
    assert job_rank(job)[1] == state


def test_pods_with_the_promise_of_a_place_count_as_placed() -> None:
    job = a_model_job("job", "q", root=pod_sets(("default", 2)))
    with_pods(job, 1, Status.RUNNING)
    with_pods(job, 1, Status.PIPELINED)
    with_pods(job, 3, Status.PENDING)
    with_pods(job, 1, Status.RELEASING)

    assert job_rank(job)[1] == 1


def test_queues_take_turns_as_they_are_served() -> None:
    tree = a_tree(a_model_queue("a", weight=EVEN, created=1), a_model_queue("b", weight=EVEN, created=2))
    jobs = [a_model_job(f"{queue}{place}", queue, created=place) for queue in "ab" for place in range(3)]
    for job in jobs:
        tree.ask(job.queue, gpus(1))
    tree.divide(gpus(6), k=1.0)

    assert popped(order_of(tree, jobs), tree) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_without_service_the_first_queue_stays_first() -> None:
    tree = a_tree(a_model_queue("a", weight=EVEN, created=1), a_model_queue("b", weight=EVEN, created=2))
    jobs = [a_model_job(f"{queue}{place}", queue, created=place) for queue in "ab" for place in range(2)]

    assert popped(order_of(tree, jobs)) == ["a0", "a1", "b0", "b1"]


def test_departments_are_compared_before_their_teams() -> None:
    """The department that has less is first, though the other has the team that has nothing."""
    tree = a_tree(
        a_model_queue("rich", weight=EVEN, created=1),
        a_model_queue("poor", weight=EVEN, created=2),
        a_model_queue("rich-old", "rich", weight=EVEN),
        a_model_queue("rich-new", "rich", weight=EVEN),
        a_model_queue("poor-only", "poor", weight=EVEN),
    )
    tree.take("rich-old", gpus(5), is_preemptible=True)
    tree.take("poor-only", gpus(1), is_preemptible=True)
    jobs = [a_model_job("new", "rich-new"), a_model_job("old", "rich-old"), a_model_job("only", "poor-only")]
    for job in jobs:
        tree.ask(job.queue, gpus(4))
    tree.divide(gpus(12), k=1.0)

    assert popped(order_of(tree, jobs)) == ["only", "new", "old"]


def test_what_somebody_else_took_meanwhile_counts() -> None:
    tree = a_tree(a_model_queue("a", weight=EVEN, created=1), a_model_queue("b", weight=EVEN, created=2))
    jobs = [a_model_job(f"{queue}{place}", queue, created=place) for queue in "ab" for place in range(2)]
    for job in jobs:
        tree.ask(job.queue, gpus(9))
    tree.divide(gpus(30), k=1.0)
    order = order_of(tree, jobs)

    first = order.pop()
    tree.take("a", gpus(5), is_preemptible=True)
    second = order.pop()
    tree.give_back("a", gpus(5), is_preemptible=True)
    tree.take("b", gpus(1), is_preemptible=True)

    assert names([first, second, order.pop()]) == ["a0", "b0", "a1"]


def test_what_a_sibling_without_jobs_took_counts_for_the_parent() -> None:
    tree = a_tree(
        a_model_queue("left", weight=EVEN, created=1),
        a_model_queue("right", weight=EVEN, created=2),
        a_model_queue("l", "left", weight=EVEN),
        a_model_queue("silent", "left", weight=EVEN),
        a_model_queue("r", "right", weight=EVEN),
    )
    jobs = [a_model_job(f"{queue}{place}", queue, created=place) for queue in "lr" for place in range(2)]
    for job in jobs:
        tree.ask(job.queue, gpus(9))
    tree.divide(gpus(30), k=1.0)
    order = order_of(tree, jobs)
    order.pop()

    tree.take("silent", gpus(3), is_preemptible=True)

    assert order.pop().name == "r0"


def test_after_another_division_everything_is_looked_at_again() -> None:
    """At first b may have 8 and a 2, so that b with one more has the smaller share; then it is the other way round."""
    tree = a_tree(a_model_queue("a", weight=EVEN, created=1), a_model_queue("b", weight=EVEN, created=2))
    for name, asked in (("a", 1), ("b", 7)):
        tree.take(name, gpus(1), is_preemptible=True)
        tree.ask(name, gpus(asked))
    tree.divide(gpus(10), k=1.0)
    order = order_of(
        tree, [a_model_job(f"{queue}{place}", queue, created=place) for queue in "ab" for place in range(2)]
    )
    assert order.pop().name == "b0"

    tree.ask("a", gpus(7))
    tree.unask("b", gpus(6))
    tree.divide(gpus(10), k=1.0)

    assert order.pop().name == "a0"


def test_a_job_that_comes_back_competes_again() -> None:
    tree = a_tree(a_model_queue("q"))
    job, other = a_model_job("job", "q", created=1), a_model_job("other", "q", created=2)
    order = order_of(tree, [job, other])
    assert order.pop() is job

    with_pods(job, 2, Status.ALLOCATED)
    order.push(job)

    assert len(order) == 2
    assert popped(order) == ["other", "job"]
    assert not order


def test_a_queue_that_was_empty_takes_jobs_again() -> None:
    tree = a_tree(a_model_queue("p"), a_model_queue("q", "p"))
    order = order_of(tree, [a_model_job("one", "q")])
    order.pop()
    assert not order

    order.push(a_model_job("two", "q"))

    assert popped(order) == ["two"]


def test_popping_from_nothing_is_an_error() -> None:
    with pytest.raises(IndexError, match="no job is left"):
        order_of(a_tree(a_model_queue("q")), []).pop()


def test_jobs_of_queues_that_are_no_leaves_or_unknown_are_left_out() -> None:
    tree = a_tree(a_model_queue("parent"), a_model_queue("leaf", "parent"), a_model_queue("orphan", "gone"))
    jobs = [a_model_job(queue, queue) for queue in ("parent", "leaf", "orphan", "unknown")]

    assert popped(order_of(tree, jobs)) == ["leaf"]


def test_a_depth_keeps_the_best_of_each_queue() -> None:
    tree = a_tree(a_model_queue("a", created=1), a_model_queue("b", created=2))
    jobs = [a_model_job(f"{queue}{priority}", queue, priority=priority) for queue in "ab" for priority in (1, 5, 3)]

    order = order_of(tree, jobs, depth=2)

    assert len(order) == 4
    assert popped(order) == ["a5", "a3", "b5", "b3"]
    assert popped(order_of(tree, jobs, depth=2, is_for_victims=True)) == ["b1", "b3", "a1", "a3"]
    assert not order_of(tree, jobs, depth=0)


def test_a_depth_holds_for_jobs_that_come_later_too() -> None:
    tree = a_tree(a_model_queue("q"))
    order = order_of(tree, [a_model_job("p5", "q", priority=5), a_model_job("p3", "q", priority=3)], depth=2)
    assert len(order) == 2

    order.push(a_model_job("p4", "q", priority=4))

    assert popped(order) == ["p5", "p4"]


def two_queues_with_three_jobs_each() -> tuple[QueueTree, list[Job]]:
    """Both hold three GPUs and may have one; the first queue is the younger."""
    quota = Amounts(1, 1e6, 1)
    tree = a_tree(
        a_model_queue("pq"),
        a_model_queue("q1", "pq", quota=quota, weight=EVEN, created=2),
        a_model_queue("q2", "pq", quota=quota, weight=EVEN, created=1),
    )
    jobs = [
        a_model_job(f"q{queue}j{place}", f"q{queue}", priority=101 - place) for queue in (1, 2) for place in (1, 2, 3)
    ]
    for job in jobs:
        tree.take(job.queue, Amounts(1000, 1024, 1), is_preemptible=True)
    tree.divide(NONE, k=1.0)
    return tree, jobs


def test_victims_come_from_both_queues_in_turn_the_younger_first() -> None:
    tree, jobs = two_queues_with_three_jobs_each()

    order = order_of(tree, jobs, next_amounts=lambda _: Amounts(1000, 1024, 1), is_for_victims=True)

    assert popped(order) == ["q1j3", "q2j3", "q1j2", "q2j2", "q1j1", "q2j1"]


def test_victims_are_taken_from_who_has_most_until_he_has_no_more_than_others() -> None:
    tree = a_tree(a_model_queue("big", weight=EVEN, created=1), a_model_queue("small", weight=EVEN, created=2))
    tree.take("big", gpus(6), is_preemptible=True)
    tree.take("small", gpus(3), is_preemptible=True)
    tree.divide(gpus(8), k=1.0)
    jobs = [a_model_job(f"{queue}{place}", queue, created=place) for queue in ("big", "small") for place in range(3)]

    order = order_of(tree, jobs, next_amounts=lambda job: gpus(2 if job.queue == "big" else 1), is_for_victims=True)

    # What would be left, of fair shares of 5 and 3: 4 against 2, then 2 against 2, 2 against 1, 0 against 1; then all.
    assert popped(order) == ["big2", "small2", "big1", "small1", "big0", "small0"]


def test_a_victim_that_comes_back_is_asked_again_what_it_gives() -> None:
    tree = a_tree(a_model_queue("a"))
    tree.take("a", gpus(5), is_preemptible=True)
    left = {"first": 1.0, "last": 4.0}
    asked: list[str] = []

    def gives(job: Job) -> Amounts:
        asked.append(job.name)
        return gpus(left[job.name])

    jobs = [a_model_job("first", "a", created=1), a_model_job("last", "a", created=2)]
    order = order_of(tree, jobs, next_amounts=gives, is_for_victims=True)
    job = order.pop()
    left[job.name] -= 1
    order.push(job)
    order.pop()

    assert asked == ["last", "last"]


def two_with_needs() -> tuple[QueueTree, JobsByQueue, Job, dict[str, float]]:
    """Two queues that may have eight each; a's job needs less than b's, until it needs more."""
    tree = a_tree(a_model_queue("a", weight=EVEN, created=1), a_model_queue("b", weight=EVEN, created=2))
    needs = {"a": 1.0, "b": 2.0}
    jobs = [a_model_job("a", "a"), a_model_job("b", "b")]
    for name in "ab":
        tree.ask(name, gpus(8))
    tree.divide(gpus(16), k=1.0)
    order = order_of(tree, jobs, next_amounts=lambda job: gpus(needs[job.name]))
    other = a_model_job("other", "b", priority=99)
    needs["other"] = 0.5
    order.push(other)
    assert order.pop() is other
    return tree, order, jobs[0], needs


def test_a_job_that_needs_something_else_is_asked_again() -> None:
    _, order, _, needs = two_with_needs()

    needs["a"] = 3.0
    order.touched("a")

    assert order.pop().name == "b"


def test_a_job_that_changed_is_asked_again_when_its_queue_is_looked_at() -> None:
    tree, order, job, needs = two_with_needs()

    needs["a"] = 3.0
    with_pods(job, 1, Status.PENDING)
    tree.take("a", NONE, is_preemptible=True)

    assert order.pop().name == "b"


def test_jobs_that_lie_sorted_already_are_looked_at_when_their_turn_comes() -> None:
    tree = a_tree(
        a_model_queue("a", created=1),
        a_model_queue("b", created=2),
        a_model_queue("none", created=0),
        a_model_queue("p"),
    )
    jobs = [a_model_job(f"j{place}", "a", created=place) for place in range(6)]
    ranked = [(job_rank(job), job) for job in jobs]
    asked: list[str] = []

    def is_even(job: Job) -> bool:
        asked.append(job.name)
        return job.name in ("j0", "j2", "j4")

    for is_for_victims, expected in ((False, ["j0", "j2", "j3", "j4", "b"]), (True, ["b", "j4", "j3", "j2", "j0"])):
        order = order_of(tree, [jobs[3], a_model_job("b", "b")], is_for_victims=is_for_victims)
        asked.clear()
        order.lay("a", ranked, is_even)
        order.lay("none", ranked[1:2], is_even)
        order.lay("unknown", ranked, is_even)
        assert len(asked) < len(jobs)
        assert len(order) == 5
        assert popped(order) == expected


# An order that looks at everything anew before each pop, as the rules are written.
def expected_next(
    tree: QueueTree, waiting: list[Job], needs: dict[str, Amounts], gone: dict[str, Amounts], *, victims: bool
) -> Job:
    def best_job(share: Share) -> Job | None:
        if share.is_leaf:
            jobs = sorted((job for job in waiting if job.queue == share.name), key=job_rank, reverse=victims)
            return jobs[0] if jobs else None
        return best_of(share.children)

    def best_of(shares: Sequence[Share]) -> Job | None:
        found = [(share, job) for share in shares if (job := best_job(share))]
        if not found:
            return None
        keys = []
        for share, job in found:
            divisors, amounts = divisors_of(share, tree.total), needs[job.name]
            if victims:
                keys.append(standing(share, divisors, victims=gone.get(job.queue, NONE).plus(amounts)))
            else:
                keys.append(standing(share, divisors, job=amounts))
        best = max(keys) if victims else min(keys)
        equals = [pair for pair, key in zip(found, keys, strict=True) if key == best]
        return equals[first_of_equals([share for share, _ in equals], last=victims)][1]

    job = best_of(tree.roots)
    assert job is not None
    return job


few = st.integers(0, 3).map(float)
some = st.builds(Amounts, few, few, few)


@st.composite
def forests(draw: st.DrawFn) -> list[Queue]:
    count = draw(st.integers(1, 7))
    return [
        Queue(
            name=f"q{place}",
            parent=f"q{draw(st.integers(0, place - 1))}" if place and draw(st.booleans()) else "",
            quota=draw(st.one_of(some, st.just(WITHOUT_LIMIT))),
            limit=draw(st.one_of(st.just(WITHOUT_LIMIT), some)),
            weight=draw(st.sampled_from([NONE, EVEN, Amounts(1, 2, 3)])),
            priority=draw(st.sampled_from([100, 100, 200])),
            created=draw(st.integers(0, 2)),
        )
        for place in range(count)
    ]


@settings(max_examples=150)
@given(
    queues=forests(),
    jobs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1), some), min_size=1, max_size=10),
    moves=st.lists(st.tuples(st.integers(0, 6), some), max_size=10),
    total=some,
    victims=st.booleans(),
    are_laid=st.booleans(),
)
def test_the_order_is_that_of_looking_at_everything_anew(
    queues: list[Queue], jobs: list[Any], moves: list[Any], total: Amounts, victims: bool, are_laid: bool
) -> None:
    tree = a_tree(*queues)
    leaves = [share.name for share in tree if share.is_leaf]
    waiting, needs = [], {}
    for place, (queue, priority, amounts) in enumerate(jobs):
        job = a_model_job(f"job-{place}", leaves[queue % len(leaves)], priority=priority)
        waiting.append(job)
        needs[job.name] = amounts
        tree.ask(job.queue, amounts)
    tree.divide(total.times(3), k=1.0)
    pushed = [] if are_laid else waiting
    order = order_of(tree, pushed, next_amounts=lambda job: needs[job.name], is_for_victims=victims)
    for leaf in leaves if are_laid else ():
        order.lay(leaf, sorted((job_rank(job), job) for job in waiting if job.queue == leaf), lambda _: True)
    gone: dict[str, Amounts] = {}
    moves = list(moves)

    while waiting:
        assert len(order) == len(waiting)
        wanted = expected_next(tree, waiting, needs, gone, victims=victims)
        job = order.pop()
        assert job is wanted
        waiting.remove(job)
        gone[job.queue] = gone.get(job.queue, NONE).plus(needs[job.name])
        if moves:
            queue, amounts = moves.pop()
            tree.take(leaves[queue % len(leaves)], amounts, is_preemptible=True)
            if queue == 0:
                order.push(job)
                waiting.append(job)
    assert not order
