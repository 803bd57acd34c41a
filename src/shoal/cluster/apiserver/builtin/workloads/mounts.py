"""Where a container finds the volumes of its pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.cluster.apiserver.builtin.workloads.texts import descending_path_problems, has_backstep
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_found, not_supported, required

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def check_mounts(
    mounts: list[dict[str, Any]],
    devices: Sequence[dict[str, Any]],
    volumes: dict[str, dict[str, Any]],
    container: dict[str, Any],
    path: str,
    problems: list[FieldProblem],
) -> None:
    """Volumes that are mounted as folders."""
    by_name = {each.get("name", ""): each.get("devicePath", "") for each in devices}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            problems.append(required(f"{path}[{index}].name"))
        if name not in volumes:
            problems.append(not_found(f"{path}[{index}].name", name))
        if not target:
            problems.append(required(f"{path}[{index}].mountPath"))
        if target in seen:
            problems.append(invalid(f"{path}[{index}].mountPath", target, "must be unique"))
        seen.add(target)
        if by_name:
            if name in by_name:
                problems.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices"))
            if target in by_name.values():
                words = "must not already exist as a path in volumeDevices"
                problems.append(invalid(f"{path}[{index}].mountPath", target, words))
        if len(mount) > 2:
            _check_details(mount, container, path, index, problems)


def check_devices(
    devices: list[dict[str, Any]],
    mounts: Sequence[dict[str, Any]],
    volumes: dict[str, dict[str, Any]],
    path: str,
    problems: list[FieldProblem],
) -> None:
    """Volumes that are given as block devices."""
    by_name = {each.get("name", ""): each.get("mountPath", "") for each in mounts}
    paths: set[str] = set()
    names: set[str] = set()
    for index, device in enumerate(devices):
        here, name, target = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            problems.append(required(f"{here}.name"))
        if name in names:
            problems.append(invalid(f"{here}.name", name, "must be unique"))
        if name not in volumes:
            problems.append(not_found(f"{here}.name", name))
        elif not ({"persistentVolumeClaim", "ephemeral"} & volumes[name].keys()):
            words = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            problems.append(invalid(f"{here}.name", name, words))
        if not target:
            problems.append(required(f"{here}.devicePath"))
        if target in paths:
            problems.append(invalid(f"{here}.devicePath", target, "must be unique"))
        if target and has_backstep(target):
            problems.append(invalid(f"{here}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if name in by_name:
            problems.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if target in by_name.values():
            words = "must not already exist as a path in volumeMounts"
            problems.append(invalid(f"{here}.devicePath", target, words))
        if name:
            names.add(name)


def _check_details(
    mount: dict[str, Any], container: dict[str, Any], path: str, index: int, problems: list[FieldProblem]
) -> None:
    below, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if below:
        problems += descending_path_problems(below, f"{path}.subPath")
    if expression:
        if below:
            words = "subPathExpr and subPath are mutually exclusive"
            problems.append(invalid(f"{path}[{index}].subPathExpr", expression, words))
        problems += descending_path_problems(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        here = f"{path}.mountPropagation"
        if propagation not in _PROPAGATIONS:
            problems.append(not_supported(here, propagation, _PROPAGATIONS))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            words = "Bidirectional mount propagation is available only to privileged containers"
            problems.append(forbidden(here, words))
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None and recursive != "Disabled":
        here = f"{path}.recursiveReadOnly"
        if recursive not in _RECURSIVE:
            problems.append(not_supported(here, recursive, _RECURSIVE))
            return
        if not mount.get("readOnly"):
            problems.append(forbidden(here, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            words = "may only be specified when mountPropagation is None or not specified"
            problems.append(forbidden(here, words))
