"""Small objects for stories, in the words of the wire."""

from __future__ import annotations

from typing import Any

from tests.differential.mirror import Object
from tests.differential.story import BY_HAND

IMAGE = "example.com/app:1"


def a_container(name: str = "main", image: str = IMAGE, **more: Any) -> Object:
    return {"name": name, "image": image, **more}


def an_object(version: str, kind: str, name: str, **more: Any) -> Object:
    """Any object; ``metadata`` is added to its name."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **more.pop("metadata", {})}, **more}


def a_template(app: str, image: str = IMAGE, metadata: Object | None = None, **spec: Any) -> Object:
    labels = {"app": app, **(metadata or {}).get("labels", {})}
    return {
        "metadata": {**(metadata or {}), "labels": labels},
        "spec": {"containers": [a_container(image=image)], **spec},
    }


def a_bare_pod(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    return an_object("v1", "Pod", name, metadata=metadata or {}, spec={"containers": [a_container()], **spec})


def a_workload(
    version: str, kind: str, name: str, image: str = IMAGE, pod: Object | None = None, **spec: Any
) -> Object:
    """A Deployment or another kind with a selector and a template; ``pod`` is put into the pod's spec."""
    template = a_template(name, image, **(pod or {}))
    metadata = spec.pop("metadata", {})
    content = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return an_object(version, kind, name, metadata=metadata, spec=content)


def a_deployment(name: str = "web", **more: Any) -> Object:
    return a_workload("apps/v1", "Deployment", name, **more)


def a_replica_set(name: str = "web", **more: Any) -> Object:
    return a_workload("apps/v1", "ReplicaSet", name, **more)


def a_stateful_set(name: str = "db", **more: Any) -> Object:
    return a_workload("apps/v1", "StatefulSet", name, serviceName=name, **more)


def a_daemon_set(name: str = "agent", **more: Any) -> Object:
    return a_workload("apps/v1", "DaemonSet", name, **more)


def a_replication_controller(name: str = "web", **spec: Any) -> Object:
    return an_object(
        "v1", "ReplicationController", name, spec={"selector": {"app": name}, "template": a_template(name), **spec}
    )


def a_job(name: str = "work", pod: Object | None = None, **spec: Any) -> Object:
    """A Job whose pods live by the hand of the story."""
    template = a_template(name, **{"restartPolicy": "Never", **BY_HAND, **(pod or {})})
    metadata = spec.pop("metadata", {})
    return an_object("batch/v1", "Job", name, metadata=metadata, spec={"template": template, **spec})


def a_service(name: str = "web", **spec: Any) -> Object:
    metadata = spec.pop("metadata", {})
    content = {"selector": {"app": name}, "ports": [{"port": 80}], **spec}
    return an_object("v1", "Service", name, metadata=metadata, spec=content)


def a_config_map(name: str = "one", **metadata: Any) -> Object:
    return an_object("v1", "ConfigMap", name, metadata=metadata)


def a_budget(name: str = "web", app: str = "web", **spec: Any) -> Object:
    return an_object("policy/v1", "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": app}}, **spec})


def a_quota(name: str = "quota", scopes: Any = None, selector: Any = None, **hard: Any) -> Object:
    spec: Object = {"hard": {key.replace("__", ".").replace("_", "/"): value for key, value in hard.items()}}
    spec |= {"scopes": scopes} if scopes else {}
    spec |= {"scopeSelector": selector} if selector else {}
    return an_object("v1", "ResourceQuota", name, spec=spec)


def image(name: str) -> Object:
    """The change that rolls a workload out anew."""
    return {"spec": {"template": {"spec": {"containers": [a_container(image=f"example.com/app:{name}")]}}}}


def owned_by(owner: Object, *, controller: bool = False, blocking: bool = False) -> Object:
    """A reference to an object as it is in the cluster."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    reference |= {"controller": True} if controller else {}
    return reference | ({"blockOwnerDeletion": True} if blocking else {})
