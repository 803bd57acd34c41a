"""What of a set may change, and what may not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.admission.verdicts import CLIQUE, GONE, GROUP, a_template, changed, problems, shared, sound
from tests.gangs.builders import a_clique_template, a_scaling_group_template

KEPT = "Forbidden: field is immutable: keep it as it is, or create another set"
MNNVL = '["grove.io/mnnvl-group"]'
OF_SET = "spec.template.topologyConstraint"

FRONT, BACK = a_clique_template("front", 2), a_clique_template("back", 3, min_available=1)
SIDE = a_clique_template("side")

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # What the set was besides sound, what it shall be besides that, and what is said.
    "a clique added": (
        {},
        {CLIQUE: [FRONT, BACK, SIDE]},
        [f'{CLIQUE}: Forbidden: cliques of a set are immutable (added ["side"]): create another set'],
    ),
    "a clique removed": (
        {},
        {CLIQUE: [BACK]},
        [f'{CLIQUE}: Forbidden: cliques of a set are immutable (removed ["front"]): create another set'],
    ),
    "a clique renamed": (
        {},
        {CLIQUE: [SIDE, BACK]},
        [
            f'{CLIQUE}: Forbidden: cliques of a set are immutable (added ["side"], removed ["front"]): '
            "create another set"
        ],
    ),
    "another order of cliques that start in order": (
        {"spec.template.cliqueStartupType": "CliqueStartupTypeInOrder"},
        {CLIQUE: [BACK, FRONT]},
        [
            f'{CLIQUE}: Invalid value: ["back","front"]: the order of cliques is immutable under '
            'CliqueStartupTypeInOrder: keep ["front","back"]'
        ],
    ),
    "another order of cliques that name their parents": (
        {"spec.template.cliqueStartupType": "CliqueStartupTypeExplicit"},
        {CLIQUE: [BACK, FRONT]},
        [
            f'{CLIQUE}: Invalid value: ["back","front"]: the order of cliques is immutable under '
            'CliqueStartupTypeExplicit: keep ["front","back"]'
        ],
    ),
    "another start type": (
        {},
        {"spec.template.cliqueStartupType": "CliqueStartupTypeInOrder"},
        [
            'spec.template.cliqueStartupType: Invalid value: "CliqueStartupTypeInOrder": field is immutable: keep '
            '"CliqueStartupTypeAnyOrder", or create another set'
        ],
    ),
    "another role": (
        {},
        {f"{CLIQUE}[0].spec.roleName": "leader"},
        [
            f'{CLIQUE}[0].spec.roleName: Invalid value: "leader": field is immutable: keep "front", '
            "or create another set"
        ],
    ),
    "another minimum": (
        {},
        {f"{CLIQUE}[1].spec.minAvailable": 2},
        [f"{CLIQUE}[1].spec.minAvailable: Invalid value: 2: field is immutable: keep 1, or create another set"],
    ),
    "other parents": (
        {},
        {f"{CLIQUE}[1].spec.startsAfter": ["front"]},
        [f'{CLIQUE}[1].spec.startsAfter: Invalid value: ["front"]: field is immutable: keep [], or create another set'],
    ),
    "another scheduler": (
        {},
        {f"{CLIQUE}[{index}].spec.podSpec.schedulerName": "kai-scheduler" for index in (0, 1)},
        [
            f'{CLIQUE}[{index}].spec.podSpec.schedulerName: Invalid value: "kai-scheduler": field is immutable: keep '
            '"default-scheduler", or create another set'
            for index in (0, 1)
        ],
    ),
    "other sharing of a clique": (
        {},
        {f"{CLIQUE}[0].resourceSharing": [shared("gpus")]},
        [f"{CLIQUE}[0].resourceSharing: {KEPT}"],
    ),
    "a scaling group added": (
        {},
        {GROUP: [a_scaling_group_template("pair", ["back"], 2), a_scaling_group_template("more", ["front"])]},
        [f'{GROUP}: Forbidden: scaling groups of a set are immutable (added ["more"]): create another set'],
    ),
    "all scaling groups removed": (
        {},
        {GROUP: GONE},
        [f'{GROUP}: Forbidden: scaling groups of a set are immutable (removed ["pair"]): create another set'],
    ),
    "other cliques of a scaling group": (
        {},
        {f"{GROUP}[0].cliqueNames": ["back", "front"]},
        [
            f'{GROUP}[0].cliqueNames: Invalid value: ["back","front"]: field is immutable: keep ["back"], '
            "or create another set"
        ],
    ),
    "another minimum of a scaling group": (
        {},
        {f"{GROUP}[0].minAvailable": 2},
        [f"{GROUP}[0].minAvailable: Invalid value: 2: field is immutable: keep 1, or create another set"],
    ),
    "other sharing of a scaling group": (
        {f"{GROUP}[0].resourceSharing": [shared("gpus")]},
        {f"{GROUP}[0].resourceSharing": [shared("gpus", scope="PerReplica")]},
        [f"{GROUP}[0].resourceSharing: {KEPT}"],
    ),
    "other templates of claims": (
        {},
        {"spec.template.resourceClaimTemplates": [a_template("gpus")]},
        [f"spec.template.resourceClaimTemplates: {KEPT}"],
    ),
    "other sharing of the set": (
        {"spec.template.resourceSharing": [shared("gpus")]},
        {"spec.template.resourceSharing": GONE},
        [f"spec.template.resourceSharing: {KEPT}"],
    ),
    "a constraint added": (
        {},
        {OF_SET: {"topologyName": "racks", "pack": {"required": "rack"}}},
        [f"{OF_SET}: Forbidden: field is immutable: a constraint cannot be added, create another set"],
    ),
    "a constraint removed": (
        {f"{GROUP}[0].topologyConstraint": {"topologyName": "racks", "pack": {"required": "rack"}}},
        {f"{GROUP}[0].topologyConstraint": GONE},
        [
            f"{GROUP}[0].topologyConstraint: Forbidden: field is immutable: a constraint cannot be removed, "
            "create another set"
        ],
    ),
    "another required domain": (
        {f"{CLIQUE}[0].topologyConstraint": {"topologyName": "racks", "pack": {"required": "rack"}}},
        {f"{CLIQUE}[0].topologyConstraint.pack.required": "host"},
        [
            f'{CLIQUE}[0].topologyConstraint.pack.required: Invalid value: "host": field is immutable: keep "rack", '
            "or create another set"
        ],
    ),
    "another preferred domain": (
        {OF_SET: {"topologyName": "racks", "pack": {"required": "rack"}}},
        {f"{OF_SET}.pack.preferred": "host"},
        [f'{OF_SET}.pack.preferred: Invalid value: "host": field is immutable: keep "", or create another set'],
    ),
    "another topology": (
        {OF_SET: {"topologyName": "racks", "pack": {"required": "rack"}}},
        {f"{OF_SET}.topologyName": "others"},
        [f'{OF_SET}.topologyName: Invalid value: "others": field is immutable: keep "racks", or create another set'],
    ),
    "another domain in the newer words": (
        {OF_SET: {"packDomain": "rack"}},
        {OF_SET: {"pack": {"required": "host"}}},
        [f'{OF_SET}.pack.required: Invalid value: "host": field is immutable: keep "rack", or create another set'],
    ),
    "two topologies added": (
        {OF_SET: {"packDomain": "rack"}, f"{CLIQUE}[0].topologyConstraint": {"packDomain": "host"}},
        {f"{OF_SET}.topologyName": "racks", f"{CLIQUE}[0].topologyConstraint.topologyName": "others"},
        [
            f'{CLIQUE}[0].topologyConstraint.topologyName: Invalid value: "others": a set has one topology, and '
            '"racks" is named before: name that one, or none here'
        ],
    ),
    "an MNNVL group added": (
        {},
        {f"metadata.annotations{MNNVL}": "train"},
        [
            "metadata.annotations[grove.io/mnnvl-group]: Forbidden: field is immutable: an MNNVL group cannot be "
            "added, create another set"
        ],
    ),
    "an MNNVL group removed": (
        {f"{GROUP}[0].annotations{MNNVL}": "train"},
        {f"{GROUP}[0].annotations": {}},
        [
            f"{GROUP}[0].annotations[grove.io/mnnvl-group]: Forbidden: field is immutable: an MNNVL group cannot be "
            "removed, create another set"
        ],
    ),
    "another MNNVL group": (
        {f"{CLIQUE}[0].annotations{MNNVL}": "train"},
        {f"{CLIQUE}[0].annotations{MNNVL}": "none"},
        [
            f'{CLIQUE}[0].annotations[grove.io/mnnvl-group]: Invalid value: "none": field is immutable: keep "train", '
            "or create another set"
        ],
    ),
}


@pytest.mark.parametrize(("before", "change", "expected"), CASES.values(), ids=CASES.keys())
def test_what_gangs_are_made_of_stays(before: dict[str, Any], change: dict[str, Any], expected: list[str]) -> None:
    old = changed(sound(), before)
    assert problems(changed(old, change), old=old) == expected


ALLOWED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "replicas of the set": ({}, {"spec.replicas": 7}),
    "replicas of a clique": ({}, {f"{CLIQUE}[0].spec.replicas": 5}),
    "replicas of a scaling group": ({}, {f"{GROUP}[0].replicas": 5}),
    "pods": ({}, {f"{CLIQUE}[0].spec.podSpec.containers[0].image": "busybox:2"}),
    "labels of a clique": ({}, {f"{CLIQUE}[0].labels": {"tier": "a"}}),
    "annotations": ({}, {f"{CLIQUE}[0].annotations": {"note": "a"}, "metadata.annotations": {"note": "b"}}),
    "autoscaling": ({}, {f"{CLIQUE}[0].spec.autoScalingConfig": {"minReplicas": 2, "maxReplicas": 4}}),
    "autoscaling of a group": ({}, {f"{GROUP}[0].scaleConfig": {"minReplicas": 2, "maxReplicas": 4}}),
    "priority": ({}, {"spec.template.priorityClassName": "high"}),
    "the termination delay": ({}, {"spec.template.terminationDelay": "1m"}),
    "the way of updating": ({}, {"spec.updateStrategy.type": "OnDelete"}),
    "the order of cliques that start in any": (
        {f"{CLIQUE}[0].annotations{MNNVL}": "train"},
        {CLIQUE: [BACK, {**FRONT, "annotations": {"grove.io/mnnvl-group": "train"}}]},
    ),
    "a constraint in the newer words": (
        {OF_SET: {"topologyName": "racks", "packDomain": "rack"}},
        {OF_SET: {"topologyName": "racks", "pack": {"required": "rack"}}},
    ),
    "a topology named where none was": (
        {OF_SET: {"packDomain": "rack"}, f"{CLIQUE}[0].topologyConstraint": {"packDomain": "host"}},
        {f"{OF_SET}.topologyName": "racks"},
    ),
    "an inherited topology named again": (
        {
            OF_SET: {"topologyName": "racks", "pack": {"required": "rack"}},
            f"{CLIQUE}[0].topologyConstraint": {"pack": {"required": "host"}},
        },
        {f"{CLIQUE}[0].topologyConstraint.topologyName": "racks"},
    ),
    "the default scheduler by name": (
        {},
        {f"{CLIQUE}[{index}].spec.podSpec.schedulerName": "default-scheduler" for index in (0, 1)},
    ),
    "what admission fills in for a set from before it": (
        {
            f"{CLIQUE}[0].spec.roleName": GONE,
            f"{CLIQUE}[0].spec.minAvailable": GONE,
            f"{GROUP}[0].minAvailable": GONE,
            "spec.template.cliqueStartupType": GONE,
        },
        {
            f"{CLIQUE}[0].spec.roleName": "front",
            f"{CLIQUE}[0].spec.minAvailable": 2,
            f"{GROUP}[0].minAvailable": 1,
            "spec.template.cliqueStartupType": "CliqueStartupTypeAnyOrder",
        },
    ),
}


@pytest.mark.parametrize(("before", "change"), ALLOWED.values(), ids=ALLOWED.keys())
def test_the_rest_may_change(before: dict[str, Any], change: dict[str, Any]) -> None:
    old = changed(sound(), before)
    new = changed(old, change)
    assert new != old
    assert problems(new, old=old) == []
