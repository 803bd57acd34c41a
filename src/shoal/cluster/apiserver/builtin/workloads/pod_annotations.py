"""Annotations of pods and templates that mean something to the server: most said it before there was a field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.cluster.apiserver.builtin.workloads.claims import MIRROR
from shoal.cluster.apiserver.builtin.workloads.scheduling import check_tolerations
from shoal.cluster.apiserver.builtin.workloads.texts import descending_path_problems
from shoal.cluster.apiserver.builtin.workloads.windows import all_containers
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid

SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_cost = re.compile("0|-[0-9]{1,12}|[1-9][0-9]{0,11}").fullmatch
_LOCAL = "localhost/"
_SECCOMP_WORDS = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
_APPARMOR_WORDS = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)}


def annotation_problems(annotations: dict[str, str], spec: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with those that mean something."""
    problems: list[FieldProblem] = []
    if not annotations:
        return problems
    if MIRROR in annotations and not spec.get("nodeName"):
        words = "must set spec.nodeName if mirror pod annotation is set"
        problems.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], words))
    if annotations.get(_TOLERATIONS):
        _check_tolerations(annotations[_TOLERATIONS], path, problems)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_cost(cost):
        problems.append(invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))
    for key, value in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            problems += _seccomp_problems(value, f"{path}.{key}")
        elif key.startswith(APPARMOR):
            name = key.removeprefix(APPARMOR)
            if all(container.get("name") != name for container, _ in all_containers(spec, "")):
                problems.append(invalid(f"{path}[{key}]", name, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCAL):
                problems.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return problems


def mismatch_problems(annotations: dict[str, str], spec: dict[str, Any], path: str) -> list[FieldProblem]:
    """Annotations and fields of a new pod that say two things of the same profile."""
    if not any(key.startswith((SECCOMP_CONTAINER, APPARMOR)) or key == SECCOMP_POD for key in annotations):
        return []
    problems: list[FieldProblem] = []
    context = spec.get("securityContext") or {}
    pod_profile = context.get("seccompProfile")
    if pod_profile is not None and SECCOMP_POD in annotations:
        here = f"{path}.securityContext.seccompProfile"
        problems += _mismatch(annotations[SECCOMP_POD], pod_profile, "seccomp", _SECCOMP_WORDS, here)
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    for container, here in all_containers(spec, path):
        own = container.get("securityContext") or {}
        name = container.get("name", "")
        said = annotations.get(SECCOMP_CONTAINER + name)
        if said is not None and own.get("seccompProfile") is not None:
            where = f"{here}.securityContext.seccompProfile"
            problems += _mismatch(said, own["seccompProfile"], "seccomp", _SECCOMP_WORDS, where)
        said = annotations.get(APPARMOR + name)
        profile = own.get("appArmorProfile") or context.get("appArmorProfile")
        if said is not None and profile is not None and not is_windows:
            where = f"{here}.securityContext.appArmorProfile"
            problems += _mismatch(said, profile, "apparmor", _APPARMOR_WORDS, where)
    return problems


def update_problems(new: dict[str, str], old: dict[str, str], path: str) -> list[FieldProblem]:
    """Annotations that no update of a pod may touch."""
    problems: list[FieldProblem] = []
    for key, value in old.items():
        if new.get(key) != value:
            if key.startswith(APPARMOR):
                problems.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
            if key == MIRROR:
                problems.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in new.keys() - old.keys():
        if key.startswith(APPARMOR):
            problems.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR:
            problems.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return problems


def apparmor_profile(annotation: str) -> dict[str, Any] | None:
    """The field that an AppArmor annotation means."""
    for kind, words in _APPARMOR_WORDS.items():
        if annotation in words:
            return {"type": kind}
    name = annotation.removeprefix(_LOCAL)
    if annotation.startswith(_LOCAL) and name:
        return {"type": "Localhost", "localhostProfile": name}
    return None


def apply_apparmor(pod: dict[str, Any]) -> None:
    """Sets the field of a new pod's containers where only the annotation says it."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    spec = pod.get("spec") or {}
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    if is_windows or not any(key.startswith(APPARMOR) for key in annotations):
        return
    pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in all_containers(spec, ""):
        profile = apparmor_profile(annotations.get(APPARMOR + container.get("name", ""), ""))
        own = container.get("securityContext") or {}
        if profile is None or own.get("appArmorProfile") is not None or profile == pod_profile:
            continue
        local = profile.get("localhostProfile", "")
        if local.strip() == local and len(local) <= 4095:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile


def _mismatch(
    said: str, profile: dict[str, Any], what: str, words: Mapping[str, tuple[str, ...]], path: str
) -> list[FieldProblem]:
    kind = profile.get("type", "")
    if kind == "Localhost":
        if not said.startswith(_LOCAL):
            return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
        if said.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            return [forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
    elif kind in words and said not in words[kind]:
        return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    return []


def _seccomp_problems(profile: str, path: str) -> list[FieldProblem]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(_LOCAL):
        return descending_path_problems(profile.removeprefix(_LOCAL), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _check_tolerations(text: str, path: str, problems: list[FieldProblem]) -> None:
    try:
        tolerations = msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeError) as error:
        problems.append(invalid(path, _TOLERATIONS, str(error)))
        return
    check_tolerations(tolerations, f"{path}.{_TOLERATIONS}", problems)


def _is_cost(text: str) -> bool:
    return bool(_cost(text)) and -(2**31) <= int(text) < 2**31
