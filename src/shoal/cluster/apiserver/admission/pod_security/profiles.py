"""Checks of the kernel's confinement of containers: AppArmor, SELinux and seccomp profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.cluster.apiserver.access.wording import quoted
from shoal.cluster.apiserver.admission.pod_security.checks import Check, CheckedPod, Rule, Violation, unless_windows
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.admission.pod_security.wording import counted, listed, named, setters
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD

_CONFINED = frozenset({"RuntimeDefault", "Localhost"})
_SE_LINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})


def app_armor_profile(pod: CheckedPod) -> Violation | None:
    """No profile is turned off, by a field or by the annotations that were there before it."""
    containers, values, of_pod = _unconfined(pod, "appArmorProfile")
    bad = setters(containers, pod=of_pod)
    shown = sorted(values)
    annotations = sorted(
        f"{key}={quoted(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(APPARMOR) and not _is_confined_by_app_armor(value)
    )
    if annotations:
        shown += annotations
        bad = " and ".join([*([bad] if bad else []), counted("annotation", len(annotations))])
    if not bad:
        return None
    reason = counted("forbidden AppArmor profile", len(shown))
    return Violation(reason, f"{bad} must not set AppArmor profile type to {listed(shown)}")


def se_linux_options(allowed: frozenset[str]) -> Rule:
    """SELinux types are those of containers; user and role are not set."""

    def rule(pod: CheckedPod) -> Violation | None:
        options = [(each.name, each.security.get("seLinuxOptions") or {}) for each in pod.containers]
        of_pod = pod.security.get("seLinuxOptions") or {}
        if not (bad := setters([name for name, chosen in options if is_bad(chosen)], pod=is_bad(of_pod))):
            return None
        chosen = [of_pod, *(each for _, each in options)]
        types = sorted({each.get("type") or "" for each in chosen} - allowed)
        details = [named("type", types)] if types else []
        details += [f"{field} may not be set" for field in ("user", "role") if any(each.get(field) for each in chosen)]
        return Violation("seLinuxOptions", f"{bad} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}")

    def is_bad(options: Mapping[str, Any]) -> bool:
        return (options.get("type") or "") not in allowed or bool(options.get("user") or options.get("role"))

    return rule


def seccomp_annotations(pod: CheckedPod) -> Violation | None:
    """No annotation turns seccomp off; there were no fields for it before 1.19."""
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + each.name for each in pod.containers)]
    bad = sorted(
        {
            f"{key}={quoted(pod.annotations[key])}"
            for key in keys
            if key in pod.annotations and not _is_confined_by_seccomp(pod.annotations[key])
        }
    )
    return Violation("seccompProfile", f"forbidden {counted('annotation', len(bad))} {', '.join(bad)}") if bad else None


def seccomp_baseline(pod: CheckedPod) -> Violation | None:
    """Nothing turns seccomp off."""
    containers, values, of_pod = _unconfined(pod, "seccompProfile")
    if not (bad := setters(containers, pod=of_pod)):
        return None
    detail = f"{bad} must not set securityContext.seccompProfile.type to {listed(sorted(values))}"
    return Violation("seccompProfile", detail)


def seccomp_restricted(pod: CheckedPod) -> Violation | None:
    """Every container has a seccomp profile, of its own or its pod's."""
    if violation := seccomp_baseline(pod):
        return violation
    silent = [each.name for each in pod.containers if each.security.get("seccompProfile") is None]
    if not silent or pod.security.get("seccompProfile") is not None:
        return None
    detail = (
        f"pod or {named('container', silent)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail)


def _unconfined(pod: CheckedPod, profile: str) -> tuple[list[str], set[str], bool]:
    """The containers that choose a profile that confines nothing, those profiles, and whether the pod chooses one."""
    containers: list[str] = []
    values: set[str] = set()
    for container in pod.containers:
        chosen = container.security.get(profile)
        if chosen is not None and (found := chosen.get("type", "")) not in _CONFINED:
            containers.append(container.name)
            values.add(found)
    of_pod = pod.security.get(profile)
    if of_pod is None or (found := of_pod.get("type", "")) in _CONFINED:
        return containers, values, False
    return containers, values | {found}, True


def _is_confined_by_app_armor(annotation: str) -> bool:
    return annotation in ("", "runtime/default") or annotation.startswith("localhost/")


def _is_confined_by_seccomp(annotation: str) -> bool:
    return annotation in ("runtime/default", "docker/default") or annotation.startswith("localhost/")


CHECKS = (
    Check(id="appArmorProfile", level=Level.BASELINE, forms={0: app_armor_profile}),
    Check(
        id="seLinuxOptions",
        level=Level.BASELINE,
        forms={0: se_linux_options(_SE_LINUX_TYPES), 31: se_linux_options(_SE_LINUX_TYPES | {"container_engine_t"})},
    ),
    Check(id="seccompProfile_baseline", level=Level.BASELINE, forms={0: seccomp_annotations, 19: seccomp_baseline}),
    Check(
        id="seccompProfile_restricted",
        level=Level.RESTRICTED,
        forms={19: seccomp_restricted, 25: unless_windows(seccomp_restricted)},
        replaces="seccompProfile_baseline",
    ),
)
