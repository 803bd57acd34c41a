"""Files that a pod's own fields, ConfigMaps, Secrets and tokens become, alone or put together in one volume."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.workloads.environment import (
    VOLUME_FIELDS,
    field_reference_problems,
    resource_reference_problems,
)
from shoal.cluster.apiserver.builtin.workloads.texts import local_path_problems
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, required

_TWICE = "conflicting duplicate paths"
_TEN_MINUTES = 600


def mode_problems(mode: int | None, path: str) -> list[FieldProblem]:
    """The permissions of a file."""
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]


def key_problems(item: dict[str, Any], path: str) -> list[FieldProblem]:
    """One key and the file that it becomes."""
    problems = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    problems += local_path_problems(item.get("path", ""), f"{path}.path")
    return problems + mode_problems(item.get("mode"), f"{path}.mode")


def downward_file_problems(item: dict[str, Any], path: str) -> list[FieldProblem]:
    """One field of the pod and the file that it becomes."""
    problems = [] if item.get("path") else [required(f"{path}.path")]
    problems += local_path_problems(item.get("path", ""), f"{path}.path")
    reference, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if reference is not None:
        problems += field_reference_problems(reference, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            words = "fieldRef and resourceFieldRef can not be specified simultaneously"
            problems.append(invalid(path, "resource", words))
    elif resource is not None:
        problems += resource_reference_problems(resource, f"{path}.resourceFieldRef", in_volume=True)
    else:
        problems.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return problems + mode_problems(item.get("mode"), f"{path}.mode")


def projected_problems(source: dict[str, Any], path: str) -> list[FieldProblem]:
    """Several sources in one volume."""
    problems = mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (held := part.get(kind)) is not None:
                problems += _held_problems(held, path, f"{here}.{kind}", taken)
        if (downward := part.get("downwardAPI")) is not None:
            for item in downward.get("items") or ():
                problems += downward_file_problems(item, f"{here}.downwardAPI")
                problems += _taken_problems(item.get("path", ""), item.get("path", ""), path, taken)
        if (token := part.get("serviceAccountToken")) is not None:
            problems += _token_problems(token, path, f"{here}.serviceAccountToken")
        if len(part) > 1:
            problems.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return problems


def _held_problems(held: dict[str, Any], path: str, here: str, taken: set[str]) -> list[FieldProblem]:
    name = held.get("name", "")
    problems = [] if name else [required(f"{here}.name")]
    for index, item in enumerate(held.get("items") or ()):
        problems += key_problems(item, f"{here}.items[{index}]")
        problems += _taken_problems(item.get("path", ""), name, path, taken)
    return problems


def _taken_problems(target: str, shown: str, path: str, taken: set[str]) -> list[FieldProblem]:
    if not target:
        return []
    if target in taken:
        return [invalid(path, shown, _TWICE)]
    taken.add(target)
    return []


def _token_problems(token: dict[str, Any], path: str, here: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seconds = token.get("expirationSeconds", 0)
    if seconds < _TEN_MINUTES:
        words = "may not specify a duration less than 10 minutes"
        problems.append(invalid(f"{here}.expirationSeconds", seconds, words))
    if seconds > 1 << 32:
        words = "may not specify a duration larger than 2^32 seconds"
        problems.append(invalid(f"{here}.expirationSeconds", seconds, words))
    if not token.get("path"):
        problems.append(required(f"{path}.path"))
    else:
        problems += local_path_problems(token["path"], f"{path}.path")
    return problems
