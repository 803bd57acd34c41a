"""Which groups, versions and resources there are: in the old form, list by list, and in the new, all at once."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import msgspec

from shoal.cluster.apiserver.calls import Answer, Call, json_answer, no_such_path
from shoal.cluster.apiserver.front.negotiation import check_producible, negotiated
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.refusals import no_such_route

# An unqualified name means the first group that has it: Kubernetes' own in its order, then the others by name.
_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)
_LAST = ("metrics.k8s.io",)
_AGGREGATED = re.compile(r"application/json;\s*g=apidiscovery\.k8s\.io;\s*v=v2;\s*as=APIGroupDiscoveryList")
_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")


class Discovery:
    """Answers what is served; made anew only when a definition has changed that."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._groups: dict[str, dict[str, list[Kind]]] = {}
        self._aggregated: dict[str, tuple[bytes, str]] = {}

    def paths(self) -> list[str]:
        """The paths of all groups and versions."""
        found = ["/api", "/apis"]
        for group, versions in self._current().items():
            found += [f"/apis/{group}"] if group else []
            found += [f"/apis/{group}/{version}" if group else f"/api/{version}" for version in versions]
        return found

    def answer(self, call: Call) -> Answer:
        """The answer for /api, /apis and what is below them."""
        parts = call.path[1:].rstrip("/").split("/")
        accept = call.headers.get("accept", "")
        check_producible(accept)
        if len(parts) > 1:
            negotiated(accept, tables=False)
        match parts:
            case ["api"]:
                return self._root(call, is_core=True)
            case ["apis"]:
                return self._root(call, is_core=False)
            case ["api", version] if version in self._current()[""]:
                return json_answer(self._resources("", version))
            case ["apis", group] if group and group in self._current():
                return json_answer({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ["apis", group, version] if version in self._current().get(group, ()) and group:
                return json_answer(self._resources(group, version))
            case ["api", *_]:
                raise no_such_route()
            case ["apis", group, *_] if self._registry.is_builtin(group):
                raise no_such_route()
        return no_such_path()

    def _root(self, call: Call, *, is_core: bool) -> Answer:
        wanted = _AGGREGATED.search(call.headers.get("accept", "").replace("; ", ";"))
        if wanted is not None:
            return self._all_at_once(call, is_core=is_core)
        negotiated(call.headers.get("accept", ""), tables=False)
        if is_core:
            return json_answer(
                {
                    "kind": "APIVersions",
                    "versions": list(self._current()[""]),
                    "serverAddressByClientCIDRs": [
                        {"clientCIDR": "0.0.0.0/0", "serverAddress": call.headers.get("host", "")}
                    ],
                }
            )
        groups = [self._group(group) for group in self._current() if group]
        return json_answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _all_at_once(self, call: Call, *, is_core: bool) -> Answer:
        groups = self._current()
        key = "api" if is_core else "apis"
        if key not in self._aggregated:
            items = [_group_item(group, versions) for group, versions in groups.items() if (not group) is is_core]
            kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
            body = msgspec.json.encode({**kind, "metadata": {}, "items": items})
            self._aggregated[key] = body, f'"{hashlib.sha256(body).hexdigest().upper()}"'
        body, tag = self._aggregated[key]
        headers = {"ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
        content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        if tag in call.headers.get("if-none-match", ""):
            return Answer(status=304, content_type=content_type, headers=headers)
        return Answer(body=body, content_type=content_type, headers=headers)

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self._current()[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> dict[str, Any]:
        resources = []
        for kind in self._current()[group][version]:
            resources.append(_resource(kind))
            resources += [_subresource(kind, name) for name in sorted(kind.subresources)]
        head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": resources}

    def _current(self) -> dict[str, dict[str, list[Kind]]]:
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._groups = _grouped(self._registry)
            self._aggregated.clear()
        return self._groups


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions from the most to the least trusted: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    found = _VERSION.match(version)
    if found is None:
        return 3, 0, 0, version
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return stage, -int(found[1]), -int(found[3] or 0), ""


def _grouped(registry: Registry) -> dict[str, dict[str, list[Kind]]]:
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in sorted(registry, key=lambda kind: (_group_order(kind), version_order(kind.version), kind.resource)):
        groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return groups


def _group_order(kind: Kind) -> tuple[int, str]:
    if kind.group in _ORDER:
        return _ORDER.index(kind.group), ""
    return len(_ORDER) + (kind.group in _LAST), kind.group


def _group_item(group: str, versions: dict[str, list[Kind]]) -> dict[str, Any]:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {"version": version, "resources": [_discovered(kind) for kind in kinds], "freshness": "Current"}
            for version, kinds in versions.items()
        ],
    }


def _discovered(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": kind.resource,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.is_custom:
        found["responseKind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [
            {"subresource": name, "responseKind": _response_kind(kind, name), "verbs": list(one.verbs)}
            for name, one in sorted(kind.subresources.items())
        ]
    return found


def _response_kind(kind: Kind, name: str) -> dict[str, str]:
    one = kind.subresources[name]
    is_foreign = kind.is_custom or (one.group, one.version) != (kind.group, kind.version)
    return {
        "group": one.group if is_foreign else "",
        "version": one.version if is_foreign else "",
        "kind": one.kind,
    }


def _resource(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": kind.resource,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if "watch" in kind.verbs:
        digest = hashlib.sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()
        found["storageVersionHash"] = _short_hash(digest)
    return found


def _short_hash(digest: bytes) -> str:
    return base64.b64encode(digest[:8]).decode()


def _subresource(kind: Kind, name: str) -> dict[str, Any]:
    one = kind.subresources[name]
    found: dict[str, Any] = {"name": f"{kind.resource}/{name}", "singularName": "", "namespaced": kind.namespaced}
    if (one.group, one.version) != (kind.group, kind.version):
        found |= {"group": one.group, "version": one.version}
    return {**found, "kind": one.kind, "verbs": list(one.verbs)}
