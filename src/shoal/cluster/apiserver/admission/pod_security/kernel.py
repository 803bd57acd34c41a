"""Checks of what a pod changes in the kernel it runs on: the mask on /proc, and sysctls."""

from __future__ import annotations

from shoal.cluster.apiserver.admission.pod_security.checks import (
    Check,
    CheckedPod,
    Rule,
    Violation,
    unless_user_namespace,
)
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.admission.pod_security.wording import listed, named

_SAFE = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
_SAFE_27 = _SAFE | {"net.ipv4.ip_local_reserved_ports"}
_SAFE_29 = _SAFE_27 | {
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
}
_SAFE_32 = _SAFE_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def proc_mount(pod: CheckedPod) -> Violation | None:
    """Containers keep the default mask on /proc."""
    bad = [each for each in pod.containers if each.security.get("procMount") not in (None, "Default")]
    if not bad:
        return None
    names, mounts = [each.name for each in bad], sorted({each.security["procMount"] for each in bad})
    return Violation(
        "procMount", f"{named('container', names)} must not set securityContext.procMount to {listed(mounts)}"
    )


def sysctls(safe: frozenset[str]) -> Rule:
    """Only sysctls that stay within the pod are set."""

    def rule(pod: CheckedPod) -> Violation | None:
        names = [each.get("name", "") for each in pod.security.get("sysctls") or ()]
        bad = [name for name in names if name not in safe]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return rule


CHECKS = (
    Check(id="procMount", level=Level.BASELINE, forms={0: proc_mount, 35: unless_user_namespace(proc_mount)}),
    # Since the baseline gives way to pods in user namespaces, the restricted level has the rule for itself.
    Check(id="procMount_restricted", level=Level.RESTRICTED, forms={35: proc_mount}, replaces="procMount"),
    Check(
        id="sysctls",
        level=Level.BASELINE,
        forms={0: sysctls(_SAFE), 27: sysctls(_SAFE_27), 29: sysctls(_SAFE_29), 32: sysctls(_SAFE_32)},
    ),
)
