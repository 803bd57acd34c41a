"""Eviction: whether a pod may go, by the disruption budgets that hold for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.api.meta import format_time, now
from shoal.cluster.apiserver.builtin.workloads.conditions import has_condition, set_pod_condition
from shoal.cluster.apiserver.builtin.workloads.matching import selector_matches
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused, forbidden, refused, too_many_requests
from shoal.kube.errors import Cause

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_UNCONFIRMED = 2000


@dataclass(frozen=True, kw_only=True)
class Eviction:
    """A pod may go; these are the terms."""

    budget: Object | None = None
    """The budget with the disruption counted, to be written (its status) before the pod is deleted."""
    needs_same_version: bool = False
    """Whether the pod may only be deleted as it was seen: its state is why it may go."""


def eviction_blocked(pod: Object, budgets: Iterable[Object]) -> Refused | Eviction:
    """A refusal, or the terms on which the pod may be deleted; ``budgets`` are all of its namespace."""
    status, metadata = pod.get("status") or {}, pod.get("metadata") or {}
    phase = status.get("phase", "")
    if phase in ("Succeeded", "Failed") or metadata.get("deletionTimestamp"):
        return Eviction()
    if phase == "Pending":
        return Eviction(needs_same_version=True)
    labels = metadata.get("labels") or {}
    holding = [each for each in budgets if selector_matches((each.get("spec") or {}).get("selector"), labels)]
    if len(holding) > 1:
        words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        return refused(500, "", words)
    if not holding:
        return Eviction()
    budget = holding[0]
    if not has_condition(status, "Ready") and _lets_unhealthy_go(budget):
        return Eviction(needs_same_version=True)
    return _counted(budget, metadata.get("name", ""))


def evicted(pod: Object) -> Object:
    """The pod with the condition that says why it goes; the pod that is given stays as it is."""
    status = {**(pod.get("status") or {})}
    words = "Eviction API: evicting"
    set_pod_condition(status, "DisruptionTarget", "True", reason="EvictionByEvictionAPI", message=words)
    return {**pod, "status": status}


def still_processed(budget_name: str) -> Refused:
    """The refusal for a budget whose controller has not caught up, or a pod that changed meanwhile."""
    words = f"The disruption budget {budget_name} is still being processed by the server."
    return too_many_requests(_VIOLATES, retry_after=10, causes=[Cause(reason="DisruptionBudget", message=words)])


def _lets_unhealthy_go(budget: Object) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= desired > 0)


def _counted(budget: Object, pod_name: str) -> Refused | Eviction:
    metadata, status = budget.get("metadata") or {}, budget.get("status") or {}
    name, allowed = metadata.get("name", ""), status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return still_processed(name)
    if allowed < 0:
        return forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_UNCONFIRMED:
        words = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return forbidden("poddisruptionbudget", "policy", name, words)
    if allowed == 0:
        cause = Cause(reason="DisruptionBudget", message=_why_none(name, status))
        return too_many_requests(_VIOLATES, retry_after=0, causes=[cause])
    counted = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod_name: format_time(now())},
    }
    if allowed == 1:
        counted["conditions"] = _exhausted(status, metadata.get("generation", 0))
    return Eviction(budget={**budget, "status": counted})


def _why_none(name: str, status: Object) -> str:
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    condition: Object = next(
        (each for each in status.get("conditions") or () if each.get("type") == "DisruptionAllowed"), {}
    )
    message = condition.get("message", "") if condition.get("status") == "False" else ""
    reason = condition.get("reason", "")
    if message and reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(status: Object, generation: int) -> list[Object]:
    """The conditions of a budget that has no disruption left."""
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": format_time(now()),
        "reason": "InsufficientPods",
        "message": "",
    }
    kept = []
    for each in status.get("conditions") or ():
        if each.get("type") != "DisruptionAllowed":
            kept.append(each)
        elif each.get("status") == "False":
            condition["lastTransitionTime"] = each.get("lastTransitionTime")
    return [*kept, condition]
