"""A kind that uses every keyword that a schema may have, and values to try on each of its fields."""

from __future__ import annotations

from typing import Any

GROUP = "custom.shoal.test"


def field(**keywords: Any) -> dict[str, Any]:
    return {name.replace("x_", "x-kubernetes-").replace("_", "-"): value for name, value in keywords.items()}


def a_map(*keys: str, **properties: Any) -> dict[str, Any]:
    items = {"type": "object", "required": [keys[0]], "properties": properties}
    return field(type="array", x_list_type="map", x_list_map_keys=list(keys), items=items)


TEXT = {"type": "string"}
FIELDS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "maxLength": 10, "minLength": 2, "pattern": "^[a-z]+$"},
    "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1},
    "num": {"type": "number", "minimum": 0.5, "exclusiveMaximum": True, "maximum": 9.5, "multipleOf": 0.5},
    "big": {"type": "integer", "multipleOf": 5},
    "flag": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["A", "B"]},
    "level": {"type": "integer", "enum": [1, 2]},
    "nul": {"type": "string", "nullable": True},
    "set": field(type="array", x_list_type="set", items=TEXT) | {"minItems": 1, "maxItems": 3},
    "map": a_map("k", k=TEXT, v={"type": "integer"}),
    "map2": a_map("k", "p", k=TEXT, p={"type": "string", "default": "TCP"}),
    "labels": {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 3},
        "maxProperties": 2,
        "minProperties": 1,
    },
    "ios": {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%?$"} | field(x_int_or_string=True),
    "any": field(x_preserve_unknown_fields=True),
    "keep": {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "o": {"type": "object", "properties": {"x": TEXT}}},
    }
    | field(x_preserve_unknown_fields=True),
    "emb": field(type="object", x_embedded_resource=True, x_preserve_unknown_fields=True),
    "tmpl": {"type": "object", "properties": {"metadata": {"type": "object"}, "x": TEXT}},
    "one": {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "alt": {
        "type": "object",
        "properties": {"a": TEXT, "b": {"type": "integer"}},
        "anyOf": [
            {"required": ["a"], "properties": {"a": {"minLength": 3}}},
            {"required": ["b"], "properties": {"b": {"minimum": 3}}},
        ],
    },
    "all": {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^x"}]},
    "not": {"type": "string", "not": {"enum": ["bad"]}},
    "fl": {"type": "number", "format": "float"},
    "i64": {"type": "integer", "format": "int64"},
    "rule": {
        "type": "integer",
        "x-kubernetes-validations": [
            {"rule": "self > 3", "message": "must be more"},
            {"rule": "self < 100", "messageExpression": "self > 1000 ? 'far too big' : ''"},
        ],
    },
    "imm": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    "opt": {
        "type": "string",
        "x-kubernetes-validations": [
            {
                "rule": "!oldSelf.hasValue() || self == oldSelf.value()",
                "optionalOldSelf": True,
                "reason": "FieldValueForbidden",
            }
        ],
    },
    "obj": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": TEXT},
        "x-kubernetes-validations": [
            {"rule": "self.a < self.b", "fieldPath": ".a", "reason": "FieldValueRequired"},
            {"rule": "self.c.size() > 0"},
        ],
    },
    "deflt": {
        "type": "object",
        "default": {"x": 1},
        "properties": {"x": {"type": "integer"}, "y": {"type": "string", "default": "yy"}},
    },
}
FORMATS = {
    "when": "date-time",
    "day": "date",
    "ip4": "ipv4",
    "ip6": "ipv6",
    "net": "cidr",
    "url": "uri",
    "uid": "uuid",
    "mail": "email",
    "host": "hostname",
    "b64": "byte",
    "dur": "duration",
    "odd": "weird",
    "short": "k8s-short-name",
}
FIELDS |= {name: {"type": "string", "format": form} for name, form in FORMATS.items()}

STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": TEXT,
        "conditions": a_map("type", type=TEXT, status=TEXT),
    },
}

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 5, 7, 10, 11, 1.5, 0.5, 2.0, 1e30, 3000000000),
    *("", "a", "ab", "abc", "xyz", "ABC", "bad", "10%", "A", "2020-01-01", "2020-01-01T00:00:00Z", "1.2.3.4", "::1"),
    *(
        "10.0.0.0/8",
        "http://a.b/c",
        "/x",
        "a@b.c",
        "host.name",
        "aGk=",
        "5m",
        "3 days",
        "1.2.3.04",
        "x y",
        "2020-02-30",
    ),
    *([], ["a"], ["a", "a"], [1], [None], [[]], [{"k": "a"}], [{"k": "a"}, {"k": "a", "p": "UDP"}]),
    *({}, {"a": "b"}, {"a": 1}, {"k": "x"}, {"a": 5, "b": 2, "c": "x"}, {"a": 1, "b": 2, "c": "x"}, {"b": 1}),
    *({"x": 1, "zz": 2}, {"metadata": {"name": "q"}}, {"apiVersion": "v1", "kind": "Pod"}, {"n": 1, "z": 2}),
]


def definition(**fields: dict[str, Any]) -> dict[str, Any]:
    """The definition of Gadget, with other fields instead of some."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "shortNames": ["gd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "selectableFields": [{"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.flag"}],
                    "additionalPrinterColumns": [
                        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                        {
                            "name": "Ready",
                            "type": "string",
                            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                        },
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                        {"name": "Labels", "type": "string", "jsonPath": ".spec.labels"},
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {
                                "spec": {"type": "object", "required": ["name"], "properties": FIELDS | fields},
                                "status": STATUS,
                            },
                        }
                    },
                }
            ],
        },
    }


def gadget(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": "x", "namespace": "default", **metadata},
        "spec": spec,
    }
