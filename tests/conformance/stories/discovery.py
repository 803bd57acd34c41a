"""Discovery, OpenAPI, health and version: the shapes that clients rely on."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_definition, a_version, defined
from tests.conformance.story import Request, Story, get

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
GROUPS = (
    "apps",
    "batch",
    "policy",
    "rbac.authorization.k8s.io",
    "coordination.k8s.io",
    "networking.k8s.io",
    "scheduling.k8s.io",
    "node.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "apiextensions.k8s.io",
)


def resources(path: str) -> Request:
    """The resources of a group version, without the hash of how they are stored."""
    return get(path, shown=without_hashes)


def without_hashes(body: Any) -> Any:
    for one in body["resources"]:
        one.pop("storageVersionHash", None)
    return {**body, "resources": sorted(body["resources"], key=lambda one: str(one["name"]))}


def group_of(name: str) -> Any:
    def shown(body: Any) -> Any:
        found = [item for item in body["items"] if item["metadata"].get("name", "") == name]
        for version in (version for item in found for version in item["versions"]):
            version["resources"].sort(key=lambda one: one["resource"])
        return {"kind": body["kind"], "apiVersion": body["apiVersion"], "found": found}

    return shown


def schema_of(name: str, *path: str) -> Any:
    """One schema of an OpenAPI document, without its prose."""

    def shown(body: Any) -> Any:
        found = body["components"]["schemas"].get(name)
        for step in path:
            found = found[step]
        return _without_prose(found)

    return shown


def operations(path: str) -> Any:
    """The operations at a path: what kubectl looks for is the name and kind of each, and its parameters."""

    def shown(body: Any) -> Any:
        found = body["paths"][path]
        return {
            method: {
                "kind": operation.get("x-kubernetes-group-version-kind"),
                "action": operation.get("x-kubernetes-action"),
                "parameters": sorted(one["name"] for one in operation.get("parameters", [])),
                "body": sorted(operation.get("requestBody", {}).get("content", {})),
                "answers": sorted(operation["responses"]),
            }
            for method, operation in found.items()
            if method != "parameters"
        }

    return shown


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_prose(item)
            for key, item in value.items()
            if key != "description" or not isinstance(item, str)
        }
    return [_without_prose(item) for item in value] if isinstance(value, list) else value


STORIES = [
    Story("the legacy group", [get("/api"), resources("/api/v1")]),
    Story("groups by name", [get(f"/apis/{group}") for group in GROUPS]),
    Story("resources of groups", [resources(f"/apis/{group}/v1") for group in GROUPS]),
    Story(
        "aggregated discovery",
        [
            get("/api", accept=AGGREGATED, shown=group_of("")),
            get("/apis", accept=AGGREGATED, shown=group_of("apps")),
            get("/apis", accept=AGGREGATED, shown=group_of("apiextensions.k8s.io")),
            get("/apis", accept=f"{AGGREGATED},{BETA},application/json", shown=lambda body: body["kind"]),
            get("/apis", accept=f"{BETA},application/json", shown=lambda body: body["kind"]),
            get("/apis", shown=lambda body: [body["kind"], body["apiVersion"]]),
            get("/apis/apps", accept=AGGREGATED),
        ],
    ),
    Story(
        "custom kinds are discovered",
        [
            *defined(
                a_definition("seenlings", a_version(subresources={"status": {}}), shortNames=["sl"], categories=["all"])
            ),
            get(
                "/apis",
                accept=AGGREGATED,
                until=lambda _status, body: "seenlings" in str(body),
                shown=lambda body: [
                    one
                    for item in body["items"]
                    if item["metadata"]["name"] == "example.com"
                    for version in item["versions"]
                    for one in version["resources"]
                    if one["resource"] == "seenlings"
                ],
            ),
            get(
                "/openapi/v3/apis/example.com/v1",
                until=lambda status, body: status == 200 and "Seenling" in str(body),
                shown=schema_of("com.example.v1.Seenling"),
            ),
        ],
    ),
    Story(
        "open api documents",
        [
            get(
                "/openapi/v3",
                shown=lambda body: sorted(
                    set(body["paths"]) & {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"}
                ),
            ),
            get("/openapi/v3/apis/apps/v1", shown=schema_of("io.k8s.api.apps.v1.DeploymentSpec")),
            get("/openapi/v3/apis/apps/v1", shown=schema_of("io.k8s.api.apps.v1.Deployment")),
            get("/openapi/v3/api/v1", shown=schema_of("io.k8s.api.core.v1.PodSpec", "properties", "containers")),
            get("/openapi/v3/api/v1", shown=schema_of("io.k8s.api.core.v1.ServiceSpec")),
            get("/openapi/v3/api/v1", shown=schema_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")),
            get("/openapi/v3/api/v1", shown=schema_of("io.k8s.apimachinery.pkg.api.resource.Quantity")),
            get("/openapi/v3/api/v1", shown=operations("/api/v1/namespaces/{namespace}/configmaps/{name}")),
            get(
                "/openapi/v3/apis/apps/v1", shown=operations("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
            ),
            get("/openapi/v3/apis/none.example.com/v1"),
        ],
    ),
    Story(
        "health and version",
        [
            get("/healthz"),
            get("/livez"),
            get("/readyz"),
            get("/livez/ping"),
            get("/healthz/none"),
            get("/version", shown=sorted),
            get("/metrics", accept="", shown=lambda _: None),
            get("/.well-known/openid-configuration", shown=sorted),
            get("/openid/v1/jwks", shown=sorted),
        ],
    ),
]
