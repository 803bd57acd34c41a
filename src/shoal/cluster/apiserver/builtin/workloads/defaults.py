"""What a pod or a pod template is given where its author said nothing, and old spellings made the present ones.

Everything works on the normal form, in which a field that is missing is not set, and leaves it that way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.cluster.apiserver.builtin.volumes import SOURCE_DEFAULTS
from shoal.cluster.apiserver.builtin.workloads.images import default_pull_policy
from shoal.cluster.apiserver.builtin.workloads.resources import (
    HUGE_PAGES,
    is_pod_level,
    overcommits,
    rounded,
    totals,
)
from shoal.cluster.apiserver.kinds.kind import Object

_FILE_MODE = 0o644
_SOURCES: Mapping[str, Mapping[str, Any]] = {
    **SOURCE_DEFAULTS,
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_OUTDATED_ANNOTATIONS = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def default_pod(pod: Object) -> None:
    """A pod: as a template, and what is decided only when it is made."""
    spec = pod.setdefault("spec", {})
    drop_outdated_annotations(pod)
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            resources = container.get("resources")
            if resources and (limits := resources.get("limits")):
                resources["requests"] = {**limits, **(resources.get("requests") or {})}
    if spec.get("resources"):
        _complete_pod_resources(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for containers in (spec.get("containers"), spec.get("initContainers")):
            for container in containers or ():
                for port in container.get("ports") or ():
                    if port.get("containerPort") and not port.get("hostPort"):
                        port["hostPort"] = port["containerPort"]
    default_pod_spec(spec)
    # A negative period was once taken, and is read as the shortest one.
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if status := pod.get("status"):
        _align_addresses(status)


def default_template(template: Object) -> None:
    """A pod template."""
    drop_outdated_annotations(template)
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: Object) -> None:
    """What pods and templates have in common."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for containers in (spec.get("containers"), spec.get("initContainers"), spec.get("ephemeralContainers")):
        for container in containers or ():
            _default_container(container)
    if overhead := spec.get("overhead"):
        _round(overhead)
    if resources := spec.get("resources"):
        _round_resources(resources)


def default_claim_spec(spec: Object) -> None:
    """A claim of storage, on its own or in a template."""
    spec.setdefault("volumeMode", "Filesystem")
    if resources := spec.get("resources"):
        _round_resources(resources)


def drop_outdated_annotations(meta_holder: Object) -> None:
    """Takes away what said, long ago, which init containers there are."""
    annotations = (meta_holder.get("metadata") or {}).get("annotations")
    if not annotations:
        return
    for key in _OUTDATED_ANNOTATIONS:
        annotations.pop(key, None)
    if not annotations:
        del meta_holder["metadata"]["annotations"]


def _default_container(container: Object) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if "protocol" not in port:
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            _default_field_reference(source)
            if "fileKeyRef" in source:
                source["fileKeyRef"].setdefault("optional", False)
    if resources := container.get("resources"):
        _round_resources(resources)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            for field, value in _PROBE.items():
                probe.setdefault(field, value)
            _default_http(probe)
            if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
                grpc["service"] = ""
    if lifecycle := container.get("lifecycle"):
        for moment in ("postStart", "preStop"):
            if handler := lifecycle.get(moment):
                _default_http(handler)


def _default_http(handler: Object) -> None:
    if (action := handler.get("httpGet")) is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


def _default_field_reference(holder: Object) -> None:
    if (reference := holder.get("fieldRef")) is not None:
        reference.setdefault("apiVersion", "v1")


def _default_volume(volume: Object) -> None:
    if len(volume) <= 1 and ("name" in volume or not volume):
        volume["emptyDir"] = {}
        return
    for kind, source in volume.items():
        if (defaults := _SOURCES.get(kind)) is not None:
            for field, value in defaults.items():
                source.setdefault(field, value)
        if (special := _SPECIAL.get(kind)) is not None:
            special(source)


def _default_downward(source: Object) -> None:
    for item in source.get("items") or ():
        _default_field_reference(item)


def _default_projected(source: Object) -> None:
    for part in source.get("sources") or ():
        if downward := part.get("downwardAPI"):
            _default_downward(downward)
        if (token := part.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)


def _default_ephemeral(source: Object) -> None:
    if (template := source.get("volumeClaimTemplate")) is not None:
        default_claim_spec(template.setdefault("spec", {}))


def _default_image(source: Object) -> None:
    source.setdefault("pullPolicy", default_pull_policy(source.get("reference", "")))


_SPECIAL: Mapping[str, Callable[[Object], None]] = {
    "downwardAPI": _default_downward,
    "projected": _default_projected,
    "ephemeral": _default_ephemeral,
    "image": _default_image,
}


def _complete_pod_resources(spec: Object) -> None:
    """Requests of the pod as a whole: what its containers ask for together, or else its own limits."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        limits = {
            **{
                name: str(amount)
                for name, amount in totals(spec, "limits").items()
                if name.startswith(HUGE_PAGES) and name not in requests
            },
            **limits,
        }
        if limits:
            resources["limits"] = limits
    if not limits:
        return
    asked = {name: str(amount) for name, amount in totals(spec, "requests").items() if is_pod_level(name)}
    completed = {
        **{name: amount for name, amount in limits.items() if is_pod_level(name)},
        **{name: amount for name, amount in asked.items() if overcommits(name)},
        **requests,
    }
    if completed:
        resources["requests"] = completed


def _align_addresses(status: Object) -> None:
    """One address and the list of addresses say the same; where they differ, old agents are right."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address:
        if not addresses or addresses[0].get("ip") != address:
            status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


def _round_resources(resources: Object) -> None:
    for side in ("limits", "requests"):
        if amounts := resources.get(side):
            _round(amounts)


def _round(amounts: dict[str, str]) -> None:
    for name, amount in amounts.items():
        kept = rounded(amount)
        if kept is not amount:
            amounts[name] = kept
