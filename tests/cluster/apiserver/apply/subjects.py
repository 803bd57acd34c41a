"""The kinds on which writes are tried, and bodies of them: of few names and values, so that writers meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.tables import type_schema
from tests.cluster.apiserver.apply.differential import EDITS, Step, Subject, schema_of

Strategy = st.SearchStrategy[Any]

GROUP = "apply.shoal.example"

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_PART = {
    "type": "object",
    "properties": {"a": _TEXT, "b": {"type": "integer"}, "c": _TEXTS},
}
SHAPE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": _TEXT,
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "perhaps": {"type": "string", "nullable": True},
                "amount": {"x-kubernetes-int-or-string": True},
                "labels": _TEXTS,
                "frozen": {**_TEXTS, "x-kubernetes-map-type": "atomic"},
                "whole": {**_PART, "x-kubernetes-map-type": "atomic"},
                "part": _PART,
                "atoms": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "atomic"},
                "parts": {"type": "array", "items": _PART},
                "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": _TEXT,
                            "options": _TEXTS,
                            "limits": {**_TEXTS, "x-kubernetes-map-type": "atomic"},
                            "marks": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                        },
                    },
                },
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": _TEXT,
                            "inner": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["id"],
                                "items": {
                                    "type": "object",
                                    "required": ["id"],
                                    "properties": {"id": {"type": "integer"}, "value": _TEXT},
                                },
                            },
                        },
                    },
                },
                "groups": {"type": "object", "additionalProperties": _PART},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "half": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": _PART, "set": {**_TEXTS, "x-kubernetes-map-type": "atomic"}},
                },
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "held": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": _TEXT,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": _TEXT, "status": _TEXT},
                    },
                },
            },
        },
    },
}

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"shapes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "shapes", "singular": "shape", "kind": "Shape", "listKind": "ShapeList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SHAPE_SCHEMA},
            }
        ],
    },
}

_CONTAINER_DEFAULTS = {"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "resources", "protocol"}
_POD_DEFAULTS = {
    "restartPolicy",
    "dnsPolicy",
    "schedulerName",
    "securityContext",
    "terminationGracePeriodSeconds",
    "serviceAccount",
}


def shapes(namespace: str) -> Subject:
    return Subject(
        f"{GROUP}/v1",
        "Shape",
        f"/apis/{GROUP}/v1/namespaces/{namespace}/shapes",
        schema_of(SHAPE_SCHEMA),
        defaulted=frozenset({"protocol"}),
        resets={"": (("status",),), "status": (("spec",), ("metadata",))},
    )


def config_maps(namespace: str) -> Subject:
    return Subject("v1", "ConfigMap", f"/api/v1/namespaces/{namespace}/configmaps", type_schema("core.v1.ConfigMap"))


def pod_templates(namespace: str) -> Subject:
    return Subject(
        "v1",
        "PodTemplate",
        f"/api/v1/namespaces/{namespace}/podtemplates",
        type_schema("core.v1.PodTemplate"),
        defaulted=frozenset(_CONTAINER_DEFAULTS | _POD_DEFAULTS),
    )


def services(namespace: str) -> Subject:
    return Subject(
        "v1",
        "Service",
        f"/api/v1/namespaces/{namespace}/services",
        type_schema("core.v1.Service"),
        defaulted=frozenset({"protocol", "sessionAffinity", "targetPort", "type"}),
        resets={"": (("status",),), "status": (("spec",),)},
    )


def deployments(namespace: str) -> Subject:
    return Subject(
        "apps/v1",
        "Deployment",
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        type_schema("apps.v1.Deployment"),
        defaulted=frozenset(
            _CONTAINER_DEFAULTS
            | _POD_DEFAULTS
            | {
                "replicas",
                "revisionHistoryLimit",
                "progressDeadlineSeconds",
                "strategy",
                "type",
                "rollingUpdate",
                "maxSurge",
                "maxUnavailable",
            }
        ),
        resets={"": (("status",),), "status": (("spec",), ("metadata", "labels"))},
    )


def _some(**fields: Strategy) -> Strategy:
    return st.fixed_dictionaries({}, optional=fields)


_words: Strategy = st.sampled_from(["x", "y", "z"])
_keys: Strategy = st.sampled_from(["a", "b", "c"])
_maps: Strategy = st.dictionaries(_keys, _words, max_size=3)
_nullable_maps: Strategy = st.one_of(_maps, _maps, _maps, st.none())
_metadata = _some(
    labels=_nullable_maps,
    annotations=st.dictionaries(st.sampled_from(["n", "o"]), _words, max_size=2),
    finalizers=st.just([]),
)
_sets = st.lists(_keys, max_size=3, unique=True)
_maybe_duplicates = st.lists(_keys, max_size=4)
_part = _some(a=_words, b=st.integers(0, 2), c=_maps)
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.sampled_from([0.5, 1.0]), _words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_keys, inner, max_size=2)),
    max_leaves=5,
)
_ports: Strategy = st.lists(
    st.fixed_dictionaries(
        {"port": st.sampled_from([9, 80, 443])},
        optional={
            "protocol": st.sampled_from(["TCP", "UDP"]),
            "name": _words,
            "options": _maps,
            "limits": _maps,
            "marks": _sets,
        },
    ),
    max_size=4,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
_rules: Strategy = st.lists(
    st.fixed_dictionaries(
        {"name": _keys},
        optional={
            "inner": st.lists(
                st.fixed_dictionaries({"id": st.sampled_from([2, 10])}, optional={"value": _words}),
                max_size=2,
                unique_by=lambda row: row["id"],
            )
        },
    ),
    max_size=3,
    unique_by=lambda row: row["name"],
)
_held: Strategy = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Thing")},
    optional={
        "metadata": _some(name=_words, labels=_maps, finalizers=_sets),
        "spec": st.dictionaries(_keys, _json, max_size=2),
    },
)
_shape_spec = _some(
    text=_words,
    count=st.integers(0, 2),
    ratio=st.sampled_from([1, 1.0, 0.5]),
    flag=st.booleans(),
    perhaps=st.one_of(st.none(), _words),
    amount=st.one_of(st.integers(0, 1), st.just("50%")),
    labels=_nullable_maps,
    frozen=_maps,
    whole=_part,
    part=_part,
    atoms=_maybe_duplicates,
    parts=st.lists(_part, max_size=2),
    tags=st.one_of(_sets, st.permutations(["a", "b", "c", "d"])),
    numbers=st.lists(st.sampled_from([2, 10, 100]), max_size=3, unique=True),
    ports=_ports,
    rules=_rules,
    groups=st.dictionaries(_keys, _part, max_size=2),
    free=st.dictionaries(_keys, _json, max_size=3),
    half=st.one_of(_some(known=_part, set=_maps, other=_json)),
    any=_json,
    held=_held,
)
_shape_status = _some(
    phase=_words,
    conditions=st.lists(
        st.fixed_dictionaries({"type": _keys}, optional={"status": _words}),
        max_size=3,
        unique_by=lambda row: row["type"],
    ),
)

_container: Strategy = st.fixed_dictionaries(
    {"name": _keys, "image": _words},
    optional={
        "command": st.lists(_words, max_size=2),
        "env": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["A", "B", "C"])}, optional={"value": _words}),
            max_size=3,
        ),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"containerPort": st.sampled_from([9, 80, 443])},
                optional={"protocol": st.sampled_from(["TCP", "UDP"]), "hostIP": st.sampled_from(["192.0.2.1"])},
            ),
            max_size=3,
            unique_by=lambda port: (port["containerPort"], port.get("protocol", "TCP")),
        ),
        "resources": _some(
            requests=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2"]), max_size=2),
            limits=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["4", "5"]), max_size=2),
        ),
        "imagePullPolicy": st.sampled_from(["Always", "Never"]),
        "securityContext": _some(runAsUser=st.integers(0, 1), capabilities=_some(add=st.just(["NET_ADMIN"]))),
    },
)
_containers: Strategy = st.lists(_container, min_size=1, max_size=3, unique_by=lambda row: row["name"])
_pod_spec: Strategy = st.fixed_dictionaries(
    {"containers": _containers},
    optional={
        "initContainers": _containers.map(lambda rows: [{**row, "name": f"init-{row['name']}"} for row in rows]),
        "nodeSelector": _maps,
        "tolerations": st.lists(st.fixed_dictionaries({"key": _keys, "operator": st.just("Exists")}), max_size=2),
        "terminationGracePeriodSeconds": st.integers(1, 3),
        "imagePullSecrets": st.lists(
            st.fixed_dictionaries({"name": _keys}), max_size=2, unique_by=lambda row: row["name"]
        ),
        "securityContext": _some(runAsUser=st.integers(0, 1), fsGroup=st.integers(0, 1)),
        "restartPolicy": st.sampled_from(["Always"]),
        "affinity": _some(nodeAffinity=st.just({})),
    },
)
_template: Strategy = st.fixed_dictionaries(
    {"spec": _pod_spec}, optional={"metadata": _some(labels=_maps, annotations=_maps)}
)
_deployment_spec: Strategy = st.fixed_dictionaries(
    {
        "selector": st.just({"matchLabels": {"app": "x"}}),
        "template": st.builds(
            lambda template: {**template, "metadata": {**template.get("metadata", {}), "labels": {"app": "x"}}},
            _template,
        ),
    },
    optional={
        "replicas": st.sampled_from([0]),
        "paused": st.booleans(),
        "minReadySeconds": st.integers(0, 2),
        "strategy": st.sampled_from(
            [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}, {}]
        ),
    },
)
_service_spec: Strategy = st.fixed_dictionaries(
    {"type": st.just("ExternalName"), "externalName": st.sampled_from(["x.example", "y.example"])},
    optional={
        "selector": _maps,
        "ports": st.lists(
            st.fixed_dictionaries(
                {"port": st.sampled_from([9, 80, 443]), "name": _words},
                optional={
                    "protocol": st.sampled_from(["TCP", "UDP"]),
                    "targetPort": st.one_of(st.integers(1, 3), _keys),
                },
            ),
            max_size=3,
            unique_by=(lambda port: (port["port"], port.get("protocol", "TCP")), lambda port: port["name"]),
        ),
        "externalIPs": st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2"]), max_size=2),
        "sessionAffinity": st.just("None"),
    },
)

BODIES: dict[str, Strategy] = {
    "Shape": _some(metadata=_metadata, spec=_shape_spec),
    "ConfigMap": _some(
        metadata=_metadata,
        data=_nullable_maps,
        binaryData=st.dictionaries(st.sampled_from(["d", "e"]), st.just("AA=="), max_size=2),
        immutable=st.just(False),
    ),
    "PodTemplate": st.fixed_dictionaries({"template": _template}, optional={"metadata": _metadata}),
    "Service": st.fixed_dictionaries({"spec": _service_spec}, optional={"metadata": _metadata}),
    "Deployment": st.fixed_dictionaries({"spec": _deployment_spec}, optional={"metadata": _metadata}),
}
_managers = st.sampled_from(["ann", "ben", "kubectl"])


def _spoilt(body: dict[str, Any]) -> dict[str, Any]:
    """A body that its schema does not allow, in a place that depends on what it holds."""
    places = [key for key in body if isinstance(body[key], dict)]
    if not places:
        return {**body, "bogus": 1}
    place = max(places)
    inner = body[place]
    wrong = [key for key in sorted(inner) if key != "any"]
    if not wrong or len(wrong) % 2:
        return {**body, place: {"bogus": 1}}
    return {**body, place: {**inner, wrong[0]: [1] if isinstance(inner[wrong[0]], str) else "x"}}


def steps(kind: str) -> Strategy:
    """Sequences of writes to one object."""
    bodies = BODIES[kind]
    options = [
        st.builds(Step, st.sampled_from(["put", "merge", "apply", "apply", "force"]), _managers, bodies),
        st.builds(Step, st.sampled_from(["put", "apply", "force", "force"]), _managers, bodies),
        st.builds(
            Step,
            st.just("forget"),
            _managers,
            st.sampled_from([{"managedFields": []}, {"managedFields": [{}]}]),
        ),
        st.builds(Step, st.just("edit"), _managers, st.fixed_dictionaries({"how": st.sampled_from(EDITS)})),
        st.builds(Step, st.just("client"), st.just("kubectl-client-side-apply"), bodies),
        st.builds(Step, st.sampled_from(["apply", "force"]), _managers, bodies.map(_spoilt)),
    ]
    if kind == "Shape":
        status = _some(status=_shape_status)
        verbs = st.sampled_from(["put", "merge", "apply", "force"])
        options.append(st.builds(Step, verbs, _managers, status, st.just("status")))
        options.append(st.builds(Step, st.sampled_from(["put", "apply"]), _managers, _some(status=_shape_status)))
    # The first two are what happens mostly.
    return st.lists(st.one_of(*options[:2], *options[:2], *options), min_size=2, max_size=12)
