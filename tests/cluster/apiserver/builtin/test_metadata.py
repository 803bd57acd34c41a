"""Metadata: what a change may not touch, and how owners that are there twice are dropped."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shoal.cluster.apiserver.builtin.metadata import (
    drop_duplicate_owners,
    field_manager_problems,
    validate_metadata,
    validate_metadata_update,
)
from shoal.cluster.apiserver.builtin.names import NameRule, label_problems, path_segment_problems, subdomain_problems

BEFORE = {
    "name": "a",
    "namespace": "n",
    "uid": "u",
    "resourceVersion": "5",
    "generation": 3,
    "creationTimestamp": "2026-01-02T03:04:05Z",
}


def told(problems: list[Any]) -> list[str]:
    return [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"generation": 4}, [], id="a-higher-generation"),
        pytest.param(
            {"generation": 2},
            ["metadata.generation: Invalid value: 2: must not be decremented"],
            id="a-lower-generation",
        ),
        pytest.param({"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable'], id="name"),
        pytest.param(
            {"namespace": "m"}, ['metadata.namespace: Invalid value: "m": field is immutable'], id="namespace"
        ),
        pytest.param({"uid": None}, ['metadata.uid: Invalid value: "": field is immutable'], id="uid"),
        pytest.param(
            {"creationTimestamp": None},
            ["metadata.creationTimestamp: Invalid value: null: field is immutable"],
            id="creation",
        ),
        pytest.param(
            {"deletionTimestamp": "2026-01-02T03:04:06Z"},
            ['metadata.deletionTimestamp: Invalid value: "2026-01-02T03:04:06Z": field is immutable'],
            id="deletion",
        ),
        pytest.param(
            {"deletionGracePeriodSeconds": 5},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"],
            id="grace",
        ),
        pytest.param(
            {"resourceVersion": ""},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="no-version",
        ),
    ],
)
def test_what_identifies_an_object_stays(changes: dict[str, Any], expected: list[str]) -> None:
    new = {"metadata": {key: value for key, value in {**BEFORE, **changes}.items() if value is not None}}
    assert told(validate_metadata_update(new, {"metadata": BEFORE})) == expected


def test_an_object_that_ends_gets_no_new_finalizers() -> None:
    old = {**BEFORE, "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["a.b/c"]}
    new = {**old, "finalizers": ["a.b/c", "a.b/e", "a.b/d"]}
    assert told(validate_metadata_update({"metadata": new}, {"metadata": old})) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"a.b/d", "a.b/e"}'
    ]
    assert not validate_metadata_update({"metadata": {**old, "finalizers": []}}, {"metadata": old})


@pytest.mark.parametrize(
    ("prefix", "rule", "is_good"),
    [
        pytest.param("job-", subdomain_problems, True, id="a-dash-at-the-end"),
        pytest.param("-", subdomain_problems, False, id="only-a-dash"),
        pytest.param("Job-", subdomain_problems, False, id="a-capital"),
        pytest.param("a.b-", label_problems, False, id="a-dot-in-a-label"),
        pytest.param("..", path_segment_problems, True, id="two-dots-of-a-role"),
        pytest.param("a/", path_segment_problems, False, id="a-slash-of-a-role"),
    ],
)
def test_a_prefix_of_names_is_judged_as_such(prefix: str, rule: NameRule, is_good: bool) -> None:
    metadata = {"generateName": prefix, "name": "fine", "namespace": "n"}
    problems = validate_metadata({"metadata": metadata}, namespaced=True, name_problems=rule)
    assert not problems if is_good else {each.path for each in problems} == {"metadata.generateName"}


@pytest.mark.parametrize(
    ("namespaced", "namespace", "expected"),
    [
        pytest.param(True, "", ["metadata.namespace: Required value"], id="missing"),
        pytest.param(False, "n", ["metadata.namespace: Forbidden: not allowed on this type"], id="too-much"),
        pytest.param(False, "", [], id="none"),
    ],
)
def test_a_namespace_is_where_it_belongs(namespaced: bool, namespace: str, expected: list[str]) -> None:
    new = {"metadata": {"name": "a", **({"namespace": namespace} if namespace else {})}}
    assert told(validate_metadata(new, namespaced=namespaced, name_problems=subdomain_problems)) == expected


def test_a_name_is_needed() -> None:
    problems = validate_metadata({"metadata": {}}, namespaced=False, name_problems=subdomain_problems)
    assert told(problems) == ["metadata.name: Required value: name or generateName is required"]


def test_finalizers_of_custom_kinds_need_no_prefix() -> None:
    new = {"metadata": {"name": "a", "finalizers": ["mine"]}}
    assert not validate_metadata(new, namespaced=False, name_problems=subdomain_problems, is_custom=True)
    assert validate_metadata(new, namespaced=False, name_problems=subdomain_problems)


def test_owners_that_are_there_twice_are_dropped_and_told_of() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}
    new = {"metadata": {"ownerReferences": [owner, {**owner, "uid": "2"}, dict(owner)]}}
    (warning,) = drop_duplicate_owners(new, is_admitted=False)
    assert [each["uid"] for each in new["metadata"]["ownerReferences"]] == ["1", "2"]
    assert warning.endswith("duplicate UID(s) observed: 1")
    assert not drop_duplicate_owners(new, is_admitted=True)


def test_managed_fields_are_looked_at() -> None:
    managed = [{"operation": "Odd", "fieldsType": "X", "manager": "a" * 129, "subresource": "s" * 257}]
    problems = validate_metadata(
        {"metadata": {"name": "a", "managedFields": managed}}, namespaced=False, name_problems=subdomain_problems
    )
    assert told(problems) == [
        'metadata.managedFields[0].operation: Invalid value: "Odd": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "X": must be `FieldsV1`',
        "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
        "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
    ]


def test_a_field_manager_is_printable() -> None:
    assert told(field_manager_problems("a\nb", "fieldManager")) == [
        'fieldManager: Invalid value: "a\\nb": invalid character U+000A (at position 1)'
    ]
    assert not field_manager_problems("kubectl client ä", "fieldManager")


def test_ten_thousand_owners_are_looked_at_once_each() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    owners = [{**owner, "uid": str(number), "controller": True} for number in range(10_000)]
    new: dict[str, Any] = {
        "metadata": {"name": "owned", "namespace": "default", "ownerReferences": [*owners, owners[0]]}
    }
    began = time.process_time()
    assert len(drop_duplicate_owners(new, is_admitted=False)) == 1
    assert new["metadata"]["ownerReferences"] == owners
    problems = validate_metadata(new, namespaced=True, name_problems=lambda _name: [])
    assert len(problems) == 9_999
    assert time.process_time() - began < 10
