"""Grove's pods where no backend of gangs speaks for them."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.kinds import beside
from shoal.scheduler.grouper.kinds.reference import Reference
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group

NAMED = {"grove.io/topology-name": "dc"}


def placed(required: str = "", preferred: str = "") -> dict[str, Any]:
    pack = {**({"required": required} if required else {}), **({"preferred": preferred} if preferred else {})}
    return {"topologyConstraint": {"packConstraint": pack}}


def clique(name: str, minimum: int | None = 1, *pods: str, namespace: str = "team", **more: Any) -> dict[str, Any]:
    references = [{"namespace": namespace, "name": pod} for pod in pods]
    least = {} if minimum is None else {"minReplicas": minimum}
    return {"name": name, "podReferences": references, **least, **more}


def a_gang(*cliques: dict[str, Any], together: Any = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    described = {
        "podgroups": list(cliques),
        **({"topologyConstraintGroupConfigs": together} if together else {}),
        **spec,
    }
    return an_owner("PodGang", "scheduler.grove.io/v1alpha1", "g", annotations=annotations, spec=described)


def a_set(kind: str = "PodCliqueSet", **said: Any) -> dict[str, Any]:
    return an_owner(kind, "grove.io/v1alpha1", "s", **said)


POD = a_grouped_pod("a-1", labels={"grove.io/podgang": "g", "grove.io/podclique": "a"})


@pytest.mark.parametrize("kind", ["PodCliqueSet", "PodGangSet"])
def test_a_gang_is_a_group_and_its_cliques_are_parts(kind: str) -> None:
    gang = a_gang(clique("a", 2, "a-0", "a-1"), clique("b", 1, "b-0"))
    group = the_group(an_owner("PodClique", "grove.io/v1alpha1", "a"), a_set(kind), pod=POD, beside=gang)
    assert (group.name, group.owner.kind, group.min_member) == ("pg-g-g-uid", "PodGang", 3)
    assert parts_of(group) == {"a": "2 pods", "b": "1 pods"}


def test_the_gang_of_a_pod_is_the_one_that_its_label_names() -> None:
    gang = Reference(api_version="scheduler.grove.io/v1alpha1", kind="PodGang", name="g")
    assert beside(Case(pod=POD, owners=(a_set(),))) == gang
    assert beside(Case(pod=a_grouped_pod(), owners=(a_set(),))) is None
    with pytest.raises(Ungroupable, match=r"has no label grove\.io/podgang"):
        the_group(a_set())


def test_a_pod_is_in_the_clique_that_lists_it_or_else_that_it_names() -> None:
    gang = a_gang(clique("a", 1, "a-0"), clique("b", 1, "a-1"), clique("c", 1, "c-0", namespace="elsewhere"))
    group = the_group(a_set(), pod=POD, beside=gang)
    assert group.part_of(POD) == "b"
    assert group.part_of(a_grouped_pod("new", labels={"grove.io/podclique": "a"})) == "a"
    assert group.part_of(a_grouped_pod("c-0")) == ""


def test_what_is_kept_together_is_a_part_around_its_cliques() -> None:
    gang = a_gang(
        clique("a", 1, **placed("host")),
        clique("b", 2),
        clique("c", 3),
        together=[
            {"name": "x", "podGroupNames": ["a", "b"], **placed("rack", "block")},
            {"name": "y", "podGroupNames": ["b", "nobody"]},
            {"name": "z", "podGroupNames": []},
        ],
        annotations=NAMED,
        **placed("zone"),
    )
    group = the_group(a_set(), pod=POD, beside=gang)
    assert parts_of(group) == {"x": "2 parts", "a": "1 pods in x", "b": "2 pods in x", "c": "3 pods"}
    assert group.min_member == 6
    assert group.topology == TopologyConstraint(topology="dc", required_topology_level="zone")
    placements = {part.name: part.topology_constraint for part in group.sub_groups}
    assert placements == {
        "x": TopologyConstraint(topology="dc", required_topology_level="rack", preferred_topology_level="block"),
        "a": TopologyConstraint(topology="dc", required_topology_level="host"),
        "b": None,
        "c": None,
    }


@pytest.mark.parametrize(
    ("annotations", "topology"),
    [
        pytest.param({"grove.io/topology-name": "g"}, "g", id="Grove's name"),
        pytest.param({"kai.scheduler/topology": "k"}, "k", id="KAI's name"),
        pytest.param({"grove.io/topology-name": "g", "kai.scheduler/topology": "k"}, "g", id="Grove's first"),
    ],
)
def test_the_topology_is_named_by_an_annotation(annotations: dict[str, str], topology: str) -> None:
    group = the_group(a_set(), pod=POD, beside=a_gang(clique("a"), annotations=annotations, **placed("rack")))
    assert group.topology == TopologyConstraint(topology=topology, required_topology_level="rack")


def test_annotations_of_the_set_place_a_gang_that_says_nothing_itself() -> None:
    annotations = {"kai.scheduler/topology": "dc", "kai.scheduler/topology-preferred-placement": "rack"}
    group = the_group(a_set(annotations=annotations), pod=POD, beside=a_gang(clique("a")))
    assert group.topology == TopologyConstraint(topology="dc", preferred_topology_level="rack")


def test_a_placement_without_a_topology_is_told() -> None:
    with pytest.raises(Ungroupable, match=r"set annotation grove\.io/topology-name"):
        the_group(a_set(), pod=POD, beside=a_gang(clique("a"), **placed("rack")))


PRIORITIES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "nobody says": ({}, {}, "train"),
    "the gang": ({}, {"priorityClassName": "urgent"}, "urgent"),
    "a label of the set": ({"priorityClassName": "build"}, {"priorityClassName": "urgent"}, "build"),
}


@pytest.mark.parametrize(("labels", "spec", "expected"), PRIORITIES.values(), ids=PRIORITIES)
def test_the_priority_of_a_gang(labels: dict[str, str], spec: dict[str, Any], expected: str) -> None:
    group = the_group(a_set(labels=labels), pod=POD, beside=a_gang(clique("a"), **spec))
    assert group.priority_class == expected


def test_what_dynamo_is_labelled_with_reaches_the_gang() -> None:
    labels = {"kai.scheduler/queue": "q", "kai.scheduler/preemptibility": "non-preemptible"}
    annotations = {"kai.scheduler/preemption-delay": "2m"}
    dynamo = an_owner("DynamoGraphDeployment", "nvidia.com/v1beta1", "d", labels=labels, annotations=annotations)
    group = the_group(a_set(labels={"app": "a"}), dynamo, pod=POD, beside=a_gang(clique("a")))
    assert (group.owner.kind, group.queue) == ("PodGang", "q")
    assert (group.preemptibility, group.preemption_delay) == ("non-preemptible", "2m0s")
    assert group.labels == {**labels, "app": "a"}


@pytest.mark.parametrize(
    ("gang", "problem"),
    [
        pytest.param(a_gang(clique("")), "podgroup '' with minReplicas 1", id="no name"),
        pytest.param(a_gang(clique("a", None)), "podgroup 'a' with minReplicas None", id="no minimum"),
        pytest.param(a_gang(clique("a", 0)), "podgroup 'a' with minReplicas 0", id="no pods"),
        pytest.param(
            a_gang(clique("a"), together=[{"podGroupNames": ["a"]}]), "without a name", id="a part without a name"
        ),
        pytest.param(a_gang(clique("a"), together="x"), "put a list of objects there", id="no parts"),
    ],
)
def test_a_gang_that_makes_no_sense_is_told(gang: dict[str, Any], problem: str) -> None:
    with pytest.raises(Ungroupable, match=problem):
        the_group(a_set(), pod=POD, beside=gang)
