"""What Koordinator is told of a gang, and of its pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.meta import Document, Resource
from shoal.api.scheduling_sigs_k8s_io import POD_GROUPS
from shoal.gangs.backends import Untranslatable
from shoal.gangs.backends.backend import NotServed
from shoal.gangs.backends.koordinator import Koordinator
from tests.gangs.backends.builders import a_gang, a_group, constrained
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

SERVED: frozenset[Resource[Document]] = frozenset({POD_GROUPS.documents()})
HOST, RACK, BLOCK = "kubernetes.io/hostname", "topology.kubernetes.io/rack", "topology.kubernetes.io/block"
GANG = "gang.scheduling.koordinator.sh"


def told(gang: Any, backend: Koordinator = Koordinator()) -> list[Any]:
    return [wanted.body for wanted in backend.translate(gang, typed(a_set()), SERVED)]


def test_each_clique_has_a_pod_group_and_all_of_them_are_one_gang() -> None:
    bodies = told(a_gang(a_group("web-0-a", 1), a_group("web-0-b", 2)))
    assert [(body["metadata"]["name"], body["spec"]) for body in bodies] == [
        ("web-0-web-0-a", {"minMember": 1, "scheduleTimeoutSeconds": 30}),
        ("web-0-web-0-b", {"minMember": 2, "scheduleTimeoutSeconds": 30}),
    ]
    for body in bodies:
        annotations = body["metadata"]["annotations"]
        assert json.loads(annotations[f"{GANG}/groups"]) == ["default/web-0-web-0-a", "default/web-0-web-0-b"]
        assert annotations[f"{GANG}/mode"] == "Strict"
        assert annotations[f"{GANG}/match-policy"] == "once-satisfied"
        assert body["metadata"]["labels"]["grove.io/podgang"] == "web-0"


@pytest.mark.parametrize(("pods", "total"), [(0, None), (1, None), (2, "2"), (3, "3")])
def test_the_number_of_pods_is_told_once_there_are_enough(pods: int, total: str | None) -> None:
    [body] = told(a_gang(a_group("web-0-a", 2, pods=pods)))
    assert body["metadata"]["annotations"].get(f"{GANG}/total-number") == total


def test_the_operators_configuration_is_used() -> None:
    backend = Koordinator(
        gang_mode="NonStrict", match_policy="only-waiting", timeout_seconds=5, qos_class="LS", layers={"my/row": "row"}
    )
    [body] = told(a_gang(**constrained(required="my/row")), backend)
    assert body["spec"]["scheduleTimeoutSeconds"] == 5
    annotations = body["metadata"]["annotations"]
    assert (annotations[f"{GANG}/mode"], annotations[f"{GANG}/match-policy"]) == ("NonStrict", "only-waiting")
    assert "row" in annotations[f"{GANG}/network-topology-spec"]
    assert backend.marks(a_gang(), "web-0-a").labels["koordinator.sh/qosClass"] == "LS"


TOPOLOGIES: dict[str, tuple[Any, list[tuple[str, str]] | None]] = {
    "none": (a_gang(), None),
    "required": (a_gang(**constrained(required=RACK)), [("rackLayer", "MustGather")]),
    "preferred": (a_gang(**constrained(preferred=HOST)), [("hostLayer", "PreferGather")]),
    "both": (
        a_gang(**constrained(required=BLOCK, preferred=RACK)),
        [("rackLayer", "PreferGather"), ("blockLayer", "MustGather")],
    ),
    "one layer twice": (a_gang(**constrained(required=RACK, preferred=RACK)), [("rackLayer", "MustGather")]),
    "a preference that has no layer is passed over": (a_gang(**constrained(preferred="my/row")), None),
    "of the only clique": (a_gang(a_group("a", required=HOST)), [("hostLayer", "MustGather")]),
    "a preference of one of several cliques is passed over": (
        a_gang(a_group("a", preferred=HOST), a_group("b")),
        None,
    ),
}


@pytest.mark.parametrize(("gang", "said"), TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_topologies_become_layers_that_are_equal_on_all_pod_groups(gang: Any, said: list[Any] | None) -> None:
    for body in told(gang):
        found = body["metadata"]["annotations"].get(f"{GANG}/network-topology-spec")
        gather = [(each["layer"], each["strategy"]) for each in json.loads(found)["gatherStrategy"]] if found else None
        assert gather == said


UNTRANSLATABLE = {
    "a label without a layer": (a_gang(**constrained(required="my/row")), "no layer .* is known for the label my/row"),
    "one of several cliques": (a_gang(a_group("a", required=HOST), a_group("b")), "gathers a gang only as a whole"),
    "a part": (
        a_gang(
            a_group("a"),
            a_group("b"),
            parts=[{"name": "p", "podGroupNames": ["a"], **constrained(required=RACK)}],
        ),
        "gathers a gang only as a whole",
    ),
}


@pytest.mark.parametrize(("gang", "why"), UNTRANSLATABLE.values(), ids=UNTRANSLATABLE.keys())
def test_what_koordinator_has_no_words_for_is_said(gang: Any, why: str) -> None:
    with pytest.raises(Untranslatable, match=why) as raised:
        told(gang)
    assert raised.value.event == "KoordinatorBackendMappingFailed"


def test_a_cluster_without_koordinator_is_not_told_anything() -> None:
    with pytest.raises(NotServed, match=r"scheduling\.sigs\.k8s\.io/v1alpha1"):
        list(Koordinator().translate(a_gang(), typed(a_set()), frozenset()))


def test_pods_carry_the_name_of_their_pod_group_also_where_it_had_to_be_shortened() -> None:
    gang = a_gang(a_group("a-very-long-set-name-for-inference-0-decoding-workers", 1), name="a-very-long-set-name-0")
    clique = gang.spec.pod_groups[0].name
    [body] = told(gang)
    value = Koordinator().marks(gang, clique).labels["pod-group.scheduling.sigs.k8s.io"]
    assert value == body["metadata"]["name"]
    assert len(value) == 63  # the longest value of a label


@pytest.mark.parametrize(("named", "used"), [("", "koord-scheduler"), ("mine", "mine")])
def test_a_pod_keeps_the_scheduler_that_it_names(named: str, used: str) -> None:
    assert Koordinator().pod_spec({"schedulerName": named}, a_gang(), "a", SERVED) == {"schedulerName": used}


def test_sets_that_koordinator_cannot_serve_are_refused() -> None:
    group = a_scaling_group_template(
        "g", ["x"], annotations={"grove.io/mnnvl-group": "none"}, topologyConstraint={"pack": {"required": "rack"}}
    )
    cliques = [a_clique_template("x"), a_clique_template("y", annotations={"grove.io/mnnvl-group": "big"})]
    owner = a_set("web", *cliques, groups=[group], metadata={"annotations": {"grove.io/mnnvl-group": "all"}})
    assert [str(problem) for problem in Koordinator().problems(typed(owner))] == [
        "spec.template.podCliqueScalingGroups[0].topologyConstraint: Forbidden: koord-scheduler gathers a gang only as "
        "a whole",
        "metadata.annotations[grove.io/mnnvl-group]: Forbidden: koord-scheduler knows no MNNVL groups",
        "spec.template.cliques[1].annotations[grove.io/mnnvl-group]: Forbidden: koord-scheduler knows no MNNVL groups",
    ]
    assert list(Koordinator().problems(typed(a_set()))) == []
