"""Topology constraints of new sets."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.grove import ClusterTopologyBinding
from shoal.gangs.settings import GangSettings
from tests.gangs.admission.verdicts import CLIQUE, GROUP, a_binding, changed, problems, sound, warnings

ON = GangSettings(has_topologies=True)
RACKS = a_binding("zone", "block", "rack", "host")
OF_SET = "spec.template.topologyConstraint"
OF_GROUP = f"{GROUP}[0].topologyConstraint"
OF_FRONT = f"{CLIQUE}[0].topologyConstraint"  # in no scaling group
OF_BACK = f"{CLIQUE}[1].topologyConstraint"  # in group 0


def pack(required: str = "", preferred: str = "", *, name: str = "racks") -> dict[str, Any]:
    wanted = {"required": required, "preferred": preferred}
    named = {"topologyName": name} if name else {}
    return {**named, "pack": {key: value for key, value in wanted.items() if value}}


def nameless(required: str = "", preferred: str = "") -> dict[str, Any]:
    return pack(required, preferred, name="")


def asked(change: dict[str, Any], binding: ClusterTopologyBinding | None = RACKS) -> list[str]:
    return problems(changed(sound(), change), binding=binding, settings=ON)


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no topology is named": (
        {OF_FRONT: nameless("rack")},
        [f"{OF_FRONT}.topologyName: Required value: name a ClusterTopologyBinding, here or for the whole set"],
    ),
    "a neighbour's topology is not inherited": (
        {OF_GROUP: pack("rack"), OF_FRONT: nameless("rack")},
        [f"{OF_FRONT}.topologyName: Required value: name a ClusterTopologyBinding, here or for the whole set"],
    ),
    "two topologies": (
        {OF_SET: pack("block"), OF_FRONT: pack("rack", name="others")},
        [
            f'{OF_FRONT}.topologyName: Invalid value: "others": a set has one topology, and "racks" is named before: '
            "name that one, or none here"
        ],
    ),
    "an unknown required domain": (
        {OF_SET: pack("row")},
        [
            f'{OF_SET}.pack.required: Unsupported value: "row": supported values: "zone", "block", "rack", "host"',
        ],
    ),
    "an unknown preferred domain": (
        {OF_FRONT: pack("rack", "row")},
        [
            f'{OF_FRONT}.pack.preferred: Unsupported value: "row": supported values: "zone", "block", "rack", "host"',
        ],
    ),
    "a group wider than the set": (
        {OF_SET: pack("rack"), OF_GROUP: pack("block")},
        [
            f'{OF_GROUP}.pack.required: Invalid value: "block": the set requires the narrower "rack": '
            "ask for that or a narrower one"
        ],
    ),
    "a clique wider than its group": (
        {OF_GROUP: pack("rack"), OF_BACK: nameless("zone")},
        [
            f'{OF_BACK}.pack.required: Invalid value: "zone": scaling group "pair" requires the narrower "rack": '
            "ask for that or a narrower one"
        ],
    ),
    "a clique wider than the set, in a group that only prefers": (
        {OF_SET: pack("rack"), OF_GROUP: nameless(preferred="host"), OF_BACK: nameless("block")},
        [
            f'{OF_BACK}.pack.required: Invalid value: "block": the set requires the narrower "rack": '
            "ask for that or a narrower one"
        ],
    ),
    "a preference wider than the set's": (
        {OF_SET: pack(preferred="rack"), OF_FRONT: nameless(preferred="block")},
        [
            f'{OF_FRONT}.pack.preferred: Invalid value: "block": the set prefers the narrower "rack": '
            "ask for that or a narrower one"
        ],
    ),
    "the old way of saying it": (
        {OF_SET: {"topologyName": "racks", "packDomain": "rack"}},
        [f"{OF_SET}.packDomain: Forbidden: it is superseded: use pack.required"],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES.keys())
def test_a_constraint_that_cannot_be_met_is_refused(change: dict[str, Any], expected: list[str]) -> None:
    assert asked(change) == expected


def test_a_topology_must_exist() -> None:
    assert asked({OF_SET: pack("block"), OF_FRONT: nameless("rack")}, binding=None) == [
        f'{OF_SET}.topologyName: Not found: "racks": no ClusterTopologyBinding of this name exists: create it first'
    ]


def test_all_constraints_are_refused_where_topologies_are_off() -> None:
    body = changed(sound(), {OF_SET: pack("block"), OF_FRONT: nameless("rack")})
    words = (
        "Forbidden: topology-aware scheduling is off: turn on topologyAwareScheduling.enabled of the operator, or "
        "leave the constraint out"
    )
    assert problems(body) == [f"{OF_SET}: {words}", f"{OF_FRONT}: {words}"]


PASSING: dict[str, dict[str, Any]] = {
    "narrower inside": {OF_SET: pack("block"), OF_GROUP: pack("rack"), OF_BACK: pack("host")},
    "as wide inside": {OF_SET: pack("rack"), OF_GROUP: nameless("rack"), OF_FRONT: nameless("rack")},
    "inherited from the set past a group without a name": {
        OF_SET: pack("block"),
        OF_GROUP: nameless("rack"),
        OF_BACK: nameless("host"),
    },
    "inherited from the group": {OF_GROUP: pack("rack"), OF_BACK: nameless("host")},
    "required is not measured against preferred": {OF_SET: pack(preferred="host"), OF_FRONT: nameless("block")},
}


@pytest.mark.parametrize("change", PASSING.values(), ids=PASSING.keys())
def test_what_can_be_met_passes(change: dict[str, Any]) -> None:
    assert asked(change) == []


def test_a_preference_wider_than_the_requirement_is_warned_of() -> None:
    body = changed(sound(), {OF_SET: pack("rack", "block")})
    assert problems(body, binding=RACKS, settings=ON) == []
    assert warnings(body, binding=RACKS, settings=ON) == [
        f'{OF_SET}: preferred "block" is wider than required "rack" and changes nothing'
    ]


def test_constraints_are_asked_of_new_sets_alone() -> None:
    """A topology may be gone or switched off by now; that is told by a condition."""
    old = changed(sound(), {OF_SET: pack("block")})
    assert problems(changed(old, {"spec.replicas": 2}), old=old) == []
