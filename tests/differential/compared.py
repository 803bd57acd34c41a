"""What of an object is compared, and how it is shown: in few words, with nothing that a reader would skip."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.defaults import without_defaults
from tests.differential.mirror import Object

# Whether it is there depends on how many changes a controller saw at once.
_TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
# Which of the two a rollout has come to depends on how many changes a controller saw at once.
_UNDER_WAY = ("NewReplicaSetCreated", "ReplicaSetUpdated")


def compared(kind: str, content: Object) -> Object:
    """What of an object is compared."""
    kept: Object = json.loads(json.dumps({key: value for key, value in content.items() if key != "apiVersion"}))
    kept.pop("kind", None)
    for dropped in ("managedFields", "resourceVersion", "uid", "namespace", "name", "creationTimestamp"):
        kept["metadata"].pop(dropped, None)
    if kind == "Pod":
        _as_played(kept)
    if kind == "Node":
        _as_furnished(kept)
    if kind in ("Endpoints", "EndpointSlice"):
        _without(kept["metadata"], "annotations", _TRIGGER)
        kept["metadata"].pop("generation", None)  # how many changes were written at once
    if kind == "Service":
        for port in kept["spec"].get("ports", []):
            port.update({"nodePort": "<node port>"} if "nodePort" in port else {})
    if kind == "CronJob":
        for job in kept["status"].get("active", []):
            job.pop("resourceVersion", None)
    if kind == "PersistentVolume":
        kept["spec"].get("claimRef", {}).pop("resourceVersion", None)
    if kind == "Secret" or (kind == "ConfigMap" and content["metadata"]["name"] == "kube-root-ca.crt"):
        kept["data"] = dict.fromkeys(kept.get("data", {}), "<data>")
    return without_defaults(kind, kept)


def _without(metadata: Object, part: str, name: str) -> None:
    metadata.get(part, {}).pop(name, None)
    if not metadata.get(part, True):
        del metadata[part]


def _as_played(pod: Object) -> None:
    """Leaves out what a node of one world says differently from one of the other."""
    status = pod.get("status", {})
    for dropped in ("hostIP", "hostIPs", "podIPs", "startTime", "initContainerStatuses", "observedGeneration"):
        status.pop(dropped, None)
    if pod["spec"].get("schedulerName") != "nobody" and status.get("phase") == "Running":
        status.pop("containerStatuses", None)
    for condition in status.get("conditions", []):
        condition.pop("observedGeneration", None)
        condition.pop("lastProbeTime", None)
        if condition["type"] == "PodScheduled":
            condition.pop("message", None)
    if "conditions" in status:
        agents = ("PodReadyToStartContainers", *(["PodScheduled"] if "nodeName" in pod["spec"] else []))
        status["conditions"] = [one for one in status["conditions"] if one["type"] not in agents]


def _as_furnished(node: Object) -> None:
    """Leaves out what the agents of either world say of a node, and what only they read."""
    annotations = node["metadata"].get("annotations", {})
    is_played = annotations.pop("kwok.x-k8s.io/node", None)
    for name in [name for name in annotations if name.startswith("shoal.dev/")]:
        del annotations[name]
    if not annotations:
        node["metadata"].pop("annotations", None)
    status = node.pop("status", {})
    if not is_played and "conditions" in status:
        node["status"] = {"conditions": status["conditions"]}


def shown(value: Any, name: str = "") -> Any:
    """The value with owners and conditions as sentences, and with lists that mean a set sorted."""
    if isinstance(value, dict):
        return {key: shown(item, key) for key, item in value.items()}
    if isinstance(value, list):
        items = [shown(item) for item in value]
        match name:
            case "ownerReferences":
                return [_owner(one) for one in items]
            case "conditions":
                return sorted(_condition(one) for one in items)
            case "addresses" | "notReadyAddresses" | "endpoints" | "subsets":
                return sorted(items, key=lambda one: json.dumps(one, sort_keys=True))
        return items
    return value


def _owner(reference: Object) -> str:
    flags = [name for name in ("controller", "blockOwnerDeletion") if reference.get(name)]
    return " ".join([reference["apiVersion"], reference["kind"], reference["name"], reference["uid"], *flags])


def _condition(condition: Any) -> Any:
    """A condition in one line; what else it has follows in brackets."""
    if not isinstance(condition, dict) or "status" not in condition:
        return json.dumps(condition, sort_keys=True)
    if condition.get("reason") in _UNDER_WAY:
        condition = {**condition, "reason": " or ".join(_UNDER_WAY), "message": condition["message"].split('"')[1]}
    said = {key: value for key, value in condition.items() if key not in ("type", "status", "reason", "message")}
    others = ", ".join(key if value == "<time>" else f"{key} {value}" for key, value in sorted(said.items()))
    text = " ".join(filter(None, (condition["type"], condition["status"], condition.get("reason"))))
    return text + (f": {condition['message']}" if condition.get("message") else "") + f" [{others}]"
