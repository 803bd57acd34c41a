"""Kubernetes' own gangs, version by version."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_k8s_io import (
    POD_GROUPS_V1ALPHA2,
    POD_GROUPS_V1ALPHA3,
    WORKLOADS_V1ALPHA1,
    WORKLOADS_V1ALPHA2,
    WORKLOADS_V1ALPHA3,
)
from shoal.gangs.backends.default import DefaultScheduler
from shoal.gangs.backends.workloads.v1alpha3 import COMPOSITE_POD_GROUPS
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import TopologyWish
from shoal.scheduler.watching.dialects.workloads import (
    CompositePodGroup,
    PodGroup,
    Workload,
    plan_of_composite,
    plan_of_group,
    plan_of_workload,
    seat_of_group,
    workload_name,
)
from shoal.scheduler.watching.groups import Dialect, GangKey, gang_of
from tests.gangs.backends.builders import a_gang, constrained
from tests.gangs.backends.builders import a_group as a_clique
from tests.gangs.builders import a_set
from tests.gangs.builders import typed as typed_set
from tests.scheduler.watching.dialects.builders import FACTS, pods_of, read, tree, typed, with_pods
from tests.scheduler.watching.worlds import a_mirrored_pod

V1 = frozenset({WORKLOADS_V1ALPHA1.documents()})
V2 = frozenset({WORKLOADS_V1ALPHA2.documents(), POD_GROUPS_V1ALPHA2.documents()})
V3 = frozenset({WORKLOADS_V1ALPHA3.documents(), POD_GROUPS_V1ALPHA3.documents(), COMPOSITE_POD_GROUPS})
BACKEND = DefaultScheduler()
KINDS: dict[str, type[Any]] = {"PodGroup": PodGroup, "CompositePodGroup": CompositePodGroup}
TWO = a_gang(a_clique("web-0-a", 2), a_clique("web-0-b", 3), backend="default")


def named(name: str) -> GangKey:
    return GangKey(Dialect.WORKLOAD, "default", name)


def a_workload(*groups: dict[str, Any], **metadata: Any) -> Workload:
    return typed(Workload, "llama", spec={"podGroups": list(groups)}, **metadata)


GANG = {"name": "workers", "policy": {"gang": {"minCount": 4}}}
BASIC = {"name": "viewers", "policy": {"basic": {}}}


def test_a_group_of_a_workload_that_the_gang_operator_wrote_is_a_gang_of_its_pods() -> None:
    [wanted] = BACKEND.translate(TWO, typed_set(a_set()), V1)
    workload = read([wanted], {"Workload": Workload})[0]
    pods = pods_of(BACKEND, TWO, "web-0-b", 3, V1)
    [gang] = {gang_of(pod) for pod in pods}
    assert gang == named("workload/web-0/web-0-b")
    plan = plan_of_workload(workload, gang, pods, FACTS)
    assert plan is not None
    assert (plan.name, plan.queue, plan.priority) == ("workload/web-0/web-0-b", "default-queue", 50)
    job = plan.job()
    assert tree(job.root) == {"default": 3}


def test_replicas_of_a_group_are_gangs_of_their_own() -> None:
    references = [{"name": "llama", "podGroup": "workers", "podGroupReplicaKey": key} for key in ("0", "1")]
    gangs = [gang_of(a_mirrored_pod("p", workloadRef=reference)) for reference in references]
    assert gangs == [named("workload/llama/workers/0"), named("workload/llama/workers/1")]
    plans = [plan_of_workload(a_workload(GANG), gang, [], FACTS) for gang in gangs]
    assert [plan and tree(plan.job().root) for plan in plans] == [{"default": 4}, {"default": 4}]


def test_a_group_without_a_gang_needs_no_pod_to_start() -> None:
    plan = plan_of_workload(a_workload(GANG, BASIC), named("workload/llama/viewers"), [], FACTS)
    assert plan is not None
    assert tree(plan.job().root) == {"default": 0}


def test_a_group_that_the_workload_does_not_have_is_no_gang() -> None:
    assert plan_of_workload(a_workload(GANG), named("workload/llama/masters"), [], FACTS) is None


SAID = [
    ("on the Workload", {"labels": {"kai.scheduler/queue": "team"}}, {}, "team", 50, True),
    ("on a pod", {}, {"labels": {"kai.scheduler/queue": "lab"}, "priority": 70}, "lab", 70, True),
    (
        "the Workload before its pods",
        {"labels": {"kai.scheduler/queue": "team"}},
        {"labels": {"kai.scheduler/queue": "lab"}},
        "team",
        50,
        True,
    ),
    ("nowhere", {}, {}, "default-queue", 50, True),
    ("a high priority", {}, {"priority": 100}, "default-queue", 100, False),
    (
        "a high priority that may end",
        {"labels": {"kai.scheduler/preemptibility": "preemptible"}},
        {"priority": 100},
        "default-queue",
        100,
        True,
    ),
    (
        "one that may not",
        {},
        {"labels": {"kai.scheduler/preemptibility": "non-preemptible"}},
        "default-queue",
        50,
        False,
    ),
]


@pytest.mark.parametrize(
    ("_", "metadata", "pod", "queue", "priority", "is_preemptible"), SAID, ids=[s[0] for s in SAID]
)
def test_queue_and_priority_are_said_by_the_object_or_by_its_pods(
    _: str, metadata: dict[str, Any], pod: dict[str, Any], queue: str, priority: int, is_preemptible: bool
) -> None:
    pods = [a_mirrored_pod("b"), a_mirrored_pod("a", **pod)]
    plan = plan_of_workload(a_workload(GANG, **metadata), named("workload/llama/workers"), pods, FACTS)
    assert plan is not None
    assert (plan.queue, plan.priority, plan.is_preemptible) == (queue, priority, is_preemptible)


def test_no_gang_of_kubernetes_is_stale_unless_it_says_when() -> None:
    gang = named("workload/llama/workers")
    silent = plan_of_workload(a_workload(GANG), gang, [], FACTS)
    asking = {"kai.scheduler/staleness-grace-period": "5m", "kai.scheduler/preemption-delay": "10s"}
    saying = plan_of_workload(a_workload(GANG, annotations=asking), gang, [], FACTS)
    assert silent is not None
    assert saying is not None
    assert (silent.job().staleness_grace, saying.job().staleness_grace, saying.job().preemption_delay) == (-1, 300, 10)


@pytest.mark.parametrize("served", [V2, V3], ids=["v1alpha2", "v1alpha3"])
def test_a_pod_group_with_a_topology_is_a_gang_that_shares_a_label(served: frozenset[Any]) -> None:
    one = a_gang({**a_clique("web-0-a", 2), **constrained(required="example.com/rack")}, backend="default")
    [group] = read(BACKEND.translate(one, typed_set(a_set()), served), {"PodGroup": PodGroup})
    assert workload_name(group) == "web-0"
    [key] = {gang_of(pod) for pod in pods_of(BACKEND, one, "web-0-a", 2, served)}
    seat = seat_of_group(group, {})
    assert seat is not None
    assert key == seat.gang == named("podgroup/web-0-web-0-a")
    plan = plan_of_group(group, [], [], FACTS)
    [topology] = plan.topologies()
    assert topology == Topology(topology.name, ("example.com/rack",))
    assert plan.job().root.topology == TopologyWish(topology.name, "example.com/rack", "")
    assert tree(plan.job().root) == {"default": 2}


def test_the_queue_of_a_pod_group_may_be_said_by_its_workload() -> None:
    group = typed(PodGroup, "g", spec={"schedulingPolicy": {"gang": {"minCount": 1}}, "priorityClassName": "high"})
    plan = plan_of_group(group, [a_workload(labels={"kai.scheduler/queue": "team"})], [], FACTS)
    assert (plan.queue, plan.priority) == ("team", 90)


def test_parts_of_a_composite_group_are_one_gang_in_which_each_has_its_pods() -> None:
    found = read(BACKEND.translate(TWO, typed_set(a_set()), V3), KINDS)
    composites = {one.metadata.name: one for one in found if isinstance(one, CompositePodGroup)}
    groups = [one for one in found if isinstance(one, PodGroup)]
    seats = {named(f"podgroup/{group.metadata.name}"): seat_of_group(group, composites) for group in groups}
    assert {seat.gang for seat in seats.values() if seat} == {named("compositepodgroup/web-0")}
    pods = [pod for clique in ("web-0-a", "web-0-b") for pod in pods_of(BACKEND, TWO, clique, 3, V3)]
    plan = plan_of_composite("web-0", composites, groups, [], pods, FACTS)
    job = with_pods(plan, {key: seat for key, seat in seats.items() if seat}, ((gang_of(pod), pod) for pod in pods))
    assert tree(job.root) == (2, {"web-0-web-0-a": 2, "web-0-web-0-b": 3})
    assert {name: len(one.tasks) for name, one in job.pod_sets.items()} == {"web-0-web-0-a": 3, "web-0-web-0-b": 3}
    assert job.is_ready


def a_composite(name: str, needed: int, parent: str = "", **spec: Any) -> CompositePodGroup:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": needed}}}
    return typed(CompositePodGroup, name, spec={**policy, "parentCompositePodGroupName": parent, **spec})


def a_part(name: str, needed: int, parent: str) -> PodGroup:
    spec = {"schedulingPolicy": {"gang": {"minCount": needed}}, "parentCompositePodGroupName": parent}
    return typed(PodGroup, name, spec=spec)


def test_composite_groups_nest() -> None:
    composites = {one.metadata.name: one for one in (a_composite("all", 1), a_composite("left", 2, "all"))}
    groups = [a_part("x", 1, "left"), a_part("y", 2, "left"), a_part("z", 3, "all")]
    seats = [seat_of_group(group, composites) for group in groups]
    assert [(seat.gang.name, seat.pod_set) for seat in seats if seat] == [
        ("compositepodgroup/all", "x"),
        ("compositepodgroup/all", "y"),
        ("compositepodgroup/all", "z"),
    ]
    plan = plan_of_composite("all", composites, groups, [], [], FACTS)
    assert tree(plan.job().root) == (1, {"left": (2, {"x": 1, "y": 2}), "z": 3})


def test_a_composite_group_waits_for_parts_that_are_not_there_yet() -> None:
    composites = {"all": a_composite("all", 2)}
    part = a_part("x", 1, "all")
    plan = plan_of_composite("all", composites, [part], [], [], FACTS)
    seat = seat_of_group(part, composites)
    assert seat is not None
    pod = a_mirrored_pod("p", schedulingGroup={"podGroupName": "x"})
    assert not with_pods(plan, {gang_of(pod): seat}, [(gang_of(pod), pod)]).is_ready


BROKEN = {"not there": {}, "in a circle": {"all": a_composite("all", 1, "more"), "more": a_composite("more", 1, "all")}}


@pytest.mark.parametrize("composites", BROKEN.values(), ids=BROKEN.keys())
def test_a_part_of_something_that_has_no_end_is_nowhere(composites: dict[str, CompositePodGroup]) -> None:
    assert seat_of_group(a_part("x", 1, "all"), composites) is None


def test_what_kubernetes_says_of_a_pod_goes_before_what_a_grouper_put_on_it() -> None:
    both = a_mirrored_pod("p", group="pg-of-the-grouper", workloadRef={"name": "llama", "podGroup": "workers"})
    assert gang_of(both) == named("workload/llama/workers")
