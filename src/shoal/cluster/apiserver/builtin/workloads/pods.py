"""Pods: what the server decides when they are made, changed and ended, and what may be asked of them."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.affinity import PREFERRED, REQUIRED
from shoal.cluster.apiserver.builtin.workloads.conditions import set_pod_condition
from shoal.cluster.apiserver.builtin.workloads.defaults import default_pod
from shoal.cluster.apiserver.builtin.workloads.features import drop_disabled
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import apply_apparmor, mismatch_problems
from shoal.cluster.apiserver.builtin.workloads.pod_spec import pod_problems
from shoal.cluster.apiserver.builtin.workloads.pod_status import prepare_pod_status, validate_pod_status
from shoal.cluster.apiserver.builtin.workloads.pod_updates import validate_pod_update
from shoal.cluster.apiserver.builtin.workloads.resources import quality_of_service
from shoal.cluster.apiserver.builtin.workloads.warnings import name_warnings, pod_warnings
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden


def _prepare_create(pod: Object) -> None:
    spec = pod["spec"]
    drop_disabled(spec)
    status = pod["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        set_pod_condition(status, "PodScheduled", "False", reason="SchedulingGated", message=message)
    labels = (pod.get("metadata") or {}).get("labels") or {}
    for term in _affinity_terms(spec):
        _apply_label_keys(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _apply_label_keys(constraint, labels)
    apply_apparmor(pod)


def _prepare_update(pod: Object, old: Object) -> None:
    drop_disabled(pod.get("spec") or {}, old.get("spec"))


def _validate_create(pod: Object) -> list[FieldProblem]:
    problems = pod_problems(pod)
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        problems.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        words = "cannot be set until all schedulingGates have been cleared"
        problems.append(forbidden("spec.nodeName", words))
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return problems + (mismatch_problems(annotations, spec, "spec") if annotations else [])


def _warnings(pod: Object) -> list[str]:
    used_as = "the Pod's hostname"
    return name_warnings(pod, label_problems, used_as) + pod_warnings(pod, "")


def grace_seconds(pod: Object, asked: int | None) -> int:
    """The seconds that a pod gets to end: none where it does not run."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    period: int = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
    return 1 if period < 0 else period


def _affinity_terms(spec: Object) -> list[Object]:
    terms: list[Object] = []
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(kind):
            terms += [weighted["podAffinityTerm"] for weighted in pods.get(PREFERRED) or ()]
            terms += pods.get(REQUIRED) or ()
    return terms


def _apply_label_keys(term: Object, labels: dict[str, str]) -> None:
    """Puts the pod's own values of some labels into a selector, so that it takes the pod's likes alone."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _text(holder: str, field: str) -> Any:
    return lambda pod: (pod.get(holder) or {}).get(field, "")


def _first_address(pod: Object) -> str:
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    return addresses[0].get("ip", "") if addresses else ""


POD = Rules(
    name_problems=subdomain_problems,
    defaults=default_pod,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=prepare_pod_status,
    validate_create=_validate_create,
    validate_update=validate_pod_update,
    validate_status=validate_pod_status,
    warnings=_warnings,
    grace_seconds=grace_seconds,
    resets={
        "": (("status",),),
        "status": (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    },
    fields={
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.restartPolicy": _text("spec", "restartPolicy"),
        "spec.schedulerName": _text("spec", "schedulerName"),
        "spec.serviceAccountName": _text("spec", "serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if (pod.get("spec") or {}).get("hostNetwork") else "false",
        "status.phase": _text("status", "phase"),
        "status.podIP": _first_address,
        "status.nominatedNodeName": _text("status", "nominatedNodeName"),
    },
)
