"""Which gang labels speak of, and which pods are in it."""

from __future__ import annotations

import pytest

from shoal.api.core import Pod
from shoal.api.grove import PodClique
from shoal.gangs.plan import base_gang
from shoal.gangs.podgangs.membership import members_of, wanted_gang
from tests.gangs.builders import a_clique, a_clique_pod, a_clique_template, a_scaling_group_template, a_set, typed

PCS = typed(
    a_set(
        "web",
        a_clique_template("a", 2),
        a_clique_template("p", 1),
        replicas=2,
        groups=[a_scaling_group_template("grp", ["p"], 4, min_available=2)],
    )
)


@pytest.mark.parametrize(
    ("labels", "live", "name"),
    [
        ({"grove.io/podcliqueset-replica-index": "1"}, None, "web-1"),
        ({"grove.io/podcliqueset-replica-index": "2"}, None, None),
        ({"grove.io/podcliqueset-replica-index": "x"}, None, None),
        ({}, None, None),
    ],
    ids=["base gang", "replica scaled in", "no number", "no label"],
)
def test_labels_of_a_base_gang(labels: dict[str, str], live: int | None, name: str | None) -> None:
    gang = wanted_gang(PCS, labels, lambda group: live)
    assert (gang and gang.name) == name


@pytest.mark.parametrize(
    ("group", "replica", "live", "name"),
    [
        ("web-0-grp", "1", None, "web-0"),
        ("web-0-grp", "2", None, "web-0-grp-0"),
        ("web-0-grp", "3", None, "web-0-grp-1"),
        ("web-0-grp", "4", None, None),
        ("web-0-grp", "4", 5, "web-0-grp-2"),
        ("web-0-grp", "3", 3, None),
        ("web-1-grp", "3", None, None),
        ("web-0-gone", "3", None, None),
        ("web-0-grp", "", None, None),
    ],
    ids=[
        "within the minimum: the base gang",
        "the first beyond it",
        "the last of the template",
        "beyond the template",
        "the group was scaled out",
        "the group was scaled in",
        "a group of another replica",
        "no such group",
        "no index",
    ],
)
def test_labels_of_a_scaling_groups_replica(group: str, replica: str, live: int | None, name: str | None) -> None:
    labels = {
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podcliquescalinggroup": group,
        "grove.io/podcliquescalinggroup-replica-index": replica,
    }
    asked: list[str] = []

    def replicas(full_name: str) -> int | None:
        asked.append(full_name)
        return live

    gang = wanted_gang(PCS, labels, replicas)
    assert (gang and gang.name) == name
    assert set(asked) <= {"web-0-grp"}


GANG = base_gang(typed(a_set("web", a_clique_template("b", 1), a_clique_template("a", 2))), 0)
CLIQUES = [a_clique("web-0-b", 1), a_clique("web-0-a", 2)]
PODS = [
    a_clique_pod("b-1", clique="web-0-b"),
    a_clique_pod("a-2", clique="web-0-a"),
    a_clique_pod("a-1", clique="web-0-a"),
]


def test_pods_are_by_name_in_the_plans_order_of_cliques() -> None:
    members = members_of(GANG, CLIQUES, PODS)
    named = {clique: [pod.name for pod in pods] for clique, pods in members.references.items()}
    assert list(named.items()) == [("web-0-b", ["b-1"]), ("web-0-a", ["a-1", "a-2"])]
    assert members.is_complete


@pytest.mark.parametrize(
    ("cliques", "pods", "is_complete", "count"),
    [
        (CLIQUES, [*PODS, a_clique_pod("a-3", clique="web-0-a")], True, 4),
        (CLIQUES, PODS[:2], False, 2),
        (CLIQUES[:1], PODS, False, 1),
        ([CLIQUES[0], a_clique("web-0-a", 2, deletionTimestamp="2026-01-01T00:00:00Z")], PODS, False, 1),
        (CLIQUES, [*PODS[:2], a_clique_pod("a-1", clique="web-0-a", going=True)], False, 2),
        ([CLIQUES[0], a_clique("web-0-a", 2, uid="the next one")], PODS, False, 1),
        (CLIQUES, [*PODS, a_clique_pod("x", clique="elsewhere")], True, 3),
        ([CLIQUES[0], a_clique("web-0-a", 0)], PODS[:1], True, 1),
    ],
    ids=[
        "more pods than asked for",
        "too few pods",
        "a clique is not there",
        "a clique goes",
        "a pod goes",
        "pods of an earlier clique of the name",
        "a pod of no clique of the gang",
        "a clique of no pods",
    ],
)
def test_what_counts(cliques: list[PodClique], pods: list[Pod], is_complete: bool, count: int) -> None:
    members = members_of(GANG, cliques, pods)
    assert members.is_complete is is_complete
    assert sum(map(len, members.pods.values())) == count
