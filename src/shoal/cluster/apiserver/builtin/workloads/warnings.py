"""What the server remarks about a pod or template that it takes all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.names import label_value_problems
from shoal.cluster.apiserver.builtin.workloads.affinity import PREFERRED, REQUIRED
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import (
    APPARMOR,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    apparmor_profile,
)
from shoal.cluster.apiserver.builtin.workloads.resources import is_fractional
from shoal.cluster.apiserver.builtin.workloads.texts import ip_warnings
from shoal.cluster.apiserver.builtin.workloads.volume_warnings import volume_warnings
from shoal.cluster.apiserver.builtin.workloads.windows import all_containers
from shoal.cluster.apiserver.kinds.kind import Object

_OLD_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'


def name_warnings(new: Object, rule: Callable[[str], list[str]], used_as: str) -> list[str]:
    """A name that is good for the object and not for the host names that are made of it."""
    messages = rule((new.get("metadata") or {}).get("name", ""))
    if not messages:
        return []
    return [
        f"metadata.name: this is used in {used_as}, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(messages)}]"
    ]


def pod_warnings(holder: Object, path: str) -> list[str]:
    """A pod (``path`` is empty) or a template at its path."""
    spec, metadata = holder.get("spec") or {}, holder.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    prefix = f"{path}." if path else ""
    return [
        *_placement_warnings(spec, f"{prefix}spec"),
        *(
            f"{prefix}metadata.annotations[{key}]: {words}"
            for key, words in _OLD_ANNOTATIONS.items()
            if key in annotations
        ),
        *volume_warnings(spec.get("volumes") or [], f"{prefix}spec.volumes"),
        *_duplicate_warnings(spec, f"{prefix}spec"),
        *_fraction_warnings(spec.get("overhead"), f"{prefix}spec.overhead"),
        *_profile_warnings(annotations, spec, prefix, is_template=bool(path)),
        *_container_warnings(spec, f"{prefix}spec"),
        *_port_warnings(spec, f"{prefix}spec"),
        *_late_warnings(spec, f"{prefix}spec"),
    ]


def _placement_warnings(spec: Object, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_OLD_NODE_LABELS[key]}"
    if nodes := (spec.get("affinity") or {}).get("nodeAffinity"):
        here = f"{path}.affinity.nodeAffinity"
        for index, term in enumerate((nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
            yield from _term_warnings(term, f"{here}.{REQUIRED}.nodeSelectorTerms[{index}]", checks_values=False)
        for index, preferred in enumerate(nodes.get(PREFERRED) or ()):
            where = f"{here}.{PREFERRED}[{index}].preference"
            yield from _term_warnings(preferred.get("preference") or {}, where, checks_values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        here, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _OLD_NODE_LABELS:
            yield f"{here}.topologyKey: {key} is {_OLD_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{here}.labelSelector: {_NULL_SELECTOR}"


def _term_warnings(term: Object, path: str, *, checks_values: bool) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here, key = f"{path}.matchExpressions[{index}]", expression.get("key", "")
        if key in _OLD_NODE_LABELS:
            yield f"{here}.key: {key} is {_OLD_NODE_LABELS[key]}"
        if checks_values:
            for position, value in enumerate(expression.get("values") or ()):
                for words in label_value_problems(value):
                    yield f"{here}.values[{position}]: {value} is invalid, {words}"


def _duplicate_warnings(spec: Object, path: str) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(field) or ()):
            value = item.get(key, "")
            if value in seen:
                yield f'{path}.{field}[{index}].{key}: duplicate {key} "{value}"'
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _fraction_warnings(amounts: dict[str, str] | None, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        amount = (amounts or {}).get(name)
        if amount is not None and is_fractional(amount):
            yield f'{path}[{name}]: fractional byte value "{parse_quantity(amount)}" is invalid, must be an integer'


def _profile_warnings(annotations: dict[str, str], spec: Object, prefix: str, *, is_template: bool) -> Iterator[str]:
    if not annotations:
        return
    context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and context.get("seccompProfile") is None:
        yield f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_SECCOMP}"
    for container, _ in all_containers(spec, ""):
        own, name = container.get("securityContext") or {}, container.get("name", "")
        if SECCOMP_CONTAINER + name in annotations and own.get("seccompProfile") is None:
            yield f"{prefix}metadata.annotations[{SECCOMP_CONTAINER}{name}]: {_SECCOMP}"
        said = annotations.get(APPARMOR + name)
        if said is None:
            continue
        profile, meant = context.get("appArmorProfile"), apparmor_profile(said)
        # The field of a new pod has been set from its annotation by now.
        is_said_once = own.get("appArmorProfile") == (None if is_template or meant is None else meant)
        if is_said_once and (meant is None or profile != meant):
            words = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{prefix}metadata.annotations[{APPARMOR}{name}]: {words}"


def _container_warnings(spec: Object, path: str) -> Iterator[str]:
    for container, here in all_containers(spec, path):
        resources = container.get("resources") or {}
        if resources:
            for name in ("memory", "ephemeral-storage"):
                for side in ("limits", "requests"):
                    amounts = resources.get(side) or {}
                    if name in amounts:
                        yield from _fraction_warnings({name: amounts[name]}, f"{here}.resources.{side}")
        seen: set[str] = set()
        for index, variable in enumerate(container.get("env") or ()):
            name = variable.get("name", "")
            if name in seen:
                reference, value = f"$({name})", variable.get("value", "")
                if "valueFrom" in variable or value == reference or reference not in value:
                    words = "which may be dropped when using apply"
                    yield f'{here}.env[{index}]: hides previous definition of "{name}", {words}'
            seen.add(name)


def _port_warnings(spec: Object, path: str) -> Iterator[str]:
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    named: list[tuple[str, str]] = []
    for container, here in all_containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{here}.ports[{index}]"
            if port.get("name"):
                named.append((port["name"], where))
            host, address = port.get("hostPort", 0), port.get("hostIP", "")
            if address and not host:
                yield f"{where}: hostIP set without hostPort: {_shown_port(port)}"
            others = found.setdefault(f"{port.get('containerPort', 0)}/{port.get('protocol', '')}", [])
            for other_path, other in others:
                other_host, other_address = other.get("hostPort", 0), other.get("hostIP", "")
                if (address, host) == (other_address, other_host):
                    yield f"{where}: duplicate port definition with {other_path}"
                elif not host or not other_host:
                    yield f"{where}: overlapping port definition with {other_path}"
                elif host == other_host and bool(address) != bool(other_address):
                    yield f"{where}: dangerously ambiguous port definition with {other_path}"
            others.append((where, port))
    first: dict[str, str] = {}
    for name, where in named:
        if name in first:
            yield (
                f'{where}: duplicate port name "{name}" with {first[name]}, services and probes that select ports '
                f"by name will use {first[name]}"
            )
        first.setdefault(name, where)


def _shown_port(port: dict[str, Any]) -> str:
    return (
        f"{{Name:{port.get('name', '')} HostPort:{port.get('hostPort', 0)} "
        f"ContainerPort:{port.get('containerPort', 0)} Protocol:{port.get('protocol', '')} "
        f"HostIP:{port.get('hostIP', '')}}}"
    )


def _late_warnings(spec: Object, path: str) -> Iterator[str]:
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        words = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {words}"
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, here = affinity.get(kind) or {}, f"{path}.affinity.{kind}"
        for index, term in enumerate(pods.get(REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{here}.{REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}"
        for index, weighted in enumerate(pods.get(PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{here}.{PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(server, f"{path}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip")
