"""Checks of what a container's processes may do: privileged mode, escalation, capabilities, the root user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.cluster.apiserver.admission.pod_security.checks import (
    Check,
    CheckedPod,
    Violation,
    unless_user_namespace,
    unless_windows,
)
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.admission.pod_security.wording import listed, named, setters

_DEFAULT_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def privileged(pod: CheckedPod) -> Violation | None:
    """No container runs in privileged mode."""
    bad = [each.name for each in pod.containers if each.security.get("privileged")]
    return (
        Violation("privileged", f"{named('container', bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def allow_privilege_escalation(pod: CheckedPod) -> Violation | None:
    """Every container gives up privilege escalation, as by set-user-ID programs."""
    bad = [each.name for each in pod.containers if each.security.get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    detail = f"{named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities_baseline(pod: CheckedPod) -> Violation | None:
    """Containers add no capabilities beyond those that container runtimes give by default."""
    detail = _added(pod, _DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", detail) if detail else None


def capabilities_restricted(pod: CheckedPod) -> Violation | None:
    """Containers drop all capabilities, and add back at most that of binding to low ports."""
    keeping = [each.name for each in pod.containers if "ALL" not in _capabilities(each.security, "drop")]
    details = [f'{named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if added := _added(pod, frozenset({"NET_BIND_SERVICE"})):
        details.append(added)
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def run_as_non_root(pod: CheckedPod) -> Violation | None:
    """Every container, by itself or by its pod, is kept from running as root."""
    reason = "runAsNonRoot != true"
    of_pod = pod.security.get("runAsNonRoot")
    stated = [(each.name, each.security.get("runAsNonRoot")) for each in pod.containers]
    if bad := setters([name for name, value in stated if value is False], pod=of_pod is False):
        return Violation(reason, f"{bad} must not set securityContext.runAsNonRoot=false")
    silent = [name for name, value in stated if value is None]
    if silent and not of_pod:
        return Violation(reason, f"pod or {named('container', silent)} must set securityContext.runAsNonRoot=true")
    return None


def run_as_user(pod: CheckedPod) -> Violation | None:
    """Nothing names root as its user."""
    containers = [each.name for each in pod.containers if each.security.get("runAsUser") == 0]
    bad = setters(containers, pod=pod.security.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{bad} must not set runAsUser=0") if bad else None


def _added(pod: CheckedPod, allowed: frozenset[str]) -> str:
    """Which containers add which capabilities that are not allowed; nothing where none does."""
    names: list[str] = []
    capabilities: set[str] = set()
    for container in pod.containers:
        if bad := set(_capabilities(container.security, "add")) - allowed:
            names.append(container.name)
            capabilities |= bad
    if not names:
        return ""
    added = listed(sorted(capabilities))
    return f"{named('container', names)} must not include {added} in securityContext.capabilities.add"


def _capabilities(security: Mapping[str, Any], which: str) -> Sequence[str]:
    return (security.get("capabilities") or {}).get(which) or ()


CHECKS = (
    Check(id="privileged", level=Level.BASELINE, forms={0: privileged}),
    Check(id="capabilities_baseline", level=Level.BASELINE, forms={0: capabilities_baseline}),
    Check(
        id="capabilities_restricted",
        level=Level.RESTRICTED,
        forms={22: capabilities_restricted, 25: unless_windows(capabilities_restricted)},
        replaces="capabilities_baseline",
    ),
    Check(
        id="allowPrivilegeEscalation",
        level=Level.RESTRICTED,
        forms={8: allow_privilege_escalation, 25: unless_windows(allow_privilege_escalation)},
    ),
    Check(
        id="runAsNonRoot",
        level=Level.RESTRICTED,
        forms={0: run_as_non_root, 35: unless_user_namespace(run_as_non_root)},
    ),
    Check(
        id="runAsUser",
        level=Level.RESTRICTED,
        forms={23: run_as_user, 35: unless_user_namespace(run_as_user)},
    ),
)
