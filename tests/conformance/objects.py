"""Small objects for stories, in the words of the wire."""

from __future__ import annotations

from typing import Any

from tests.conformance.story import Request, get, has_condition, post

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def a_config_map(name: str = "one", data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return content if data is None else {**content, "data": data}


def a_container(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.com/app:1", **more}


def a_bare_pod(name: str = "one", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [a_container()], **spec},
    }


def a_template(app: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [a_container()], **spec}}


def a_deployment(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": a_template(name), **spec},
    }


def a_job(name: str = "one", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [a_container()], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def a_service(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **spec},
    }


def a_bare_node(name: str, **status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def a_version(name: str = "v1", properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One version of a definition, whose ``spec`` has these properties."""
    spec = {"type": "object", "properties": properties or {"size": {"type": "integer"}, "colour": {"type": "string"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def a_definition(plural: str, *versions: dict[str, Any], scope: str = "Namespaced", **names: Any) -> dict[str, Any]:
    """A definition in the group example.com; the kind is the plural's singular, capitalised."""
    kind = plural.removesuffix("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions) or [a_version()],
        },
    }


def defined(definition: dict[str, Any]) -> list[Request]:
    """Creates a definition and waits until its kind is established."""
    name = definition["metadata"]["name"]
    return [
        post(DEFINITIONS, definition),
        get(f"{DEFINITIONS}/{name}", until=has_condition("Established"), shown=conditions),
    ]


def conditions(body: Any) -> Any:
    """The conditions of an object without their times: several parts of the server write them at once."""
    found = body.get("status", {}).get("conditions", [])
    shown = [{key: value for key, value in one.items() if key != "lastTransitionTime"} for one in found]
    return sorted(shown, key=lambda one: str(one["type"]))


def a_custom(plural: str, name: str = "one", version: str = "v1", **content: Any) -> dict[str, Any]:
    kind = plural.removesuffix("s").capitalize()
    return {"apiVersion": f"example.com/{version}", "kind": kind, "metadata": {"name": name}, **content}


def customs(plural: str, version: str = "v1") -> str:
    return f"/apis/example.com/{version}/namespaces/{{ns}}/{plural}"
