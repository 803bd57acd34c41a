"""Claims that pods share: their templates, and who shares them."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.grove import SetSharing
from shoal.gangs.admission.rules.sharing import sharing_problems
from tests.gangs.admission.verdicts import CLIQUE, GROUP, a_template, changed, problems, said, shared, sound
from tests.gangs.builders import typed

TEMPLATES = "spec.template.resourceClaimTemplates"
OF_SET = "spec.template.resourceSharing"
OF_CLIQUE = f"{CLIQUE}[0].resourceSharing"
OF_GROUP = f"{GROUP}[0].resourceSharing"


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a template without a name": (
        {TEMPLATES: [a_template("")]},
        [f"{TEMPLATES}[0].name: Required value: name the template"],
    ),
    "two templates of one name": (
        {TEMPLATES: [a_template("gpus"), a_template("gpus")]},
        [f'{TEMPLATES}[1].name: Duplicate value: "gpus": name each template differently'],
    ),
    "a template that asks for nothing": (
        {TEMPLATES: [{"name": "gpus", "templateSpec": {"spec": {"devices": {"requests": []}}}}]},
        [f"{TEMPLATES}[0].templateSpec.spec.devices.requests: Required value: ask for at least one device"],
    ),
    "a template that says nothing": (
        {TEMPLATES: [{"name": "gpus", "templateSpec": {}}]},
        [f"{TEMPLATES}[0].templateSpec.spec.devices.requests: Required value: ask for at least one device"],
    ),
    "shared without a name": (
        {OF_SET: [shared("")]},
        [f"{OF_SET}[0].name: Required value: name a template of resourceClaimTemplates or a ResourceClaimTemplate"],
    ),
    "shared twice by the set": (
        {OF_SET: [shared("gpus"), shared("gpus", scope="PerReplica")]},
        [f'{OF_SET}[1].name: Duplicate value: "gpus": share each template once'],
    ),
    "shared twice by a clique": (
        {OF_CLIQUE: [shared("gpus"), shared("gpus")]},
        [f'{OF_CLIQUE}[1].name: Duplicate value: "gpus": share each template once'],
    ),
    "shared twice by a scaling group": (
        {OF_GROUP: [shared("gpus"), shared("gpus")]},
        [f'{OF_GROUP}[1].name: Duplicate value: "gpus": share each template once'],
    ),
    "a namespace for a template of the set": (
        {TEMPLATES: [a_template("gpus")], OF_CLIQUE: [shared("gpus", namespace="other")]},
        [f'{OF_CLIQUE}[0].namespace: Forbidden: "gpus" is a template of this set: leave the namespace out'],
    ),
    "an empty filter of the set": (
        {OF_SET: [shared("gpus", filter={})]},
        [
            f"{OF_SET}[0].filter: Required value: name who shares the claim, or leave the filter out to share it "
            "with all"
        ],
    ),
    "an empty filter of a scaling group": (
        {OF_GROUP: [shared("gpus", filter={"childCliqueNames": []})]},
        [
            f"{OF_GROUP}[0].filter: Required value: name who shares the claim, or leave the filter out to share it "
            "with all"
        ],
    ),
    "a filter for a clique that is not there": (
        {OF_SET: [shared("gpus", filter={"childCliqueNames": ["front", "side"]})]},
        [f'{OF_SET}[0].filter.childCliqueNames[1]: Not found: "side": name a clique of this set'],
    ),
    "a filter for a scaling group that is not there": (
        {OF_SET: [shared("gpus", filter={"childScalingGroupNames": ["triple"]})]},
        [f'{OF_SET}[0].filter.childScalingGroupNames[0]: Not found: "triple": name a scaling group of this set'],
    ),
    "a scaling group's filter for a clique outside it": (
        {OF_GROUP: [shared("gpus", filter={"childCliqueNames": ["front"]})]},
        [f'{OF_GROUP}[0].filter.childCliqueNames[0]: Not found: "front": name a clique of this scaling group'],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES.keys())
def test_a_claim_that_cannot_be_shared_is_refused(change: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(sound(), change)) == expected


def test_an_unknown_scope_is_refused() -> None:
    """The wire's types refuse it first; the rule holds where an object was made in Python."""
    strange: Any = SetSharing(name="gpus", scope="Sometimes")  # type: ignore[arg-type]
    pcs = typed(sound())
    pcs.spec.template.resource_sharing.append(strange)
    assert said(sharing_problems(pcs)) == [
        f'{OF_SET}[0].scope: Unsupported value: "Sometimes": supported values: "AllReplicas", "PerReplica"'
    ]


def test_sharing_at_every_level_passes() -> None:
    change = {
        TEMPLATES: [a_template("gpus")],
        OF_SET: [shared("gpus", filter={"childCliqueNames": ["front"], "childScalingGroupNames": ["pair"]})],
        OF_CLIQUE: [shared("gpus"), shared("theirs", namespace="other")],
        OF_GROUP: [shared("gpus", scope="PerReplica", filter={"childCliqueNames": ["back"]})],
    }
    assert problems(changed(sound(), change)) == []
