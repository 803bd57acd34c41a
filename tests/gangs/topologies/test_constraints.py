"""What gangs say of topology. A constraint is written ``rack`` where it is required, ``~rack`` where preferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shoal.api.scheduler_grove_io import GangTopologyConstraint
from shoal.gangs.plan import PlannedGang, gangs_of_replica
from shoal.gangs.topologies import domain_keys, gang_constraints
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed
from tests.gangs.topologies.sites import KEYS, a_binding, within
from tests.support.schemas.corpus import needs_corpus, upstream_samples

_DOMAINS = {key: domain for domain, key in KEYS.items()}


def short(constraint: GangTopologyConstraint | None) -> str:
    pack = constraint.pack_constraint if constraint is not None else None
    if pack is None:
        return ""
    return _DOMAINS.get(pack.required or "", "") + (f"~{_DOMAINS[pack.preferred]}" if pack.preferred else "")


def told(body: dict[str, Any], keys: Mapping[str, str] = KEYS) -> dict[str, list[str]]:
    """What each gang of the first replica says: of all its pods, of groups of cliques, of single cliques."""
    pcs = typed(body)

    def lines(gang: PlannedGang) -> list[str]:
        found = gang_constraints(pcs, gang, keys)
        return [
            short(found.whole),
            *(f"{one.name}({','.join(one.pod_group_names)}) {short(one.topology_constraint)}" for one in found.groups),
            *(f"{name} {short(constraint)}" for name, constraint in found.cliques.items() if constraint is not None),
        ]

    return {gang.name: lines(gang) for gang in gangs_of_replica(pcs, 0, {})}


def a_set_with(template: dict[str, Any] | None, group: dict[str, Any] | None, clique: dict[str, Any] | None) -> Any:
    def held(constraint: dict[str, Any] | None) -> dict[str, Any]:
        return {} if constraint is None else {"topologyConstraint": constraint}

    cliques = [a_clique_template("a"), a_clique_template("p", **held(clique)), a_clique_template("d")]
    groups = [a_scaling_group_template("grp", ["p", "d"], 3, min_available=2, **held(group))]
    return a_set("web", *cliques, groups=groups, **held(template))


GROUPS = ("web-0-grp-0(web-0-grp-0-p,web-0-grp-0-d)", "web-0-grp-1(web-0-grp-1-p,web-0-grp-1-d)")


@pytest.mark.parametrize(
    ("body", "base", "scaled"),
    [
        (a_set_with(None, None, None), [""], [""]),
        (a_set_with(within("block"), None, None), ["block"], ["block"]),
        (a_set_with(None, within("rack"), None), ["", f"{GROUPS[0]} rack", f"{GROUPS[1]} rack"], ["rack"]),
        (
            a_set_with(within("block"), within("rack"), within("host")),
            [
                "block",
                f"{GROUPS[0]} rack",
                f"{GROUPS[1]} rack",
                "web-0-grp-0-p host",
                "web-0-grp-1-p host",
            ],
            ["rack", "web-0-grp-2-p host"],
        ),
        (
            a_set_with(within("block", "rack"), within(preferred="host"), None),
            ["block~rack", f"{GROUPS[0]} ~host", f"{GROUPS[1]} ~host"],
            ["~host"],
        ),
        (a_set_with({"packDomain": "block"}, None, None), ["block"], ["block"]),
        (a_set_with(within("planet", "rack"), None, None), ["~rack"], ["~rack"]),
        (a_set_with(within("rack", "planet"), None, None), ["rack"], ["rack"]),
        (a_set_with(within("block"), within("planet"), within("planet")), ["block"], ["block"]),
    ],
    ids=[
        "none",
        "of the set",
        "of the group",
        "of all three",
        "preferred",
        "the old field",
        "no such required domain",
        "no such preferred domain",
        "no such domain in group and clique",
    ],
)
def test_base_and_scaled_gangs(body: Any, base: list[str], scaled: list[str]) -> None:
    assert told(body) == {"web-0": base, "web-0-grp-0": scaled}


def test_without_a_topology_all_of_it_is_left_out() -> None:
    body = a_set_with(within("block"), within("rack"), within("host"))
    assert told(body, domain_keys(None)) == {"web-0": [""], "web-0-grp-0": [""]}


def test_domains_become_the_keys_of_node_labels() -> None:
    pcs = typed(a_set_with(within("zone", "host"), None, None))
    [base, _] = gangs_of_replica(pcs, 0, {})
    whole = gang_constraints(pcs, base, domain_keys(a_binding("site"))).whole
    assert whole is not None
    assert whole.pack_constraint is not None
    assert (whole.pack_constraint.required, whole.pack_constraint.preferred) == (
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    )


# From Grove's rules: a set's constraint is its base gang's; each replica of a scaling group in the base gang is a group
# of its own; a scaled gang has the scaling group's, or else the set's; cliques' own go with their podgroups.
UPSTREAM: dict[str, dict[str, list[str]]] = {
    "tas-hierarchy": {
        "tas-hierarchy-0": [
            "block",
            "tas-hierarchy-0-inference-group-0(tas-hierarchy-0-inference-group-0-prefill,"
            "tas-hierarchy-0-inference-group-0-decode) rack",
            "tas-hierarchy-0-inference-group-1(tas-hierarchy-0-inference-group-1-prefill,"
            "tas-hierarchy-0-inference-group-1-decode) rack",
            "tas-hierarchy-0-inference-group-0-prefill host",
            "tas-hierarchy-0-inference-group-0-decode host",
            "tas-hierarchy-0-inference-group-1-prefill host",
            "tas-hierarchy-0-inference-group-1-decode host",
        ]
    },
    "tas-indep-clq": {
        "tas-indep-clq-0": ["", "tas-indep-clq-0-worker-rack rack", "tas-indep-clq-0-worker-block block"]
    },
    "tas-large-scale": {
        "tas-large-scale-0": ["block", *(f"tas-large-scale-0-workers-{index}-worker host" for index in range(3))],
        **{
            f"tas-large-scale-0-workers-{index}": ["block", f"tas-large-scale-0-workers-{index + 3}-worker host"]
            for index in range(7)
        },
    },
    "tas-h100-workload": {"tas-h100-workload-0": ["block"]},
    "tas-no-constraint": {"tas-no-constraint-0": [""]},
    "tas-pcs-multi-pcsg": {
        "tas-pcs-multi-pcsg-0": [
            "block",
            "tas-pcs-multi-pcsg-0-decoder-0(tas-pcs-multi-pcsg-0-decoder-0-dworker,"
            "tas-pcs-multi-pcsg-0-decoder-0-dleader) rack",
            "tas-pcs-multi-pcsg-0-prefill-0(tas-pcs-multi-pcsg-0-prefill-0-pworker,"
            "tas-pcs-multi-pcsg-0-prefill-0-pleader) rack",
        ],
        "tas-pcs-multi-pcsg-0-decoder-0": ["rack"],
        "tas-pcs-multi-pcsg-0-prefill-0": ["rack"],
    },
    "tas-pcsg-pclq": {
        "tas-pcsg-pclq-0": [
            "",
            "tas-pcsg-pclq-0-workers-0(tas-pcsg-pclq-0-workers-0-worker) rack",
            "tas-pcsg-pclq-0-workers-1(tas-pcsg-pclq-0-workers-1-worker) rack",
            "tas-pcsg-pclq-0-workers-0-worker host",
            "tas-pcsg-pclq-0-workers-1-worker host",
        ]
    },
    "tas-preferred-pack": {
        "tas-preferred-pack-0": [
            "block~rack",
            "tas-preferred-pack-0-workers-0(tas-preferred-pack-0-workers-0-worker) ~host",
            "tas-preferred-pack-0-router ~host",
        ],
        "tas-preferred-pack-0-workers-0": ["~host"],
    },
    "tas-sl-pcsg-only": {
        "tas-sl-pcsg-only-0": [
            "",
            "tas-sl-pcsg-only-0-workers-0(tas-sl-pcsg-only-0-workers-0-worker) rack",
            "tas-sl-pcsg-only-0-workers-1(tas-sl-pcsg-only-0-workers-1-worker) rack",
        ]
    },
    "tas-topology-condition": {"tas-topology-condition-0": ["rack"]},
}


@needs_corpus
def test_upstreams_own_samples() -> None:
    samples = {
        sample["metadata"]["name"]: sample
        for where, sample in upstream_samples("grove")
        if sample["kind"] == "PodCliqueSet" and "__tas-" in where
    }
    assert {name: told(sample) for name, sample in samples.items()} == UPSTREAM
