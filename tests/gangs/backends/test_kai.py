"""What KAI is told of a gang, and of its pods."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.meta import Document, Resource
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.gangs.backends import Untranslatable
from shoal.gangs.backends.backend import NotServed
from shoal.gangs.backends.kai import Kai
from tests.gangs.backends.builders import UID, a_gang, a_group, constrained
from tests.gangs.builders import a_clique_template, a_set, typed

SERVED: frozenset[Resource[Document]] = frozenset({POD_GROUPS.documents()})
QUEUE = "kai.scheduler/queue"
RACK, BLOCK, HOST = "topology/rack", "topology/block", "kubernetes.io/hostname"


def told(gang: Any, owner: dict[str, Any] | None = None) -> Any:
    [wanted] = Kai().translate(gang, typed(owner or a_set()), SERVED)
    assert wanted.resource == POD_GROUPS
    return wanted


def test_a_gang_becomes_one_pod_group_named_by_its_uid() -> None:
    wanted = told(a_gang(a_group("web-0-a", 2), a_group("web-0-b", 3), priorityClassName="high"))
    assert wanted.body["metadata"]["name"] == f"pg-web-0-{UID}"
    assert wanted.body["metadata"]["namespace"] == "default"
    assert wanted.body["spec"] == {
        "minMember": 5,
        "priorityClassName": "high",
        "subGroups": [{"name": "web-0-a", "minMember": 2}, {"name": "web-0-b", "minMember": 3}],
    }


def test_labels_and_annotations_of_the_gang_are_copied() -> None:
    gang = a_gang(
        labels={"team": "blue", "kai.scheduler/node-pool": "big"},
        annotations={"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    )
    metadata = told(gang).body["metadata"]
    assert metadata["labels"] == {
        key: value for key, value in gang.metadata.labels.items() if key != "kai.scheduler/node-pool"
    }
    assert set(metadata["annotations"]) == {"note", "kai.scheduler/skip-podgrouper", "kai.scheduler/top-owner-metadata"}
    assert metadata["annotations"]["kai.scheduler/top-owner-metadata"].splitlines() == [
        "name: web-0",
        f"uid: {UID}",
        "group: scheduler.grove.io",
        "version: v1alpha1",
        "kind: PodGang",
    ]


def test_where_a_gang_waits_is_set_once_and_then_belongs_to_others() -> None:
    wanted = told(
        a_gang(labels={QUEUE: "team-a", "kai.scheduler/node-pool": "big"}), a_set(metadata=labelled("team-a"))
    )
    assert wanted.initial == {
        "spec": {"queue": "team-a"},
        "metadata": {"labels": {QUEUE: "team-a", "kai.scheduler/node-pool": "big"}},
    }
    assert "queue" not in wanted.body["spec"]


def labelled(queue: str) -> dict[str, Any]:
    return {"labels": {QUEUE: queue}}


def annotated(queue: str) -> dict[str, Any]:
    return {"annotations": {QUEUE: queue}}


QUEUES: dict[str, tuple[dict[str, Any], str]] = {
    "nobody says": (a_set(), "default-queue"),
    "the set's label": (a_set(metadata=labelled("a")), "a"),
    "the set's annotation": (a_set(metadata=annotated("a")), "a"),
    "a label before an annotation": (a_set(metadata={**labelled("a"), **annotated("b")}), "a"),
    "the set and its cliques agree": (a_set("web", a_clique_template(**labelled("a")), metadata=annotated("a")), "a"),
    "the one value of the cliques": (
        a_set("web", a_clique_template("x", **labelled("a")), a_clique_template("y", **annotated("a"))),
        "a",
    ),
    "one clique of two": (a_set("web", a_clique_template("x"), a_clique_template("y", **annotated("a"))), "a"),
}


@pytest.mark.parametrize(("owner", "queue"), QUEUES.values(), ids=QUEUES.keys())
def test_the_queue(owner: dict[str, Any], queue: str) -> None:
    assert told(a_gang(), owner).initial["spec"] == {"queue": queue}
    assert list(Kai().problems(typed(owner))) == []


CLASHES: dict[str, tuple[dict[str, Any], str]] = {
    "cliques differ": (
        a_set("web", a_clique_template("x", **labelled("a")), a_clique_template("y", **annotated("b"))),
        "spec.template.cliques[1].annotations[kai.scheduler/queue]: Invalid value: \"b\": must be 'a' as elsewhere in "
        "the set: a gang waits in one queue",
    ),
    "a clique differs from the set": (
        a_set("web", a_clique_template("x", **labelled("b")), metadata=labelled("a")),
        "spec.template.cliques[0].labels[kai.scheduler/queue]: Invalid value: \"b\": must be 'a' as elsewhere in "
        "the set: a gang waits in one queue",
    ),
}


@pytest.mark.parametrize(("owner", "problem"), CLASHES.values(), ids=CLASHES.keys())
def test_a_set_with_several_queues_is_refused_and_never_told(owner: dict[str, Any], problem: str) -> None:
    assert [str(each) for each in Kai().problems(typed(owner))] == [problem]
    with pytest.raises(Untranslatable, match=r"names several queues \(a, b\)") as raised:
        told(a_gang(), owner)
    assert raised.value.event == "KAIBackendMappingFailed"


TOPOLOGY = {"grove.io/topology-name": "dc"}


def test_constraints_become_levels_of_the_named_topology() -> None:
    gang = a_gang(
        a_group("web-0-a", 1, required=RACK),
        a_group("web-0-g-0-b", 2),
        a_group("web-0-g-0-c", 3, preferred=HOST),
        a_group("web-0-d", 4),
        parts=[
            {"name": "web-0-g-0", "podGroupNames": ["web-0-g-0-b", "web-0-g-0-c"], **constrained(required=RACK)},
            {"name": "empty", "podGroupNames": [], **constrained(required=RACK)},
            {"name": "gone", "podGroupNames": ["nobody"], **constrained(required=RACK)},
        ],
        annotations={**TOPOLOGY, "kai.scheduler/topology": "other"},
        **constrained(required=BLOCK, preferred=RACK),
    )
    spec = told(gang).body["spec"]
    assert spec["topologyConstraint"] == {
        "topology": "dc",
        "requiredTopologyLevel": BLOCK,
        "preferredTopologyLevel": RACK,
    }
    rack = {"topology": "dc", "requiredTopologyLevel": RACK}
    assert spec["subGroups"] == [
        {"name": "web-0-g-0", "minSubGroup": 2, "topologyConstraint": rack},
        {"name": "web-0-a", "minMember": 1, "topologyConstraint": rack},
        {"name": "web-0-g-0-b", "minMember": 2, "parent": "web-0-g-0"},
        {
            "name": "web-0-g-0-c",
            "minMember": 3,
            "parent": "web-0-g-0",
            "topologyConstraint": {"topology": "dc", "preferredTopologyLevel": HOST},
        },
        {"name": "web-0-d", "minMember": 4},
    ]


def test_kais_own_annotation_names_the_topology_where_groves_does_not() -> None:
    gang = a_gang(annotations={"kai.scheduler/topology": "other"}, **constrained(required=RACK))
    assert told(gang).body["spec"]["topologyConstraint"]["topology"] == "other"


def test_a_group_that_two_parts_name_is_in_the_first_and_no_part_asks_for_more_than_it_has() -> None:
    """KAI refuses a part without members, and one that wants more of them than there are."""
    both = ["web-0-a", "web-0-b"]
    gang = a_gang(
        a_group("web-0-a", 1),
        a_group("web-0-b", 1),
        parts=[{"name": "p", "podGroupNames": both}, {"name": "q", "podGroupNames": both}],
    )
    assert told(gang).body["spec"]["subGroups"] == [
        {"name": "p", "minSubGroup": 2},
        {"name": "web-0-a", "minMember": 1, "parent": "p"},
        {"name": "web-0-b", "minMember": 1, "parent": "p"},
    ]


UNTRANSLATABLE = {
    "a constraint of the gang without a topology": (a_gang(**constrained(required=RACK)), "does not say which"),
    "a constraint of a group without a topology": (a_gang(a_group(preferred=RACK)), "does not say which"),
    "a name with a dot": (a_gang(a_group("my.web-0-workers")), "must not contain dots"),
    "a name that is too long": (a_gang(a_group("w" * 64)), "no more than 63"),
    "a part named like a group": (
        a_gang(a_group("web-0-a"), parts=[{"name": "web-0-a", "podGroupNames": ["web-0-a"]}]),
        "rename one",
    ),
}


@pytest.mark.parametrize(("gang", "why"), UNTRANSLATABLE.values(), ids=UNTRANSLATABLE.keys())
def test_what_kai_has_no_words_for_is_said(gang: Any, why: str) -> None:
    with pytest.raises(Untranslatable, match=why) as raised:
        told(gang)
    assert raised.value.reason == "KAIBackendMappingFailed"


def test_a_cluster_without_kai_is_not_told_anything() -> None:
    with pytest.raises(NotServed, match=r"does not serve PodGroup of scheduling\.run\.ai/v2alpha2"):
        Kai().translate(a_gang(), typed(a_set()), frozenset())


def test_pods_carry_their_pod_group_and_subgroup() -> None:
    marks = Kai().marks(a_gang(), "web-0-workers")
    assert marks.labels == {"kai.scheduler/subgroup-name": "web-0-workers"}
    assert marks.annotations == {
        "kai.scheduler/skip-podgrouper": "true",
        "pod-group-name": f"pg-web-0-{UID}",
    }


@pytest.mark.parametrize(("named", "used"), [("", "kai-scheduler"), ("grove-scheduler", "grove-scheduler")])
def test_a_pod_keeps_the_scheduler_that_it_names(named: str, used: str) -> None:
    spec = {"containers": [], **({"schedulerName": named} if named else {})}
    assert Kai().pod_spec(spec, a_gang(), "web-0-workers", SERVED) == {"containers": [], "schedulerName": used}
