"""PersistentVolumeClaim: what is claimed, from what data it starts, and what stays once it is bound."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.differences import difference
from shoal.cluster.apiserver.builtin.names import label_problems, qualified_name_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.resource_names import is_native
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, named, one_of
from shoal.cluster.apiserver.builtin.volumes import (
    BETA_CLASS,
    DEPRECATED_ANNOTATIONS,
    VOLUME_MODES,
    access_mode_problems,
    basic_amount_problems,
)
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden, immutable, invalid, not_supported, required

_OLD_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


def default_claim(new: Object) -> None:
    """A claim waits, for a file system, where nothing else is said."""
    new.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    new.setdefault("status", {}).setdefault("phase", "Pending")


def prepare_claim(new: Object) -> None:
    """Starts it waiting, and says its data source in both ways."""
    new["status"] = {"phase": "Pending"}
    _join_data_sources(new["spec"], {})


def prepare_claim_update(new: Object, old: Object) -> None:
    """The same for a change."""
    _join_data_sources(new["spec"], old["spec"])


def claim_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a claim."""
    return claim_spec_problems(new["spec"], "spec")


def claim_spec_problems(spec: dict[str, Any], path: str) -> list[FieldProblem]:
    """The same for the spec alone, as templates of claims have it too."""
    problems: list[FieldProblem] = []
    if not spec.get("accessModes"):
        problems.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    problems += label_selector_problems(spec.get("selector"), f"{path}.selector")
    problems += access_mode_problems(spec, path)
    place = f"{path}.resources[storage]"
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        problems.append(required(place))
    elif parse_quantity(size).nano <= 0:
        problems.append(invalid(place, str(size), POSITIVE))
    for field in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(field):
            problems += named(f"{path}.{field}", spec[field], subdomain_problems)
    if spec.get("volumeMode") is not None:
        problems += one_of(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is not None:
            problems += _data_source_problems(value, f"{path}.{field}")
    if source is not None and reference is not None and not reference.get("namespace"):
        differs = any(source.get(each) != reference.get(each) for each in ("apiGroup", "kind", "name"))
        problems += [invalid(path, {}, "must match dataSourceRef")] if differs else []
    return problems


def validate_claim_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: only a bound claim may grow, or change its class of attributes."""
    problems = claim_problems(new)
    spec, before = new["spec"], old["spec"]
    annotations = new["metadata"].get("annotations") or {}
    had = old["metadata"].get("annotations") or {}
    changed, kept = dict(spec), dict(before)
    if not before.get("volumeName"):
        kept["volumeName"] = changed.get("volumeName")
    name, was = spec.get("storageClassName"), before.get("storageClassName")
    moved = BETA_CLASS in had and was is None and name == had[BETA_CLASS]
    if moved and annotations.get(BETA_CLASS, had[BETA_CLASS]) == had[BETA_CLASS]:
        changed.pop("storageClassName", None)
    else:
        if annotations.get(BETA_CLASS, "") != had.get(BETA_CLASS, ""):
            path = f"metadata.annotations.{BETA_CLASS}"
            problems.append(immutable(path, annotations.get(BETA_CLASS, "")))
        if was is None and name is not None and had.get(BETA_CLASS, name) == name:
            changed.pop("storageClassName", None)
    if (new.get("status") or {}).get("phase") == "Bound":
        changed["resources"] = _without_storage(spec)
        kept["resources"] = _without_storage(before)
        changed.pop("volumeAttributesClassName", None)
        kept.pop("volumeAttributesClassName", None)
    if _set_fields(changed) != _set_fields(kept):
        words = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
            f"claims\n{difference(_set_fields(kept), _set_fields(changed))}"
        )
        problems.append(forbidden("spec", words))
    if _storage(spec) < _storage(before):
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if _storage(spec) <= parse_quantity(capacity).nano:
            path = "spec.resources.requests.storage"
            problems.append(forbidden(path, "field can not be less than status.capacity"))
    if spec.get("volumeMode") != before.get("volumeMode"):
        problems.append(immutable("volumeMode", spec.get("volumeMode")))
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    attributes = spec.get("volumeAttributesClassName")
    if current is not None and attributes != before.get("volumeAttributesClassName") and not attributes:
        to = "nil" if attributes is None else "empty string"
        words = f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        problems.append(forbidden("spec.volumeAttributesClassName", words))
    return problems


def validate_claim_status(new: Object, _old: Object) -> list[FieldProblem]:
    """What is wrong with what was given to a claim."""
    status = new.get("status") or {}
    problems: list[FieldProblem] = []
    for name, value in (status.get("capacity") or {}).items():
        problems += basic_amount_problems(value, f"status.capacity[{name}]")
    for name in status.get("allocatedResourceStatuses") or {}:
        problems += _resource_key_problems(name, "status.allocatedResourceStatuses")
    for name, value in (status.get("allocatedResources") or {}).items():
        found = _resource_key_problems(name, "status.allocatedResources")
        problems += found or basic_amount_problems(value, f"status.allocatedResources[{name}]")
    return problems


def claim_warnings(new: Object) -> list[str]:
    """What a client is told of a claim that is taken."""
    told = []
    if BETA_CLASS in (new["metadata"].get("annotations") or {}):
        told.append(f"metadata.annotations[{BETA_CLASS}]: {DEPRECATED_ANNOTATIONS[BETA_CLASS]}")
    for part in ("requests", "limits"):
        value = ((new["spec"].get("resources") or {}).get(part) or {}).get("storage")
        if value is not None and parse_quantity(value).milli_value() % 1000:
            place = f"spec.resources.{part}[storage]"
            told.append(f'{place}: fractional byte value "{value}" is invalid, must be an integer')
    return told


def _data_source_problems(source: dict[str, Any], path: str) -> list[FieldProblem]:
    problems = [required(f"{path}.{each}") for each in ("name", "kind") if not source.get(each)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if group:
        problems += named(f"{path}.apiGroup", group, subdomain_problems)
    elif kind != "PersistentVolumeClaim":
        words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        problems.append(invalid(path, kind, words))
    if namespace := source.get("namespace"):
        problems += named(f"{path}.namespace", namespace, label_problems)
    return problems


def _join_data_sources(spec: dict[str, Any], before: dict[str, Any]) -> None:
    if (spec.get("dataSourceRef") or {}).get("namespace") and before.get("dataSourceRef") is None:
        # References into other namespaces are not served unless a cluster asks for them.
        del spec["dataSourceRef"]
    had = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    source = spec.get("dataSource") or {}
    is_old = not source or (source.get("kind"), source.get("apiGroup") or "") in _OLD_SOURCES
    if not is_old and spec.get("dataSourceRef") is None and not had:
        # The older of the two fields forgets what it never knew, for the sake of old clients.
        del spec["dataSource"]
    for have, lack in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        if spec.get(have) is not None and spec.get(lack) is None:
            spec[lack] = {each: spec[have][each] for each in ("apiGroup", "kind", "name") if each in spec[have]}


def _resource_key_problems(name: str, path: str) -> list[FieldProblem]:
    if problems := named(path, name, qualified_name_problems):
        return problems
    return [not_supported(path, name, ["storage"])] if is_native(name) and name != "storage" else []


def _storage(spec: dict[str, Any]) -> int:
    return parse_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")).nano


def _without_storage(spec: dict[str, Any]) -> dict[str, Any]:
    resources = dict(spec.get("resources") or {})
    resources["requests"] = {k: v for k, v in (resources.get("requests") or {}).items() if k != "storage"}
    return resources


def _set_fields(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not None}


RULES = {
    ("", "PersistentVolumeClaim"): Rules(
        name_problems=subdomain_problems,
        defaults=default_claim,
        prepare_create=prepare_claim,
        prepare_update=prepare_claim_update,
        validate_create=claim_problems,
        validate_update=validate_claim_update,
        validate_status=validate_claim_status,
        warnings=claim_warnings,
        has_generation=False,
        resets={"": (("status",),), "status": (("spec",),)},
    ),
}
