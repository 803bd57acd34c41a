"""What an object uses of a quota, and which quotas are about it.

Every kind is counted (``count/deployments.apps``); pods, services and claims are measured as well. The measure of a
kind says when a request can change anything, what the object uses, which names of a quota are about such objects, and
which scopes it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from shoal.api.meta import LabelSelector, LabelSelectorRequirement, Quantity, Selector, parse_quantity, parse_time
from shoal.api.meta.names import qualified_name_problems
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_resources import Amounts, add_all, amounts, is_best_effort, pod_amounts
from shoal.cluster.apiserver.admission.volumes import storage_class
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.wire import Operation

_ONE = Quantity.of(1)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OF_PODS = frozenset(
    {"count/pods", "pods", *_COMPUTE}
    | {f"requests.{name}" for name in _COMPUTE}
    | {f"limits.{name}" for name in _COMPUTE}
)
_MUST_BE_SET = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_BY_CLASS = ".storageclass.storage.k8s.io/"
_COUNTED_BY_NAME = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
_DEVICES = "deviceclass.resource.kubernetes.io/"

Requirement = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How one kind is measured."""

    concerns: Callable[[Attributes], bool]
    usage: Callable[[Object, datetime], Amounts]
    names: Callable[[Iterable[str]], list[str]]
    """Of the names that a quota limits, those that are about this kind."""
    problem: Callable[[Sequence[str], Object], str] = lambda _names, _item: ""
    """What the object must say and does not, where a quota limits these names."""
    in_scope: Callable[[Requirement, Object], bool] = lambda _requirement, _item: False


def measure_of(storage: str) -> Measure:
    """How a kind is measured; one that has no measure of its own is counted."""
    return _MEASURES.get(storage) or _counted(storage)


def matches(measure: Measure, quota: Object, item: Object) -> bool:
    """Whether a quota is about an object: it limits something that the object uses, and the object is in its scopes."""
    hard = (quota.get("status") or {}).get("hard") or {}
    return bool(measure.names(hard)) and all(measure.in_scope(each, item) for each in scopes_of(quota))


def scopes_of(quota: Object) -> list[Requirement]:
    """The scopes of a quota, in either form."""
    spec = quota.get("spec") or {}
    plain = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return plain + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


# Pods


def _pod_concerned(request: Attributes) -> bool:
    if request.subresource == "resize":
        return request.operation is Operation.UPDATE
    if request.subresource:
        return False
    if request.operation is Operation.UPDATE:
        return _is_terminating(request.old or {}) != _is_terminating(request.object or {})
    return request.operation is Operation.CREATE


def _pod_usage(pod: Object, now: datetime) -> Amounts:
    usage: Amounts = {"count/pods": _ONE}
    if _is_over(pod, now):
        return usage
    return usage | _compute(pod_amounts(pod, "requests"), pod_amounts(pod, "limits"))


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    used: Amounts = {"pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif _is_extended(name):
            used[f"requests.{name}"] = amount
    return used


def _pod_names(hard: Iterable[str]) -> list[str]:
    return sorted(name for name in hard if _is_of_pods(name))


@lru_cache(maxsize=1024)
def _is_of_pods(name: str) -> bool:
    if name in _OF_PODS or name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and (not _is_native(name) or name.startswith("requests." + _DEVICES))


@lru_cache(maxsize=1024)
def _is_extended(name: str) -> bool:
    if name.startswith(_DEVICES):
        return True
    return not _is_native(name) and not name.startswith("requests.") and not qualified_name_problems(f"requests.{name}")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _pod_problem(names: Sequence[str], pod: Object) -> str:
    spec = pod.get("spec") or {}
    whole = spec.get("resources") or {}
    if any(
        name in ("cpu", "memory") or name.startswith("hugepages-")
        for which in ("requests", "limits")
        for name in whole.get(which) or ()
    ):
        return ""
    wanted = _MUST_BE_SET.intersection(names)
    if not wanted:
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        stated = _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in wanted - stated.keys():
            missing.setdefault(name, set()).add(container.get("name", ""))
    told = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return f"must specify {told}" if told else ""


def _pod_in_scope(requirement: Requirement, pod: Object) -> bool:
    match requirement.get("scopeName"):
        case "Terminating":
            return _is_terminating(pod)
        case "NotTerminating":
            return not _is_terminating(pod)
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "PriorityClass":
            return _is_selected(requirement, [(pod.get("spec") or {}).get("priorityClassName") or ""])
        case "CrossNamespacePodAffinity":
            return _looks_abroad(pod)
        case _:
            return False


def _is_terminating(pod: Object) -> bool:
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _is_over(pod: Object, now: datetime) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod.get("metadata") or {}
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return deleted is not None and grace is not None and now > parse_time(deleted) + timedelta(seconds=grace)


def _looks_abroad(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for which in ("podAffinity", "podAntiAffinity"):
        stated = affinity.get(which) or {}
        terms = list(stated.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = stated.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def _is_selected(requirement: Requirement, values: Iterable[str]) -> bool:
    """Whether one of the names that an object has for a scope is selected; none at all is a name that is not there."""
    scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "Exists")
    named = [value for value in values if value]
    stated = LabelSelectorRequirement(key=scope, operator=operator, values=list(requirement.get("values") or ()))
    selector = Selector.of(LabelSelector(match_expressions=[stated]))
    return any(selector.matches({scope: value}) for value in named) if named else selector.matches({})


# Services and claims


def _service_usage(service: Object, _now: datetime) -> Amounts:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or ()
    node_ports = balancers = 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        balancers = 1
        chosen = [port for port in ports if port.get("nodePort")]
        node_ports = len(chosen if spec.get("allocateLoadBalancerNodePorts") is False else ports)
    return {
        "count/services": _ONE,
        "services": _ONE,
        "services.nodeports": Quantity.of(node_ports),
        "services.loadbalancers": Quantity.of(balancers),
    }


def _claim_usage(claim: Object, _now: datetime) -> Amounts:
    usage: Amounts = {"persistentvolumeclaims": _ONE, "count/persistentvolumeclaims": _ONE}
    chosen = storage_class(claim)
    if chosen:
        usage[f"{chosen}{_BY_CLASS}persistentvolumeclaims"] = _ONE
    asked = ((((claim.get("spec") or {}).get("resources")) or {}).get("requests") or {}).get("storage")
    if asked is not None:
        size = parse_quantity(asked)
        given = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        if given is not None:
            size = max(size, parse_quantity(given))
        # Bytes are whole, whatever was asked for.
        size = size if size.nano % 10**9 == 0 else Quantity.of(size.value(), size.format)
        usage["requests.storage"] = size
        if chosen:
            usage[f"{chosen}{_BY_CLASS}requests.storage"] = size
    return usage


def _claim_names(hard: Iterable[str]) -> list[str]:
    own = ("persistentvolumeclaims", "requests.storage")
    ends = tuple(_BY_CLASS + name for name in own)
    return sorted(name for name in hard if name in own or name == "count/persistentvolumeclaims" or name.endswith(ends))


def _claim_concerned(request: Attributes) -> bool:
    if request.subresource == "status":
        return _attribute_classes(request.object or {}) != _attribute_classes(request.old or {}) or (
            (request.object or {}).get("status", {}).get("allocatedResources")
            != (request.old or {}).get("status", {}).get("allocatedResources")
        )
    return not request.subresource and request.operation in (Operation.CREATE, Operation.UPDATE)


def _claim_in_scope(requirement: Requirement, claim: Object) -> bool:
    if requirement.get("scopeName") != "VolumeAttributesClass":
        return False
    return _is_selected(requirement, _attribute_classes(claim))


def _attribute_classes(claim: Object) -> set[str]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = {spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target}
    return {name for name in named if name}


# All others


@lru_cache(maxsize=256)
def _counted(storage: str) -> Measure:
    own = {f"count/{storage}"} | ({storage} & _COUNTED_BY_NAME)
    usage = dict.fromkeys(own, _ONE)
    return Measure(
        concerns=lambda request: not request.subresource and request.operation is Operation.CREATE,
        usage=lambda _item, _now: dict(usage),
        names=lambda hard: sorted(own.intersection(hard)),
    )


_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_MEASURES = {
    "pods": Measure(
        concerns=_pod_concerned, usage=_pod_usage, names=_pod_names, problem=_pod_problem, in_scope=_pod_in_scope
    ),
    "services": Measure(
        concerns=lambda request: not request.subresource and request.operation in (Operation.CREATE, Operation.UPDATE),
        usage=_service_usage,
        names=lambda hard: sorted(_SERVICE_NAMES.intersection(hard)),
    ),
    "persistentvolumeclaims": Measure(
        concerns=_claim_concerned, usage=_claim_usage, names=_claim_names, in_scope=_claim_in_scope
    ),
}


def total_usage(storage: str, items: Iterable[Object], quota: Object, now: datetime) -> Amounts:
    """What all objects of a kind use of a quota, for those who keep its status."""
    measure = measure_of(storage)
    hard = ((quota.get("spec") or {}).get("hard")) or {}
    names = measure.names(hard)
    scopes = scopes_of(quota)
    counted = (item for item in items if all(measure.in_scope(each, item) for each in scopes))
    total = add_all(measure.usage(item, now) for item in counted)
    return {name: total.get(name, Quantity.of(0)) for name in names}
