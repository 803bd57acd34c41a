"""Volcano's PodGroups: pods, tasks, and groups within a group."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from shoal.api.core.pods import Pod
from shoal.api.scheduling_volcano_sh import POD_GROUPS, PodGroup
from shoal.gangs.backends.volcano import Volcano
from shoal.scheduler.model.jobs import Job, TopologyWish
from shoal.scheduler.watching.dialects.volcano import plan_of, seat_of
from shoal.scheduler.watching.groups import Dialect, GangKey, gang_of
from tests.gangs.backends.builders import a_gang
from tests.gangs.backends.builders import a_group as a_clique
from tests.gangs.builders import a_set
from tests.gangs.builders import typed as typed_set
from tests.scheduler.watching.dialects.builders import FACTS, pods_of, read, tree, typed, with_pods
from tests.scheduler.watching.worlds import a_mirrored_pod

SERVED = frozenset({POD_GROUPS.documents()})
KEY = GangKey(Dialect.VOLCANO, "default", "llama")


def a_group(**spec: Any) -> PodGroup:
    return typed(PodGroup, "llama", spec=spec)


def job_of(group: PodGroup, pods: list[Pod]) -> Job:
    return with_pods(plan_of(group, pods, FACTS), {KEY: seat_of(group)}, ((KEY, pod) for pod in pods))


def pods(**counts: int) -> list[Pod]:
    """So many pods of each task."""
    return [
        a_mirrored_pod(f"{task}-{number}", annotations={"volcano.sh/task-spec": task})
        for task, count in counts.items()
        for number in range(count)
    ]


def roles(**counts: int) -> list[Pod]:
    """So many pods with each value of a label."""
    return [
        a_mirrored_pod(f"{role}-{number}", labels={"role": role[:-1], "replica": role[-1]})
        for role, count in counts.items()
        for number in range(count)
    ]


def test_a_gang_that_the_gang_operator_wrote_has_a_part_for_each_clique() -> None:
    backend = Volcano()
    gang = a_gang(a_clique("web-0-a", 2), a_clique("web-0-b", 3), backend="volcano")
    [group] = read(backend.translate(gang, typed_set(a_set()), SERVED), {"PodGroup": PodGroup})
    made = [pod for clique in ("web-0-a", "web-0-b") for pod in pods_of(backend, gang, clique, 4)]
    [key] = {gang_of(pod) for pod in made}
    assert key == seat_of(group).gang == GangKey(Dialect.VOLCANO, "default", "web-0")
    plan = plan_of(group, made, FACTS)
    job = with_pods(plan, {key: seat_of(group)}, ((key, pod) for pod in made))
    assert tree(job.root) == {
        "web-0-a": (1, {"web-0-a/web-0-a": 2}),
        "web-0-b": (1, {"web-0-b/web-0-b": 3}),
        "others": 0,
    }
    assert Counter({name: len(one.tasks) for name, one in job.pod_sets.items()}) == {
        "web-0-a/web-0-a": 4,
        "web-0-b/web-0-b": 4,
        "others": 0,
    }
    assert (job.is_ready, plan.queue, plan.name) == (True, "default", "podgroup.scheduling.volcano.sh/web-0")


def test_such_a_gang_waits_until_each_clique_has_its_pods() -> None:
    backend = Volcano()
    gang = a_gang(a_clique("web-0-a", 2), a_clique("web-0-b", 3), backend="volcano")
    [group] = read(backend.translate(gang, typed_set(a_set()), SERVED), {"PodGroup": PodGroup})
    made = pods_of(backend, gang, "web-0-a", 9)
    key = gang_of(made[0])
    job = with_pods(plan_of(group, made, FACTS), {key: seat_of(group)}, ((key, pod) for pod in made))
    assert not job.is_ready


MARKS = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")


@pytest.mark.parametrize("mark", MARKS)
def test_a_pod_names_its_group_by(mark: str) -> None:
    assert gang_of(a_mirrored_pod("p", scheduler="volcano", annotations={mark: "llama"})) == KEY


QUEUES = [
    ("of Volcano's queue where there is one", {"queue": "team"}, {}, "team"),
    ("of none where there is none", {"queue": "theirs"}, {}, "default-queue"),
    ("of the label first", {"queue": "team"}, {"kai.scheduler/queue": "lab"}, "lab"),
]


@pytest.mark.parametrize(("_", "spec", "labels", "queue"), QUEUES, ids=[each[0] for each in QUEUES])
def test_the_gang_waits_in_the_queue(_: str, spec: dict[str, str], labels: dict[str, str], queue: str) -> None:
    assert plan_of(typed(PodGroup, "llama", spec=spec, labels=labels), [], FACTS).queue == queue


def test_its_priority_is_that_of_its_class() -> None:
    assert plan_of(a_group(priorityClassName="high"), [a_mirrored_pod("p", priority=7)], FACTS).priority == 90
    assert plan_of(a_group(), [a_mirrored_pod("p", priority=7)], FACTS).priority == 7


def test_a_group_without_parts_is_so_many_pods() -> None:
    assert tree(plan_of(a_group(minMember=3), [], FACTS).job().root) == {"default": 3}
    assert tree(plan_of(a_group(), [], FACTS).job().root) == {"default": 1}
    assert tree(plan_of(a_group(minMember=0), [], FACTS).job().root) == {"default": 0}


TASKS: list[tuple[str, int, dict[str, int], dict[str, int], dict[str, int], bool]] = [
    (
        "each task has its own",
        3,
        {"ps": 1, "worker": 2},
        {"ps": 1, "worker": 4},
        {"task ps": 1, "task worker": 2, "others": 0},
        True,
    ),
    (
        "a task has too few",
        3,
        {"ps": 1, "worker": 2},
        {"worker": 9},
        {"task ps": 1, "task worker": 2, "others": 0},
        False,
    ),
    (
        "more is asked of those who have it",
        5,
        {"ps": 1, "worker": 2},
        {"ps": 2, "worker": 4},
        {"task ps": 2, "task worker": 3, "others": 0},
        True,
    ),
    ("more is asked of other tasks", 4, {"ps": 1}, {"ps": 1, "viewer": 3}, {"task ps": 1, "others": 3}, True),
    ("more is asked than there is", 9, {"ps": 1}, {"ps": 2}, {"task ps": 2, "others": 7}, False),
    ("tasks that ask for more than the gang count not", 2, {"ps": 1, "worker": 2}, {"worker": 2}, {"default": 2}, True),
]


@pytest.mark.parametrize(
    ("_", "minimum", "tasks", "there", "wanted", "is_ready"), TASKS, ids=[each[0] for each in TASKS]
)
def test_of_each_task_so_many(
    _: str, minimum: int, tasks: dict[str, int], there: dict[str, int], wanted: dict[str, int], is_ready: bool
) -> None:
    job = job_of(a_group(minMember=minimum, minTaskMember=tasks), pods(**there))
    assert (tree(job.root), job.is_ready) == (wanted, is_ready)


def test_pods_of_a_task_are_together_and_those_of_none_too() -> None:
    job = job_of(
        a_group(minMember=2, minTaskMember={"ps": 1, "worker": 1}), [*pods(ps=1, worker=2), a_mirrored_pod("alone")]
    )
    assert {name: len(one.tasks) for name, one in job.pod_sets.items()} == {
        "task ps": 1,
        "task worker": 2,
        "others": 1,
    }


def test_pods_that_have_finished_are_not_counted_upon() -> None:
    there = [a_mirrored_pod(f"p{n}", annotations={"volcano.sh/task-spec": "ps"}, phase="Succeeded") for n in range(3)]
    plan = plan_of(a_group(minMember=3, minTaskMember={"ps": 1}), there, FACTS)
    assert tree(plan.job().root) == {"task ps": 1, "others": 2}


def a_policy(name: str = "role", *, size: int = 2, groups: int | None = None, **more: Any) -> dict[str, Any]:
    policy = {"name": name, "matchLabelKeys": ["role", "replica"], "subGroupSize": size, **more}
    return policy if groups is None else {**policy, "minSubGroups": groups}


POLICIES: list[tuple[str, int, dict[str, Any], dict[str, int], Any, bool]] = [
    (
        "as many groups as are asked for",
        0,
        a_policy(groups=1),
        {"w0": 2, "w1": 2},
        {"role": (1, {"role/w/0": 2, "role/w/1": 2}), "others": 0},
        True,
    ),
    (
        "a group that is not whole is none",
        0,
        a_policy(groups=2),
        {"w0": 2, "w1": 1},
        {"role": (2, {"role/w/0": 2, "role/w/1": 2}), "others": 0},
        False,
    ),
    (
        "a group that is not there is waited for",
        0,
        a_policy(groups=2),
        {"w0": 2},
        {"role": (2, {"role/w/0": 2, "role not there yet (1)": 2}), "others": 0},
        False,
    ),
    ("no group is asked for", 0, a_policy(), {"w0": 2}, {"role": (0, {"role/w/0": 2}), "others": 0}, True),
    (
        "more pods than the groups need",
        4,
        a_policy(groups=1),
        {"w0": 2, "w1": 2},
        {"role": (2, {"role/w/0": 2, "role/w/1": 2}), "others": 0},
        True,
    ),
    ("more pods of the one group", 3, a_policy(groups=1), {"w0": 4}, {"role": (1, {"role/w/0": 3}), "others": 0}, True),
    (
        "more pods than there are in groups",
        5,
        a_policy(groups=1),
        {"w0": 2},
        {"role": (1, {"role/w/0": 2}), "others": 3},
        False,
    ),
]


@pytest.mark.parametrize(
    ("_", "minimum", "policy", "there", "wanted", "is_ready"), POLICIES, ids=[each[0] for each in POLICIES]
)
def test_groups_within_a_group(
    _: str, minimum: int, policy: dict[str, Any], there: dict[str, int], wanted: Any, is_ready: bool
) -> None:
    job = job_of(a_group(minMember=minimum, subGroupPolicy=[policy]), roles(**there))
    assert (tree(job.root), job.is_ready) == (wanted, is_ready)


def test_a_pod_is_in_the_first_part_that_selects_it_and_has_its_labels() -> None:
    chosen = {"matchLabels": {"role": "w"}}
    policies = [a_policy("workers", groups=1, labelSelector=chosen), a_policy("rest", size=1, groups=0)]
    strange = {"name": "none", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}}
    there = [*roles(w0=2, v0=1), a_mirrored_pod("alone", labels={"role": "w"})]
    job = job_of(a_group(minMember=2, subGroupPolicy=[strange, *policies]), there)
    assert {name: len(one.tasks) for name, one in job.pod_sets.items()} == {
        "workers/w/0": 2,
        "rest/v/0": 1,
        "others": 1,
    }


TIERS: list[tuple[str, dict[str, Any], TopologyWish | None]] = [
    (
        "a level by its alias",
        {"mode": "hard", "highestTierName": "rack"},
        TopologyWish("datacenter", "example.com/rack"),
    ),
    ("a level by its label", {"highestTierName": "example.com/rack"}, TopologyWish("datacenter", "example.com/rack")),
    ("if possible", {"mode": "soft", "highestTierName": "rack"}, TopologyWish("datacenter", "", "example.com/rack")),
    ("unknown and needed", {"mode": "hard", "highestTierAllowed": 2}, TopologyWish("Volcano's tier 2", "2")),
    ("unknown and not needed", {"mode": "soft", "highestTierAllowed": 2}, None),
    ("nothing said", {"mode": "hard"}, None),
]


@pytest.mark.parametrize(("_", "said", "wish"), TIERS, ids=[each[0] for each in TIERS])
def test_tiers_are_levels_of_a_topology(_: str, said: dict[str, Any], wish: TopologyWish | None) -> None:
    whole = plan_of(a_group(networkTopology=said), [], FACTS)
    assert whole.job().root.topology == wish
    part = job_of(a_group(subGroupPolicy=[a_policy(networkTopology=said)]), roles(w0=1))
    assert part.pod_sets["role/w/0"].topology == wish
