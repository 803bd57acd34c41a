"""ResourceSlice: the devices that a driver offers, and from which nodes they can be reached."""

from __future__ import annotations

import re
from typing import Any

from shoal.api.meta import format_time, now
from shoal.cluster.apiserver.builtin.device_claims import (
    GROUP,
    attribute_name_problems,
    each_problems,
    pool_name_problems,
    taint_problems,
)
from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, node_selector_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, named, text
from shoal.cluster.apiserver.builtin.volumes import csi_driver_name_problems
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
    too_many,
)

MAX_DEVICES = 128
MAX_DEVICES_WITH_EXTRAS = 64
MAX_COUNTER_SETS = 8
MAX_COUNTERS = 32
MAX_CONSUMED = 2
MAX_ATTRIBUTES = 32
MAX_TAINTS = 16
MAX_BINDING_CONDITIONS = 4
VALUE_LIMIT = 64

_NUMBER = r"(0|[1-9]\d*)"
_BEFORE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE}(\.{_BEFORE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch


def default_slice(new: Object) -> None:
    """A taint is as old as the request that brings it, where it does not say."""
    for device in (new.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            if not taint.get("timeAdded"):
                taint["timeAdded"] = format_time(now())


def slice_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with a slice."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    problems = csi_driver_name_problems(spec.get("driver", ""), "spec.driver")
    pool = spec.get("pool") or {}
    problems += pool_name_problems(pool.get("name", ""), "spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        problems.append(invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), POSITIVE))
    if pool.get("generation", 0) < 0:
        words = "must be greater than or equal to zero"
        problems.append(invalid("spec.pool.generation", pool["generation"], words))
    if old is not None:
        name, had = pool.get("name", ""), (before.get("pool") or {}).get("name", "")
        problems += [] if name == had else [immutable("spec.pool.name", name)]
        for field in ("driver", "nodeName"):
            if spec.get(field) != before.get(field):
                problems.append(immutable(f"spec.{field}", spec.get(field)))
    problems += _reach_problems(spec)
    devices, counters = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and counters:
        problems.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    limit = MAX_DEVICES_WITH_EXTRAS if any(map(_has_extras, devices)) else MAX_DEVICES
    each_node = bool(spec.get("perDeviceNodeSelection"))
    problems += each_problems(
        devices, limit, lambda each, at: _device_problems(each, at, each_node), "spec.devices", key="name"
    )
    return problems + each_problems(
        counters, MAX_COUNTER_SETS, _counter_set_problems, "spec.sharedCounters", key="name"
    )


def warnings(new: Object) -> list[str]:
    """What a client is told of a slice that is taken."""
    driver = (new.get("spec") or {}).get("driver", "")
    if driver == driver.lower():
        return []
    return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _has_extras(device: dict[str, Any]) -> bool:
    return bool(device.get("taints") or device.get("consumesCounters"))


def _reach_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    given: list[str] = []
    if (node := spec.get("nodeName")) is not None:
        if node:
            given.append("`nodeName`")
            problems += named("spec.nodeName", node, subdomain_problems)
        else:
            problems.append(invalid("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    if (selector := spec.get("nodeSelector")) is not None:
        given.append("`nodeSelector`")
        problems += node_selector_problems(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            path = "spec.nodeSelector.nodeSelectorTerms"
            problems.append(invalid(path, terms, "must have exactly one node selector term"))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif spec.get(field) is not None:
            problems.append(invalid(f"spec.{field}", False, "must be either unset or set to true"))
    words = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not given:
        problems.append(required("spec", words))
    elif len(given) > 1:
        problems.append(invalid("spec", f"{{{', '.join(given)}}}", f"{words}, but multiple fields are set"))
    return problems


def _device_problems(device: dict[str, Any], path: str, each_node: bool) -> list[FieldProblem]:
    problems = named(f"{path}.name", device.get("name", ""), label_problems)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > MAX_ATTRIBUTES:
        words = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        problems.append(invalid(path, count, words))
    for name, attribute in attributes.items():
        problems += attribute_name_problems(name, f"{path}.attributes")
        problems += _attribute_problems(attribute, f"{path}.attributes[{name}]")
    for name, amount in capacity.items():
        problems += attribute_name_problems(name, f"{path}.capacity")
        if amount.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            here = f"{path}.capacity[{name}].requestPolicy"
            problems.append(forbidden(here, "allowMultipleAllocations must be true"))
    problems += each_problems(device.get("taints") or [], MAX_TAINTS, taint_problems, f"{path}.taints")
    problems += each_problems(
        device.get("consumesCounters") or [],
        MAX_CONSUMED,
        _consumption_problems,
        f"{path}.consumesCounters",
        key="counterSet",
    )
    return problems + _device_reach_problems(device, path, each_node) + _binding_problems(device, path)


def _device_reach_problems(device: dict[str, Any], path: str, each_node: bool) -> list[FieldProblem]:
    given = [each for each in ("nodeName", "nodeSelector", "allNodes") if device.get(each) is not None]
    if not each_node:
        words = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        return [invalid(path, None, words)] if given else []
    problems: list[FieldProblem] = []
    if "nodeName" in given:
        node = device["nodeName"]
        found = named(f"{path}.nodeName", node, subdomain_problems)
        problems += found if node else [invalid(f"{path}.nodeName", node, "must not be empty")]
    if "nodeSelector" in given:
        problems += node_selector_problems(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        problems.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    given = [each for each in given if device[each]]
    words = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not given:
        problems.append(required(path, words))
    elif len(given) > 1:
        shown = ", ".join(f"`{each}`" for each in given)
        problems.append(invalid(path, f"{{{shown}}}", words))
    return problems


def _attribute_problems(attribute: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    given = [each for each in ("bool", "int", "string", "version") if attribute.get(each) is not None]
    if len(attribute.get("string") or "") > VALUE_LIMIT:
        problems.append(too_long(f"{path}.string", VALUE_LIMIT))
    if (version := attribute.get("version")) is not None:
        if not _version(version):
            words = "must be a string compatible with semver.org spec 2.0.0"
            problems.append(invalid(f"{path}.version", version, words))
        if len(version) > VALUE_LIMIT:
            problems.append(too_long(f"{path}.version", VALUE_LIMIT))
    if len(given) != 1:
        shown: Any = "" if not given else attribute
        problems.append(invalid(path, shown, "exactly one value must be specified"))
    return problems


def _counters_problems(holder: dict[str, Any], path: str) -> list[FieldProblem]:
    counters = holder.get("counters") or {}
    if not counters:
        return [required(f"{path}.counters")]
    if len(counters) > MAX_COUNTERS:
        return [too_many(f"{path}.counters", len(counters), MAX_COUNTERS)]
    return [problem for name in counters for problem in named(f"{path}.counters", name, label_problems)]


def _counter_set_problems(counters: dict[str, Any], path: str) -> list[FieldProblem]:
    name = counters.get("name", "")
    problems = named(f"{path}.name", name, label_problems) if name else [required(f"{path}.name")]
    return problems + _counters_problems(counters, path)


def _consumption_problems(consumed: dict[str, Any], path: str) -> list[FieldProblem]:
    name = consumed.get("counterSet", "")
    problems = named(f"{path}.counterSet", name, label_problems) if name else [required(f"{path}.counterSet")]
    return problems + _counters_problems(consumed, path)


def _binding_problems(device: dict[str, Any], path: str) -> list[FieldProblem]:
    good, bad = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    problems: list[FieldProblem] = []
    for field, conditions in (("bindingConditions", good), ("bindingFailureConditions", bad)):
        here = f"{path}.{field}"
        problems += each_problems(conditions, MAX_BINDING_CONDITIONS, label_key_problems, here)
        for index, condition in enumerate(conditions):
            if condition in conditions[:index]:
                problems.append(duplicate(f"{here}[{index}]", condition))
            if conditions is bad and condition in good:
                words = "bindingFailureConditions must not overlap with bindingConditions"
                problems.append(invalid(f"{here}[{index}]", condition, words))
    if bad and not good:
        words = "bindingConditions are required to use bindingFailureConditions"
        problems.append(invalid(f"{path}.bindingConditions", None, words))
    if good and not bad:
        words = "bindingFailureConditions are required to use bindingConditions"
        problems.append(invalid(f"{path}.bindingFailureConditions", None, words))
    return problems


RULES = {
    (GROUP, "ResourceSlice"): Rules(
        name_problems=subdomain_problems,
        defaults=default_slice,
        validate_create=slice_problems,
        validate_update=slice_problems,
        warnings=warnings,
        fields={"spec.nodeName": text("spec", "nodeName"), "spec.driver": text("spec", "driver")},
    )
}
