"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from typing import Any

from shoal.cluster.apiserver.builtin.names import outside
from shoal.cluster.apiserver.builtin.workloads.texts import descending_path_problems
from shoal.cluster.apiserver.builtin.workloads.windows import check_windows_options
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)

_LARGEST = 2**31 - 1
_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_sysctl = re.compile(_SYSCTL, re.ASCII).fullmatch
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def check_container_security(
    context: dict[str, Any], has_host_users: bool, path: str, problems: list[FieldProblem]
) -> None:
    """The security context of a container."""
    _check_identity(context, ("runAsUser", "runAsGroup"), path, problems)
    mount = context.get("procMount")
    if mount is not None:
        here = f"{path}.procMount"
        if mount not in ("Default", "Unmasked"):
            problems.append(not_supported(here, mount, ["Default", "Unmasked"]))
        if has_host_users and mount == "Unmasked":
            problems.append(invalid(here, mount, "`hostUsers` must be false to use `Unmasked`"))
    _check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", problems)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            problems.append(invalid(path, _internal(context), words))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            words = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            problems.append(invalid(path, _internal(context), words))
    if options := context.get("windowsOptions"):
        check_windows_options(options, f"{path}.windowsOptions", problems)
    _check_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile", problems)


def check_pod_security(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """The security context of a pod; some of its fields are the pod's own on the wire."""
    context = spec.get("securityContext") or {}
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        words = "ShareProcessNamespace and HostPID cannot both be enabled"
        problems.append(invalid(f"{path}.shareProcessNamespace", True, words))
    if not context:
        return
    _check_identity(context, ("fsGroup", "runAsUser", "runAsGroup"), path, problems)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= _LARGEST:
            problems.append(invalid(f"{path}.supplementalGroups[{index}]", group, outside(0, _LARGEST)))
    if sysctls := context.get("sysctls"):
        _check_sysctls(sysctls, spec, f"{path}.sysctls", problems)
    for field, known in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("Recursive",)),
    ):
        value = context.get(field)
        if value is not None and value not in known:
            problems.append(not_supported(f"{path}.{field}", value, known))
    _check_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", problems)
    if options := context.get("windowsOptions"):
        check_windows_options(options, f"{path}.windowsOptions", problems)
    _check_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile", problems)


def _check_identity(context: dict[str, Any], fields: tuple[str, ...], path: str, problems: list[FieldProblem]) -> None:
    for field in fields:
        value = context.get(field)
        if value is not None and not 0 <= value <= _LARGEST:
            problems.append(invalid(f"{path}.{field}", value, outside(0, _LARGEST)))


def _check_seccomp(profile: dict[str, Any] | None, path: str, problems: list[FieldProblem]) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if kind not in _TYPES:
        here = f"{path}.type"
        words = "type is required when seccompProfile is set"
        problems.append(not_supported(here, kind, _TYPES) if kind else required(here, words))
    if kind == "Localhost":
        if local is None:
            words = "must be set when seccomp type is Localhost"
            problems.append(required(f"{path}.localhostProfile", words))
        else:
            problems += descending_path_problems(local, f"{path}.localhostProfile")
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        words = "can only be set when seccomp type is Localhost"
        problems.append(invalid(f"{path}.localhostProfile", shown, words))


def _check_apparmor(profile: dict[str, Any] | None, path: str, problems: list[FieldProblem]) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind == "Localhost":
        missing = "must be set when AppArmor type is Localhost"
        if local is None:
            problems.append(required(here, missing))
            return
        if local.strip() != local:
            problems.append(invalid(here, local, "must not be padded with whitespace"))
        elif not local:
            problems.append(required(here, missing))
        if len(local) > 4095:
            problems.append(too_long(here, 4095))
    elif kind in _TYPES:
        if local is not None:
            problems.append(invalid(here, local, "can only be set when AppArmor type is Localhost"))
    else:
        words = "type is required when appArmorProfile is set"
        problems.append(not_supported(f"{path}.type", kind, _TYPES) if kind else required(f"{path}.type", words))


def _check_sysctls(
    sysctls: list[dict[str, Any]], spec: dict[str, Any], path: str, problems: list[FieldProblem]
) -> None:
    seen: set[str] = set()
    for index, each in enumerate(sysctls):
        here, name = f"{path}[{index}].name", each.get("name", "")
        if not name:
            problems.append(required(here))
        elif len(name) > 253 or not _sysctl(name):
            words = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            problems.append(invalid(here, name, words))
        elif name in seen:
            problems.append(duplicate(here, name))
        dotted = name.replace("/", ".") if "." not in name.split("/")[0] else name
        if spec.get("hostNetwork") and dotted.startswith("net."):
            problems.append(invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (dotted.startswith(_IPC_SYSCTLS) or dotted == "kernel.sem"):
            problems.append(invalid(here, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)


_INTERNAL: dict[str, tuple[str, ...]] = {
    "Capabilities": ("Add", "Drop"),
    "Privileged": (),
    "SELinuxOptions": ("User", "Role", "Type", "Level"),
    "WindowsOptions": ("GMSACredentialSpecName", "GMSACredentialSpec", "RunAsUserName", "HostProcess"),
    "RunAsUser": (),
    "RunAsGroup": (),
    "RunAsNonRoot": (),
    "ReadOnlyRootFilesystem": (),
    "AllowPrivilegeEscalation": (),
    "ProcMount": (),
    "SeccompProfile": ("Type", "LocalhostProfile"),
    "AppArmorProfile": ("Type", "LocalhostProfile"),
}


def _internal(context: dict[str, Any]) -> dict[str, Any]:
    """The context as the server shows it whole: by the names of its own fields."""
    shown = {}
    for name, parts in _INTERNAL.items():
        value = context.get(_wire_name(name))
        shown[name] = {part: value.get(_wire_name(part)) for part in parts} if parts and value is not None else value
    return shown


def _wire_name(name: str) -> str:
    """A field's name on the wire: its first word in small letters."""
    letters = re.match("(SEL|GMSA|.)", name)
    assert letters is not None
    head = {"SEL": "seL", "GMSA": "gmsa"}.get(letters[0], letters[0].lower())
    return head + name[len(letters[0]) :]
