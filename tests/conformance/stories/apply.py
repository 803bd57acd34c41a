"""Server-side apply: who owns what, conflicts, and what becomes of fields that nobody wants any more."""

from __future__ import annotations

from tests.conformance.objects import (
    a_config_map,
    a_container,
    a_custom,
    a_definition,
    a_deployment,
    a_version,
    customs,
    defined,
)
from tests.conformance.story import APPLY_PATCH, APPS, CORE, Story, apply, delete, get, patch, post, put, status_is_not

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
DEPLOYMENT = f"{APPS}/deployments/one"
SERVICE = f"{CORE}/services/one"

WIDGETS = customs("applings")
WIDGET_PROPERTIES = {
    "size": {"type": "integer"},
    "atoms": {"type": "array", "items": {"type": "string"}},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
        },
    },
    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def container(**fields: object) -> dict[str, object]:
    template = {"spec": {"containers": [{"name": "main", **fields}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"}, "spec": {"template": template}}


def a_widget(**spec: object) -> dict[str, object]:
    return a_custom("applings", spec=spec)


STORIES = [
    Story(
        "apply creates and updates",
        [
            apply(ONE, a_config_map(data={"a": "1"})),
            apply(ONE, a_config_map(data={"a": "1"})),
            apply(ONE, a_config_map(data={"a": "2", "b": "1"})),
            apply(ONE, a_config_map(data={"b": "1"})),
            apply(ONE, a_config_map()),
        ],
    ),
    Story(
        "apply needs a manager and an object",
        [
            patch(ONE, a_config_map(), APPLY_PATCH),
            apply(ONE, {"apiVersion": "v1", "kind": "ConfigMap"}),
            apply(ONE, {"kind": "ConfigMap", "metadata": {"name": "one"}}),
            apply(ONE, {"apiVersion": "v1", "metadata": {"name": "one"}}),
            apply(ONE, a_config_map("two")),
            apply(ONE, a_config_map(namespace="elsewhere")),
            apply(ONE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}),
            apply(ONE, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  from: yaml\n"),
            apply(ONE, "{"),
            apply(ONE, "a: b: c"),
            apply(ONE, ""),
            apply(ONE, "[]"),
            patch(ONE, a_config_map(), APPLY_PATCH, query={"fieldManager": "one", "force": "maybe"}),
            patch(ONE, {"data": {}}, query={"fieldManager": "one", "force": "true"}),
        ],
    ),
    Story(
        "apply conflicts with the owner of a value",
        [
            apply(ONE, a_config_map(data={"a": "1", "b": "1"}), "first"),
            apply(ONE, a_config_map(data={"a": "2"}), "second"),
            apply(ONE, a_config_map(data={"a": "1"}), "second"),
            apply(ONE, a_config_map(data={"a": "2", "b": "2"}), "third"),
            apply(ONE, a_config_map(data={"a": "2"}), "third", force=True),
            apply(ONE, a_config_map(data={"a": "1"}), "first"),
            apply(ONE, a_config_map(data={"b": "1"}), "first"),
        ],
    ),
    Story(
        "apply conflicts with updates",
        [
            post(MAPS, a_config_map(data={"a": "1"}), query={"fieldManager": "creator"}),
            apply(ONE, a_config_map(data={"a": "2"}), "applier"),
            apply(ONE, a_config_map(data={"a": "2"}), "applier", force=True),
            patch(ONE, {"data": {"a": "3"}}, query={"fieldManager": "patcher"}),
            apply(ONE, a_config_map(data={"a": "2"}), "applier"),
            put(ONE, a_config_map(data={"z": "1"}), query={"fieldManager": "putter"}),
        ],
    ),
    Story(
        "shared fields stay while one wants them",
        [
            apply(ONE, a_config_map(data={"a": "1", "b": "1"}), "first"),
            apply(ONE, a_config_map(data={"a": "1"}), "second"),
            apply(ONE, a_config_map(data={}), "first"),
            apply(ONE, a_config_map(), "second"),
        ],
    ),
    Story(
        "apply merges a deployment's containers",
        [
            apply(DEPLOYMENT, a_deployment(replicas=2), "first"),
            apply(DEPLOYMENT, container(env=[{"name": "A", "value": "1"}]), "second"),
            apply(DEPLOYMENT, container(image="example.com/other"), "second"),
            apply(DEPLOYMENT, container(), "second"),
            apply(DEPLOYMENT, {**a_deployment(), "spec": {"replicas": 3}}, "second"),
            apply(DEPLOYMENT, {**a_deployment(), "spec": {"replicas": 3}}, "second", force=True),
            apply(DEPLOYMENT, a_deployment(), "first"),
            apply(DEPLOYMENT, {**a_deployment(), "spec": {}}, "second"),
        ],
    ),
    Story(
        "a scaler takes over the replicas",
        [
            apply(DEPLOYMENT, a_deployment(replicas=2), "owner"),
            patch(f"{DEPLOYMENT}/scale", {"spec": {"replicas": 5}}, query={"fieldManager": "scaler"}),
            get(DEPLOYMENT),
            apply(DEPLOYMENT, a_deployment(replicas=2), "owner"),
            apply(
                f"{DEPLOYMENT}/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "one"},
                    "spec": {"replicas": 7},
                },
                "applier",
                force=True,
            ),
            get(DEPLOYMENT),
        ],
    ),
    Story(
        "apply of unknown and wrong fields",
        [
            apply(ONE, {**a_config_map(), "unknown": 1}),
            apply(ONE, {**a_config_map(), "unknown": 1}, query={"fieldValidation": "Strict"}),
            apply(ONE, {**a_config_map(), "unknown": 1}, query={"fieldValidation": "Ignore"}),
            apply(ONE, a_config_map(data={"a": 5})),  # type: ignore[dict-item]
            apply(ONE, {**a_config_map(), "data": ["a"]}),
            apply(ONE, a_config_map(data={"a": None})),  # type: ignore[dict-item]
            apply(DEPLOYMENT, container(ports=[{"containerPort": 80}, {"containerPort": 80}])),
            apply(
                f"{APPS}/deployments/two",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "two"},
                    "spec": {"template": {"spec": {"containers": [a_container(), a_container()]}}},
                },
            ),
            apply(ONE, a_config_map(managedFields=[{"manager": "x"}])),
            apply(ONE, a_config_map(resourceVersion="1")),
            apply(ONE, a_config_map(uid="11111111-2222-3333-4444-555555555555")),
        ],
    ),
    Story(
        "apply to what is there with a uid or version",
        [
            apply(ONE, a_config_map(data={"a": "1"}), called="made"),
            apply(ONE, a_config_map(data={"a": "2"}, uid="{made.metadata.uid}")),
            apply(ONE, a_config_map(data={"a": "3"}, uid="11111111-2222-3333-4444-555555555555")),
            apply(ONE, a_config_map(data={"a": "3"}, resourceVersion="{made.metadata.resourceVersion}")),
            delete(ONE),
            apply(ONE, a_config_map(data={"a": "3"}, uid="{made.metadata.uid}")),
        ],
    ),
    Story(
        "status is applied apart",
        [
            apply(DEPLOYMENT, {**a_deployment(), "status": {"replicas": 1}}, "owner"),
            apply(
                f"{DEPLOYMENT}/status",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "one"},
                    "status": {
                        "replicas": 1,
                        "conditions": [
                            {"type": "Available", "status": "True", "lastUpdateTime": "2024-01-01T00:00:00Z"}
                        ],
                    },
                },
                "controller",
            ),
            apply(f"{DEPLOYMENT}/status", {**a_deployment(replicas=9), "status": {"replicas": 2}}, "controller"),
            apply(f"{APPS}/deployments/absent/status", {**a_deployment("absent"), "status": {}}, "controller"),
        ],
    ),
    Story(
        "service ports are merged by port and protocol",
        [
            apply(
                SERVICE,
                service := {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "one"},
                    "spec": {"ports": [{"name": "a", "port": 80, "protocol": "TCP"}]},
                },
                "first",
            ),
            apply(SERVICE, {**service, "spec": {"ports": [{"name": "b", "port": 81}]}}, "second"),
            apply(SERVICE, {**service, "spec": {"ports": [{"name": "c", "port": 80}]}}, "second"),
            apply(SERVICE, {**service, "spec": {"selector": {"x": "y"}}}, "second"),
        ],
    ),
    Story(
        "apply of custom objects",
        [
            *defined(a_definition("applings", a_version(properties=WIDGET_PROPERTIES, subresources={"status": {}}))),
            apply(
                f"{WIDGETS}/one",
                a_widget(size=1, atoms=["a"], set=["x"], parts=[{"name": "p", "value": 1}]),
                "first",
                until=status_is_not(404),
            ),
            apply(f"{WIDGETS}/one", a_widget(set=["y"], parts=[{"name": "q", "value": 2}]), "second"),
            apply(f"{WIDGETS}/one", a_widget(atoms=["b"]), "second"),
            apply(f"{WIDGETS}/one", a_widget(atoms=["b"]), "second", force=True),
            apply(f"{WIDGETS}/one", a_widget(size=1, set=["x"]), "first"),
            apply(f"{WIDGETS}/one", a_widget(whole={"a": "1"}, free={"x": {"y": 1}}), "third"),
            apply(f"{WIDGETS}/one", a_widget(whole={"b": "1"}, free={"x": {"z": 1}}), "fourth"),
            apply(f"{WIDGETS}/one", a_widget(unknown=1), "fourth"),
            apply(f"{WIDGETS}/one", a_widget(size="big"), "fourth"),
            apply(f"{WIDGETS}/one", a_widget(set=["x", "x"]), "fourth"),
            apply(f"{WIDGETS}/one", a_widget(parts=[{"value": 1}]), "fourth"),
            apply(f"{WIDGETS}/one/status", {**a_widget(), "status": {"phase": "On"}}, "controller"),
            get(f"{WIDGETS}/one"),
        ],
    ),
    Story(
        "a client that applied itself before hands over",
        [
            post(
                MAPS,
                a_config_map(
                    data={"a": "1", "b": "1"},
                    annotations={
                        "kubectl.kubernetes.io/last-applied-configuration": (
                            '{"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap",'
                            '"metadata":{"annotations":{},"name":"one"}}'
                        )
                    },
                ),
                query={"fieldManager": "kubectl-client-side-apply"},
            ),
            apply(ONE, a_config_map(data={"a": "2"}), "kubectl"),
            get(ONE),
        ],
    ),
    Story(
        "apply dry run",
        [
            apply(ONE, a_config_map(data={"a": "1"}), query={"dryRun": "All"}),
            get(ONE),
            apply(ONE, a_config_map(data={"a": "1"})),
            apply(ONE, a_config_map(data={"a": "2"}), query={"dryRun": "All"}),
            get(ONE),
        ],
    ),
]
