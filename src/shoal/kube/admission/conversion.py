"""Conversion of objects between the versions of a kind, as the API server asks for it at ``/convert``.

A conversion is a pure function from one version's plain JSON values to another's. Not every pair has to be given: with
``v1 → v2`` and ``v2 → v3`` a v1 object becomes v3 by way of v2, the shortest way that is known.

What belongs to the framework is done here, once: ``apiVersion`` is set, and of the metadata only labels and annotations
may change, as the API server demands. A conversion that fails fails the whole request, with the object named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from shoal.api.meta.resource import Resource
from shoal.kube.admission.wire import ConversionRequest, ConversionResponse, ConversionResult

Content: TypeAlias = dict[str, Any]
Converter: TypeAlias = Callable[[Content], Content]

CONVERT_PATH = "/convert"


class NoConversion(Exception):
    """An object cannot be had in the version asked for."""


@dataclass(frozen=True, order=True)
class _Version:
    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, content: Content) -> _Version:
        group, _, version = str(content.get("apiVersion", "")).rpartition("/")
        return cls(group, version, str(content.get("kind", "")))


@dataclass(frozen=True)
class Conversions:
    """The known conversions between versions."""

    _steps: dict[_Version, dict[_Version, Converter]] = field(default_factory=dict)

    def add(self, source: Resource[Any], target: Resource[Any], converter: Converter) -> None:
        """Makes a conversion known."""
        if (source.group, source.kind) != (target.group, target.kind):
            raise ValueError(f"a conversion stays within a kind, but {source} and {target} are two")
        origin = _Version(source.group, source.version, source.kind)
        targets = self._steps.setdefault(origin, {})
        goal = _Version(target.group, target.version, target.kind)
        if goal in targets:
            raise ValueError(f"a conversion from {source} to {target} is there already")
        targets[goal] = converter

    def __bool__(self) -> bool:
        return bool(self._steps)

    def converted(self, content: Content, api_version: str) -> Content:
        """The object in another version; what was given is left as it is."""
        current = _Version.of(content)
        group, _, version = api_version.rpartition("/")
        goal = _Version(group, version, current.kind)
        # A private copy, since a converter may well take parts of its input along, or change them.
        result: Content = msgspec.json.decode(msgspec.json.encode(content))
        for step, converter in self._way(current, goal):
            result = converter(result)
            result |= {"apiVersion": f"{step.group}/{step.version}", "kind": step.kind}
        result["metadata"] = _kept_metadata(content.get("metadata") or {}, result.get("metadata") or {})
        return result

    def _way(self, start: _Version, goal: _Version) -> list[tuple[_Version, Converter]]:
        ways: dict[_Version, list[tuple[_Version, Converter]]] = {start: []}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here == goal:
                return ways[here]
            for there, converter in self._steps.get(here, {}).items():
                if there not in ways:
                    ways[there] = [*ways[here], (there, converter)]
                    waiting.append(there)
        raise NoConversion(f"no conversion leads from {start.kind} {start.group}/{start.version} to {goal.version}")


def answer(
    conversions: Conversions, request: ConversionRequest, *, on_fault: Callable[[Exception], None]
) -> ConversionResponse:
    """Converts all objects of a request, or says which one could not be converted and why."""
    converted: list[Content] = []
    for content in request.objects:
        try:
            converted.append(conversions.converted(content, request.desired_api_version))
        except NoConversion as error:
            return _failure(request, str(error))
        except Exception as error:
            # Converters are others' code: their fault is an answer here.
            on_fault(error)
            return _failure(request, f"{_place(content)} cannot be converted: {type(error).__name__}: {error}")
    return ConversionResponse(uid=request.uid, converted_objects=converted, result=ConversionResult(status="Success"))


def _failure(request: ConversionRequest, message: str) -> ConversionResponse:
    return ConversionResponse(
        uid=request.uid, converted_objects=[], result=ConversionResult(status="Failure", message=message)
    )


def _kept_metadata(before: Content, after: Content) -> Content:
    free = ("labels", "annotations")
    kept = {key: value for key, value in before.items() if key not in free}
    return kept | {key: after[key] for key in free if after.get(key)}


def _place(content: Content) -> str:
    metadata = content.get("metadata") or {}
    return f"{content.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name', '')}".replace(" /", " ")
