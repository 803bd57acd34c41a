"""Environment variables, and the references to fields and resources of a pod that they and volumes can hold."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.names import (
    config_key_problems,
    label_problems,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.builtin.workloads.texts import backstep_problems, environment_name_problems
from shoal.kube.admission.fields import FieldProblem, invalid, not_supported, required

_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
VOLUME_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_KNOWN_FIELDS = _FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES = frozenset(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_CPU_DIVISORS = frozenset({"1m", "1"})
_BYTE_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (_CPU_DIVISORS, "1m and 1", "cpu"),
    "memory": (frozenset(_BYTE_UNITS), ", ".join(_BYTE_UNITS), "memory"),
    "ephemeral-storage": (frozenset(_BYTE_UNITS), ", ".join(_BYTE_UNITS), "local ephemeral storage"),
    "hugepages": (frozenset(_BYTE_UNITS), ", ".join(_BYTE_UNITS), "hugepages"),
}


def check_environment(variables: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    """The variables of a container."""
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            problems.append(required(f"{path}[{index}].name"))
        elif messages := environment_name_problems(name):
            problems += [invalid(f"{path}[{index}].name", name, each) for each in messages]
        if (source := variable.get("valueFrom")) is not None:
            _check_source(source, bool(variable.get("value")), f"{path}[{index}].valueFrom", problems)


def check_environment_sources(sources: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    """Whole ConfigMaps and Secrets that become variables."""
    for index, source in enumerate(sources):
        if prefix := source.get("prefix"):
            problems += [invalid(f"{path}[{index}].prefix", prefix, each) for each in environment_name_problems(prefix)]
        count = 0
        for kind in ("configMapRef", "secretRef"):
            if (reference := source.get(kind)) is None:
                continue
            count += 1
            here, name = f"{path}[{index}].{kind}.name", reference.get("name", "")
            if not name:
                problems.append(required(here))
            elif messages := _prefix_messages(name):
                problems += [invalid(here, name, each) for each in messages]
        if count == 0:
            problems.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            problems.append(invalid(path, "", "may not have more than one field specified at a time"))


def field_reference_problems(reference: dict[str, Any], fields: frozenset[str], path: str) -> list[FieldProblem]:
    """A reference to a field of the pod."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if version != "v1":
        words = f"error converting fieldPath: unsupported pod version: {version}"
        return [invalid(f"{path}.fieldPath", field, words)]
    holder, key = _subscripted(field)
    if key is not None:
        if holder == "metadata.annotations":
            return [invalid(path, key.lower(), each) for each in qualified_name_problems(key.lower())]
        if holder == "metadata.labels":
            return [invalid(path, key, each) for each in qualified_name_problems(key)]
        words = f"error converting fieldPath: field label does not support subscript: {field}"
        return [invalid(f"{path}.fieldPath", field, words)]
    field = "spec.nodeName" if field == "spec.host" else field
    if field not in _KNOWN_FIELDS:
        words = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, words)]
    return [] if field in fields else [not_supported(f"{path}.fieldPath", field, sorted(fields))]


def resource_reference_problems(reference: dict[str, Any], path: str, *, in_volume: bool) -> list[FieldProblem]:
    """A reference to what a container asks for."""
    problems: list[FieldProblem] = []
    resource = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        problems.append(required(f"{path}.containerName"))
    elif not resource:
        problems.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        problems.append(not_supported(f"{path}.resource", resource, sorted(_RESOURCES)))
    divisor = reference.get("divisor", "0")
    if parse_quantity(divisor).is_zero:
        return problems
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if resource in _RESOURCES or kind == "hugepages":
        known, shown, words = _DIVISORS[kind]
        if divisor not in known:
            message = f"only divisor's values {shown} are supported with the {words} resource"
            problems.append(invalid(f"{path}.divisor", resource, message))
    return problems


def _check_source(source: dict[str, Any], has_value: bool, path: str, problems: list[FieldProblem]) -> None:
    count = 0
    if (reference := source.get("fieldRef")) is not None:
        count += 1
        problems += field_reference_problems(reference, _FIELDS, f"{path}.fieldRef")
    if (reference := source.get("resourceFieldRef")) is not None:
        count += 1
        problems += resource_reference_problems(reference, f"{path}.resourceFieldRef", in_volume=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            count += 1
            _check_key(reference, f"{path}.{kind}", problems)
    if (reference := source.get("fileKeyRef")) is not None:
        count += 1
        _check_file_key(reference, f"{path}.fileKeyRef", problems)
    if count == 0:
        words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        problems.append(invalid(path, "", words))
    elif has_value:
        problems.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        problems.append(invalid(path, "", "may not have more than one field specified at a time"))


def _check_key(reference: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    name, key = reference.get("name", ""), reference.get("key", "")
    if messages := subdomain_problems(name):
        problems += [invalid(f"{path}.name", name, each) for each in messages]
    if not key:
        problems.append(required(f"{path}.key"))
    elif messages := config_key_problems(key):
        problems += [invalid(f"{path}.key", key, each) for each in messages]


def _check_file_key(reference: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    key, volume, target = (reference.get(each, "") for each in ("key", "volumeName", "path"))
    if not key:
        problems.append(required(f"{path}.key"))
    else:
        problems += [invalid(f"{path}.key", key, each) for each in environment_name_problems(key)]
    if not volume:
        problems.append(required(f"{path}.volumeName"))
    else:
        problems += [invalid(f"{path}.volumeName", volume, each) for each in label_problems(volume)]
    if not target:
        problems.append(required(f"{path}.path"))
    else:
        problems += backstep_problems(target, f"{path}.path")


def _subscripted(field: str) -> tuple[str, str | None]:
    """``metadata.labels['a']`` as its two parts."""
    if field.endswith("']"):
        holder, bracket, key = field[:-2].partition("['")
        if bracket and holder:
            return holder, key
    return field, None


def _prefix_messages(name: str) -> list[str]:
    # These two are checked as the beginnings of names are: a dash at the end is none.
    return subdomain_problems(name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name)
