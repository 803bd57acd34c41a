"""Node: taints, pod networks, what it can hold, and what its agent may report."""

from __future__ import annotations

import re
from typing import Any

from shoal.cluster.apiserver.builtin.addresses import is_ipv6, legacy_network_problems, network_warnings
from shoal.cluster.apiserver.builtin.names import label_value_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.resource_names import amount_problems
from shoal.cluster.apiserver.builtin.selectors import label_key_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, flag, required_one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, Reason, duplicate, forbidden, invalid

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_feature = re.compile("([A-Z][a-zA-Z0-9]*)(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


def default_node(new: Object) -> None:
    """Says its network in both ways; all it has can be given to pods, where its agent does not say otherwise."""
    spec, status = new.get("spec") or {}, new.get("status") or {}
    network, networks = spec.get("podCIDR"), spec.get("podCIDRs")
    if network and (not networks or networks[0] != network):
        spec["podCIDRs"] = [network]
    elif networks:
        spec["podCIDR"] = networks[0]
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])


def prepare_create(new: Object) -> None:
    """Drops what is no longer supported; its status stays, since an agent registers with one."""
    (new.get("spec") or {}).pop("configSource", None)
    (new.get("status") or {}).pop("config", None)


def prepare_update(new: Object, old: Object) -> None:
    """The same for a change."""
    if (old.get("spec") or {}).get("configSource") is None:
        (new.get("spec") or {}).pop("configSource", None)


def prepare_status(new: Object, old: Object) -> None:
    """The same for a report of the agent."""
    if (old.get("status") or {}).get("config") is None:
        (new.get("status") or {}).pop("config", None)


def node_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a Node at any time."""
    spec, status = new.get("spec") or {}, new.get("status") or {}
    problems = taint_problems(spec.get("taints") or (), "metadata.taints")
    problems += _reported_problems(status)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0:
        problems.append(invalid("metadata.nodeSwapStatus.capacity", swap, POSITIVE))
    networks = spec.get("podCIDRs") or []
    for index, network in enumerate(networks):
        problems += legacy_network_problems(f"spec.podCIDRs[{index}]", network)
    families = {is_ipv6(each.partition("/")[0]) for each in networks}
    if len(networks) > 2 or (len(networks) == 2 and len(families) < 2):
        words = "may specify no more than one CIDR for each IP family"
        problems.append(invalid("spec.podCIDRs", networks, words))
    return problems


def validate_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of a Node."""
    return node_problems(new) + validate_status(new, old)


def validate_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a report, or any change: what was found out once stays."""
    spec, before, status = new.get("spec") or {}, old.get("spec") or {}, new.get("status") or {}
    problems = _reported_problems(status)
    seen: list[Any] = []
    for index, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            problems.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(address)
    for field, path, known in (
        ("podCIDRs", "spec.podCIDRs", "podCIDR"),
        ("providerID", "spec.providerID", "providerID"),
    ):
        if before.get(field) and before[field] != spec.get(field):
            problems.append(forbidden(path, f'node updates may not change {known} except from "" to valid'))
    problems += taint_problems(spec.get("taints") or (), "metadata.taints")
    if spec.get("externalID", "") != before.get("externalID", ""):
        problems.append(forbidden("spec.externalID", "may not be updated"))
    return problems


def taint_problems(taints: Any, path: str) -> list[FieldProblem]:
    """What is wrong with taints: keys, values, effects, and the same twice."""
    problems: list[FieldProblem] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        problems += label_key_problems(key, f"{here}.key")
        if found := label_value_problems(value):
            problems.append(invalid(f"{here}.value", value, ";".join(found)))
        problems += required_one_of(f"{here}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            words = "taints must be unique by key and effect pair"
            problems.append(FieldProblem(here, words, Reason.DUPLICATE, shown))
        seen.add((key, effect))
    return problems


def warnings(new: Object) -> list[str]:
    """What a client is told of a Node that is taken."""
    spec = new.get("spec") or {}
    told = []
    if spec.get("configSource"):
        told.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        told.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, network in enumerate(spec.get("podCIDRs") or ()):
        told += network_warnings(f"spec.podCIDRs[{index}]", network)
    return told


def _reported_problems(status: dict[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for part in ("capacity", "allocatable"):
        for name, value in (status.get(part) or {}).items():
            problems += amount_problems(name, value, f"status.{part}.{name}")
    features = status.get("declaredFeatures") or ()
    for index, feature in enumerate(features):
        here = f"status.declaredFeatures[{index}]"
        if len(feature) > 253:
            words = f'invalid feature name "{feature}": must be no more than 253 characters'
            problems.append(invalid(here, feature, words))
        elif not _feature(feature):
            words = (
                f'invalid feature name "{feature}": must start with an UpperCamelCase segment, with subsequent '
                "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
                "characters and slashes"
            )
            problems.append(invalid(here, feature, words))
        if index and features[index - 1] == feature:
            problems.append(duplicate(here, feature))
        elif index and features[index - 1] > feature:
            problems.append(invalid(here, feature, "list must be sorted alphabetically"))
    return problems


RULES = {
    ("", "Node"): Rules(
        name_problems=subdomain_problems,
        defaults=default_node,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate_create=node_problems,
        validate_update=validate_update,
        validate_status=validate_status,
        warnings=warnings,
        has_generation=False,
        keeps_status=True,
        resets={"": (("status",),), "status": (("spec",),)},
        fields={"spec.unschedulable": flag("spec", "unschedulable")},
    )
}
