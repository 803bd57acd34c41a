"""The kinds that sequences are about, each with what its objects, their status and their scale may hold."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.cluster.apiserver.apply.subjects import SHAPE_SCHEMA
from tests.conformance.fuzz import contents
from tests.conformance.fuzz.contents import Strategy, having, keys, metadata, one_of_these, small, some, words
from tests.conformance.fuzz.steps import Kind

GROUP = "fuzz.shoal.example"


@dataclass(frozen=True)
class Subject:
    """A kind, and per API version what its objects hold beside their metadata."""

    kind: Kind
    bodies: tuple[Strategy, ...]
    statuses: Strategy | None = None
    leasts: tuple[dict[str, Any], ...] = ()
    """What an object needs to be valid in each version, where that is not the same in all."""

    def least(self, version: int) -> dict[str, Any]:
        return self.leasts[version] if self.leasts else self.kind.least_content


def _with_metadata(**fields: Strategy) -> Strategy:
    return st.fixed_dictionaries(fields, optional={"metadata": metadata})


def _flat(content: Strategy) -> Strategy:
    """Objects whose fields lie beside their metadata."""
    return st.builds(lambda fields, more: {**more, **fields}, content, some(metadata=metadata))


_CONTAINER = {"name": "main", "image": "x"}
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [_CONTAINER]}}
_WORKLOAD = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}}
_JOB_TEMPLATE = {**_TEMPLATE, "spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
_INTEGER = {"type": "integer"}


def _shape_schema() -> dict[str, Any]:
    """The schema of every list and map type, with defaults, bounds, CEL rules and what scale needs on top."""
    schema: dict[str, Any] = copy.deepcopy(SHAPE_SCHEMA)
    spec = schema["properties"]["spec"]
    spec["properties"] |= {
        "replicas": {**_INTEGER, "format": "int32", "minimum": 0, "maximum": 100, "default": 1},
        "mode": {"type": "string", "enum": ["fast", "safe", ""], "default": "safe"},
        "low": {**_INTEGER, "format": "int64"},
        "high": {**_INTEGER, "format": "int64"},
        "fixed": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed may not change"}],
        },
        "started": {"type": "string", "format": "date-time"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 3},
        "window": {
            "type": "object",
            "default": {"size": 10},
            "required": ["size"],
            "properties": {
                "size": {**_INTEGER, "default": 5, "multipleOf": 5},
                "unit": {"type": "string", "default": "s"},
                "more": {"type": "object", "properties": {"depth": {**_INTEGER, "default": 3}}},
            },
        },
        "few": {
            "type": "array",
            "maxItems": 2,
            "minItems": 1,
            "items": {"type": "string", "maxLength": 5},
            "x-kubernetes-validations": [
                {"rule": "self.all(item, item != 'z')", "messageExpression": "'no z beside ' + self[0]"}
            ],
        },
        "either": {
            "type": "object",
            "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
            "oneOf": [{"required": ["left"]}, {"required": ["right"]}],
        },
    }
    spec["x-kubernetes-validations"] = [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "reason": "FieldValueForbidden"},
        {
            "rule": "self.replicas < 50",
            "message": "too many",
            "fieldPath": ".replicas",
        },
    ]
    status = schema["properties"]["status"]
    status["properties"] |= {
        "replicas": _INTEGER,
        "selector": {"type": "string"},
        "phase": {"type": "string", "default": "New"},
    }
    return schema


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
                "name": name,
                "served": True,
                "storage": name == "v1",
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "schema": {"openAPIV3Schema": _shape_schema()},
            }
            for name in ("v1", "v2")
        ],
    },
}
_shape_extras = some(
    replicas=one_of_these(0, 1, 2, 60, 101),
    mode=one_of_these("fast", "safe", "slow"),
    low=small,
    high=small,
    fixed=words,
    started=one_of_these("2020-01-01T00:00:00Z", "yesterday"),
    code=one_of_these("x", "abc", "abcd", "", "A"),
    window=st.one_of(st.none(), some(size=one_of_these(5, 7, None), unit=words, more=some(depth=small))),
    few=st.lists(one_of_these("x", "y", "z", "longer"), max_size=3),
    either=some(left=words, right=words),
)
_shape = st.builds(lambda first, second: {**first, **second}, contents.shapes, _shape_extras)
_shape_status = some(
    phase=words,
    replicas=small,
    selector=one_of_these("a=x", ""),
    conditions=st.lists(having({"type": keys}, status=words), max_size=3),
)


SUBJECTS: dict[str, Subject] = {
    "config-map": Subject(
        Kind("ConfigMap", "configmaps", ("v1",), {}, has_status=False), (_flat(contents.config_maps),)
    ),
    "secret": Subject(Kind("Secret", "secrets", ("v1",), {}, has_status=False), (_flat(contents.secrets),)),
    "service": Subject(
        Kind("Service", "services", ("v1",), {"spec": {"ports": [{"port": 80}]}}),
        (_with_metadata(spec=contents.services),),
        contents.service_statuses,
    ),
    "deployment": Subject(
        Kind("Deployment", "deployments", ("apps/v1",), _WORKLOAD, has_scale=True),
        (_with_metadata(spec=contents.deployments),),
        contents.deployment_statuses,
    ),
    "stateful-set": Subject(
        Kind("StatefulSet", "statefulsets", ("apps/v1",), _WORKLOAD, has_scale=True),
        (_with_metadata(spec=contents.stateful_sets),),
        contents.stateful_set_statuses,
    ),
    "job": Subject(
        Kind("Job", "jobs", ("batch/v1",), {"spec": {"template": _JOB_TEMPLATE}}),
        (_with_metadata(spec=contents.jobs),),
        contents.job_statuses,
    ),
    "pod": Subject(
        Kind("Pod", "pods", ("v1",), {"spec": {"containers": [_CONTAINER]}}),
        (_with_metadata(spec=contents.pod_specs("Always", "Never", "OnFailure")),),
        contents.pod_statuses,
    ),
    "budget": Subject(
        Kind("PodDisruptionBudget", "poddisruptionbudgets", ("policy/v1",), {"spec": {"minAvailable": 1}}),
        (_with_metadata(spec=contents.budgets),),
        contents.budget_statuses,
    ),
    "quota": Subject(
        Kind("ResourceQuota", "resourcequotas", ("v1",), {"spec": {"hard": {"pods": "1"}}}),
        (_with_metadata(spec=contents.quotas),),
        contents.quota_statuses,
    ),
    "role": Subject(
        Kind(
            "Role",
            "roles",
            ("rbac.authorization.k8s.io/v1",),
            {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
            has_status=False,
        ),
        (_with_metadata(rules=contents.rules),),
    ),
    "autoscaler": Subject(
        Kind(
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            ("autoscaling/v1", "autoscaling/v2"),
            {"spec": {"scaleTargetRef": _TARGET, "maxReplicas": 1}},
        ),
        (_with_metadata(spec=contents.autoscalers_v1), _with_metadata(spec=contents.autoscalers_v2)),
        contents.autoscaler_statuses,
    ),
    "event": Subject(
        Kind(
            "Event",
            "events",
            ("v1", "events.k8s.io/v1"),
            {"involvedObject": {"namespace": "{namespace}"}},
            has_status=False,
        ),
        (_flat(contents.event_fields), _flat(contents.event_fields_v1)),
        leasts=(
            {"involvedObject": {"namespace": "{namespace}"}},
            {
                "regarding": {"namespace": "{namespace}"},
                "eventTime": "2020-01-01T00:00:00.500000Z",
                "reportingController": "example.com/x",
                "reportingInstance": "x",
                "action": "x",
                "reason": "x",
                "type": "Normal",
            },
        ),
    ),
    "node": Subject(
        Kind("Node", "nodes", ("v1",), {}, is_cluster_wide=True),
        (_with_metadata(spec=contents.nodes, status=contents.node_statuses),),
        contents.node_statuses,
    ),
    "shape": Subject(
        Kind("Shape", "shapes", (f"{GROUP}/v1", f"{GROUP}/v2"), {}, has_scale=True, is_custom=True),
        (_with_metadata(spec=_shape), _with_metadata(spec=_shape, status=_shape_status)),
        _shape_status,
    ),
}
