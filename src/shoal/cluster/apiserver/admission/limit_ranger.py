"""LimitRanger: what containers of a namespace get by default, and the least and most that may be asked for there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.meta import ZERO_QUANTITY, Quantity
from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_resources import Amounts, amounts, pod_amounts
from shoal.cluster.apiserver.admission.refusing import refuse, together
from shoal.cluster.apiserver.admission.scope import CREATE, UPDATE, WRITE, Scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader

ANNOTATION = "kubernetes.io/limit-ranger"

_MOST_MILLI = (2**63 - 1) // 1000


class LimitRanger:
    """Applies every LimitRange of the object's namespace."""

    mutates = Scope(storages=frozenset({"pods"}), operations=WRITE, subresources=frozenset({"", "resize"}))
    validates = Scope(
        storages=frozenset({"pods", "persistentvolumeclaims"}),
        operations=WRITE,
        subresources=frozenset({"", "resize"}),
    )

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Sets what containers leave open."""
        for ranges in self._ranges(request):
            _complete(request.object or {}, ranges)

    async def validate(self, request: Attributes) -> None:
        """Refuses what is outside a range."""
        for ranges in self._ranges(request):
            limits = (ranges.get("spec") or {}).get("limits") or ()
            checked = request.object or {}
            is_pod = request.kind.storage == "pods"
            if problems := list(_pod_problems(checked, limits) if is_pod else _claim_problems(checked, limits)):
                raise refuse(request, together(problems))

    def _ranges(self, request: Attributes) -> Iterable[Object]:
        if request.object is None or not _is_concerned(request):
            return ()
        if request.old is not None and (request.old.get("metadata") or {}).get("deletionTimestamp"):
            return ()
        return self._state.list("limitranges", request.namespace)


def _is_concerned(request: Attributes) -> bool:
    if request.subresource == "resize":
        return request.kind.storage == "pods" and request.operation in UPDATE
    # The containers of a pod never change but by a resize.
    return not request.subresource and (request.kind.storage != "pods" or request.operation in CREATE)


def _complete(pod: Object, ranges: Object) -> None:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for limit in (ranges.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            requests |= limit.get("defaultRequest") or {}
            limits |= limit.get("default") or {}
    if not requests and not limits:
        return
    spec = pod.get("spec") or {}
    told: list[str] = []
    for container in spec.get("containers") or ():
        told += _completed(container, requests, limits, "container")
    for container in spec.get("initContainers") or ():
        told += _completed(container, requests, limits, "init container")
    if told:
        annotations = pod.setdefault("metadata", {}).get("annotations") or {}
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(told)
        pod["metadata"]["annotations"] = annotations


def _completed(
    container: dict[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any], what: str
) -> Iterable[str]:
    resources = container.setdefault("resources", {})
    added = {}
    for which, defaults in (("limits", limits), ("requests", requests)):
        held = resources.get(which) or {}
        added[which] = sorted(name for name in defaults if name not in held)
        if added[which]:
            resources[which] = held | {name: defaults[name] for name in added[which]}
    for which, word in (("requests", "request"), ("limits", "limit")):
        if added[which]:
            yield f"{', '.join(added[which])} {word} for {what} {container.get('name', '')}"


def _pod_problems(pod: Object, limits: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for limit in limits:
        if limit.get("type") == "Container":
            for container in containers:
                resources = container.get("resources") or {}
                yield from _problems(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
        elif limit.get("type") == "Pod":
            requests, most = (
                pod_amounts({"spec": spec}, which, with_overhead=False, with_hugepages=False)
                for which in ("requests", "limits")
            )
            yield from _problems(limit, requests, most)


def _problems(limit: Mapping[str, Any], requests: Amounts, limits: Amounts) -> Iterable[str]:
    of = limit["type"]
    for name, least in amounts(limit.get("min")).items():
        yield from _below(of, name, least, requests.get(name), limits.get(name))
    for name, most in amounts(limit.get("max")).items():
        yield from _above(of, name, most, requests.get(name), limits.get(name))
    for name, most in amounts(limit.get("maxLimitRequestRatio")).items():
        yield from _too_stretched(of, name, most, requests.get(name), limits.get(name))


def _claim_problems(claim: Object, limits: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    requests = amounts((((claim.get("spec") or {}).get("resources")) or {}).get("requests"))
    for limit in limits:
        if limit.get("type") != "PersistentVolumeClaim":
            continue
        for name, least in amounts(limit.get("min")).items():
            yield from _below(limit["type"], name, least, requests.get(name), None)
        for name, most in amounts(limit.get("max")).items():
            told = f"maximum {name} usage per {limit['type']} is {most}"
            if (asked := requests.get(name)) is None:
                yield f"{told}.  No request is specified"
            elif _is_more(asked, most):
                yield f"{told}, but request is {asked}"


def _below(of: str, name: str, least: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterable[str]:
    told = f"minimum {name} usage per {of} is {least}"
    if request is None:
        yield f"{told}.  No request is specified"
    elif _is_more(least, request, limit):
        yield f"{told}, but request is {request}"
    elif limit is not None and _is_more(least, limit, request):
        yield f"{told}, but limit is {limit}"


def _above(of: str, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterable[str]:
    told = f"maximum {name} usage per {of} is {most}"
    if limit is None:
        yield f"{told}.  No limit is specified"
    elif _is_more(limit, most, request):
        yield f"{told}, but limit is {limit}"
    elif request is not None and _is_more(request, most, limit):
        yield f"{told}, but request is {request}"


def _too_stretched(
    of: str, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterable[str]:
    told = f"{name} max limit to request ratio per {of} is {most}"
    if request is None or request.is_zero:
        yield f"{told}, but no request is specified or request is 0"
    elif limit is None or limit.is_zero:
        yield f"{told}, but no limit is specified or limit is 0"
    elif limit.nano * 10**9 > most.nano * request.nano:
        yield f"{told}, but provided ratio is {limit.nano / request.nano:f}"


def _is_more(left: Quantity, right: Quantity, third: Quantity | None = None) -> bool:
    """Compares to the thousandth, or to the whole where an amount is too large for that, as Kubernetes does."""
    if max(left.value(), right.value(), (third or ZERO_QUANTITY).value()) <= _MOST_MILLI:
        return left.milli_value() > right.milli_value()
    return left.value() > right.value()
