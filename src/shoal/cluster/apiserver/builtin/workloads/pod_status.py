"""The status of a pod, as kubelets and controllers write it."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import qualified_name_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import annotation_problems, update_problems
from shoal.cluster.apiserver.builtin.workloads.texts import ip_problems, parsed_ip
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, immutable, invalid

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})


def prepare_pod_status(new: Object, old: Object) -> None:
    """What a write of the status cannot take away, and what it cannot touch."""
    new["spec"] = old.get("spec") or {}
    metadata, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    for field in ("ownerReferences", "deletionTimestamp"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    status, earlier = new.setdefault("status", {}), old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and earlier.get(field):
            status[field] = earlier[field]
    observed: dict[str, list[int]] = {}
    for condition in earlier.get("conditions") or ():
        observed.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        known = observed.get(condition.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def validate_pod_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a new status."""
    status, earlier, spec = new.get("status") or {}, old.get("status") or {}, new.get("spec") or {}
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    before = (old.get("metadata") or {}).get("annotations") or {}
    problems = update_problems(annotations, before, "metadata.annotations")
    problems += annotation_problems(annotations, spec, "metadata.annotations")
    _check_conditions(status.get("conditions") or (), problems)
    _check_nomination(status, earlier, old.get("spec") or {}, problems)
    if status.get("observedGeneration", 0) < 0:
        words = "must be a non-negative integer"
        problems.append(invalid("status.observedGeneration", status["observedGeneration"], words))
    if status.get("qosClass", "") != earlier.get("qosClass", ""):
        problems.append(immutable("status.qosClass", status.get("qosClass", "")))
    _check_transitions(status, earlier, old.get("spec") or {}, problems)
    _check_claims(status, spec, problems)
    _check_addresses(status, earlier, problems)
    return problems


def _check_conditions(conditions: Any, problems: list[FieldProblem]) -> None:
    for index, condition in enumerate(conditions):
        here = f"status.conditions[{index}]"
        generation = condition.get("observedGeneration", 0)
        if generation < 0:
            problems.append(invalid(f"{here}.observedGeneration", generation, "must be a non-negative integer"))
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            problems += [invalid(f"{here}.Type", kind, each) for each in qualified_name_problems(kind)]


def _check_nomination(status: Object, earlier: Object, old_spec: Object, problems: list[FieldProblem]) -> None:
    name, path = status.get("nominatedNodeName", ""), "status.nominatedNodeName"
    if not name or name == earlier.get("nominatedNodeName", ""):
        return
    problems += [invalid(path, name, each) for each in subdomain_problems(name)]
    if old_spec.get("nodeName"):
        problems.append(forbidden(path, "may not be set on pods that are already bound to a node"))


def _check_transitions(status: Object, earlier: Object, spec: Object, problems: list[FieldProblem]) -> None:
    """A container that ended for good does not come back."""
    may_all_restart = any(
        rule.get("action") == "RestartAllContainers"
        for field in ("containers", "initContainers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )
    for field, containers in (
        ("containerStatuses", spec.get("containers")),
        ("initContainerStatuses", spec.get("initContainers")),
        ("ephemeralContainerStatuses", None),
    ):
        listed = earlier.get(field)
        if not listed or (may_all_restart and containers is not None):
            continue
        running = {
            each.get("name", "")
            for each in status.get(field) or ()
            if (each.get("state") or {}).get("terminated") is None
        }
        by_name = {each.get("name", ""): each for each in containers or ()}
        for index, old in enumerate(listed):
            ended = (old.get("state") or {}).get("terminated")
            name = old.get("name", "")
            if ended is None or name not in running:
                continue
            if name in by_name and _may_restart(by_name[name], spec, ended.get("exitCode", 0)):
                continue
            words = "may not be transitioned to non-terminated state"
            problems.append(forbidden(f"status.{field}[{index}].state", words))


def _may_restart(container: Object, spec: Object, code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            is_listed = code in (codes.get("values") or ())
            if codes and is_listed == (codes.get("operator") == "In"):
                if rule.get("action") in ("Restart", "RestartAllContainers"):
                    return True
                break
    if policy not in ("Always", "OnFailure", "Never"):
        policy = spec.get("restartPolicy")
    return policy not in ("OnFailure", "Never") or (policy == "OnFailure" and code != 0)


def _check_claims(status: Object, spec: Object, problems: list[FieldProblem]) -> None:
    known = {each.get("name", "") for each in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        here, name = f"status.resourceClaimStatuses[{index}]", claim.get("name", "")
        if name not in known:
            words = "must match the name of an entry in `spec.resourceClaims`"
            problems.append(invalid(f"{here}.name", name, words))
        if name in seen:
            problems.append(duplicate(f"{here}.name", name))
        seen.add(name)
        if (made := claim.get("resourceClaimName")) is not None:
            problems += [invalid(f"{here}.resourceClaimName", made, each) for each in subdomain_problems(made)]


def _check_addresses(status: Object, earlier: Object, problems: list[FieldProblem]) -> None:
    hosts = status.get("hostIPs") or []
    if hosts and status.get("hostIP", "") != hosts[0].get("ip", ""):
        problems.append(invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), "must be equal to `hostIP`"))
    for field in ("podIPs", "hostIPs"):
        listed = [each.get("ip", "") for each in status.get(field) or ()]
        known = {each.get("ip", "") for each in earlier.get(field) or ()}
        for index, address in enumerate(listed):
            if address not in known:
                problems += ip_problems(address, f"status.{field}[{index}]")
        if len(listed) > 1:
            families = {parsed.version for each in listed if (parsed := parsed_ip(each)) is not None}
            if len(listed) > 2 or len(families) != 2:
                words = "may specify no more than one IP for each IP family"
                problems.append(invalid(f"status.{field}", [{"IP": each} for each in listed], words))
