"""What is said of gangs when they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.scheduling_run_ai import PodGroup
from shoal.kube.admission import FieldProblem, Warn
from shoal.scheduler.admission.pod_groups import pod_group_findings


def a_gang(*parts: dict[str, Any], **spec: Any) -> PodGroup:
    return msgspec.convert({"metadata": {"name": "gang"}, "spec": {"subGroups": list(parts), **spec}}, PodGroup)


def leaf(name: str, parent: str = "", minimum: int = 1) -> dict[str, Any]:
    return {"name": name, "minMember": minimum, **({"parent": parent} if parent else {})}


def inner(name: str, parent: str = "", minimum: int | None = None) -> dict[str, Any]:
    part = {"name": name, **({"parent": parent} if parent else {})}
    return part if minimum is None else {**part, "minSubGroup": minimum}


def refused(gang: PodGroup, *, is_new: bool = True) -> list[str]:
    """The fields that are refused."""
    return [found.path for found in pod_group_findings(gang, is_new=is_new) if isinstance(found, FieldProblem)]


def warned(gang: PodGroup, *, is_new: bool = True) -> list[str]:
    return [found.message for found in pod_group_findings(gang, is_new=is_new) if isinstance(found, Warn)]


SOUND = {
    "a flat gang": a_gang(minMember=4),
    "a gang without a minimum": a_gang(),
    "no gang": a_gang(minMember=0),
    "two parts": a_gang(leaf("leader"), leaf("workers", minimum=0), minSubGroup=2),
    "parts and a count of pods, as older writers have it": a_gang(leaf("leader"), leaf("workers"), minMember=2),
    "parts of parts": a_gang(inner("racks", minimum=1), leaf("a", "racks"), leaf("b", "racks"), minSubGroup=1),
    "a part that needs all its parts": a_gang(inner("racks"), leaf("a", "racks")),
    "a parent that is named before it is said": a_gang(leaf("a", "racks"), inner("racks", minimum=1)),
    "durations": a_gang(preemptionDelay="30s", stalenessGracePeriod="-1s"),
}

REFUSED = {
    "both minimums": (a_gang(leaf("a"), minMember=1, minSubGroup=1), ["spec.minSubGroup"]),
    "both minimums of a part": (a_gang({**leaf("a"), "minSubGroup": 1}), ["spec.subGroups[0].minSubGroup"]),
    "two parts of one name": (a_gang(leaf("a"), leaf("b"), leaf("a")), ["spec.subGroups[2].name"]),
    "a parent that is not there": (a_gang(leaf("a", "nobody")), ["spec.subGroups[0].parent"]),
    "a part of itself": (a_gang(inner("a", "a")), ["spec.subGroups[0].parent"]),
    "a circle": (
        a_gang(inner("a", "b"), inner("b", "c"), inner("c", "a"), leaf("outside", "a")),
        ["spec.subGroups[0].parent", "spec.subGroups[1].parent", "spec.subGroups[2].parent"],
    ),
    "a delay that is none": (a_gang(preemptionDelay="soon"), ["spec.preemptionDelay"]),
    "a negative delay": (a_gang(preemptionDelay="-1s"), ["spec.preemptionDelay"]),
    "a grace period that is none": (a_gang(stalenessGracePeriod="x"), ["spec.stalenessGracePeriod"]),
}

AT_THE_WRONG_LEVEL = {
    "a leaf that counts parts": (a_gang(inner("a", minimum=1)), "spec.subGroups[0].minSubGroup"),
    "a leaf that counts nothing": (a_gang(leaf("a"), inner("b")), "spec.subGroups[1].minMember"),
    "an inner part that counts pods": (a_gang(leaf("racks"), leaf("a", "racks")), "spec.subGroups[0].minMember"),
}


@pytest.mark.parametrize("gang", SOUND.values(), ids=SOUND)
def test_a_sound_gang_passes(gang: PodGroup) -> None:
    assert list(pod_group_findings(gang, is_new=True)) == []


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "changed"])
@pytest.mark.parametrize(("gang", "fields"), REFUSED.values(), ids=REFUSED)
def test_a_gang_that_means_nothing_is_refused(gang: PodGroup, fields: list[str], is_new: bool) -> None:
    assert refused(gang, is_new=is_new) == fields


@pytest.mark.parametrize(("gang", "field"), AT_THE_WRONG_LEVEL.values(), ids=AT_THE_WRONG_LEVEL)
def test_a_minimum_at_the_wrong_level_is_refused_of_a_new_gang_and_warned_of_later(gang: PodGroup, field: str) -> None:
    assert refused(gang) == [field]
    assert warned(gang) == []
    assert refused(gang, is_new=False) == []
    [said] = warned(gang, is_new=False)
    assert said.startswith(field)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "changed"])
@pytest.mark.parametrize(
    ("gang", "said"),
    [
        pytest.param(a_gang(leaf("a"), minSubGroup=2), "spec.minSubGroup is 2 and there are 1 parts", id="root"),
        pytest.param(a_gang(minSubGroup=1), "spec.minSubGroup is 1 and there are 0 parts", id="no parts"),
        pytest.param(
            a_gang(inner("r", minimum=3), leaf("a", "r")), "spec.subGroups[0].minSubGroup is 3 and there", id="part"
        ),
    ],
)
def test_more_parts_than_there_are_is_warned_of(gang: PodGroup, said: str, is_new: bool) -> None:
    [warning] = warned(gang, is_new=is_new)
    assert warning.startswith(said)
    assert refused(gang, is_new=is_new) == []


def test_a_long_chain_of_parts_is_judged() -> None:
    chain = [inner("p0"), *(inner(f"p{index}", f"p{index - 1}") for index in range(1, 20_000)), leaf("end", "p19999")]
    assert list(pod_group_findings(a_gang(*chain), is_new=True)) == []
