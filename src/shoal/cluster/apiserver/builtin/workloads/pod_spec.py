"""The specification of a pod, in a pod or in a template."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.metadata import annotations_problems
from shoal.cluster.apiserver.builtin.names import (
    label_problems,
    outside,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.builtin.selectors import labels_problems
from shoal.cluster.apiserver.builtin.workloads.affinity import check_affinity
from shoal.cluster.apiserver.builtin.workloads.claims import check_resource_claims
from shoal.cluster.apiserver.builtin.workloads.containers import (
    Surroundings,
    check_containers,
    check_ephemeral_containers,
    check_image_is_trimmed,
    check_init_containers,
)
from shoal.cluster.apiserver.builtin.workloads.pod_annotations import annotation_problems, mismatch_problems
from shoal.cluster.apiserver.builtin.workloads.resources import check_overhead, check_pod_resources, claim_names
from shoal.cluster.apiserver.builtin.workloads.scheduling import check_gates, check_spread, check_tolerations
from shoal.cluster.apiserver.builtin.workloads.security import check_pod_security
from shoal.cluster.apiserver.builtin.workloads.texts import ip_problems, search_domain_problems
from shoal.cluster.apiserver.builtin.workloads.volumes import check_volumes
from shoal.cluster.apiserver.builtin.workloads.windows import all_containers, check_host_process, check_os
from shoal.kube.admission.fields import (
    FieldProblem,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)

_LARGEST = 2**31 - 1
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def pod_problems(pod: dict[str, Any]) -> list[FieldProblem]:
    """What is wrong with a pod, whether it is new or not; its metadata are looked at elsewhere."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    problems = annotation_problems(annotations, spec, "metadata.annotations")
    _check_spec(spec, "spec", problems, name=metadata.get("name", ""), annotations=annotations, is_pod=True)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for position, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    here = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                    words = "must not be specified when serviceAccountName is not set"
                    problems.append(forbidden(here, words))
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            check_image_is_trimmed(container, f"spec.{field}[{index}]", problems)
    return problems


def template_problems(template: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with a pod template; its metadata count among what it says."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    problems = labels_problems(metadata.get("labels"), f"{path}.labels")
    problems += annotations_problems(annotations, f"{path}.annotations")
    problems += annotation_problems(annotations, spec, f"{path}.annotations")
    _check_spec(spec, f"{path}.spec", problems, name="", annotations={}, is_pod=False)
    problems += mismatch_problems(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        words = "ephemeral containers not allowed in pod template"
        problems.append(forbidden(f"{path}.spec.ephemeralContainers", words))
    return problems


def _check_spec(
    spec: dict[str, Any],
    path: str,
    problems: list[FieldProblem],
    *,
    name: str,
    annotations: dict[str, str],
    is_pod: bool,
) -> None:
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        problems.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = check_volumes(spec.get("volumes") or [], name, f"{path}.volumes", problems, is_pod=is_pod)
    if claims := spec.get("resourceClaims"):
        check_resource_claims(claims, annotations, f"{path}.resourceClaims", problems)
    surroundings = Surroundings(
        volumes=volumes,
        claims=claim_names(spec),
        grace=grace,
        restart_policy=spec.get("restartPolicy", ""),
        has_host_users=spec.get("hostUsers") is not False,
    )
    check_containers(spec.get("containers") or [], surroundings, f"{path}.containers", problems)
    if containers := spec.get("initContainers"):
        check_init_containers(containers, surroundings, f"{path}.initContainers", problems)
    if containers := spec.get("ephemeralContainers"):
        check_ephemeral_containers(containers, surroundings, f"{path}.ephemeralContainers", problems)
    check_pod_resources(spec, f"{path}.resources", problems)
    _check_policies(spec, path, problems)
    if selector := spec.get("nodeSelector"):
        problems += labels_problems(selector, f"{path}.nodeSelector")
    check_pod_security(spec, f"{path}.securityContext", problems)
    if affinity := spec.get("affinity"):
        check_affinity(affinity, f"{path}.affinity", problems)
    _check_dns(spec, path, problems)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        here = f"{path}.readinessGates[{index}].conditionType"
        problems += [invalid(here, kind, each) for each in qualified_name_problems(kind)]
    if gates := spec.get("schedulingGates"):
        check_gates(gates, f"{path}.schedulingGates", problems)
    if constraints := spec.get("topologySpreadConstraints"):
        check_spread(constraints, f"{path}.topologySpreadConstraints", problems)
    check_host_process(spec, path, problems)
    _check_host(spec, path, problems, is_pod=is_pod)
    _check_names(spec, path, problems)
    if (workload := spec.get("workloadRef")) is not None:
        _check_workload(workload, f"{path}.workloadRef", problems)
    if tolerations := spec.get("tolerations"):
        check_tolerations(tolerations, f"{path}.tolerations", problems)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        problems += ip_problems(alias.get("ip", ""), f"{here}.ip")
        for position, host in enumerate(alias.get("hostnames") or ()):
            problems += [invalid(f"{here}.hostnames[{position}]", host, each) for each in subdomain_problems(host)]
    if overhead := spec.get("overhead"):
        check_overhead(overhead, f"{path}.overhead", problems)
    if spec.get("os") is not None:
        check_os(spec, path, problems)
    _check_file_volumes(spec, path, problems)


def _check_policies(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    for field, known in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        value = spec.get(field, "")
        if value not in known:
            here = f"{path}.{field}"
            problems.append(not_supported(here, value, known) if value else required(here))
    preemption = spec.get("preemptionPolicy")
    if preemption is not None and preemption not in _PREEMPTION_POLICIES:
        here = f"{path}.preemptionPolicy"
        problems.append(not_supported(here, preemption, _PREEMPTION_POLICIES) if preemption else required(here))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        problems.append(invalid(f"{path}.activeDeadlineSeconds", deadline, outside(1, _LARGEST)))


def _check_names(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    for field, rule in (
        ("serviceAccountName", subdomain_problems),
        ("nodeName", subdomain_problems),
        ("hostname", label_problems),
        ("subdomain", label_problems),
        ("priorityClassName", subdomain_problems),
    ):
        if (value := spec.get(field)) and (messages := rule(value)):
            problems += [invalid(f"{path}.{field}", value, each) for each in messages]
    if (runtime := spec.get("runtimeClassName")) is not None:
        problems += [invalid(f"{path}.runtimeClassName", runtime, each) for each in subdomain_problems(runtime)]


def _check_workload(reference: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """The Workload of Kubernetes 1.35 that a pod belongs to, which need not be there yet."""
    for field, rule in (("name", subdomain_problems), ("podGroup", label_problems)):
        name = reference.get(field, "")
        problems += [invalid(f"{path}.{field}", name, each) for each in rule(name)]
    if key := reference.get("podGroupReplicaKey"):
        problems += [invalid(f"{path}.podGroupReplicaKey", key, each) for each in label_problems(key)]


def _check_dns(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    config, here = spec.get("dnsConfig"), f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None":
        if config is None:
            problems.append(required(here, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            words = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            problems.append(required(f"{here}.nameservers", words))
            return
    if not config:
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        problems.append(invalid(f"{here}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        problems += ip_problems(server, f"{here}.nameservers[{index}]")
    if len(searches) > 32:
        problems.append(invalid(f"{here}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        words = "must not have more than 2048 characters (including spaces) in the search list"
        problems.append(invalid(f"{here}.searches", searches, words))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        if search != ".":
            problems += [invalid(f"{here}.searches[{index}]", domain, each) for each in search_domain_problems(domain)]
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            problems.append(required(f"{here}.options[{index}]", "must not be empty"))


def _check_host(spec: dict[str, Any], path: str, problems: list[FieldProblem], *, is_pod: bool) -> None:
    """What a pod shares with its host."""
    if spec.get("hostNetwork"):
        for index, container in enumerate(spec.get("containers") or ()):
            for position, port in enumerate(container.get("ports") or ()):
                host, own = port.get("hostPort", 0), port.get("containerPort", 0)
                if (is_pod or host) and host != own:
                    here = f"{path}.containers[{index}].ports[{position}].hostPort"
                    problems.append(invalid(here, host, "must match `containerPort` when `hostNetwork` is true"))
    if spec.get("hostUsers") is False:
        words = "when `hostUsers` is false"
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                problems.append(forbidden(f"{path}.{shown}", words))
        for container, here in all_containers(spec, path):
            if container.get("volumeDevices"):
                problems.append(forbidden(f"{here}.volumeDevices", words))
    override = spec.get("hostnameOverride")
    if override is not None:
        here = f"{path}.hostnameOverride"
        if spec.get("setHostnameAsFQDN"):
            problems.append(forbidden(here, "may not be specified when setHostnameAsFQDN is true"))
        if spec.get("hostNetwork"):
            problems.append(forbidden(here, "may not be specified when hostNetwork is true"))
        if len(override) > 64:
            problems.append(too_long(here, 64))
        problems += [invalid(here, override, each) for each in subdomain_problems(override)]


def _check_file_volumes(spec: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """Variables that are read from a file need a volume that the pod itself can write."""
    volumes: dict[str, dict[str, Any]] | None = None
    for container, here in all_containers(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            source = variable.get("valueFrom")
            if source is None or (reference := source.get("fileKeyRef")) is None:
                continue
            if volumes is None:
                volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
            name = reference.get("volumeName", "")
            where = f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                problems.append(not_found(where, name))
            elif "emptyDir" not in volumes[name]:
                problems.append(invalid(where, name, "referenced volume must be of type emptyDir"))
