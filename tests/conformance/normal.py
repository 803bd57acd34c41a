"""Makes two runs of one story comparable: what differs from run to run gets a name, everything else stays.

Names keep what they stand for comparable within a story: the same uid has the same name everywhere, and resource
versions are numbered in their order, so that "unchanged", "newer" and "not older than" can still be read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.conformance.player import Answer
from tests.conformance.story import Request, Story

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_CLUSTER_IP = re.compile(r"\b10\.96\.\d+\.\d+\b")
_JWT = re.compile(r"ey[\w-]+\.ey[\w-]+\.[\w-]+")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
_SERVER = re.compile(r"\b\d+\.\d+\.\d+\.\d+:\d{4,5}\b")
_GENERATED = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_CURRENT = re.compile(r"(current: |resource version: \d+ \()\d+")
_VERSION_IN_TEXT = re.compile(r'(ResourceVersion in record \(|resourceVersion\\*":\\*")(\d+)')
# Objects in Go's own notation, and diffs of those: words for a person, in names that no client knows.
_GO_DIFF = re.compile(r"\n@@ .*", re.DOTALL)
_GO_OBJECT = re.compile(
    r'(Invalid value: )\{"(?:Volumes|volumes|initContainers|containers)":.*?\}(: field is immutable)'
)
_AGE = re.compile(r"(\d+[smh])+|<invalid>")
_NODE_PORTS = ("nodePort", "healthCheckNodePort")
_NODE_PORT_RANGE = range(30000, 32768)
_RECENT = timedelta(days=2)


def normalised(story: Story, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The answers of one run as they are recorded and compared."""
    return _Names(story, answers).apply()


class _Names:
    def __init__(self, story: Story, answers: Sequence[Answer]) -> None:
        self._answers = answers
        self._asked = "\n".join(_text(step) for step in story.steps)
        self._versions = sorted({int(version) for answer in answers for version in _object_versions(answer.body)})
        self._uids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._ports: dict[int, str] = {}
        self._generated = [re.compile(rf"(?<!\w){re.escape(prefix)}{_GENERATED}(?!\w)") for prefix in _prefixes(story)]
        self._names: dict[str, str] = {}
        self._now = datetime.now(UTC)

    def apply(self) -> list[dict[str, Any]]:
        return [{key: self._value(value, key) for key, value in answer.as_json().items()} for answer in self._answers]

    def _value(self, value: Any, key: str) -> Any:
        match value:
            case str():
                return self._text(value)
            case dict():
                return self._object(value)
            case list() if key == "cells":
                return [
                    "<age>" if isinstance(cell, str) and _AGE.fullmatch(cell) else self._value(cell, "")
                    for cell in value
                ]
            case list():
                return [self._value(item, key) for item in value]
            case int() if key in _NODE_PORTS and value in _NODE_PORT_RANGE and str(value) not in self._asked:
                return self._ports.setdefault(value, f"<node port {len(self._ports) + 1}>")
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        named = {self._text(key): self._value(item, key) for key, item in value.items()}
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            if version := metadata.get("resourceVersion"):
                named["metadata"]["resourceVersion"] = self._version(version, is_object="name" in metadata)
            if metadata.get("continue"):
                named["metadata"]["continue"] = "<continue>"
            if isinstance(metadata.get("managedFields"), list):
                # They go by their times first: whether two writes fell into one second is no answer of the server's.
                named["metadata"]["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
        if value.get("reason") == "Invalid" and isinstance(named.get("details"), dict):
            # The real server checks some metadata twice and then tells of it twice.
            causes = named["details"].get("causes", [])
            causes[:] = [cause for place, cause in enumerate(causes) if cause not in causes[:place]]
        if value.get("reason") == "Conflict" and isinstance(named.get("details"), dict):
            # The real server gathers the conflicts of an apply in no order.
            named["details"].get("causes", []).sort(key=lambda cause: (cause["field"], cause["message"]))
        if isinstance(value.get("columnDefinitions"), list):
            # Built-in columns are described in Kubernetes' own prose, which no client reads.
            for column in named["columnDefinitions"]:
                if column.get("description") not in self._asked:
                    column.pop("description", None)
        return named

    def _version(self, version: str, *, is_object: bool) -> str:
        if not version.isdigit() or version == "0":
            return version
        rank = bisect_right(self._versions, int(version))
        return f"<rv {rank}>" if is_object else f"<rv ≥ {rank}>"

    def _text(self, text: str) -> str:
        for pattern in self._generated:
            text = pattern.sub(self._name, text)
        text = _UID.sub(lambda match: self._numbered(self._uids, match[0], "uid"), text)
        text = _TIME.sub(self._time, text)
        text = _CLUSTER_IP.sub(lambda match: self._numbered(self._addresses, match[0], "cluster ip"), text)
        text = _TOKEN_VOLUME.sub("kube-api-access-<random>", text)
        text = _JWT.sub("<token>", text)
        text = _SERVER.sub("<server>", text)
        text = _VERSION_IN_TEXT.sub(lambda match: match[1] + self._version(match[2], is_object=True), text)
        text = _GO_OBJECT.sub(r"\1<object>\2", _GO_DIFF.sub("\n<difference>", text))
        return _CURRENT.sub(r"\1<rv>", text)

    def _numbered(self, seen: dict[str, str], found: str, what: str) -> str:
        return found if found in self._asked else seen.setdefault(found, f"<{what} {len(seen) + 1}>")

    def _name(self, match: re.Match[str]) -> str:
        return self._names.setdefault(match[0], f"{match[0][:-5]}<random {len(self._names) + 1}>")

    def _time(self, match: re.Match[str]) -> str:
        if match[0] in self._asked or abs(datetime.fromisoformat(match[0]) - self._now) > _RECENT:
            return match[0]
        return "<time with fraction>" if match[1] else "<time>"


def _text(step: Any) -> str:
    if not isinstance(step, Request):
        return str(step)
    return f"{step.path} {step.query} " + (
        json.dumps(step.body) if isinstance(step.body, dict | list) else str(step.body)
    )


def _object_versions(value: Any) -> list[str]:
    found: list[str] = []

    def look(item: dict[str, Any]) -> None:
        metadata = item.get("metadata")
        if isinstance(metadata, dict) and "name" in metadata and str(metadata.get("resourceVersion", "")).isdigit():
            found.append(metadata["resourceVersion"])

    _each_object(value, look)
    return found


def _prefixes(story: Story) -> list[str]:
    """The beginnings of names that the story asks the server to complete; the longest first."""
    found: set[str] = set()

    def look(item: dict[str, Any]) -> None:
        if isinstance(prefix := item.get("generateName"), str):
            found.add(prefix)

    for step in story.steps:
        _each_object(getattr(step, "body", None), look)
    return sorted(found, key=len, reverse=True)


def _each_object(value: Any, look: Callable[[dict[str, Any]], None]) -> None:
    if isinstance(value, dict):
        look(value)
        for item in value.values():
            _each_object(item, look)
    elif isinstance(value, list):
        for item in value:
            _each_object(item, look)
