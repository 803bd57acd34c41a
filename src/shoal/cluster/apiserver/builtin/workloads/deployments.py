"""Deployments and ReplicaSets."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.defaults import default_template
from shoal.cluster.apiserver.builtin.workloads.features import drop_disabled
from shoal.cluster.apiserver.builtin.workloads.templates import (
    STATUS_RESETS,
    at_most_problems,
    count_problems,
    decrement_problems,
    keep_spec,
    over_hundred_problems,
    running_template_problems,
    selector_change_problems,
    selector_problems,
    share_problems,
    share_value,
)
from shoal.cluster.apiserver.builtin.workloads.warnings import name_warnings, pod_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_supported, required

_TOO_MANY = "cannot be greater than status.replicas"
_NOT_READY = "cannot be greater than readyReplicas"


def _default_deployment(deployment: Object) -> None:
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_template(spec.setdefault("template", {}))


def _default_replica_set(replica_set: Object) -> None:
    spec = replica_set.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    default_template(spec.setdefault("template", {}))


def template_spec(workload: Object) -> Object:
    """The pod specification in the template of a workload."""
    spec: Object = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec


def prepare_create(new: Object) -> None:
    """A new workload: its status is empty, which is done already."""
    drop_disabled(template_spec(new))


def prepare_update(new: Object, old: Object) -> None:
    """A changed workload."""
    drop_disabled(template_spec(new), template_spec(old))


def _prepare_deployment_update(new: Object, old: Object) -> None:
    prepare_update(new, old)
    metadata, before = new.get("metadata") or {}, old.get("metadata") or {}
    # Annotations travel to the ReplicaSets, so a change of them is a change to be observed.
    if (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
        metadata["generation"] = before.get("generation", 0) + 1


def _prepare_deployment_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    metadata, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    if "labels" in before:
        metadata["labels"] = before["labels"]
    else:
        metadata.pop("labels", None)


def _deployment_problems(deployment: Object) -> list[FieldProblem]:
    spec = deployment.get("spec") or {}
    problems = count_problems(spec, "spec", "replicas")
    problems += selector_problems(spec, "spec", kind="deployment")
    problems += running_template_problems(spec, "spec", kind="ReplicaSet")
    problems += _strategy_problems(spec.get("strategy") or {}, "spec.strategy")
    problems += count_problems(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        words = "must be greater than minReadySeconds"
        problems.append(invalid("spec.progressDeadlineSeconds", deadline, words))
    return problems


def _strategy_problems(strategy: Object, path: str) -> list[FieldProblem]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        words = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", words)]
    if kind != "RollingUpdate":
        return [not_supported(path, shown_strategy(strategy), ["Recreate", "RollingUpdate"])]
    if rolling is None:
        return [required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    here = f"{path}.rollingUpdate"
    problems = share_problems(unavailable, f"{here}.maxUnavailable") + share_problems(surge, f"{here}.maxSurge")
    if share_value(unavailable) == 0 and share_value(surge) == 0:
        problems.append(invalid(f"{here}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return problems + over_hundred_problems(unavailable, f"{here}.maxUnavailable")


def shown_strategy(strategy: Object) -> Object:
    """A strategy by the names that the server's own fields have."""
    rolling = strategy.get("rollingUpdate")
    shown = None if rolling is None else {name[:1].upper() + name[1:]: value for name, value in rolling.items()}
    return {"Type": strategy.get("type", ""), "RollingUpdate": shown}


def _validate_deployment_update(new: Object, old: Object) -> list[FieldProblem]:
    return _deployment_problems(new) + selector_change_problems(new, old)


def _validate_deployment_status(new: Object, old: Object) -> list[FieldProblem]:
    status = new.get("status") or {}
    problems = count_problems(
        status,
        "status",
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )
    bounded = ("updatedReplicas", "readyReplicas", "availableReplicas")
    problems += at_most_problems(status, bounded, "replicas", _TOO_MANY)
    problems += at_most_problems(status, ("availableReplicas",), "readyReplicas", _NOT_READY)
    return problems + decrement_problems(status, old.get("status") or {})


def _replica_set_problems(replica_set: Object) -> list[FieldProblem]:
    spec = replica_set.get("spec") or {}
    problems = count_problems(spec, "spec", "replicas", "minReadySeconds")
    problems += selector_problems(spec, "spec", kind="deployment")
    return problems + running_template_problems(spec, "spec", kind="ReplicaSet")


def _validate_replica_set_update(new: Object, old: Object) -> list[FieldProblem]:
    return _replica_set_problems(new) + selector_change_problems(new, old)


def replica_status_problems(new: Object, _old: Object) -> list[FieldProblem]:
    """The status of a ReplicaSet, or of a ReplicationController."""
    status = new.get("status") or {}
    problems = count_problems(
        status,
        "status",
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    )
    bounded = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    problems += at_most_problems(status, bounded, "replicas", _TOO_MANY)
    return problems + at_most_problems(status, ("availableReplicas",), "readyReplicas", _NOT_READY)


def workload_warnings(new: Object) -> list[str]:
    """A workload whose name becomes a part of its pods' names."""
    names = name_warnings(new, label_problems, "Pod names and hostnames")
    return names + template_warnings(new)


def template_warnings(new: Object) -> list[str]:
    """A workload's template alone."""
    return pod_warnings((new.get("spec") or {}).get("template") or {}, "spec.template")


def status_replicas(workload: Object) -> str:
    """The count of replicas, for field selectors."""
    return str((workload.get("status") or {}).get("replicas", 0))


DEPLOYMENT = Rules(
    name_problems=subdomain_problems,
    defaults=_default_deployment,
    prepare_create=prepare_create,
    prepare_update=_prepare_deployment_update,
    prepare_status=_prepare_deployment_status,
    validate_create=_deployment_problems,
    validate_update=_validate_deployment_update,
    validate_status=_validate_deployment_status,
    warnings=workload_warnings,
    resets={"": (("status",),), "status": (("spec",), ("metadata", "labels"))},
)
REPLICA_SET = Rules(
    name_problems=subdomain_problems,
    defaults=_default_replica_set,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    validate_create=_replica_set_problems,
    validate_update=_validate_replica_set_update,
    validate_status=replica_status_problems,
    warnings=workload_warnings,
    resets=STATUS_RESETS,
    fields={"status.replicas": status_replicas},
)
