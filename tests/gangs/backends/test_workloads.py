"""Kubernetes' own words for a gang, version by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shoal.api.meta import Document, Resource
from shoal.api.scheduling_k8s_io import (
    POD_GROUPS_V1ALPHA2,
    POD_GROUPS_V1ALPHA3,
    WORKLOADS_V1ALPHA1,
    WORKLOADS_V1ALPHA2,
    WORKLOADS_V1ALPHA3,
)
from shoal.gangs.backends import Untranslatable
from shoal.gangs.backends.backend import NotServed, Wanted
from shoal.gangs.backends.default import DefaultScheduler
from shoal.gangs.backends.workloads.v1alpha3 import COMPOSITE_POD_GROUPS
from tests.gangs.backends.builders import a_gang, a_group, constrained
from tests.gangs.builders import a_set, typed

Kinds = frozenset[Resource[Document]]
V1: Kinds = frozenset({WORKLOADS_V1ALPHA1.documents()})
V2: Kinds = frozenset({WORKLOADS_V1ALPHA2.documents(), POD_GROUPS_V1ALPHA2.documents()})
V3: Kinds = frozenset({WORKLOADS_V1ALPHA3.documents(), POD_GROUPS_V1ALPHA3.documents()})
NESTED: Kinds = V3 | {COMPOSITE_POD_GROUPS}
REFERENCE = {"apiGroup": "scheduler.grove.io", "kind": "PodGang", "name": "web-0"}
RACK, BLOCK = "topology/rack", "topology/block"


def told(gang: Any, served: Kinds) -> list[Wanted]:
    return list(DefaultScheduler().translate(gang, typed(a_set()), served))


def specs(gang: Any, served: Kinds) -> dict[str, Mapping[str, Any]]:
    """The specs wanted, by kind and name."""
    return {f"{one.resource.kind} {one.body['metadata']['name']}": one.body["spec"] for one in told(gang, served)}


def pod(gang: Any, clique: str, served: Kinds, **spec: Any) -> Mapping[str, Any]:
    return DefaultScheduler().pod_spec(spec, gang, clique, served)


TWO = a_gang(a_group("web-0-a", 2), a_group("web-0-b", 3), backend="default")


def test_v1alpha1_is_one_workload_named_like_the_gang() -> None:
    [wanted] = told(TWO, V1)
    assert wanted.resource == WORKLOADS_V1ALPHA1
    assert wanted.body["metadata"] == {"name": "web-0", "namespace": "default", "labels": TWO.metadata.labels}
    assert wanted.body["spec"] == {
        "controllerRef": REFERENCE,
        "podGroups": [
            {"name": "web-0-a", "policy": {"gang": {"minCount": 2}}},
            {"name": "web-0-b", "policy": {"gang": {"minCount": 3}}},
        ],
    }


def test_v1alpha2_is_a_workload_of_templates_and_then_a_pod_group_for_each_clique() -> None:
    wanted = specs(TWO, V2)
    assert list(wanted) == ["Workload web-0", "PodGroup web-0-web-0-a", "PodGroup web-0-web-0-b"]
    assert wanted["Workload web-0"] == {
        "controllerRef": REFERENCE,
        "podGroupTemplates": [
            {"name": "web-0-a", "schedulingPolicy": {"gang": {"minCount": 2}}},
            {"name": "web-0-b", "schedulingPolicy": {"gang": {"minCount": 3}}},
        ],
    }
    assert wanted["PodGroup web-0-web-0-b"] == {
        "podGroupTemplateRef": {"workload": {"workloadName": "web-0", "podGroupTemplateName": "web-0-b"}},
        "schedulingPolicy": {"gang": {"minCount": 3}},
    }


def test_v1alpha3_says_that_all_cliques_are_one_gang() -> None:
    wanted = specs(TWO, NESTED)
    whole = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    assert wanted["Workload web-0"] == {
        "controllerRef": REFERENCE,
        "compositePodGroupTemplates": [
            {
                "name": "whole",
                **whole,
                "podGroupTemplates": [
                    {"name": "web-0-a", "schedulingPolicy": {"gang": {"minCount": 2}}},
                    {"name": "web-0-b", "schedulingPolicy": {"gang": {"minCount": 3}}},
                ],
            }
        ],
    }
    assert wanted["CompositePodGroup web-0"] == {
        "workloadRef": {"workloadName": "web-0", "templateName": "whole"},
        **whole,
    }
    assert wanted["PodGroup web-0-web-0-a"] == {
        "parentCompositePodGroupName": "web-0",
        "workloadRef": {"workloadName": "web-0", "templateName": "web-0-a"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
    }
    assert list(wanted) == [
        "Workload web-0",
        "CompositePodGroup web-0",
        "PodGroup web-0-web-0-a",
        "PodGroup web-0-web-0-b",
    ]


@pytest.mark.parametrize(
    ("gang", "served"),
    [pytest.param(TWO, V3, id="no composites served"), pytest.param(a_gang(), NESTED, id="one clique")],
)
def test_v1alpha3_nests_nothing_where_it_cannot_or_need_not(gang: Any, served: Kinds) -> None:
    wanted = specs(gang, served)
    assert set(wanted["Workload web-0"]) == {"controllerRef", "podGroupTemplates"}
    assert not [name for name, spec in wanted.items() if "parentCompositePodGroupName" in spec or "Comp" in name]


def test_v1alpha3_carries_the_priority_of_the_gang() -> None:
    wanted = specs(a_gang(a_group("a"), a_group("b"), priorityClassName="high"), NESTED)
    assert wanted["CompositePodGroup web-0"]["priorityClassName"] == "high"
    assert wanted["PodGroup web-0-a"]["priorityClassName"] == "high"
    template = wanted["Workload web-0"]["compositePodGroupTemplates"][0]
    assert {template["priorityClassName"], template["podGroupTemplates"][0]["priorityClassName"]} == {"high"}


def topology(key: str) -> dict[str, Any]:
    return {"topology": [{"key": key}]}


CONSTRAINED = a_gang(a_group("a", required=RACK), a_group("b"), **constrained(required=BLOCK))
TOPOLOGIES: dict[str, tuple[Any, Kinds, dict[str, Any]]] = {
    "v1alpha2 says what a clique shares": (CONSTRAINED, V2, {"PodGroup web-0-a": topology(RACK)}),
    "v1alpha2 says what a gang of one clique shares": (
        a_gang(a_group("a"), **constrained(required=BLOCK)),
        V2,
        {"PodGroup web-0-a": topology(BLOCK)},
    ),
    "v1alpha3 says both": (
        CONSTRAINED,
        NESTED,
        {"CompositePodGroup web-0": topology(BLOCK), "PodGroup web-0-a": topology(RACK)},
    ),
    "a preference has no words": (a_gang(a_group("a", preferred=RACK)), V2, {}),
}


@pytest.mark.parametrize(("gang", "served", "said"), TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_topologies(gang: Any, served: Kinds, said: dict[str, Any]) -> None:
    wanted = specs(gang, served)
    assert {
        name: spec["schedulingConstraints"] for name, spec in wanted.items() if "schedulingConstraints" in spec
    } == said


@pytest.mark.parametrize(
    ("served", "version"),
    [
        pytest.param(V1, "v1alpha1", id="1.35"),
        pytest.param(V2, "v1alpha2", id="1.36"),
        pytest.param(V3, "v1alpha3", id="1.37"),
        pytest.param(V1 | V2 | V3, "v1alpha3", id="all"),
        pytest.param(V1 | {WORKLOADS_V1ALPHA2.documents()}, "v1alpha1", id="half of the newer"),
    ],
)
def test_the_newest_version_that_is_served_whole_is_used(served: Kinds, version: str) -> None:
    assert {one.resource.version for one in told(TWO, served)} == {version}


def test_where_none_is_served_pods_have_their_scheduler_alone() -> None:
    with pytest.raises(NotServed, match="scheduled one by one") as raised:
        told(TWO, frozenset())
    assert (raised.value.reason, raised.value.event) == ("KindNotServed", "BackendKindNotServed")
    assert pod(TWO, "web-0-a", frozenset()) == {"schedulerName": "default-scheduler"}


PODS = {
    "v1alpha1": (V1, {"workloadRef": {"name": "web-0", "podGroup": "web-0-a"}}),
    "v1alpha2": (V2, {"schedulingGroup": {"podGroupName": "web-0-web-0-a"}}),
    "v1alpha3": (NESTED, {"schedulingGroup": {"podGroupName": "web-0-web-0-a"}}),
}


@pytest.mark.parametrize(("served", "fields"), PODS.values(), ids=PODS.keys())
def test_pods_name_their_group(served: Kinds, fields: dict[str, Any]) -> None:
    assert pod(TWO, "web-0-a", served, nodeName="n") == {
        "nodeName": "n",
        "schedulerName": "default-scheduler",
        **fields,
    }


NINE = a_gang(*(a_group(f"c{index}", 1 + index % 2) for index in range(9)))
NINE_KINDS = a_gang(*(a_group(f"c{index}", 1 + index) for index in range(9)))


@pytest.mark.parametrize(
    ("gang", "served"),
    [pytest.param(NINE, V1, id="v1alpha1"), pytest.param(NINE_KINDS, V2, id="v1alpha2, all different")],
)
def test_a_gang_of_more_groups_than_a_workload_holds_is_left_to_the_scheduler_pod_by_pod(
    gang: Any, served: Kinds
) -> None:
    with pytest.raises(Untranslatable, match=r"has 9 .* holds at most 8: its pods are scheduled one by one"):
        told(gang, served)
    assert pod(gang, "c0", served) == {"schedulerName": "default-scheduler"}  # it would wait for its group for ever


@pytest.mark.parametrize("served", [V2, NESTED], ids=["v1alpha2", "v1alpha3"])
def test_where_groups_are_objects_cliques_that_ask_for_the_same_share_a_template(served: Kinds) -> None:
    wanted = specs(NINE, served)
    workload = wanted["Workload web-0"]
    inner = workload.get("compositePodGroupTemplates", [workload])[0]
    assert [template["name"] for template in inner["podGroupTemplates"]] == ["c0", "c1"]
    groups = {name: spec for name, spec in wanted.items() if name.startswith("PodGroup")}
    assert len(groups) == 9
    said = str(groups["PodGroup web-0-c8"])
    assert "'c0'" in said
    assert "'minCount': 1" in said
    assert pod(NINE, "c8", served)["schedulingGroup"] == {"podGroupName": "web-0-c8"}


def test_a_name_that_no_group_can_have_is_said() -> None:
    with pytest.raises(Untranslatable, match="must not contain dots"):
        told(a_gang(a_group("my.web-0-a")), V1)


def fixed(gang: Any, served: Kinds) -> list[Any]:
    return [one.fixed(one.body) for one in told(gang, served)]


OTHER_MINIMUM = a_gang(a_group("web-0-a", 2), a_group("web-0-b", 4))
OTHER_GROUPS = a_gang(a_group("web-0-a", 2))
REPLACED: dict[str, tuple[Kinds, Any, bool]] = {
    "v1alpha1, another minimum": (V1, OTHER_MINIMUM, True),
    "v1alpha1, other groups": (V1, OTHER_GROUPS, True),
    "v1alpha2, another minimum": (V2, OTHER_MINIMUM, True),
    "v1alpha3, another minimum": (NESTED, OTHER_MINIMUM, False),
    "v1alpha3, other groups": (V3, OTHER_GROUPS, True),
    "v1alpha1, the same": (V1, TWO, False),
    "v1alpha2, the same": (V2, TWO, False),
}


@pytest.mark.parametrize(("served", "gang", "is_replaced"), REPLACED.values(), ids=REPLACED.keys())
def test_what_a_server_lets_nobody_change_means_a_new_object(served: Kinds, gang: Any, is_replaced: bool) -> None:
    assert (fixed(gang, served) != fixed(TWO, served)) is is_replaced


def test_what_a_server_adds_by_itself_means_no_new_object() -> None:
    for one in told(TWO, V2):
        spec = {**one.body["spec"], "disruptionMode": "Pod", "priority": 0}
        assert one.fixed({**one.body, "spec": spec}) == one.fixed(one.body)
