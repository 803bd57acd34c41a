"""What a server fills in where a manifest says nothing: the same in both worlds, and proved elsewhere."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object

_POD = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER = {
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_TOKEN = "kube-api-access-"
_SPECS = {
    "Service": {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
    },
}
# Given to every pod, so that a lost node does not take it at once.
_TOLERATIONS = [
    {
        "effect": "NoExecute",
        "key": f"node.kubernetes.io/{condition}",
        "operator": "Exists",
        "tolerationSeconds": 300,
    }
    for condition in ("not-ready", "unreachable")
]


def without_defaults(kind: str, content: Object) -> Object:
    """The object less the defaults that are always there."""
    spec = content.get("spec", {})
    _drop(spec, _SPECS.get(kind, {}))
    if kind == "Pod":
        _pod(spec)
        if content.get("status", {}).get("qosClass") == "BestEffort":
            del content["status"]["qosClass"]
    for template in (spec.get("template"), spec.get("jobTemplate", {}).get("spec", {}).get("template")):
        if isinstance(template, dict):
            template.get("metadata", {}).pop("creationTimestamp", None)
            _pod(template.get("spec", {}))
    return content


def _pod(spec: Any) -> None:
    _drop(spec, _POD)
    for part in ("containers", "initContainers"):
        for container in spec.get(part, []):
            _drop(container, _CONTAINER)
            if mounts := container.get("volumeMounts"):
                container["volumeMounts"] = [one for one in mounts if not one["name"].startswith(_TOKEN)]
                _drop(container, {"volumeMounts": []})
    if "volumes" in spec:
        spec["volumes"] = [one for one in spec["volumes"] if not one["name"].startswith(_TOKEN)]
        _drop(spec, {"volumes": []})
    if "tolerations" in spec:
        spec["tolerations"] = [one for one in spec["tolerations"] if one not in _TOLERATIONS]
        _drop(spec, {"tolerations": []})


def _drop(content: Any, defaults: dict[str, Any]) -> None:
    for field, value in defaults.items():
        if content.get(field) == value:
            del content[field]
