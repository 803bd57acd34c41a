"""ResourceClaim, ResourceClaimTemplate and DeviceClass: which devices are asked for, and which were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.cluster.apiserver.builtin.conditions import conditions_problems
from shoal.cluster.apiserver.builtin.metadata import annotations_problems
from shoal.cluster.apiserver.builtin.names import (
    c_identifier_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
    text_bytes,
)
from shoal.cluster.apiserver.builtin.resource_names import is_extended
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, labels_problems, node_selector_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, named, one_of
from shoal.cluster.apiserver.builtin.volumes import csi_driver_name_problems
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

GROUP = "resource.k8s.io"
MAX_REQUESTS = 32
MAX_CHOICES = 8
MAX_SELECTORS = 32
MAX_CONSTRAINTS = 32
MAX_CONFIGS = 32
MAX_RESERVED = 256
MAX_CONDITIONS = 8
EXPRESSION_LIMIT = 10 * 1024
PARAMETERS_LIMIT = 10 * 1024
IDENTIFIER_LIMIT = 32
EFFECTS = ("NoExecute", "NoSchedule", "None")

Check = Callable[[Any, str], list[FieldProblem]]


def default_claim(new: Object) -> None:
    """One device of each, where no number is given."""
    default_requests((new.get("spec") or {}).get("devices") or {})


def default_template(new: Object) -> None:
    """The same for claims to come."""
    default_requests(((new.get("spec") or {}).get("spec") or {}).get("devices") or {})


def default_requests(devices: dict[str, Any]) -> None:
    """The same for requests at any place."""
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for each in [*([exact] if exact is not None else []), *(request.get("firstAvailable") or ())]:
            if not each.get("allocationMode"):
                each["allocationMode"] = "ExactCount"
            if each["allocationMode"] == "ExactCount" and not each.get("count"):
                each["count"] = 1


def claim_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a claim."""
    return claim_spec_problems(new.get("spec") or {}, "spec")


def claim_spec_problems(spec: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with what a claim asks for."""
    devices, here = spec.get("devices") or {}, f"{path}.devices"
    names = _request_names(devices)
    requests = devices.get("requests") or []
    problems = each_problems(requests, MAX_REQUESTS, _request_problems, f"{here}.requests", key="name")
    constraints, configs = devices.get("constraints") or [], devices.get("config") or []
    problems += each_problems(
        constraints, MAX_CONSTRAINTS, lambda each, at: _constraint_problems(each, at, names), f"{here}.constraints"
    )
    return problems + each_problems(
        configs, MAX_CONFIGS, lambda each, at: _config_problems(each, at, names), f"{here}.config"
    )


def validate_claim_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: what was asked for stays."""
    return [] if new.get("spec") == old.get("spec") else [immutable("spec", new.get("spec"))]


def validate_claim_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with what was given, and to whom."""
    status, before = new.get("status") or {}, old.get("status") or {}
    names = _request_names((new.get("spec") or {}).get("devices") or {})
    reserved = status.get("reservedFor") or []
    problems = each_problems(reserved, MAX_RESERVED, _consumer_problems, "status.reservedFor", key="uid")
    allocation, had = status.get("allocation"), before.get("allocation")
    given = {_device_key(each) for each in ((allocation or {}).get("devices") or {}).get("results") or ()}
    reported: set[tuple[str, ...]] = set()
    for index, device in enumerate(status.get("devices") or ()):
        here, key = f"status.devices[{index}]", _device_key(device)
        problems += _device_status_problems(device, here, given)
        if key in reported:
            problems.append(duplicate(here, "/".join(key).rstrip("/")))
        reported.add(key)
    if reserved and allocation is None:
        words = "may not be specified when `allocated` is not set"
        problems.append(forbidden("status.reservedFor", words))
    is_new = any(each not in (before.get("reservedFor") or ()) for each in reserved)
    if allocation is not None and is_new and new["metadata"].get("deletionTimestamp"):
        words = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        problems.append(forbidden("status.reservedFor", words))
    if allocation is not None and had is not None and allocation != had:
        problems.append(immutable("status.allocation", allocation))
    elif allocation is not None and had is None:
        problems += _allocation_problems(allocation, "status.allocation", names)
    return problems


def template_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a template of claims."""
    spec = new.get("spec") or {}
    metadata = spec.get("metadata") or {}
    problems = labels_problems(metadata.get("labels"), "spec.metadata.labels")
    problems += annotations_problems(metadata.get("annotations"), "spec.metadata.annotations")
    return problems + claim_spec_problems(spec.get("spec") or {}, "spec.spec")


def class_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a DeviceClass."""
    spec = new.get("spec") or {}
    problems = each_problems(spec.get("selectors") or [], MAX_SELECTORS, _selector_problems, "spec.selectors")
    problems += each_problems(spec.get("config") or [], MAX_CONFIGS, _opaque_problems, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        problems.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return problems


def each_problems(
    items: list[Any], limit: int, check: Check, path: str, *, key: str | None = None
) -> list[FieldProblem]:
    """What is wrong with the items of a list that has a limit, and where a key is given, no item twice."""
    if len(items) > limit:
        return [too_many(path, len(items), limit)]
    problems = [problem for index, item in enumerate(items) for problem in check(item, f"{path}[{index}]")]
    seen: set[str] = set()
    for index, item in enumerate(items):
        identity = "" if key is None else item if key == "" else item.get(key, "")
        if key is not None and identity in seen:
            problems.append(duplicate(f"{path}[{index}]", identity))
        seen.add(identity)
    return problems


def pool_name_problems(name: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming a pool of devices."""
    if not name:
        return [required(path)]
    problems = [too_long(path, 253)] if len(name) > 253 else []
    return problems + [problem for part in name.split("/") for problem in named(path, part, subdomain_problems)]


def attribute_name_problems(name: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming an attribute, with or without a domain before it."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _identifier_problems(name, path)
    if "/" in identifier:
        return []
    empty_domain = [invalid(path, "", "the domain must not be empty")]
    empty_name = [invalid(path, "", "the name must not be empty")]
    problems = csi_driver_name_problems(domain, path) if domain else empty_domain
    return problems + (_identifier_problems(identifier, path) if identifier else empty_name)


def taint_problems(taint: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with a taint of a device."""
    problems = label_key_problems(taint.get("key", ""), f"{path}.key")
    problems += named(f"{path}.value", taint.get("value", ""), label_value_problems)
    if effect := taint.get("effect"):
        return problems + one_of(f"{path}.effect", effect, EFFECTS)
    return [*problems, required(f"{path}.effect")]


def _request_problems(request: dict[str, Any], path: str) -> list[FieldProblem]:
    problems = named(f"{path}.name", request.get("name", ""), label_problems)
    exact, choices = request.get("exactly"), request.get("firstAvailable") or []
    words = "exactly one of `exactly` or `firstAvailable` is required"
    if exact is None and not choices:
        problems.append(required(path, words))
    elif exact is not None and choices:
        problems.append(invalid(path, None, f"{words}, but multiple fields are set"))
    elif choices:
        problems += each_problems(choices, MAX_CHOICES, _choice_problems, f"{path}.firstAvailable", key="name")
    else:
        problems += _exact_problems(exact or {}, f"{path}.exactly")
    return problems


def _choice_problems(choice: dict[str, Any], path: str) -> list[FieldProblem]:
    return named(f"{path}.name", choice.get("name", ""), label_problems) + _exact_problems(choice, path)


def _exact_problems(request: dict[str, Any], path: str) -> list[FieldProblem]:
    name = request.get("deviceClassName", "")
    problems = named(f"{path}.deviceClassName", name, subdomain_problems)
    if not name:
        problems = [required(f"{path}.deviceClassName")]
    problems += each_problems(request.get("selectors") or [], MAX_SELECTORS, _selector_problems, f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count:
        problems.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        problems.append(invalid(f"{path}.count", count, POSITIVE))
    elif mode not in ("All", "ExactCount"):
        problems.append(not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        problems += _toleration_problems(toleration, f"{path}.tolerations[{index}]")
    return problems


def _toleration_problems(toleration: dict[str, Any], path: str) -> list[FieldProblem]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    problems = label_key_problems(key, f"{path}.key") if key else []
    if operator == "Exists" and value:
        problems.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        problems += named(f"{path}.value", value, label_value_problems)
    elif not operator:
        problems.append(required(f"{path}.operator"))
    elif operator != "Exists":
        problems.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    return problems + (one_of(f"{path}.effect", effect, EFFECTS) if effect else [])


def _selector_problems(selector: dict[str, Any], path: str) -> list[FieldProblem]:
    expression = selector.get("cel")
    if expression is None:
        return [required(f"{path}.cel")]
    if text_bytes(expression.get("expression", "")) > EXPRESSION_LIMIT:
        return [too_long(f"{path}.cel.expression", EXPRESSION_LIMIT)]
    return []


def _constraint_problems(constraint: dict[str, Any], path: str, names: set[str]) -> list[FieldProblem]:
    problems = _references_problems(constraint, path, names)
    for field in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(field)
        if name is not None:
            problems += attribute_name_problems(name, f"{path}.{field}")
            if "/" not in name:
                words = "a fully qualified name must be a domain and a name separated by a slash"
                problems.append(invalid(f"{path}.{field}", name, words))
            return problems
    words = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*problems, required(path, words)]


def _config_problems(config: dict[str, Any], path: str, names: set[str]) -> list[FieldProblem]:
    return _references_problems(config, path, names) + _opaque_problems(config, path)


def _opaque_problems(config: dict[str, Any], path: str) -> list[FieldProblem]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    problems = csi_driver_name_problems(opaque.get("driver", ""), f"{path}.opaque.driver")
    return problems + _extension_problems(opaque.get("parameters"), f"{path}.opaque.parameters")


def _extension_problems(value: Any, path: str) -> list[FieldProblem]:
    if value is None:
        return [required(path)]
    if len(msgspec.json.encode(value)) > PARAMETERS_LIMIT:
        return [too_long(path, PARAMETERS_LIMIT)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def _references_problems(holder: dict[str, Any], path: str, names: set[str]) -> list[FieldProblem]:
    def check(name: str, at: str) -> list[FieldProblem]:
        return _reference_problems(name, at, names)

    return each_problems(holder.get("requests") or [], MAX_REQUESTS, check, f"{path}.requests", key="")


def _reference_problems(name: str, path: str, names: set[str]) -> list[FieldProblem]:
    unknown = invalid(
        path,
        name,
        "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
    )
    parts = name.split("/")
    if len(parts) > 2:
        return [unknown]
    problems = [problem for part in parts for problem in named(path, part, label_problems)]
    return problems if name in names else [*problems, unknown]


def _request_names(devices: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        names |= {name, *(f"{name}/{each.get('name', '')}" for each in request.get("firstAvailable") or ())}
    return names


def _identifier_problems(name: str, path: str) -> list[FieldProblem]:
    problems = [too_long(path, IDENTIFIER_LIMIT)] if len(name) > IDENTIFIER_LIMIT else []
    return problems + named(path, name, c_identifier_problems)


def _consumer_problems(consumer: dict[str, Any], path: str) -> list[FieldProblem]:
    return [required(f"{path}.{field}") for field in ("resource", "name", "uid") if not consumer.get(field)]


def _device_key(device: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(device.get(each) or "") for each in ("driver", "pool", "device", "shareID"))


def _device_status_problems(device: dict[str, Any], path: str, given: set[tuple[str, ...]]) -> list[FieldProblem]:
    problems = csi_driver_name_problems(device.get("driver", ""), f"{path}.driver")
    problems += pool_name_problems(device.get("pool", ""), f"{path}.pool")
    problems += named(f"{path}.device", device.get("device", ""), label_problems)
    if _device_key(device) not in given:
        shown = "/".join(_device_key(device)).rstrip("/")
        problems.append(invalid(path, shown, "must be an allocated device in the claim"))
    conditions = device.get("conditions") or []
    if len(conditions) > MAX_CONDITIONS:
        problems.append(too_many(f"{path}.conditions", len(conditions), MAX_CONDITIONS))
    problems += conditions_problems(conditions, f"{path}.conditions")
    return problems + (_extension_problems(device["data"], f"{path}.data") if device.get("data") else [])


def _allocation_problems(allocation: dict[str, Any], path: str, names: set[str]) -> list[FieldProblem]:
    def result(each: dict[str, Any], at: str) -> list[FieldProblem]:
        problems = _reference_problems(each.get("request", ""), f"{at}.request", names)
        problems += csi_driver_name_problems(each.get("driver", ""), f"{at}.driver")
        problems += pool_name_problems(each.get("pool", ""), f"{at}.pool")
        return problems + named(f"{at}.device", each.get("device", ""), label_problems)

    def config(each: dict[str, Any], at: str) -> list[FieldProblem]:
        source = each.get("source", "")
        known = one_of(f"{at}.source", source, ("FromClaim", "FromClass"))
        return (known if source else [required(f"{at}.source")]) + _config_problems(each, at, names)

    devices = allocation.get("devices") or {}
    problems = each_problems(devices.get("results") or [], MAX_REQUESTS, result, f"{path}.devices.results")
    problems += each_problems(devices.get("config") or [], 2 * MAX_CONFIGS, config, f"{path}.devices.config")
    if (selector := allocation.get("nodeSelector")) is not None:
        problems += node_selector_problems(selector, f"{path}.nodeSelector")
    return problems


RULES = {
    (GROUP, "ResourceClaim"): Rules(
        name_problems=subdomain_problems,
        defaults=default_claim,
        validate_create=claim_problems,
        validate_update=validate_claim_update,
        validate_status=validate_claim_status,
        has_generation=False,
        resets={"": (("status",),), "status": (("metadata",), ("spec",))},
    ),
    (GROUP, "ResourceClaimTemplate"): Rules(
        name_problems=subdomain_problems,
        defaults=default_template,
        validate_create=template_problems,
        validate_update=validate_claim_update,
        has_generation=False,
    ),
    (GROUP, "DeviceClass"): Rules(
        name_problems=subdomain_problems,
        validate_create=class_problems,
        validate_update=lambda new, _old: class_problems(new),
    ),
}
