"""PodGroups of scheduling.sigs.k8s.io, alone and together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.scheduling_sigs_k8s_io import POD_GROUPS, PodGroup
from shoal.gangs.backends.koordinator import Koordinator
from shoal.scheduler.model.jobs import TopologyWish
from shoal.scheduler.watching.dialects.coscheduling import Group, group_of, plan_of, seat_of
from shoal.scheduler.watching.groups import Dialect, GangKey, gang_of
from tests.gangs.backends.builders import a_gang, constrained
from tests.gangs.backends.builders import a_group as a_clique
from tests.gangs.builders import a_set
from tests.gangs.builders import typed as typed_set
from tests.scheduler.watching.dialects.builders import FACTS, pods_of, read, tree, typed, with_pods
from tests.scheduler.watching.worlds import a_mirrored_pod

SERVED = frozenset({POD_GROUPS.documents()})
BACKEND = Koordinator()
ANNOTATION = "gang.scheduling.koordinator.sh"
RACK, HOST = "topology.kubernetes.io/rack", "kubernetes.io/hostname"


def named(name: str, namespace: str = "default") -> GangKey:
    return GangKey(Dialect.COSCHEDULING, namespace, name)


def a_group(name: str, minimum: int | None = 2, *, namespace: str = "default", **annotations: Any) -> Group:
    said = {f"{ANNOTATION}/{key.replace('_', '-')}": json.dumps(value) for key, value in annotations.items()}
    spec = {} if minimum is None else {"minMember": minimum}
    found = typed(PodGroup, name, namespace=namespace, spec=spec, annotations=said)
    group = group_of(named(name, namespace), found, [])
    assert group is not None
    return group


def test_a_pod_group_is_a_gang_of_so_many_pods() -> None:
    group = a_group("llama", 3)
    assert seat_of(group).gang == named("llama")
    plan = plan_of([group], [], FACTS)
    assert (plan.name, plan.uid) == ("podgroup.scheduling.sigs.k8s.io/llama", "uid-llama")
    assert tree(plan.job().root) == {"default": 3}
    assert tree(plan_of([a_group("llama", None)], [], FACTS).job().root) == {"default": 1}


MARKS: dict[str, dict[str, Any]] = {
    "Koordinator's label": {"labels": {"pod-group.scheduling.sigs.k8s.io": "llama"}},
    "an older label": {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "llama"}},
    "the plugins' label": {"labels": {"scheduling.x-k8s.io/pod-group": "llama"}},
    "Koordinator's annotation": {"annotations": {f"{ANNOTATION}/name": "llama"}},
}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS.keys())
def test_a_pod_names_its_group_by(marks: dict[str, Any]) -> None:
    assert gang_of(a_mirrored_pod("p", scheduler="koord-scheduler", **marks)) == named("llama")


def test_pods_may_say_it_all_themselves() -> None:
    said = {f"{ANNOTATION}/name": "llama", f"{ANNOTATION}/min-available": "2", f"{ANNOTATION}/total-number": "5"}
    pods = [a_mirrored_pod(name, annotations=said, labels={"kai.scheduler/queue": "team"}) for name in ("b", "a")]
    group = group_of(named("llama"), None, pods)
    assert group is not None
    plan = plan_of([group], pods, FACTS)
    assert (tree(plan.job().root), plan.queue, plan.uid) == ({"default": 2}, "team", "uid-a")
    assert group_of(named("llama"), None, [a_mirrored_pod("a", annotations={f"{ANNOTATION}/name": "llama"})]) is None


def test_groups_that_name_each_other_are_one_gang_with_a_pod_set_for_each() -> None:
    cliques = a_clique("web-0-a", 2), a_clique("web-0-b", 3)
    gang = a_gang(*cliques, backend="koordinator", labels={"kai.scheduler/queue": "team"})
    found = read(BACKEND.translate(gang, typed_set(a_set()), SERVED), {"PodGroup": PodGroup})
    groups = [group_of(named(one.metadata.name), one, []) for one in found]
    members = [group for group in groups if group is not None]
    seats = {group.key: seat_of(group) for group in members}
    [together] = {seat.gang for seat in seats.values()}
    pods = [pod for clique in ("web-0-a", "web-0-b") for pod in pods_of(BACKEND, gang, clique, 3)]
    plan = plan_of(members, pods, FACTS)
    assert (plan.queue, plan.namespace, together.namespace) == ("team", "default", "default")
    job = with_pods(plan, seats, ((gang_of(pod), pod) for pod in pods))
    assert tree(job.root) == {"web-0-web-0-a": 2, "web-0-web-0-b": 3}
    assert {name: len(one.tasks) for name, one in job.pod_sets.items()} == {"web-0-web-0-a": 3, "web-0-web-0-b": 3}
    assert job.is_ready


def test_a_group_that_is_named_and_not_there_is_waited_for() -> None:
    first = a_group("a", groups=["default/a", "default/b"])
    pods = [a_mirrored_pod(f"p{each}", labels={"scheduling.x-k8s.io/pod-group": "a"}) for each in range(2)]
    job = with_pods(plan_of([first], pods, FACTS), {first.key: seat_of(first)}, ((first.key, pod) for pod in pods))
    assert tree(job.root) == {"a": 2, "b": 1}
    assert not job.is_ready


def test_groups_are_together_only_if_they_say_so_of_each_other() -> None:
    """Otherwise anybody could make the gangs of others wait."""
    first, second = a_group("a", groups=["default/a", "other/b"]), a_group("b", namespace="other")
    assert seat_of(first).gang != seat_of(second).gang
    assert seat_of(second).gang == named("b", "other")


ALONE: dict[str, Any] = {
    "no list": "a",
    "no JSON of a list": {"a": "b"},
    "others": ["default/b", "default/c"],
    "itself alone": ["default/a"],
    "numbers": [1, 2],
}


@pytest.mark.parametrize("listed", ALONE.values(), ids=ALONE.keys())
def test_a_group_whose_list_says_nothing_of_itself_and_others_is_alone(listed: Any) -> None:
    group = a_group("a", 2, groups=listed)
    assert seat_of(group).gang == named("a")
    assert tree(plan_of([group], [], FACTS).job().root) == {"default": 2}


def test_groups_of_several_namespaces_and_names_without_one_are_understood() -> None:
    first = a_group("a", 1, groups=["b", "a", "far/c"])
    second = a_group("b", 2, groups=["default/a", "default/b", "far/c"])
    third = a_group("c", 3, namespace="far", groups=["default/a", "default/b", "far/c"])
    assert len({seat_of(group).gang for group in (first, second, third)}) == 1
    assert tree(plan_of([third, second, first], [], FACTS).job().root) == {"a": 1, "b": 2, "far/c": 3}
    assert [seat_of(group).pod_set for group in (first, second, third)] == ["a", "b", "far/c"]


def test_what_a_gang_is_called_does_not_depend_on_the_order_in_which_it_is_seen() -> None:
    groups = [a_group(name, groups=["default/a", "default/b"]) for name in ("a", "b")]
    assert plan_of(groups, [], FACTS) == plan_of(groups[::-1], [], FACTS)


GATHERED = [
    ("one rack", [("rackLayer", "MustGather")], (RACK,), RACK, ""),
    ("one host if possible", [("hostLayer", "PreferGather")], (HOST,), "", HOST),
    (
        "one rack, one host if possible",
        [("hostLayer", "PreferGather"), ("rackLayer", "MustGather")],
        (RACK, HOST),
        RACK,
        HOST,
    ),
    ("the narrowest that must be", [("hostLayer", "MustGather"), ("rackLayer", "MustGather")], (RACK, HOST), HOST, ""),
]


@pytest.mark.parametrize(("_", "said", "levels", "required", "preferred"), GATHERED, ids=[g[0] for g in GATHERED])
def test_layers_of_koordinators_topology_are_labels_of_nodes(
    _: str, said: list[tuple[str, str]], levels: tuple[str, ...], required: str, preferred: str
) -> None:
    strategy = [{"layer": layer, "strategy": how} for layer, how in said]
    plan = plan_of([a_group("a", network_topology_spec={"gatherStrategy": strategy})], [], FACTS)
    [topology] = plan.topologies()
    assert topology.levels == levels
    assert plan.job().root.topology == TopologyWish(topology.name, required, preferred)


def test_the_gang_operators_topology_is_read_back() -> None:
    gang = a_gang(a_clique("web-0-a", 2), backend="koordinator", **constrained(required=RACK, preferred=HOST))
    [found] = read(BACKEND.translate(gang, typed_set(a_set()), SERVED), {"PodGroup": PodGroup})
    group = group_of(named(found.metadata.name), found, [])
    assert group is not None
    wish = plan_of([group], [], FACTS).job().root.topology
    assert wish is not None
    assert (wish.required, wish.preferred) == (RACK, HOST)


def test_a_layer_that_must_be_shared_and_is_unknown_is_nowhere() -> None:
    strategy = [{"layer": "spineLayer", "strategy": "MustGather"}]
    plan = plan_of([a_group("a", network_topology_spec={"gatherStrategy": strategy})], [], FACTS)
    assert list(plan.topologies()) == []
    wish = plan.job().root.topology
    assert wish is not None
    assert wish.topology == "Koordinator's layer spineLayer"
