"""What only pods on Windows have, and what they and pods on Linux may not have of each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_supported, required

_control = re.compile("[\x00-\x1f\x7f]").search
_netbios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_domain = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", re.ASCII).fullmatch
_bad_user = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_only_dots = re.compile(r"[. ]+").fullmatch

_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_CONTEXT = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def all_containers(spec: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every container of a pod with its path, in the order in which they come to run."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def check_os(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """The system that a pod says it is for."""
    name = (spec.get("os") or {}).get("name", "")
    if not name:
        problems.append(required(f"{path}.os.name"))
    elif name == "linux":
        words = "windows options cannot be set for a linux pod"
        if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
            problems.append(forbidden(f"{path}.securityContext.windowsOptions", words))
        for container, here in all_containers(spec, path):
            if (container.get("securityContext") or {}).get("windowsOptions") is not None:
                problems.append(forbidden(f"{here}.securityContext.windowsOptions", words))
    elif name == "windows":
        _check_windows(spec, path, problems)
    else:
        problems.append(not_supported(f"{path}.os", name, ["linux", "windows"]))


def check_host_process(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """Containers that are processes of the host: all of a pod's, or none."""
    pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    total = count = 0
    for container, here in all_containers(spec, path):
        total += 1
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if pod is not None and own is not None and pod != own:
            words = f"pod hostProcess value must be identical if both are specified, was {str(pod).lower()}"
            problems.append(invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, words))
        count += bool(own if own is not None else pod)
    if not count:
        return
    if count != total:
        words = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        problems.append(invalid(path, "", words))
    if not spec.get("hostNetwork"):
        words = "hostNetwork must be true if pod contains any hostProcess containers"
        problems.append(invalid(f"{path}.hostNetwork", False, words))


def check_windows_options(options: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """Options of a security context on Windows."""
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        here = f"{path}.gmsaCredentialSpecName"
        problems += [invalid(here, name, each) for each in subdomain_problems(name)]
    if (credentials := options.get("gmsaCredentialSpec")) is not None:
        here = f"{path}.gmsaCredentialSpec"
        if not credentials:
            problems.append(invalid(here, credentials, "gmsaCredentialSpec cannot be an empty string"))
        elif len(credentials) > 64 * 1024:
            problems.append(invalid(here, credentials, "gmsaCredentialSpec size must be under 64 KiB"))
    if (user := options.get("runAsUserName")) is not None:
        problems += [invalid(f"{path}.runAsUserName", user, each) for each in _user_problems(user)]


def _user_problems(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _control(name):
        return ["runAsUserName cannot contain control characters"]
    parts = name.split("\\")
    if len(parts) > 2:
        return ["runAsUserName cannot contain more than one backslash"]
    problems = []
    user = parts[-1]
    if len(parts) == 2:
        if len(parts[0]) >= 256:
            problems.append("runAsUserName's Domain length must be under 256 characters")
        if not (_netbios(parts[0]) or _domain(parts[0])):
            problems.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("runAsUserName's User cannot be empty")
    elif len(user) > 104:
        problems.append("runAsUserName's User length must not be longer than 104 characters")
    if _only_dots(user):
        problems.append("runAsUserName's User cannot contain only periods or spaces")
    if _bad_user(user):
        problems.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def _check_windows(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    context = spec.get("securityContext") or {}
    here = f"{path}.securityContext"
    problems += [
        forbidden(f"{here}.{field}", _NOT_ON_WINDOWS) for field in _POD_CONTEXT if context.get(field) is not None
    ]
    problems += [
        forbidden(f"{path}.{field}", _NOT_ON_WINDOWS)
        for field in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
        if spec.get(field) is not None
    ]
    for container, where in all_containers(spec, path):
        own = container.get("securityContext") or {}
        problems += [
            forbidden(f"{where}.securityContext.{field}", _NOT_ON_WINDOWS)
            for field in _CONTAINER_CONTEXT
            if own.get(field) is not None
        ]
