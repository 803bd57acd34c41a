"""The containers of a pod: the ones it is for, those that run before, and those put in while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, port_name_problems, port_number_problems
from shoal.cluster.apiserver.builtin.workloads.environment import check_environment, check_environment_sources
from shoal.cluster.apiserver.builtin.workloads.mounts import check_devices, check_mounts
from shoal.cluster.apiserver.builtin.workloads.probes import check_lifecycle, check_probes
from shoal.cluster.apiserver.builtin.workloads.resources import check_resources
from shoal.cluster.apiserver.builtin.workloads.security import check_container_security
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = frozenset({"TCP", "UDP", "SCTP"})
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_NEEDS_POLICY = "must specify restartPolicy when restart rules are used"
_NOT_FOR_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_NOT_FOR_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What of its pod a container must fit to."""

    volumes: dict[str, dict[str, Any]]
    """The volumes that are good, by their names."""
    claims: frozenset[str] = frozenset()
    grace: int | None = None
    restart_policy: str = "Always"
    has_host_users: bool = True
    is_pod: bool = True
    """Whether it is a pod itself, and no template of one."""
    names: set[str] = field(default_factory=set)
    """The names of containers that are taken."""


def check_containers(
    containers: list[dict[str, Any]], pod: Surroundings, path: str, problems: list[FieldProblem]
) -> None:
    """The containers that a pod is for."""
    if not containers:
        problems.append(required(path))
        return
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        _check_container(container, pod, here, problems)
        if container.get("name", "") in pod.names:
            problems.append(duplicate(f"{here}.name", container.get("name", "")))
        pod.names.add(container.get("name", ""))
        if (lifecycle := container.get("lifecycle")) is not None:
            check_lifecycle(lifecycle, pod.grace, f"{here}.lifecycle", problems)
        check_probes(container, pod.grace, here, problems)
        _check_restart(container, here, problems)
    _check_host_ports(containers, path, problems)


def check_init_containers(
    containers: list[dict[str, Any]], pod: Surroundings, path: str, problems: list[FieldProblem]
) -> None:
    """The containers that run before, and the sidecars that then stay."""
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        name = container.get("name", "")
        _check_container(container, pod, here, problems)
        if "restartPolicy" in container:
            _check_restart(container, here, problems)
        elif container.get("restartPolicyRules"):
            problems.append(required(f"{here}.restartPolicy", _NEEDS_POLICY))
        if name in pod.names:
            problems.append(duplicate(f"{here}.name", name))
        elif name:
            pod.names.add(name)
        _check_host_ports([container], path, problems)
        if container.get("restartPolicy") == "Always":
            if (lifecycle := container.get("lifecycle")) is not None:
                check_lifecycle(lifecycle, pod.grace, f"{here}.lifecycle", problems)
            check_probes(container, pod.grace, here, problems)
            continue
        for each in _NOT_FOR_INIT:
            if container.get(each) is not None:
                words = "may not be set for init containers without restartPolicy=Always"
                problems.append(forbidden(f"{here}.{each}", words))
        for position, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                words = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                where = f"{here}.resizePolicy[{position}].restartPolicy"
                problems.append(invalid(where, "RestartContainer", words))


def check_ephemeral_containers(
    containers: list[dict[str, Any]], pod: Surroundings, path: str, problems: list[FieldProblem]
) -> None:
    """The containers that were put in to look around."""
    others = frozenset(pod.names)
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        name = container.get("name", "")
        _check_container(container, pod, here, problems)
        check_image_is_trimmed(container, here, problems)
        if name in pod.names:
            problems.append(duplicate(f"{here}.name", name))
        pod.names.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in others:
            problems.append(not_found(f"{here}.targetContainerName", target))
        words = "cannot be set for an Ephemeral Container"
        problems += [forbidden(f"{here}.{each}", words) for each in _NOT_FOR_EPHEMERAL if container.get(each)]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            where = f"{here}.volumeMounts[{position}]"
            problems += [forbidden(f"{where}.{each}", words) for each in ("subPath", "subPathExpr") if mount.get(each)]


def check_image_is_trimmed(container: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """An image of a pod has no blanks around it; templates are not held to that."""
    image = container.get("image", "")
    if image != image.strip():
        problems.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))


def pull_policy_problems(policy: str, path: str) -> list[FieldProblem]:
    """When an image is pulled."""
    if policy in PULL_POLICIES:
        return []
    return [not_supported(path, policy, PULL_POLICIES) if policy else required(path)]


def _check_container(container: dict[str, Any], pod: Surroundings, path: str, problems: list[FieldProblem]) -> None:
    name = container.get("name", "")
    if not name:
        problems.append(required(f"{path}.name"))
    elif messages := label_problems(name):
        problems += [invalid(f"{path}.name", name, each) for each in messages]
    if not container.get("image"):
        problems.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "")
    if policy not in ("File", "FallbackToLogsOnError"):
        here = f"{path}.terminationMessagePolicy"
        known = ["File", "FallbackToLogsOnError"]
        problems.append(not_supported(here, policy, known) if policy else required(here))
    if ports := container.get("ports"):
        _check_ports(ports, f"{path}.ports", problems)
    if variables := container.get("env"):
        check_environment(variables, f"{path}.env", problems)
    if sources := container.get("envFrom"):
        check_environment_sources(sources, f"{path}.envFrom", problems)
    mounts, devices = container.get("volumeMounts"), container.get("volumeDevices")
    if mounts:
        check_mounts(mounts, devices or (), pod.volumes, container, f"{path}.volumeMounts", problems)
    if devices:
        check_devices(devices, mounts or (), pod.volumes, f"{path}.volumeDevices", problems)
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        problems += pull_policy_problems(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    if resources := container.get("resources"):
        check_resources(resources, f"{path}.resources", pod.claims, problems)
    if policies := container.get("resizePolicy"):
        _check_resize_policy(policies, pod.restart_policy, f"{path}.resizePolicy", problems)
    if security := container.get("securityContext"):
        check_container_security(security, pod.has_host_users, f"{path}.securityContext", problems)


def _check_ports(ports: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if name := port.get("name"):
            if messages := port_name_problems(name):
                problems += [invalid(f"{here}.name", name, each) for each in messages]
            elif name in names:
                problems.append(duplicate(f"{here}.name", name))
            names.add(name)
        for field_name in ("containerPort", "hostPort"):
            number = port.get(field_name, 0)
            if number == 0:
                if field_name == "containerPort":
                    problems.append(required(f"{here}.containerPort"))
            elif not 1 <= number <= 65535:
                problems += [invalid(f"{here}.{field_name}", number, each) for each in port_number_problems(number)]
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            where = f"{here}.protocol"
            problems.append(not_supported(where, protocol, sorted(_PROTOCOLS)) if protocol else required(where))


def _check_host_ports(containers: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
                if key in taken:
                    problems.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
                taken.add(key)


def _check_resize_policy(
    policies: list[dict[str, Any]], pod_policy: str, path: str, problems: list[FieldProblem]
) -> None:
    seen: set[str] = set()
    for index, each in enumerate(policies):
        resource, policy = each.get("resourceName", ""), each.get("restartPolicy", "")
        if resource in seen:
            problems.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        if resource not in ("cpu", "memory"):
            problems.append(not_supported(path, resource, ["cpu", "memory"]) if resource else required(path))
        if policy not in ("NotRequired", "RestartContainer"):
            known = ["NotRequired", "RestartContainer"]
            problems.append(not_supported(path, policy, known) if policy else required(path))
        if pod_policy == "Never" and policy != "NotRequired":
            problems.append(invalid(path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))


def _check_restart(container: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if not rules:
            return
        problems.append(required(f"{path}.restartPolicy", _NEEDS_POLICY))
    elif policy not in _RESTART_POLICIES:
        problems.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > 20:
        problems.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        if (action := rule.get("action", "")) not in _RESTART_ACTIONS:
            problems.append(not_supported(f"{here}.action", action, _RESTART_ACTIONS))
        if (codes := rule.get("exitCodes")) is None:
            problems.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        if (operator := codes.get("operator", "")) not in ("In", "NotIn"):
            problems.append(not_supported(f"{here}.exitCodes.operator", operator, ["In", "NotIn"]))
        if len(codes.get("values") or ()) > 255:
            problems.append(too_many(f"{here}.exitCodes.values", len(codes["values"]), 255))
