"""What a clique of a scaling group looks like."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.groups.members import member_clique, with_group_environment
from shoal.gangs.plan import PlannedClique, group_cliques
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed

FROM_LABELS = {
    "GROVE_PCSG_NAME": "metadata.labels['grove.io/podcliquescalinggroup']",
    "GROVE_PCSG_INDEX": "metadata.labels['grove.io/podcliquescalinggroup-replica-index']",
}


def the_set(**fields: Any) -> Any:
    cliques = [
        a_clique_template("frontend", 1),
        a_clique_template("leader", 1),
        a_clique_template(
            "worker",
            4,
            min_available=3,
            labels={"team": "search", "app.kubernetes.io/part-of": "mine", "grove.io/podgang": "mine"},
            annotations={"note": "kept", "grove.io/topology-name": "zones"},
        ),
    ]
    groups = [a_scaling_group_template("model", ["leader", "worker"], 3, min_available=2)]
    return typed(a_set("web", *cliques, groups=groups, **fields))


def a_member(group_replica: int, clique: str, **fields: Any) -> tuple[dict[str, Any], PlannedClique]:
    pcs = the_set(**fields)
    [group] = pcs.spec.template.pod_clique_scaling_groups
    planned = next(one for one in group_cliques(pcs, 1, group, group_replica) if one.template.name == clique)
    return member_clique(pcs, group, planned, "hash"), planned


def test_a_member_of_the_base_gang_has_the_labels_that_it_is_found_by() -> None:
    body, _ = a_member(1, "worker")

    assert body["metadata"]["name"] == "web-1-model-1-worker"
    assert body["metadata"]["labels"] == {
        "team": "search",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "web",
        "app.kubernetes.io/name": "web-1-model-1-worker",
        "app.kubernetes.io/component": "pcsg-podclique",
        "grove.io/podcliqueset-replica-index": "1",
        "grove.io/podcliquescalinggroup": "web-1-model",
        "grove.io/podcliquescalinggroup-replica-index": "1",
        "grove.io/podgang": "web-1",
        "grove.io/pod-template-hash": "hash",
    }
    assert body["metadata"]["annotations"] == {"note": "kept"}
    assert body["metadata"]["finalizers"] == ["grove.io/podclique.grove.io"]


def test_a_member_beyond_the_minimum_is_in_a_gang_of_its_own_after_the_base_gang() -> None:
    labels = a_member(2, "leader")[0]["metadata"]["labels"]

    assert (labels["grove.io/podgang"], labels["grove.io/base-podgang"]) == ("web-1-model-0", "web-1")


def test_a_member_says_nothing_of_its_replicas_which_others_may_scale() -> None:
    spec = a_member(0, "worker")[0]["spec"]

    assert (spec["roleName"], spec["minAvailable"]) == ("worker", 3)
    assert "replicas" not in spec
    assert "startsAfter" not in spec


@pytest.mark.parametrize(
    ("group_replica", "clique", "expected"),
    [
        pytest.param(0, "leader", ["web-1-frontend"], id="a stand-alone clique first"),
        pytest.param(0, "worker", ["web-1-model-0-leader", "web-1-model-1-leader"], id="all of the base gang's"),
        pytest.param(2, "worker", ["web-1-model-2-leader"], id="in a scaled gang, those of the same replica"),
    ],
)
def test_a_member_starts_after_cliques_by_their_full_names(
    group_replica: int, clique: str, expected: list[str]
) -> None:
    body, _ = a_member(group_replica, clique, cliqueStartupType="CliqueStartupTypeInOrder")

    assert body["spec"]["startsAfter"] == expected


def test_all_containers_know_their_group_before_their_own_variables() -> None:
    main = {"name": "main", "env": [{"name": "MINE", "value": "$(GROVE_PCSG_INDEX)"}]}
    spec = with_group_environment(
        a_pod_spec(containers=[main, {"name": "side"}], initContainers=[{"name": "first"}]), 5
    )

    containers = [*spec["containers"], *spec["initContainers"]]
    assert [container["name"] for container in containers] == ["main", "side", "first"]
    for container in containers:
        name, pods, index = container["env"][:3]
        assert pods == {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": "5"}
        for variable in (name, index):
            assert variable["valueFrom"] == {"fieldRef": {"fieldPath": FROM_LABELS[variable["name"]]}}
    assert containers[0]["env"][3:] == main["env"]


def test_variables_of_the_same_names_are_replaced_and_the_template_is_left_alone() -> None:
    template = a_pod_spec(containers=[{"name": "main", "env": [{"name": "GROVE_PCSG_NAME", "value": "mine"}]}])

    spec = with_group_environment(template, 1)

    assert [variable["name"] for variable in spec["containers"][0]["env"]] == [
        "GROVE_PCSG_NAME",
        "GROVE_PCSG_TEMPLATE_NUM_PODS",
        "GROVE_PCSG_INDEX",
    ]
    assert "initContainers" not in spec
    assert template["containers"][0]["env"] == [{"name": "GROVE_PCSG_NAME", "value": "mine"}]


def test_the_number_of_pods_is_that_of_the_template_over_all_cliques_of_the_group() -> None:
    body, _ = a_member(0, "leader")

    assert body["spec"]["podSpec"]["containers"][0]["env"][1]["value"] == "5"
