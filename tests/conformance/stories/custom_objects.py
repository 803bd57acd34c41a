"""Custom objects: validation, pruning, defaults, rules, versions and scale."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_custom, a_definition, a_version, customs, defined
from tests.conformance.story import Request, Story, apply, get, patch, post, put, status_is, status_is_not

CHECKED = customs("checklings")
CHECKED_PROPERTIES: dict[str, Any] = {
    "size": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 1},
    "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
    "colour": {"type": "string", "enum": ["red", "green"]},
    "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    "unique": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "keyed": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "v": {"type": "string"}},
        },
    },
    "labels": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
    "nested": {"type": "object", "required": ["must"], "properties": {"must": {"type": "boolean"}}},
    "when": {"type": "string", "format": "date-time"},
    "port": {"x-kubernetes-int-or-string": True},
    "either": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "nothing": {"type": "string", "nullable": True},
    "int32": {"type": "integer", "format": "int32"},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}

RULED = customs("ruledlings")
RULED_PROPERTIES: dict[str, Any] = {
    "min": {"type": "integer"},
    "max": {"type": "integer"},
    "fixed": {
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
    },
    "list": {
        "type": "array",
        "maxItems": 10,
        "items": {"type": "string", "maxLength": 20},
        "x-kubernetes-validations": [
            {
                "rule": "self.all(x, x.startsWith('a'))",
                "messageExpression": "'some do not start with a'",
            }
        ],
    },
    "amount": {
        "type": "string",
        "maxLength": 20,
        "x-kubernetes-validations": [
            {"rule": "isQuantity(self) && quantity(self).isGreaterThan(quantity('1'))", "reason": "FieldValueForbidden"}
        ],
    },
}

DEFAULTED = customs("defaultlings")
DEFAULTED_PROPERTIES: dict[str, Any] = {
    "size": {"type": "integer", "default": 3},
    "nested": {"type": "object", "default": {}, "properties": {"deep": {"type": "string", "default": "x"}}},
    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "y"}}}},
    "nullable": {"type": "string", "nullable": True, "default": "d"},
    "plain": {"type": "string", "default": "p"},
    "free": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    },
}


def a_check(**spec: Any) -> Request:
    return post(CHECKED, a_custom("checklings", spec=spec), query={"dryRun": "All"})


def ruled() -> dict[str, Any]:
    definition = a_definition("ruledlings", a_version(properties=RULED_PROPERTIES))
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [
        {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min must not exceed max"},
        {
            "rule": "!has(oldSelf.min) || has(self.min)",
            "message": "min may not be removed",
            "fieldPath": ".min",
            "reason": "FieldValueInvalid",
        },
    ]
    return definition


STORIES = [
    Story(
        "custom objects are validated",
        [
            *defined(a_definition("checklings", a_version(properties=CHECKED_PROPERTIES))),
            post(CHECKED, a_custom("checklings", spec={"size": 5}), until=status_is(201)),
            a_check(size=0),
            a_check(size=11),
            a_check(size="5"),
            a_check(size=1.5),
            a_check(size=None),
            a_check(ratio=0),
            a_check(colour="blue"),
            a_check(name="a"),
            a_check(name="toolong"),
            a_check(name="AB"),
            a_check(tags=[]),
            a_check(tags=["a", "b", "c"]),
            a_check(tags=["a", 1]),
            a_check(unique=["a", "a"]),
            a_check(keyed=[{"k": "a"}, {"k": "a"}]),
            a_check(keyed=[{"v": "a"}]),
            a_check(labels={"a": "1", "b": "2"}),
            a_check(nested={}),
            a_check(nested={"must": "yes"}),
            a_check(when="yesterday"),
            a_check(port=True),
            a_check(either={}),
            a_check(either={"a": "1", "b": "1"}),
            a_check(nothing=None),
            a_check(int32=3000000000),
            a_check(template={"a": 1}),
            a_check(template={"apiVersion": "v1", "kind": "X", "metadata": {"name": "Bad Name", "labels": {"-": "x"}}}),
            post(CHECKED, {**a_custom("checklings"), "spec": "text"}),
            post(CHECKED, {**a_custom("checklings"), "metadata": "text"}),
            post(CHECKED, {**a_custom("checklings"), "metadata": {"name": 5}}),
            post(CHECKED, {**a_custom("checklings"), "metadata": {"name": "x", "labels": {"a": 5}}}),
            post(CHECKED, {**a_custom("checklings"), "kind": "Other"}),
            post(CHECKED, {**a_custom("checklings"), "apiVersion": "example.com/v2"}),
            post(CHECKED, {"metadata": {"name": "x"}, "spec": {}}),
        ],
    ),
    Story(
        "custom objects obey their rules",
        [
            *defined(ruled()),
            post(RULED, a_custom("ruledlings", spec={"min": 1, "max": 2, "fixed": "a"}), until=status_is(201)),
            post(RULED, a_custom("ruledlings", "two", spec={"min": 3, "max": 2})),
            patch(f"{RULED}/one", {"spec": {"fixed": "b"}}),
            patch(f"{RULED}/one", {"spec": {"fixed": None}}),
            patch(f"{RULED}/one", {"spec": {"min": None}}),
            patch(f"{RULED}/one", {"spec": {"min": 5}}),
            patch(f"{RULED}/one", {"spec": {"list": ["ab", "b"]}}),
            patch(f"{RULED}/one", {"spec": {"list": ["ab"]}}),
            patch(f"{RULED}/one", {"spec": {"amount": "500m"}}),
            patch(f"{RULED}/one", {"spec": {"amount": "1Ki"}}),
        ],
    ),
    Story(
        "an invalid value may stay where it is not touched",
        [
            *defined(a_definition("ratchlings")),
            post(
                customs("ratchlings"), a_custom("ratchlings", spec={"size": 9, "colour": "red"}), until=status_is(201)
            ),
            patch(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ratchlings.example.com",
                {
                    "spec": {
                        "versions": [
                            a_version(
                                properties={"size": {"type": "integer", "maximum": 5}, "colour": {"type": "string"}}
                            )
                        ]
                    }
                },
                shown=lambda _: None,
            ),
            post(
                customs("ratchlings"),
                a_custom("ratchlings", "two", spec={"size": 9}),
                query={"dryRun": "All"},
                until=status_is(422),
            ),
            patch(f"{customs('ratchlings')}/one", {"spec": {"colour": "blue"}}),
            patch(f"{customs('ratchlings')}/one", {"spec": {"size": 8}}),
        ],
    ),
    Story(
        "custom objects are pruned and completed",
        [
            *defined(a_definition("defaultlings", a_version(properties=DEFAULTED_PROPERTIES))),
            post(DEFAULTED, a_custom("defaultlings", spec={}), until=status_is(201)),
            post(DEFAULTED, a_custom("defaultlings", "absent")),
            post(
                DEFAULTED,
                a_custom(
                    "defaultlings", "given", spec={"size": 1, "list": [{}, {"a": "z"}], "odd": 1, "nested": {"odd": 2}}
                ),
            ),
            post(
                DEFAULTED,
                a_custom("defaultlings", "nulls", spec={"size": None, "nullable": None, "plain": None, "nested": None}),
            ),
            post(
                DEFAULTED, a_custom("defaultlings", "free", spec={"free": {"any": {"x": 1}, "known": {"a": 1, "b": 2}}})
            ),
            put(f"{DEFAULTED}/given", {**a_custom("defaultlings", "given", spec={"size": 2})}),
            patch(f"{DEFAULTED}/given", {"spec": {"size": None}}),
        ],
    ),
    Story(
        "updates of custom objects need a version",
        [
            *defined(a_definition("putlings")),
            post(customs("putlings"), a_custom("putlings", spec={"size": 1}), called="made", until=status_is(201)),
            put(f"{customs('putlings')}/one", a_custom("putlings", spec={"size": 2})),
            put(
                f"{customs('putlings')}/one",
                {
                    **a_custom("putlings", spec={"size": 2}),
                    "metadata": {"name": "one", "resourceVersion": "{made.metadata.resourceVersion}"},
                },
            ),
            put(
                f"{customs('putlings')}/one",
                {
                    **a_custom("putlings", spec={"size": 3}),
                    "metadata": {"name": "one", "resourceVersion": "{made.metadata.resourceVersion}"},
                },
            ),
            put(f"{customs('putlings')}/none", a_custom("putlings", "none")),
            patch(f"{customs('putlings')}/one", {"metadata": {"labels": {"a": "b"}}}),
            patch(f"{customs('putlings')}/one", {"metadata": {"labels": {"a": "b"}}}),
            post(customs("putlings"), {**a_custom("putlings"), "metadata": {"generateName": "gen-"}}),
        ],
    ),
    Story(
        "two versions of one kind",
        [
            *defined(
                a_definition(
                    "verslings",
                    a_version("v1"),
                    a_version("v2", storage=False),
                    a_version("v3", storage=False, served=False),
                )
            ),
            post(customs("verslings"), a_custom("verslings", spec={"size": 1}), until=status_is(201)),
            get(f"{customs('verslings', 'v2')}/one"),
            get(customs("verslings", "v2")),
            get(f"{customs('verslings', 'v3')}/one"),
            post(customs("verslings", "v2"), a_custom("verslings", "two", "v2", spec={"size": 2})),
            get(f"{customs('verslings')}/two"),
            patch(f"{customs('verslings', 'v2')}/one", {"spec": {"size": 5}}),
            apply(f"{customs('verslings', 'v2')}/one", a_custom("verslings", "one", "v2", spec={"colour": "red"})),
            apply(f"{customs('verslings')}/one", a_custom("verslings", spec={"colour": "blue"}), "other"),
        ],
    ),
    Story(
        "custom objects that scale",
        [
            *defined(
                a_definition(
                    "scalelings",
                    a_version(
                        properties={"replicas": {"type": "integer"}},
                        subresources={
                            "status": {},
                            "scale": {
                                "specReplicasPath": ".spec.replicas",
                                "statusReplicasPath": ".status.replicas",
                                "labelSelectorPath": ".status.selector",
                            },
                        },
                    ),
                )
            ),
            post(customs("scalelings"), a_custom("scalelings", spec={"replicas": 2}), until=status_is(201)),
            patch(f"{customs('scalelings')}/one/status", {"status": {"replicas": 1, "selector": "a=b"}}),
            get(f"{customs('scalelings')}/one/scale"),
            patch(f"{customs('scalelings')}/one/scale", {"spec": {"replicas": 4}}),
            put(
                f"{customs('scalelings')}/one/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "one", "namespace": "{ns}"},
                    "spec": {"replicas": 5},
                },
            ),
            patch(f"{customs('scalelings')}/one/scale", {"spec": {"replicas": -1}}),
            post(customs("scalelings"), a_custom("scalelings", "none")),
            get(f"{customs('scalelings')}/none/scale"),
            get(f"{customs('scalelings')}/one"),
        ],
    ),
    Story(
        "selectable fields and cluster scope",
        [
            *defined(
                a_definition("fieldlings", a_version(selectableFields=[{"jsonPath": ".spec.colour"}]), scope="Cluster")
            ),
            post(
                "/apis/example.com/v1/fieldlings", a_custom("fieldlings", spec={"colour": "red"}), until=status_is(201)
            ),
            post("/apis/example.com/v1/fieldlings", a_custom("fieldlings", "two", spec={"colour": "blue"})),
            get(
                "/apis/example.com/v1/fieldlings", query={"fieldSelector": "spec.colour=red"}, until=status_is_not(404)
            ),
            get("/apis/example.com/v1/fieldlings", query={"fieldSelector": "spec.size=1"}),
            get("/apis/example.com/v1/namespaces/{ns}/fieldlings"),
            post(
                "/apis/example.com/v1/fieldlings",
                {**a_custom("fieldlings", "three"), "metadata": {"name": "three", "namespace": "x"}},
            ),
        ],
    ),
]
