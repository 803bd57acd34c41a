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
        answer = answer[name]
    assert answer.get(last) != value, f"{path} is no difference any more: take it out of accepted.py"
    if value is None:
        del answer[last]
    else:
        answer[last] = value
