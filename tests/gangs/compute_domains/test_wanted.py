from __future__ import annotations

from typing import Any

import pytest

from shoal.api.grove import PodCliqueSet
from shoal.gangs import plan
from shoal.gangs.compute_domains import compute_domains, mnnvl_group, with_compute_domain
from shoal.gangs.settings import GangSettings
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed

ON = GangSettings(has_mnnvl=True)
GROUP = "grove.io/mnnvl-group"


def gpu_pod_spec(**resources: Any) -> dict[str, Any]:
    asked = resources or {"limits": {"nvidia.com/gpu": "1"}}
    return a_pod_spec(containers=[{"name": "main", "image": "busybox", "resources": asked}])


def a_gpu_clique(name: str, group: str | None = None, **fields: Any) -> dict[str, Any]:
    annotations = {} if group is None else {GROUP: group}
    return a_clique_template(name, pod_spec=gpu_pod_spec(), annotations=annotations, **fields)


def a_mixed_set(of_set: str | None = "wide", of_group: str | None = None, of_clique: str | None = None) -> PodCliqueSet:
    """A clique ``gpu`` in a scaling group ``pair``, with an MNNVL group said at some of the three places."""
    group = a_scaling_group_template("pair", ["gpu"], annotations={} if of_group is None else {GROUP: of_group})
    annotations = {} if of_set is None else {GROUP: of_set}
    return typed(a_set("web", a_gpu_clique("gpu", of_clique), groups=[group], metadata={"annotations": annotations}))


@pytest.mark.parametrize(
    ("places", "group"),
    [
        pytest.param({"of_set": None}, "", id="said nowhere"),
        pytest.param({}, "wide", id="of the set"),
        pytest.param({"of_group": "train"}, "train", id="the scaling group's before the set's"),
        pytest.param({"of_group": "train", "of_clique": "solo"}, "solo", id="the clique's before all"),
        pytest.param({"of_clique": "none"}, "", id="the clique opts out"),
        pytest.param({"of_group": "none"}, "", id="the scaling group opts out"),
        pytest.param({"of_group": "none", "of_clique": "solo"}, "solo", id="the clique opts in again"),
        pytest.param({"of_set": None, "of_clique": "solo"}, "solo", id="the clique alone"),
    ],
)
def test_the_nearest_annotation_says_the_group(places: dict[str, Any], group: str) -> None:
    pcs = a_mixed_set(**places)
    assert mnnvl_group(pcs, pcs.spec.template.cliques[0]) == group
    assert [one["metadata"]["labels"][GROUP] for one in compute_domains(pcs, 0, ON)] == ([group] if group else [])


def test_a_compute_domain_is_whole() -> None:
    [domain] = compute_domains(a_mixed_set(), 2, ON)
    assert domain == {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {
            "name": "web-2-wide",
            "namespace": "default",
            "finalizers": ["grove.io/computedomain-finalizer"],
            "labels": {
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/part-of": "web",
                "app.kubernetes.io/name": "web-2-wide",
                "app.kubernetes.io/component": "pcs-computedomain",
                "grove.io/podcliqueset-replica-index": "2",
                "grove.io/mnnvl-group": "wide",
            },
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "web-2-wide"}}},
    }


@pytest.mark.parametrize(
    ("pod_spec", "is_needed"),
    [
        pytest.param(gpu_pod_spec(limits={"nvidia.com/gpu": 1}), True, id="a limit that is a number"),
        pytest.param(gpu_pod_spec(requests={"nvidia.com/gpu": "8"}), True, id="a request"),
        pytest.param(gpu_pod_spec(limits={"nvidia.com/gpu": "0"}), False, id="none of them"),
        pytest.param(gpu_pod_spec(limits={"cpu": "1"}), False, id="something else"),
        pytest.param(a_pod_spec(), False, id="nothing"),
        pytest.param(
            a_pod_spec(initContainers=gpu_pod_spec()["containers"]), True, id="an init container asks for them"
        ),
    ],
)
def test_only_cliques_that_ask_for_gpus_need_a_domain(pod_spec: dict[str, Any], is_needed: bool) -> None:
    clique = a_clique_template("one", pod_spec=pod_spec)
    pcs = typed(a_set("web", clique, metadata={"annotations": {GROUP: "wide"}}))
    assert bool(compute_domains(pcs, 0, ON)) == is_needed
    [planned] = plan.standalone_cliques(pcs, 0)
    assert ("resourceClaims" in with_compute_domain(pod_spec, pcs, planned, ON)) == is_needed


def test_cliques_of_the_same_group_share_a_domain() -> None:
    cliques = [a_gpu_clique("a", "x"), a_gpu_clique("b", "y"), a_gpu_clique("c", "x")]
    domains = compute_domains(typed(a_set("web", *cliques)), 0, ON)
    assert [domain["metadata"]["name"] for domain in domains] == ["web-0-x", "web-0-y"]


def test_nothing_changes_where_the_feature_is_off() -> None:
    pcs = a_mixed_set()
    [planned] = plan.group_cliques(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0], 0)
    assert compute_domains(pcs, 0, GangSettings()) == []
    assert with_compute_domain(gpu_pod_spec(), pcs, planned, GangSettings()) == gpu_pod_spec()


def test_containers_that_ask_for_gpus_use_the_claim_of_their_domain_and_others_do_not() -> None:
    spec = a_pod_spec(
        containers=[
            {"name": "gpu", "resources": {"limits": {"nvidia.com/gpu": "1"}, "claims": [{"name": "mine"}]}},
            {"name": "side"},
        ],
        resourceClaims=[{"name": "mine", "resourceClaimName": "mine"}],
    )
    pcs = typed(a_set("web", a_clique_template("one", pod_spec=spec), metadata={"annotations": {GROUP: "wide"}}))
    planned = plan.standalone_cliques(pcs, 4)[0]
    claiming = with_compute_domain(spec, pcs, planned, ON)
    assert claiming["resourceClaims"] == [
        {"name": "mine", "resourceClaimName": "mine"},
        {"name": "mnnvl-claim", "resourceClaimTemplateName": "web-4-wide"},
    ]
    assert claiming["containers"] == [
        {
            "name": "gpu",
            "resources": {"limits": {"nvidia.com/gpu": "1"}, "claims": [{"name": "mine"}, {"name": "mnnvl-claim"}]},
        },
        {"name": "side"},
    ]
    assert with_compute_domain(claiming, pcs, planned, ON) == claiming


def test_a_mix_of_groups_that_inherit_override_and_opt_out() -> None:
    """As in the comment of the manifest: what each clique inherits, overrides or opts out of."""
    groups = {"g1": None, "g2": "train", "g3": "none"}
    members = {
        "g1": {"p1": None, "p2": "infer", "p3": "none"},
        "g2": {"p4": None, "p5": "batch", "p6": "none"},
        "g3": {"p7": None, "p8": "solo", "p9": "none"},
    }
    alone = {"sa1": None, "sa2": "train", "sa3": "none"}
    cliques = [a_gpu_clique(name, said) for of in (alone, *members.values()) for name, said in of.items()]
    scaling = [
        a_scaling_group_template(name, list(members[name]), annotations={} if said is None else {GROUP: said})
        for name, said in groups.items()
    ]
    pcs = typed(a_set("mix", *cliques, groups=scaling, metadata={"annotations": {GROUP: "default"}}))
    found = {clique.name: mnnvl_group(pcs, clique) for clique in pcs.spec.template.cliques}
    assert found == {
        "sa1": "default", "sa2": "train", "sa3": "",
        "p1": "default", "p2": "infer", "p3": "",
        "p4": "train", "p5": "batch", "p6": "",
        "p7": "", "p8": "solo", "p9": "",
    }  # fmt: skip
    domains = {domain["metadata"]["name"] for domain in compute_domains(pcs, 0, ON)}
    assert domains == {f"mix-0-{group}" for group in ("default", "train", "infer", "batch", "solo")}
