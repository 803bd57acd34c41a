"""What Volcano is told of a gang, and of its pods."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.meta import Document, Resource
from shoal.api.scheduling_volcano_sh import POD_GROUPS
from shoal.gangs.backends import Untranslatable
from shoal.gangs.backends.backend import NotServed
from shoal.gangs.backends.volcano import Volcano
from tests.gangs.backends.builders import a_gang, a_group, constrained
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

SERVED: frozenset[Resource[Document]] = frozenset({POD_GROUPS.documents()})
QUEUE = "scheduling.grove.io/volcano-queue"


def told(gang: Any, owner: dict[str, Any] | None = None) -> Any:
    [wanted] = Volcano().translate(gang, typed(owner or a_set()), SERVED)
    return wanted.body


def test_a_gang_becomes_one_pod_group_with_a_subgroup_for_each_clique() -> None:
    body = told(a_gang(a_group("web-0-a", 2), a_group("web-0-b", 0), priorityClassName="high"))
    assert body["metadata"]["name"] == "web-0"
    assert body["spec"] == {
        "minMember": 2,
        "queue": "default",
        "priorityClassName": "high",
        "subGroupPolicy": [
            {
                "name": "web-0-a",
                "labelSelector": {"matchLabels": {"grove.io/podclique": "web-0-a"}},
                "matchLabelKeys": ["grove.io/podclique"],
                "subGroupSize": 2,
                "minSubGroups": 1,
            },
            {
                "name": "web-0-b",
                "labelSelector": {"matchLabels": {"grove.io/podclique": "web-0-b"}},
                "matchLabelKeys": ["grove.io/podclique"],
                "subGroupSize": 1,
                "minSubGroups": 1,
            },
        ],
    }


def test_a_gang_that_needs_no_pod_needs_one_here() -> None:
    assert told(a_gang(a_group("a", 0)))["spec"]["minMember"] == 1


def annotated(queue: str) -> dict[str, Any]:
    return {"annotations": {QUEUE: queue}}


def test_the_queue_is_the_gangs_else_its_cliques_else_the_default() -> None:
    cliques = a_set("web", a_clique_template("x"), a_clique_template("y", **annotated("b")))
    assert told(a_gang(annotations={QUEUE: "a"}), cliques)["spec"]["queue"] == "a"
    assert told(a_gang(), cliques)["spec"]["queue"] == "b"
    assert told(a_gang())["spec"]["queue"] == "default"


@pytest.mark.parametrize(
    "gang",
    [
        a_gang(**constrained(required="x")),
        a_gang(a_group("a", preferred="x")),
        a_gang(parts=[{"name": "p", "podGroupNames": ["web-0-workers"], **constrained(required="x")}]),
    ],
    ids=["gang", "clique", "part"],
)
def test_topologies_are_not_translated(gang: Any) -> None:
    with pytest.raises(Untranslatable, match="has no topology constraints"):
        told(gang)


def test_a_cluster_without_volcano_is_told_of_by_its_own_event() -> None:
    with pytest.raises(NotServed, match="install Volcano") as raised:
        Volcano().translate(a_gang(), typed(a_set()), frozenset())
    assert (raised.value.reason, raised.value.event) == ("KindNotServed", "VolcanoCapabilityUnavailable")


def test_pods_carry_their_pod_group_and_scheduler() -> None:
    assert Volcano().marks(a_gang(), "a").annotations == {
        "scheduling.volcano.sh/group-name": "web-0",
        "scheduling.k8s.io/group-name": "web-0",
    }
    assert Volcano().pod_spec({}, a_gang(), "a", SERVED) == {"schedulerName": "volcano"}
    assert Volcano().pod_spec({"schedulerName": "mine"}, a_gang(), "a", SERVED) == {"schedulerName": "mine"}


TOPOLOGY: dict[str, Any] = {"topologyConstraint": {"topologyName": "dc", "pack": {"required": "rack"}}}
NO_TOPOLOGY = "topologyConstraint: Forbidden: the volcano scheduler has no topology constraints"
PROBLEMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": (a_set("web", a_clique_template("x", **annotated("a")), metadata=annotated("a")), []),
    "topologies": (
        a_set(
            "web",
            a_clique_template("x", **TOPOLOGY),
            groups=[a_scaling_group_template("g", ["x"], **TOPOLOGY)],
            **TOPOLOGY,
        ),
        [
            f"spec.template.{NO_TOPOLOGY}",
            f"spec.template.cliques[0].{NO_TOPOLOGY}",
            f"spec.template.podCliqueScalingGroups[0].{NO_TOPOLOGY}",
        ],
    ),
    "a queue that no queue can be": (
        a_set(metadata=annotated("Team A")),
        [
            f'metadata.annotations[{QUEUE}]: Invalid value: "Team A": must consist of lower case letters, digits, '
            "'-' and '.', and each part between dots must start and end with a letter or digit (for example "
            "'example.com')"
        ],
    ),
    "two queues": (
        a_set("web", a_clique_template("x", **annotated("b")), metadata=annotated("a")),
        [
            f"spec.template.cliques[0].annotations[{QUEUE}]: Invalid value: \"b\": must be 'a' as elsewhere in the "
            "set: a gang waits in one queue"
        ],
    ),
}


@pytest.mark.parametrize(("owner", "problems"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_sets_that_volcano_cannot_serve_are_refused(owner: dict[str, Any], problems: list[str]) -> None:
    assert [str(problem) for problem in Volcano().problems(typed(owner))] == problems
