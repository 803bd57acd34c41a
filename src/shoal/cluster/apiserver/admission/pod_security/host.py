"""Baseline checks of how a pod reaches its host: namespaces, ports, addresses of probes, host processes of Windows."""

from __future__ import annotations

from shoal.cluster.apiserver.admission.pod_security.checks import Check, CheckedPod, Container, Violation
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.apiserver.admission.pod_security.wording import listed, setters, used


def host_namespaces(pod: CheckedPod) -> Violation | None:
    """A pod does not share the host's network, processes or IPC."""
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_ports(pod: CheckedPod) -> Violation | None:
    """Containers take no ports of the host."""
    names: list[str] = []
    ports: set[str] = set()
    for container in pod.containers:
        if found := {str(each["hostPort"]) for each in container.content.get("ports") or () if each.get("hostPort")}:
            names.append(container.name)
            ports |= found
    if not names:
        return None
    return Violation("hostPort", used("container", names, "hostPort", ports, ", ".join(sorted(ports))))


def host_probes_and_lifecycle(pod: CheckedPod) -> Violation | None:
    """Probes and lifecycle hooks connect to the pod itself: the kubelet could reach other hosts for it."""
    names: set[str] = set()
    hosts: set[str] = set()
    for container in pod.containers:
        if found := _hosts(container):
            names.add(container.name)
            hosts |= found
    if not names:
        return None
    what = "probe or lifecycle host"
    return Violation(what, used("container", sorted(names), what, hosts, listed(sorted(hosts))))


def windows_host_process(pod: CheckedPod) -> Violation | None:
    """Containers are no processes of a Windows host."""
    containers = [
        each.name for each in pod.containers if (each.security.get("windowsOptions") or {}).get("hostProcess")
    ]
    bad = setters(containers, pod=bool((pod.security.get("windowsOptions") or {}).get("hostProcess")))
    if not bad:
        return None
    return Violation("hostProcess", f"{bad} must not set securityContext.windowsOptions.hostProcess=true")


def _hosts(container: Container) -> set[str]:
    lifecycle = container.content.get("lifecycle") or {}
    handlers = [container.content.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(hook) for hook in ("postStart", "preStop")]
    actions = [handler.get(action) for handler in handlers if handler for action in ("httpGet", "tcpSocket")]
    return {action["host"] for action in actions if action and action.get("host")}


CHECKS = (
    Check(id="hostNamespaces", level=Level.BASELINE, forms={0: host_namespaces}),
    Check(id="hostPorts", level=Level.BASELINE, forms={0: host_ports}),
    Check(id="hostProbesAndHostLifecycle", level=Level.BASELINE, forms={34: host_probes_and_lifecycle}),
    Check(id="windowsHostProcess", level=Level.BASELINE, forms={0: windows_host_process}),
)
