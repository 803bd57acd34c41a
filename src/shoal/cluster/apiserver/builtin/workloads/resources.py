"""What containers and pods ask for: which amounts may be asked, what they add up to, and which class results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from shoal.api.meta import ZERO_QUANTITY, InvalidQuantity, Quantity, parse_quantity
from shoal.cluster.apiserver.builtin.names import label_problems, qualified_name_problems
from shoal.cluster.apiserver.builtin.resource_names import COUNTED
from shoal.cluster.apiserver.builtin.workloads.texts import NEGATIVE
from shoal.kube.admission.fields import (
    FieldProblem,
    Reason,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

HUGE_PAGES = "hugepages-"
_COMPUTE = ("cpu", "memory")
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD = (
    _CONTAINER
    | COUNTED
    | {"storage", "requests.storage"}
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER}
)


def check_resources(
    requirements: dict[str, Any], path: str, claim_names: frozenset[str], problems: list[FieldProblem]
) -> None:
    """What one container asks for."""
    _check_amounts(requirements, path, problems, is_pod=False)
    if claims := requirements.get("claims"):
        _check_claims(claims, f"{path}.claims", claim_names, problems)


def check_pod_resources(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """What a pod asks for as a whole, which must hold what its containers ask for."""
    resources = spec.get("resources")
    if resources is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        problems.append(forbidden(path, "may not be set for a windows pod"))
        return
    if resources.get("claims"):
        problems.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    _check_amounts(resources, path, problems, is_pod=True)
    asked, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in totals(spec, "requests").items():
        if name in asked and total > parse_quantity(asked[name]):
            words = f"must be greater than or equal to aggregate container requests of {total}"
            problems.append(invalid(f"{path}.requests[{name}]", asked[name], words))
    for name, total in totals(spec, "limits").items():
        if name.startswith(HUGE_PAGES) and name in limits and total > parse_quantity(limits[name]):
            words = f"must be greater than or equal to aggregate container limits of {total}"
            problems.append(invalid(f"{path}.limits[{name}]", limits[name], words))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse_quantity(limit) > parse_quantity(limits[name]):
                words = f"must be less than or equal to pod limits of {limits[name]}"
                problems.append(invalid(f"{path}.containers[{index}][{name}].limits", limit, words))


def check_overhead(overhead: dict[str, str], path: str, problems: list[FieldProblem]) -> None:
    """What running a pod costs beside its containers."""
    _check_amounts({"limits": overhead}, path, problems, is_pod=False)


def totals(spec: dict[str, Any], side: str) -> dict[str, Quantity]:
    """What all containers of a pod ask for at once: init containers run one after the other, sidecars stay."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, side))
    sidecars: dict[str, Quantity] = {}
    highest: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise_to(highest, sidecars)
        else:
            needed = dict(amounts)
            _add(needed, sidecars)
            _raise_to(highest, needed)
    _raise_to(total, highest)
    return total


def quality_of_service(spec: dict[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, by what is asked of CPU and memory."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    is_guaranteed = True
    pod = spec.get("resources")
    if pod is not None:
        _add(requests, _compute(pod, "requests"))
        _add(limits, _compute(pod, "limits"))
        is_guaranteed = not pod.get("limits") or len(limits) == len(_COMPUTE)
    else:
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            _add(requests, _compute(resources, "requests"))
            limited = _compute(resources, "limits")
            _add(limits, limited)
            is_guaranteed = is_guaranteed and len(limited) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def overcommits(name: str) -> bool:
    """Whether a resource may be limited to more than is asked for."""
    return _is_native(name) and not name.startswith(HUGE_PAGES)


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole may ask for the resource."""
    return name in _COMPUTE or name.startswith(HUGE_PAGES)


def rounded(amount: str) -> str:
    """An amount as it is kept: nothing is finer than a thousandth."""
    if amount[-1:] not in "nu" and "." not in amount and "e-" not in amount and "E-" not in amount:
        return amount
    try:
        quantity = parse_quantity(amount)
    except InvalidQuantity:
        return amount
    return amount if quantity.nano % 10**6 == 0 else str(Quantity.of_milli(quantity.milli_value(), quantity.format))


def is_fractional(amount: str) -> bool:
    """Whether an amount is no whole number."""
    return parse_quantity(amount).milli_value() % 1000 != 0


def quantity_problems(name: str, amount: str, path: str) -> list[FieldProblem]:
    """An amount of a resource: never negative, and whole where the resource is counted."""
    quantity = parse_quantity(amount)
    problems = [invalid(path, amount, NEGATIVE)] if quantity < ZERO_QUANTITY else []
    if _is_counted(name) and quantity.milli_value() % 1000:
        problems.append(invalid(path, amount, "must be an integer"))
    return problems


def _check_amounts(requirements: dict[str, Any], path: str, problems: list[FieldProblem], *, is_pod: bool) -> None:
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    if not limits and not requests:
        return
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            messages = _container_name(name)
            quantity = parse_quantity(amount)
            if messages or is_pod or quantity.nano < 0 or _is_counted(name) or name.startswith(HUGE_PAGES):
                _check_amount(name, amount, f"{path}.{side}[{name}]", problems, is_pod=is_pod)
            if side == "requests":
                _check_against_limit(name, amount, limits.get(name), path, problems)
    if not any(name in amounts for amounts in (limits, requests) for name in _COMPUTE) and any(
        name.startswith(HUGE_PAGES) for amounts in (limits, requests) for name in amounts
    ):
        problems.append(forbidden(path, "HugePages require cpu or memory"))


def _check_amount(name: str, amount: str, path: str, problems: list[FieldProblem], *, is_pod: bool) -> None:
    if is_pod:
        messages = _resource_name(name)
        problems += [invalid(path, name, each) for each in messages]
        if not messages and not is_pod_level(name):
            problems.append(not_supported(path, name, ["cpu", HUGE_PAGES, "memory"]))
    else:
        problems += [invalid(path, name, each) for each in _container_name(name)]
    problems += quantity_problems(name, amount, path)
    if name.startswith(HUGE_PAGES) and not _fits_pages(name, amount):
        problems.append(invalid(path, amount, f"{amount} is not positive integer multiple of {name}"))


def _check_against_limit(name: str, amount: str, limit: str | None, path: str, problems: list[FieldProblem]) -> None:
    if limit is None:
        if not overcommits(name):
            problems.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        return
    if amount == limit:
        return
    asked, most = parse_quantity(amount), parse_quantity(limit)
    if asked != most and not overcommits(name):
        problems.append(invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}"))
    elif asked > most:
        problems.append(invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}"))


def _check_claims(
    claims: list[dict[str, Any]], path: str, claim_names: frozenset[str], problems: list[FieldProblem]
) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            problems.append(required(here))
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            problems.append(duplicate(here, name))
        else:
            if request:
                problems += [invalid(f"{here}.request", request, each) for each in label_problems(request)]
            if key in seen:
                problems.append(duplicate(here, key))
            elif not request:
                problems += [duplicate(here, name) for each in seen if each.startswith(f"{name}/")]
            seen.add(key)
        if name not in claim_names:
            rest = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            words = f"must be one of the names in pod.spec.resourceClaims{rest}"
            problems.append(FieldProblem(here, words, Reason.NOT_FOUND, name))


def _fits_pages(name: str, amount: str) -> bool:
    try:
        page = parse_quantity(name.removeprefix(HUGE_PAGES))
    except InvalidQuantity:
        return False
    if page.nano <= 0 or page.milli_value() % 1000:
        return False
    return parse_quantity(amount).value() % page.value() == 0


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=4096)
def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not qualified_name_problems(f"requests.{name}")


def _is_counted(name: str) -> bool:
    return name in COUNTED or ("/" in name and _is_extended(name))


@lru_cache(maxsize=4096)
def _resource_name(name: str) -> tuple[str, ...]:
    messages = qualified_name_problems(name)
    is_standard = name in _STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    if not messages and "/" not in name and not is_standard:
        messages = ["must be a standard resource type or fully qualified"]
    return tuple(messages)


@lru_cache(maxsize=4096)
def _container_name(name: str) -> tuple[str, ...]:
    messages = _resource_name(name)
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(HUGE_PAGES):
            return (*messages, "must be a standard resource for containers")
    elif not _is_native(name) and not _is_extended(name):
        return (*messages, "doesn't follow extended resource name standard")
    return messages


def _amounts(container: dict[str, Any], side: str) -> dict[str, Quantity]:
    listed = (container.get("resources") or {}).get(side) or {}
    return {name: parse_quantity(amount) for name, amount in listed.items()}


def _compute(resources: dict[str, Any], side: str) -> dict[str, Quantity]:
    listed = resources.get(side) or {}
    amounts = ((name, parse_quantity(listed[name])) for name in _COMPUTE if name in listed)
    return {name: amount for name, amount in amounts if amount > ZERO_QUANTITY}


def _add(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def claim_names(spec: dict[str, Any]) -> frozenset[str]:
    """The names under which a pod's containers may refer to its resource claims."""
    claims: Iterable[dict[str, Any]] = spec.get("resourceClaims") or ()
    return frozenset(claim["name"] for claim in claims if claim.get("name"))
