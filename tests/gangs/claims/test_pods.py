from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shoal.api.core import PODS
from shoal.api.meta import dns1123_label_problems
from shoal.api.resource_k8s_io import RESOURCE_CLAIMS
from shoal.gangs import plan
from shoal.gangs.claims import clique_claims, replica_claims, set_claims, with_claims
from shoal.gangs.plan import PlannedClique
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed
from tests.support.clusters.in_process import Cluster

BOTH = [{"name": "net", "scope": "AllReplicas"}, {"name": "disk", "scope": "PerReplica"}]


def claims_of(
    clique: str,
    *,
    of_set: Sequence[dict[str, Any]] = (),
    of_group: Sequence[dict[str, Any]] = (),
    of_clique: Sequence[dict[str, Any]] = (),
    pod_index: int = 7,
) -> list[str]:
    """What a pod of ``api`` (alone) or of ``gpu`` or ``cpu`` (in replica 2 of the group ``pair``) shares, in web-1."""
    pcs = typed(
        a_set(
            "web",
            *(a_clique_template(name, resourceSharing=list(of_clique)) for name in ("api", "gpu", "cpu")),
            groups=[a_scaling_group_template("pair", ["gpu", "cpu"], 3, resourceSharing=list(of_group))],
            resourceSharing=list(of_set),
        )
    )
    [group] = pcs.spec.template.pod_clique_scaling_groups
    planned = [*plan.standalone_cliques(pcs, 1), *plan.group_cliques(pcs, 1, group, 2)]
    chosen: PlannedClique = next(one for one in planned if one.template.name == clique)
    spec = with_claims(a_pod_spec(), pcs, chosen, pod_index)
    entries = spec.get("resourceClaims", [])
    used = spec["containers"][0].get("resources", {}).get("claims", [])
    assert [one["name"] for one in used] == [one["name"] for one in entries]
    return [one["resourceClaimName"] for one in entries]


@pytest.mark.parametrize(
    ("clique", "levels", "claims"),
    [
        pytest.param("api", {}, [], id="nothing"),
        pytest.param("api", {"of_set": BOTH}, ["web-all-net", "web-1-disk"], id="of the set"),
        pytest.param("gpu", {"of_set": BOTH}, ["web-all-net", "web-1-disk"], id="of the set, in a group"),
        pytest.param("gpu", {"of_group": BOTH}, ["web-1-pair-all-net", "web-1-pair-2-disk"], id="of the group"),
        pytest.param("api", {"of_group": BOTH}, [], id="of a group that it is not in"),
        pytest.param("api", {"of_clique": BOTH}, ["web-1-api-all-net", "web-1-api-7-disk"], id="of the clique"),
        pytest.param(
            "gpu", {"of_clique": BOTH}, ["web-1-pair-2-gpu-all-net", "web-1-pair-2-gpu-7-disk"], id="of a member"
        ),
        pytest.param(
            "gpu",
            {"of_clique": BOTH[:1], "of_group": BOTH[:1], "of_set": BOTH[:1]},
            ["web-all-net", "web-1-pair-all-net", "web-1-pair-2-gpu-all-net"],
            id="of all levels, the widest first",
        ),
    ],
)
def test_a_pod_shares_the_claims_of_every_level_that_it_is_in(
    clique: str, levels: dict[str, Any], claims: list[str]
) -> None:
    assert claims_of(clique, **levels) == claims


def filtered(**names: list[str]) -> list[dict[str, Any]]:
    return [{"name": "net", "scope": "AllReplicas", "filter": names}]


@pytest.mark.parametrize(
    ("sharing", "sharers"),
    [
        pytest.param({"of_set": filtered(childCliqueNames=["api", "cpu"])}, {"api", "cpu"}, id="cliques of the set"),
        pytest.param({"of_set": filtered(childScalingGroupNames=["pair"])}, {"gpu", "cpu"}, id="a group of the set"),
        pytest.param(
            {"of_set": filtered(childCliqueNames=["api"], childScalingGroupNames=["pair"])},
            {"api", "gpu", "cpu"},
            id="either",
        ),
        pytest.param({"of_set": filtered(childScalingGroupNames=["other"])}, set(), id="a group that is not there"),
        pytest.param({"of_group": filtered(childCliqueNames=["gpu"])}, {"gpu"}, id="cliques of the group"),
    ],
)
def test_a_filter_chooses_who_shares(sharing: dict[str, Any], sharers: set[str]) -> None:
    assert {clique for clique in ("api", "gpu", "cpu") if claims_of(clique, **sharing)} == sharers


def test_every_container_uses_the_claims_but_the_one_that_waits() -> None:
    pcs = typed(a_set("web", a_clique_template("api"), resourceSharing=BOTH[:1]))
    [planned] = plan.standalone_cliques(pcs, 0)
    spec = a_pod_spec(
        resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "mine"}],
        initContainers=[
            {"name": "prepare", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "mine"}]}},
            {"name": "grove-initc"},
        ],
    )
    before = repr(spec)
    claiming = with_claims(spec, pcs, planned, 0)
    assert claiming["resourceClaims"] == [
        {"name": "mine", "resourceClaimTemplateName": "mine"},
        {"name": "web-all-net", "resourceClaimName": "web-all-net"},
    ]
    assert claiming["initContainers"] == [
        {
            "name": "prepare",
            "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "mine"}, {"name": "web-all-net"}]},
        },
        {"name": "grove-initc"},
    ]
    assert claiming["containers"][0]["resources"] == {"claims": [{"name": "web-all-net"}]}
    assert repr(spec) == before


def test_a_claim_whose_name_is_too_long_for_a_pod_gets_a_shorter_one_there() -> None:
    template = "a-template.with-a-very-long-name-that-nobody-can-remember-at-all"
    sharing = [{"name": f"{template}-{end}", "scope": "AllReplicas"} for end in "ab"]
    pcs = typed(a_set("web", a_clique_template("api"), resourceSharing=sharing))
    [planned] = plan.standalone_cliques(pcs, 0)
    entries = with_claims(a_pod_spec(), pcs, planned, 0)["resourceClaims"]
    assert [entry["resourceClaimName"] for entry in entries] == [f"web-all-{template}-{end}" for end in "ab"]
    assert not any(dns1123_label_problems(entry["name"]) for entry in entries)
    assert len({entry["name"] for entry in entries}) == 2


async def test_a_server_takes_the_claims_and_the_pod_that_shares_them(cluster: Cluster) -> None:
    request = {"name": "one", "exactly": {"deviceClassName": "gpu.example.com"}}
    own = [{"name": name, "templateSpec": {"spec": {"devices": {"requests": [request]}}}} for name in ("net", "disk")]
    clique = a_clique_template("api", resourceSharing=BOTH)
    pcs = typed(a_set("web", clique, resourceSharing=BOTH, resourceClaimTemplates=own))
    [planned] = plan.standalone_cliques(pcs, 0)
    for claim in [*set_claims(pcs), *replica_claims(pcs, 0), *clique_claims(pcs, planned, 1)]:
        await cluster.make(RESOURCE_CLAIMS, claim)
    spec = with_claims(a_pod_spec(), pcs, planned, 0)
    await cluster.make(PODS, {"metadata": {"name": "one"}, "spec": spec})
    pod = await cluster.read(PODS, "one")
    made = {claim["metadata"]["name"] for claim in await cluster.all(RESOURCE_CLAIMS)}
    assert pod is not None
    assert {entry["resourceClaimName"] for entry in pod["spec"]["resourceClaims"]} == made
    assert made == {"web-all-net", "web-0-disk", "web-0-api-all-net", "web-0-api-0-disk"}
