"""Definitions: what they are completed with, what is refused about them, and what their status says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cluster.apiserver.custom import (
    DEFINITION_RULES,
    default_definition,
    definition_status,
    definition_warnings,
    deprecation_warning,
    kinds_of,
    validate_definition,
    validate_definition_update,
)
from shoal.cluster.apiserver.refusals import Refused
from tests.cluster.apiserver.custom.gadgets import TEXT, definition

NOW = "2026-01-01T00:00:00Z"
SPEC = "spec.validation.openAPIV3Schema.properties[spec].properties"

Definition = dict[str, Any]


def completed(value: Definition | None = None) -> Definition:
    value = definition() if value is None else value
    default_definition(value)
    return value


def texts(value: Definition) -> list[str]:
    return [str(each) for each in validate_definition(completed(value))]


def test_a_definition_that_uses_everything_is_right() -> None:
    assert texts(definition()) == []


def test_what_is_left_out_is_filled_in() -> None:
    value = completed()
    names = value["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("gadget", "GadgetList")
    assert value["spec"]["conversion"] == {"strategy": "None"}
    assert value["status"]["storedVersions"] == ["v1"]


def test_formats_that_mean_nothing_are_warned_of() -> None:
    assert definition_warnings(completed()) == ['unrecognized format "weird"']


CASES = yaml.safe_load((Path(__file__).parent / "definition_cases.yaml").read_text())
FIELD_PROBLEMS = [(case["schema"], case["expected"]) for case in CASES["fields"]]


@pytest.mark.parametrize(("schema", "expected"), FIELD_PROBLEMS, ids=[str(each)[:70] for each, _ in FIELD_PROBLEMS])
def test_a_schema_that_cannot_be_right_is_refused_in_the_words_of_kubernetes(
    schema: dict[str, Any], expected: list[str]
) -> None:
    path = f"{SPEC}[probe]"
    assert texts(definition(probe=schema)) == [path + each.replace("{path}", path) for each in expected]


def changed(change: Callable[[Definition], Any]) -> Definition:
    value = definition()
    change(value)
    return value


def _second_version(value: Definition, **fields: Any) -> None:
    value["spec"]["versions"].append({**copy.deepcopy(value["spec"]["versions"][0]), "name": "v2", **fields})


def _version(value: Definition) -> Definition:
    version: Definition = value["spec"]["versions"][0]
    return version


def _schema(value: Definition) -> Definition:
    schema: Definition = _version(value)["schema"]["openAPIV3Schema"]
    return schema


def _in_protected_group(value: Definition) -> None:
    value["spec"]["group"] = "x.k8s.io"
    value["metadata"]["name"] = "gadgets.x.k8s.io"


LABELLED = {"type": "object", "properties": {"labels": {"type": "object"}}}
CHANGES: dict[str, Callable[[Definition], Any]] = {
    "group": lambda value: value["spec"].update(group="nodot"),
    "name": lambda value: value["metadata"].update(name="x.y"),
    "scope": lambda value: value["spec"].update(scope="X"),
    "no scope": lambda value: value["spec"].pop("scope"),
    "kind": lambda value: value["spec"]["names"].update(kind="Gad_get", listKind="L"),
    "same kinds": lambda value: value["spec"]["names"].update(listKind="Gadget"),
    "short name": lambda value: value["spec"]["names"].update(shortNames=["X"]),
    "no schema": lambda value: _version(value).pop("schema"),
    "warning": lambda value: _version(value).update(deprecationWarning="x"),
    "scale": lambda value: _version(value)["subresources"]["scale"].update(specReplicasPath=".status.x"),
    "column type": lambda value: _version(value)["additionalPrinterColumns"][0].update(type="x"),
    "column path": lambda value: _version(value)["additionalPrinterColumns"][0].update(jsonPath="x"),
    "selectable": lambda value: _version(value).update(selectableFields=[{"jsonPath": ".spec.nope"}]),
    "conversion": lambda value: value["spec"].update(conversion={"strategy": "Webhook"}),
    "unknown fields": lambda value: value["spec"].update(preserveUnknownFields=True),
    "two stored": _second_version,
    "same version": lambda value: _second_version(value, name="v1", storage=False),
    "root type": lambda value: _schema(value).update(type="string"),
    "root metadata": lambda value: _schema(value)["properties"].update(metadata=LABELLED),
    "approval": _in_protected_group,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_definition_that_cannot_be_right_is_refused(name: str) -> None:
    found = texts(changed(CHANGES[name]))
    assert [each for each in found if CASES["definitions"][name] in each], found


def test_what_differs_between_versions_is_told_of_the_version() -> None:
    value = definition()
    _second_version(value, storage=False)
    schema = value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"a": {}, "name": TEXT}
    path = "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[a].type"
    assert f"{path}: Required value: must not be empty for specified object fields" in texts(value)


def established(value: Definition | None = None) -> Definition:
    value = completed(value)
    value["status"] = definition_status(value, [], now=NOW)
    return value


IMMUTABLE: dict[str, tuple[Callable[[Definition], Any], str]] = {
    "spec.group": (lambda value: value["spec"].update(group="other.test"), "other.test"),
    "spec.names.plural": (lambda value: value["spec"]["names"].update(plural="others"), "others"),
    "spec.names.kind": (lambda value: value["spec"]["names"].update(kind="Other"), "Other"),
    "spec.scope": (lambda value: value["spec"].update(scope="Cluster"), "Cluster"),
}


@pytest.mark.parametrize("field", IMMUTABLE)
def test_what_objects_are_stored_by_never_changes(field: str) -> None:
    change, value = IMMUTABLE[field]
    old = established()
    new = copy.deepcopy(old)
    change(new)
    expected = f'{field}: Invalid value: "{value}": field is immutable'
    assert [str(each) for each in validate_definition_update(new, old)] == [expected]


def test_a_version_that_objects_may_be_stored_in_stays() -> None:
    old = established()
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["name"] = "v2"
    DEFINITION_RULES.prepare_update(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert [str(each) for each in validate_definition_update(new, old)] == [
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage '
        "version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 "
        "and removes v1 from status.storedVersions"
    ]


def test_an_accepted_definition_is_established() -> None:
    assert established()["status"] == {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": NOW,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": NOW,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": {
            "plural": "gadgets",
            "singular": "gadget",
            "shortNames": ["gd"],
            "kind": "Gadget",
            "listKind": "GadgetList",
            "categories": ["all"],
        },
        "storedVersions": ["v1"],
    }


def test_a_status_that_is_right_does_not_change() -> None:
    value = established()
    assert definition_status(value, [], now="2027-01-01T00:00:00Z") == value["status"]


def test_names_that_are_taken_are_not_accepted() -> None:
    other = established()
    value = completed()
    value["metadata"]["name"] = "widgets.custom.shoal.test"
    value["spec"]["names"] |= {"plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    status = definition_status(value, [other], now=NOW)
    assert [(each["type"], each["status"], each["reason"], each["message"]) for each in status["conditions"]] == [
        ("NamesAccepted", "False", "KindConflict", '"Gadget" is already in use'),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "",
        "listKind": "WidgetList",
        "categories": ["all"],
    }


def test_a_new_definition_has_no_status_of_its_own() -> None:
    value = completed()
    value["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    DEFINITION_RULES.prepare_create(value)
    assert value["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }


def test_each_version_makes_a_kind() -> None:
    value = definition()
    _second_version(value, storage=False, served=False, deprecated=True)
    first, second = kinds_of(established(value))
    assert (first.api_version, second.api_version) == ("custom.shoal.test/v1", "custom.shoal.test/v2")
    assert first.storage == second.storage == "gadgets.custom.shoal.test"
    assert (first.resource, first.singular, first.list_kind) == ("gadgets", "gadget", "GadgetList")
    assert (first.short_names, first.categories, first.namespaced) == (("gd",), ("all",), True)
    assert set(first.subresources) == {"status", "scale"}
    assert first.scale is not None
    assert first.scale.spec_replicas == ("spec", "replicas")
    assert first.scale.selector == ("status", "selector")
    assert first.rules.resets == {"": (("status",),), "status": (("metadata",), ("spec",))}
    assert first.is_custom
    assert deprecation_warning(value, "v1") == ""
    assert deprecation_warning(value, "v2") == "custom.shoal.test/v2 Gadget is deprecated"


def test_selectable_fields_are_read_as_text() -> None:
    [kind] = kinds_of(established())
    read = {name: field({"spec": {"mode": "A", "flag": True}}) for name, field in kind.rules.fields.items()}
    assert read == {"spec.mode": "A", "spec.flag": "true"}
    assert kind.rules.fields["spec.mode"]({}) == ""


def test_an_object_in_another_version_has_the_fields_of_that_version() -> None:
    value = definition()
    _second_version(value, storage=False)
    fields = {"name": TEXT, "extra": {"type": "string", "default": "e"}}
    value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = fields
    first, second = kinds_of(established(value))
    assert first.from_storage is None
    assert second.from_storage is not None
    assert second.to_storage is not None
    assert second.from_storage({"metadata": {}, "spec": {"name": "a", "mode": "A"}})["spec"] == {
        "name": "a",
        "extra": "e",
    }
    assert second.to_storage({"metadata": {}, "spec": {"name": "a", "extra": "e"}})["spec"]["replicas"] == 1


def test_conversion_by_webhook_is_refused_clearly() -> None:
    value = definition()
    _second_version(value, storage=False)
    value["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a.b/c"}},
    }
    assert texts(value) == []
    _, second = kinds_of(established(value))
    assert second.from_storage is not None
    with pytest.raises(Refused, match=r"conversion webhook for custom\.shoal\.test/v1, Kind=Gadget failed"):
        second.from_storage({})
