"""Resizing a pod where it runs: CPU and memory of its containers, and nothing else."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.workloads.claims import MIRROR
from shoal.cluster.apiserver.builtin.workloads.pod_spec import pod_problems
from shoal.cluster.apiserver.builtin.workloads.pod_updates import keep_old_status_and_metadata
from shoal.cluster.apiserver.builtin.workloads.resources import quality_of_service
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid

_LISTS = ("containers", "initContainers")


def prepare_resize(new: Object, old: Object) -> None:
    """Of what is written to the subresource, only resources and resize policies count."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in _LISTS):
        return
    kept = {**before}
    for field in _LISTS:
        if spec.get(field):
            kept[field] = _merged(spec[field], before[field])
    if "resources" in spec:
        kept["resources"] = spec["resources"]
    else:
        kept.pop("resources", None)
    new["spec"] = kept
    keep_old_status_and_metadata(new, old)


def validate_resize(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a resize."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    problems = pod_problems(new)
    if MIRROR in ((old.get("metadata") or {}).get("annotations") or {}):
        return [forbidden("", "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    status = old.get("status") or {}
    if (status.get("qosClass") or quality_of_service(before)) != quality_of_service(spec):
        shown = (new.get("status") or {}).get("qosClass", "")
        problems.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _is_supported(status):
        problems.append(forbidden("spec", "Pod running on node without support for resize"))
    kept = {**spec}
    if _asks(before) or _asks(spec):
        _check_pod_level(spec, before, kept, problems)
    if ordering := _ordering_problems(spec, before):
        return problems + ordering
    for field in reversed(_LISTS):
        for index, (container, earlier) in enumerate(zip(spec.get(field) or (), before.get(field) or (), strict=True)):
            _check_removed(container, earlier, f"spec.{field}[{index}].resources", problems)
    _check_other_fields(spec, before, kept, problems)
    if not problems and kept != before:
        problems.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return problems


def _merged(containers: list[Object], before: list[Object]) -> list[Object]:
    if any(new.get("name") != old.get("name") for new, old in zip(containers, before, strict=True)):
        return containers
    merged = []
    for new, old in zip(containers, before, strict=True):
        container = {key: value for key, value in old.items() if key not in ("resources", "resizePolicy")}
        container |= {key: new[key] for key in ("resources", "resizePolicy") if key in new}
        merged.append(container)
    return merged


def _is_supported(status: Object) -> bool:
    for each in status.get("containerStatuses") or ():
        if (each.get("state") or {}).get("running") is not None:
            return each.get("resources") is not None
    return True


def _asks(spec: Object) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _check_pod_level(spec: Object, before: Object, kept: Object, problems: list[FieldProblem]) -> None:
    resources, earlier = spec.get("resources"), before.get("resources")
    if earlier is not None:
        if resources is None:
            problems.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
            return
        for side in ("requests", "limits"):
            if (earlier.get(side) or {}).keys() - (resources.get(side) or {}).keys():
                words = f"pod-level resource {side} cannot be removed"
                problems.append(forbidden(f"spec.resources.{side}", words))
    put_back = _with_old_compute(resources or {}, earlier or {})
    if put_back or earlier is not None:
        kept["resources"] = put_back
    else:
        kept.pop("resources", None)
    if kept.get("resources") != earlier:
        problems.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))


def _ordering_problems(spec: Object, before: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field in _LISTS:
        containers, earlier = spec.get(field) or (), before.get(field) or ()
        if len(containers) != len(earlier):
            problems.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        problems += [
            forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")
            for index, (new, old) in enumerate(zip(containers, earlier, strict=True))
            if new.get("name") != old.get("name")
        ]
    return problems


def _check_removed(container: Object, earlier: Object, path: str, problems: list[FieldProblem]) -> None:
    new, old = container.get("resources") or {}, earlier.get("resources") or {}
    for side in ("requests", "limits"):
        if (old.get(side) or {}).keys() - (new.get(side) or {}).keys():
            problems.append(forbidden(f"{path}.{side}", f"resource {side} cannot be removed"))


def _check_other_fields(spec: Object, before: Object, kept: Object, problems: list[FieldProblem]) -> None:
    for field in _LISTS:
        put_back = []
        for index, (container, earlier) in enumerate(zip(spec.get(field) or (), before.get(field) or (), strict=True)):
            new, old = container.get("resources") or {}, earlier.get("resources") or {}
            same = {**container, "resources": _with_old_compute(new, old)}
            put_back.append(same)
            is_changed = same != {**earlier, "resources": old}
            if field == "containers":
                if is_changed:
                    problems.append(forbidden("spec", "only cpu and memory resources are mutable"))
                continue
            here = f"spec.initContainers[{index}]"
            if is_changed:
                words = "only cpu and memory resources for init or sidecar containers are mutable"
                problems.append(forbidden(here, words))
            restarts = any(
                each.get("restartPolicy") == "RestartContainer" for each in container.get("resizePolicy") or ()
            )
            if container != earlier and container.get("restartPolicy") != "Always" and restarts:
                words = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                problems.append(forbidden(here, words))
        if put_back:
            kept[field] = put_back


def _with_old_compute(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The resources with CPU and memory put back; claims of devices are not kept, so that they count as changed."""
    merged = {}
    for side in ("limits", "requests"):
        amounts = {name: each for name, each in (new.get(side) or {}).items() if name not in ("cpu", "memory")}
        amounts |= {name: each for name, each in (old.get(side) or {}).items() if name in ("cpu", "memory")}
        if amounts:
            merged[side] = amounts
    return merged
