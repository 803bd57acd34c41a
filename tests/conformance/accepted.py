"""Where the embedded server answers differently on purpose: each place, what it says instead, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Accepted:
    """One answer of one story, counted from 1; ``ours`` is by dotted path, None where the value is not there."""

    story: str
    step: int
    ours: Mapping[str, Any]
    why: str


# Steps that patch strategically with a value of the wrong type: the patch as it is told, and what ours says of it.
_WRONG_TYPES = (
    (
        "strategic patch directives",
        6,
        "map[data:map[$retainKeys:[x] x:1]]",
        "json: cannot unmarshal array into Go struct field ConfigMap.data of type string",
    ),
    (
        "strategic patches that fail",
        4,
        "map[spec:map[template:map[spec:map[containers:map[name:main]]]]]",
        "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type "
        "[]v1.Container",
    ),
    (
        "strategic patches that fail",
        5,
        "map[spec:map[replicas:many]]",
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
)

CLIENTS_FAULT = "a version that is no number is the client's fault, and 5xx would make clients try again"

ACCEPTED = (
    Accepted(
        "a junk version to watch from",
        1,
        {
            "status": 400,
            "body.code": 400,
            "body.reason": "BadRequest",
            "body.message": 'invalid resource version: resourceVersion: Invalid value: "junk": '
            'strconv.ParseUint: parsing "junk": invalid syntax',
        },
        CLIENTS_FAULT,
    ),
    *(
        Accepted(
            "reading at a resource version",
            step,
            {
                "status": 400,
                "body.code": 400,
                "body.reason": "BadRequest",
                "body.message": f'invalid resource version: resourceVersion: Invalid value: "{version}": '
                f'strconv.ParseUint: parsing "{version}": invalid syntax',
            },
            CLIENTS_FAULT,
        )
        for step, version in ((3, "junk"), (4, "-1"))
    ),
    Accepted(
        "optimistic concurrency",
        5,
        {
            "status": 409,
            "body.code": 409,
            "body.reason": "Conflict",
            "body.details": {"kind": "configmaps", "name": "one"},
            "body.message": 'Operation cannot be fulfilled on configmaps "one": the object has been modified; please '
            "apply your changes to the latest version and try again",
        },
        CLIENTS_FAULT,
    ),
    Accepted(
        "optimistic concurrency",
        7,
        {
            "body.message": 'Operation cannot be fulfilled on configmaps "one": Precondition failed: UID in '
            "precondition: 11111111-2222-3333-4444-555555555555, UID in object meta: <uid 1>"
        },
        "it has no keys in etcd to tell of",
    ),
    *(
        Accepted(
            story,
            step,
            {
                "body.details.causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "field": "patch",
                        "message": f'Invalid value: "{patch}": {problem}',
                    }
                ],
                "body.message": f' "" is invalid: patch: Invalid value: "{patch}": {problem}',
            },
            "the real server does not say which field it is that has the wrong type",
        )
        for story, step, patch, problem in _WRONG_TYPES
    ),
    Accepted(
        "watches of metadata alone",
        3,
        {
            "status": 406,
            "body": {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "you requested PartialObjectMetadataList, but the requested object is not a list "
                "(*core.ConfigMap)",
                "reason": "NotAcceptable",
                "code": 406,
            },
        },
        "it says why there is nothing to watch, where the real server ends the watch at once without a word",
    ),
    *(
        Accepted(
            story,
            step,
            {f"body.{place}": None},
            "an empty list that nobody gets to see again belongs to nobody",
        )
        for story, step, place in (
            ("tables of small kinds", 13, "metadata.managedFields"),
            ("tables of small kinds", 14, "rows.0.object.metadata.managedFields"),
            ("tables of other groups", 1, "metadata.managedFields"),
            ("tables of other groups", 2, "rows.0.object.metadata.managedFields"),
        )
    ),
    Accepted(
        "tables of workloads",
        8,
        {"body.rows.0.object.metadata.annotations": {"deprecated.daemonset.template.generation": "1"}},
        "the metadata of a table's rows is that of the objects",
    ),
    Accepted(
        "volumes and claims",
        8,
        {
            "body.details.causes": [
                {"field": "spec.accessModes", "message": "Required value", "reason": "FieldValueRequired"},
                {"field": "spec.capacity", "message": "Required value", "reason": "FieldValueRequired"},
                {
                    "field": "spec.capacity",
                    "message": 'Unsupported value: {}: supported values: "storage"',
                    "reason": "FieldValueNotSupported",
                },
                {
                    "field": "spec",
                    "message": "Required value: must specify a volume type",
                    "reason": "FieldValueRequired",
                },
            ],
            "body.message": 'PersistentVolume "conformance-pv2" is invalid: [spec.accessModes: Required value, '
            'spec.capacity: Required value, spec.capacity: Unsupported value: {}: supported values: "storage", '
            "spec: Required value: must specify a volume type]",
        },
        "a map that is empty and one that is not there are the same",
    ),
    Accepted(
        "numbers at the edge",
        4,
        {
            "body.message": 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number 1e+20 into '
            "Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"
        },
        "a number of more than 64 bits is told as it was understood, not as it was written",
    ),
    Accepted(
        "a resource version is not set by who creates",
        1,
        {"status": 400, "body.code": 400, "body.reason": "BadRequest"},
        "an object that is sent with a version is the client's fault, and 5xx would make clients try again",
    ),
    Accepted(
        "options of a deletion that are refused",
        7,
        {"body.message": "decoded object cannot be converted to DeleteOptions: it is a Unicorn"},
        "the real message names a line of Go",
    ),
    Accepted(
        "groups by name",
        7,
        {
            "body.versions": [
                {"groupVersion": "scheduling.k8s.io/v1", "version": "v1"},
                {"groupVersion": "scheduling.k8s.io/v1alpha1", "version": "v1alpha1"},
            ]
        },
        "it serves the Workload kind, which a real server has behind a feature gate",
    ),
    Accepted(
        "open api documents",
        1,
        {"headers.Content-Type": "application/json", "body": ["api/v1", "apis/apps/v1"]},
        "JSON is called JSON; and it describes the kinds, not discovery, which clients know by heart",
    ),
    *(
        Accepted(
            "open api documents",
            step,
            {
                "body.delete.parameters": [
                    "dryRun",
                    "gracePeriodSeconds",
                    "orphanDependents",
                    "propagationPolicy",
                ]
            },
            "it has no objects that it cannot read, and so no way to delete them all the same",
        )
        for step in (8, 9)
    ),
    Accepted(
        "open api documents",
        10,
        {"body": "404 page not found\n", "headers.Content-Type": "text/plain; charset=utf-8"},
        "a 404 says so, as everywhere else",
    ),
    Accepted(
        "health and version",
        7,
        {"headers.Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        "the format is the same; only newer scrapers know the word for how names are escaped",
    ),
)


# What a patch made of an object, whole and in Go's order of fields, when it is refused: nobody can read it, and it may
# hold what should not stand in logs. The place, the reason and the problem are the same.
_PATCHED_OBJECT = re.compile(r'patch: Invalid value: "\{.*\}": |^Invalid value: "\{.*\}": ', re.DOTALL)


def expected_of_embedded(story: str, recorded: list[Any]) -> list[Any]:
    """The recorded answers with the accepted differences put in; one that is none any more is an error."""
    expected: list[Any] = json.loads(json.dumps(recorded))
    for answer in expected:
        _shorten_patched(answer.get("body"))
    for one in ACCEPTED:
        if one.story == story:
            for path, value in one.ours.items():
                _put(expected[one.step - 1], path, value)
    return expected


def _shorten_patched(body: Any) -> None:
    causes = body.get("details", {}).get("causes", []) if isinstance(body, dict) and body.get("code") == 422 else []
    if [cause.get("field") for cause in causes] == ["patch"]:
        for told in (body, causes[0]):
            told["message"] = _PATCHED_OBJECT.sub(_shortened, told["message"])


def _shortened(match: re.Match[str]) -> str:
    return match[0].partition('"')[0] + '"{...}": '


def _put(answer: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for name in way:
        answer = answer[int(name)] if isinstance(answer, list) else answer[name]
    assert answer.get(last) != value, f"{path} is no difference any more: take it out of accepted.py"
    if value is None:
        del answer[last]
    else:
        answer[last] = value
