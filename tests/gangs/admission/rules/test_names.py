"""What names, labels and annotations may be, and what is said of those that may not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.admission.verdicts import CLIQUE, GROUP, changed, problems, sound, warnings
from tests.gangs.builders import a_clique_template, a_set

NOT_DNS = (
    "must consist of lower case letters, digits, '-' and '.', and each part between dots must start and end with a "
    "letter or digit (for example 'example.com')"
)
NOT_A_LABEL = (
    "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit "
    "(for example 'my-name', 'my.name' or '123-abc')"
)
LONG = "x" * 41

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the set's name is none": ({"metadata.name": "Web"}, [f'metadata.name: Invalid value: "Web": {NOT_DNS}']),
    "the set has no name": ({"metadata.name": ""}, ["metadata.name: Required value: name the set"]),
    "a clique's name is none": (
        {f"{CLIQUE}[0].name": "fr_ont"},
        [f'spec.template.cliques[0].name: Invalid value: "fr_ont": {NOT_DNS}'],
    ),
    "a clique has no name": (
        {f"{CLIQUE}[0].name": ""},
        ["spec.template.cliques[0].name: Required value: name the clique"],
    ),
    "two cliques of one name": (
        {f"{CLIQUE}[0].name": "back", f"{CLIQUE}[1].spec.roleName": "front"},
        ['spec.template.cliques[1].name: Duplicate value: "back": name each clique differently'],
    ),
    "two cliques of one role": (
        {f"{CLIQUE}[1].spec.roleName": "front"},
        [
            'spec.template.cliques[1].spec.roleName: Duplicate value: "front": clique "front" has this role: '
            "give each clique one of its own"
        ],
    ),
    "a role that is another clique's by default": (
        {f"{CLIQUE}[0].spec.roleName": "", f"{CLIQUE}[1].spec.roleName": "front"},
        [
            'spec.template.cliques[1].spec.roleName: Duplicate value: "front": clique "front" has this role: '
            "give each clique one of its own"
        ],
    ),
    "a scaling group's name is none": (
        {f"{GROUP}[0].name": "-pair"},
        [f'spec.template.podCliqueScalingGroups[0].name: Invalid value: "-pair": {NOT_DNS}'],
    ),
    "a scaling group has no name": (
        {f"{GROUP}[0].name": ""},
        ["spec.template.podCliqueScalingGroups[0].name: Required value: name the scaling group"],
    ),
    "two scaling groups of one name": (
        {
            f"{GROUP}": [
                {"name": "pair", "cliqueNames": ["back"]},
                {"name": "pair", "cliqueNames": ["front"]},
            ]
        },
        ['spec.template.podCliqueScalingGroups[1].name: Duplicate value: "pair": name each scaling group differently'],
    ),
    "names too long together": (
        {f"{CLIQUE}[0].name": "x" * 43, f"{CLIQUE}[0].spec.roleName": "front"},
        [
            f'spec.template.cliques[0].name: Invalid value: "{"x" * 43}": the names of the set and the clique have 46 '
            "characters together and may have 45: shorten one of them"
        ],
    ),
    "names too long together in a scaling group": (
        {f"{GROUP}[0].name": "x" * 39},
        [
            'spec.template.podCliqueScalingGroups[0].cliqueNames[0]: Invalid value: "back": the names of the set, the '
            "scaling group and the clique have 46 characters together and may have 45: shorten one of them"
        ],
    ),
    "a label's key is none": (
        {f"{CLIQUE}[0].labels": {"a/b/c": "d"}},
        [
            "spec.template.cliques[0].labels: Invalid value: \"a/b/c\": must have at most one '/', between a DNS "
            "prefix and a name (for example 'example.com/my-name')"
        ],
    ),
    "a label's value is none": (
        {f"{CLIQUE}[0].labels": {"tier": "not this"}},
        [f'spec.template.cliques[0].labels[tier]: Invalid value: "not this": {NOT_A_LABEL}'],
    ),
    "an annotation's key is none": (
        {f"{CLIQUE}[0].annotations": {"a b": "c"}},
        [f'spec.template.cliques[0].annotations: Invalid value: "a b": name part {NOT_A_LABEL}'],
    ),
    "an annotation's key of a scaling group is none": (
        {f"{GROUP}[0].annotations": {"": "c"}},
        [
            'spec.template.podCliqueScalingGroups[0].annotations: Invalid value: "": name part must not be empty',
        ],
    ),
    "annotations too long": (
        {f"{CLIQUE}[0].annotations": {"notes": "x" * 262_140}},
        ["spec.template.cliques[0].annotations: Too long: may not be more than 262144 bytes"],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES.keys())
def test_a_bad_name_is_refused(change: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(sound(), change)) == expected


def test_a_sound_set_passes_without_a_word() -> None:
    assert problems(sound()) == []
    assert warnings(sound()) == []


@pytest.mark.parametrize("length", [44, 45])
def test_names_may_have_45_characters_together(length: int) -> None:
    assert problems(a_set("web", a_clique_template("x" * (length - 3)))) == []


def test_annotation_keys_may_be_in_upper_case() -> None:
    assert problems(changed(sound(), {f"{CLIQUE}[0].annotations": {"Example.COM/Notes": "x" * 262_127}})) == []


def test_a_name_that_the_server_is_still_to_make_is_counted_with_its_ending() -> None:
    unnamed = {"metadata": {"generateName": "web-", "namespace": "default"}}
    assert problems(a_set("", a_clique_template("x" * 36)) | unnamed) == []
    [problem] = problems(a_set("", a_clique_template("x" * 37)) | unnamed)
    assert "have 46 characters together" in problem


def test_a_name_that_makes_no_host_name_passes_with_a_warning() -> None:
    body = a_set("3d.web", a_clique_template("a.b"))
    assert problems(body) == []
    assert warnings(body) == [
        "the set's name \"3d.web\" must consist of lower case letters, digits and '-', start with a letter and end "
        "with a letter or digit (for example 'my-name' or 'abc-123'), or its Service and host names are refused",
        'the name of clique "a.b" must not contain dots, or its Service and host names are refused',
    ]
