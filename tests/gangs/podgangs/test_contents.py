"""What a PodGang says, as a table of sets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.scheduler_grove_io import NamespacedName, PodGang
from shoal.gangs.plan import PlannedGang, base_gang
from shoal.gangs.podgangs.contents import Contents, Topology, contents_of
from tests.gangs.builders import a_clique_template, a_pod_spec, a_set, typed
from tests.gangs.podgangs.actors import BACKENDS


def contents(
    body: dict[str, Any],
    names: dict[str, list[str]] | None = None,
    *,
    topology: Topology = Topology(),
    default_scheduler: str = "default-scheduler",
) -> Contents:
    pcs = typed(body)
    references = {
        clique: [NamespacedName(namespace="default", name=pod) for pod in pods]
        for clique, pods in (names or {}).items()
    }
    return contents_of(
        pcs, planned(body), references, topology=topology, default_scheduler=default_scheduler, backends=BACKENDS
    )


def planned(body: dict[str, Any]) -> PlannedGang:
    return base_gang(typed(body), 0)


def test_a_podgang_on_the_wire() -> None:
    body = a_set(
        "web",
        a_clique_template("b", 1),
        a_clique_template("a", 3, min_available=2),
        priorityClassName="high",
        metadata={"labels": {"team": "red"}},
    )
    found = contents(body, {"web-0-a": ["a-1", "a-2"]}).body("web-0", "default")
    assert found["spec"] == {
        "podgroups": [
            {"name": "web-0-b", "podReferences": [], "minReplicas": 1},
            {
                "name": "web-0-a",
                "podReferences": [{"namespace": "default", "name": "a-1"}, {"namespace": "default", "name": "a-2"}],
                "minReplicas": 2,
            },
        ],
        "priorityClassName": "high",
    }
    assert found["metadata"]["name"] == "web-0"
    assert "annotations" not in found["metadata"]


@pytest.mark.parametrize(
    ("schedulers", "scheduler", "backend"),
    [
        ([None], "default-scheduler", "default"),
        ([""], "default-scheduler", "default"),
        (["default-scheduler"], "default-scheduler", "default"),
        (["kai-scheduler"], "kai-scheduler", "kai"),
        (["grove-scheduler"], "grove-scheduler", "kai"),
        (["koord-scheduler"], "koord-scheduler", "koordinator"),
        (["volcano"], "volcano", "volcano"),
        (["nobody-knows"], "nobody-knows", "kai"),
        ([None, "volcano"], "volcano", "volcano"),
    ],
    ids=str,
)
def test_the_scheduler_is_that_of_the_first_clique_that_names_one(
    schedulers: list[str | None], scheduler: str, backend: str
) -> None:
    cliques = [
        a_clique_template(f"c{index}", pod_spec=a_pod_spec(**({} if name is None else {"schedulerName": name})))
        for index, name in enumerate(schedulers)
    ]
    labels = contents(a_set("web", *cliques)).labels
    assert (labels["grove.io/scheduler-name"], labels["grove.io/scheduler-backend"]) == (scheduler, backend)


def test_a_set_that_names_no_scheduler_has_that_of_the_default_profile() -> None:
    labels = contents(a_set("web"), default_scheduler="volcano").labels
    assert (labels["grove.io/scheduler-name"], labels["grove.io/scheduler-backend"]) == ("volcano", "volcano")


def test_what_kubectl_remembers_of_the_set_is_not_said_of_its_gangs() -> None:
    metadata = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}}
    assert contents(a_set("web", metadata=metadata)).annotations == {"a": "b"}


def test_labels_of_a_gang_win_over_those_of_its_set() -> None:
    labels = contents(a_set("web", metadata={"labels": {"app.kubernetes.io/managed-by": "helm"}})).labels
    assert labels["app.kubernetes.io/managed-by"] == "grove-operator"


WANTED = contents(a_set("web", metadata={"labels": {"team": "red"}, "annotations": {"a": "b"}}))
OWNER = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "web", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"labels": {**WANTED.labels, "grove.io/theirs": "1"}}, True),
        ({"labels": {**WANTED.labels, "team": "blue"}}, False),
        ({"labels": {**WANTED.labels, "was": "ours once?"}}, False),
        ({"annotations": {}}, False),
        ({"annotations": {"a": "b", "was": "ours once?"}}, False),
        ({"ownerReferences": [{**OWNER, "uid": "another"}]}, False),
    ],
    ids=["all there", "Grove's own label", "value", "label", "no annotation", "annotation", "owner"],
)
def test_a_gang_is_looked_at_thoroughly_unless_it_surely_is_as_wanted(change: dict[str, Any], same: bool) -> None:
    body = WANTED.body("web-0", "default")
    body["metadata"] |= {"ownerReferences": [OWNER], **change}
    assert WANTED.are_in(msgspec.convert(body, PodGang), "u") is same


def test_a_gang_with_other_pods_is_not_as_wanted() -> None:
    body = a_set("web")
    gang = contents(body, {"web-0-workers": ["x"]}).body("web-0", "default")
    gang["metadata"]["ownerReferences"] = [OWNER]
    assert not contents(body, {"web-0-workers": ["y"]}).are_in(msgspec.convert(gang, PodGang), "u")
    assert contents(body, {"web-0-workers": ["x"]}).are_in(msgspec.convert(gang, PodGang), "u")
