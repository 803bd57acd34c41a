"""CustomResourceDefinitions: accepted, refused, changed and removed."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import DEFINITIONS, a_custom, a_definition, a_version, conditions, customs, defined
from tests.conformance.story import Story, delete, get, has_condition, patch, post, status_is


def bad(name: str, **changes: Any) -> dict[str, Any]:
    definition = a_definition(name)
    definition["spec"] |= changes
    return definition


def schema(**properties: Any) -> dict[str, Any]:
    return a_version(properties=properties)


BAD_RULES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("integer", {"rule": "self +"}),
    ("integer", {"rule": "self.x > 1"}),
    ("integer", {"rule": "self + 1"}),
    ("integer", {"rule": ""}),
    ("integer", {"rule": "unknown > 1"}),
    ("integer", {"rule": "self > 1", "message": " "}),
    ("integer", {"rule": "self > 1", "reason": "Odd"}),
    ("integer", {"rule": "self > 1", "messageExpression": "1"}),
    ("integer", {"rule": "self > 1", "fieldPath": ".x"}),
    ("string", {"rule": "self == 5"}),
)

BAD_VERSIONS: tuple[dict[str, Any], ...] = (
    {"additionalPrinterColumns": [{"name": "A", "type": "odd", "jsonPath": ".a"}]},
    {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "a b"}]},
    {"additionalPrinterColumns": [{"name": "", "type": "string", "jsonPath": ".a"}]},
    {"subresources": {"scale": {}}},
    {"subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".y"}}},
    {"selectableFields": [{"jsonPath": ".spec.none"}]},
    {"selectableFields": [{"jsonPath": ".metadata.name"}]},
)

STORIES = [
    Story(
        "a definition is completed and established",
        [
            post(
                DEFINITIONS, a_definition("firstlings", shortNames=["fl"], categories=["all"]), shown=lambda body: body
            ),
            get(f"{DEFINITIONS}/firstlings.example.com", until=has_condition("Established"), shown=conditions),
            get(
                f"{DEFINITIONS}/firstlings.example.com",
                shown=lambda body: [body["spec"], body["status"]["acceptedNames"], body["status"]["storedVersions"]],
            ),
            post(customs("firstlings"), a_custom("firstlings", spec={"size": 1}), until=status_is(201)),
            get(
                "/apis/example.com/v1",
                until=lambda status, body: status == 200 and "firstlings" in str(body),
                shown=lambda body: [one for one in body["resources"] if one["name"].startswith("firstlings")],
            ),
            post(DEFINITIONS, a_definition("firstlings")),
        ],
    ),
    Story(
        "definitions that are refused",
        [
            post(DEFINITIONS, definition, query={"dryRun": "All"})
            for definition in (
                {**a_definition("wronglings"), "metadata": {"name": "other.example.com"}},
                bad("wronglings", scope="Everywhere"),
                bad("wronglings", names={"plural": "wronglings", "kind": ""}),
                bad("wronglings", names={"plural": "Wronglings", "kind": "Wrongling"}),
                bad("wronglings", versions=[]),
                bad("wronglings", versions=[a_version(storage=False)]),
                bad("wronglings", versions=[a_version(), a_version()]),
                bad("wronglings", versions=[a_version("v1"), a_version("v2")]),
                bad("wronglings", versions=[a_version("V1")]),
                bad("wronglings", versions=[{"name": "v1", "served": True, "storage": True}]),
                bad("wronglings", group="nodots"),
                bad("wronglings", group="things.k8s.io"),
                bad("wronglings", preserveUnknownFields=True),
                bad("wronglings", conversion={"strategy": "Webhook"}),
            )
        ],
    ),
    Story(
        "schemas that are refused",
        [
            post(DEFINITIONS, a_definition("shapelings", version), query={"dryRun": "All"})
            for version in (
                schema(a={}),
                schema(a={"type": "unicorn"}),
                schema(a={"type": "array"}),
                schema(a={"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}),
                schema(
                    a={
                        "type": "object",
                        "properties": {"x": {"type": "string"}},
                        "additionalProperties": {"type": "string"},
                    }
                ),
                schema(a={"type": "string", "pattern": "("}),
                schema(a={"type": "string", "default": 5}),
                schema(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}),
                schema(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "odd"}),
                schema(a={"type": "string", "x-kubernetes-map-type": "atomic"}),
                schema(a={"type": "integer", "x-kubernetes-int-or-string": True}),
                schema(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
                schema(a={"type": "string", "$ref": "#/x"}),
                schema(a={"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
                schema(a={"type": "string", "nullable": True, "enum": []}),
                schema(
                    a={
                        "type": "object",
                        "properties": {"x": {"type": "string"}},
                        "x-kubernetes-embedded-resource": True,
                    }
                ),
            )
        ],
    ),
    Story(
        "rules that are refused",
        [
            post(
                DEFINITIONS,
                a_definition("rulelings", schema(a={"type": kind, "x-kubernetes-validations": [rule]})),
            )
            for kind, rule in BAD_RULES
        ],
    ),
    Story(
        "columns and subresources that are refused",
        [
            post(DEFINITIONS, a_definition("paintlings", a_version(**more)), query={"dryRun": "All"})
            for more in BAD_VERSIONS
        ],
    ),
    Story(
        "names that are taken",
        [
            *defined(a_definition("takenlings", shortNames=["tk"])),
            post(DEFINITIONS, a_definition("seclings", kind="Takenling", shortNames=["tk"]), shown=lambda _: None),
            get(f"{DEFINITIONS}/seclings.example.com", until=has_condition("NamesAccepted", "False"), shown=conditions),
            get("/apis/example.com/v1/seclings"),
        ],
    ),
    Story(
        "a definition changes",
        [
            *defined(a_definition("changelings")),
            post(customs("changelings"), a_custom("changelings", spec={"size": 1}), until=status_is(201)),
            patch(f"{DEFINITIONS}/changelings.example.com", {"spec": {"scope": "Cluster"}}),
            patch(f"{DEFINITIONS}/changelings.example.com", {"spec": {"group": "other.example.com"}}),
            patch(f"{DEFINITIONS}/changelings.example.com", {"spec": {"names": {"plural": "others"}}}),
            patch(
                f"{DEFINITIONS}/changelings.example.com",
                {"spec": {"versions": [schema(size={"type": "integer", "maximum": 5}, colour={"type": "string"})]}},
                shown=lambda body: body["metadata"]["generation"],
            ),
            post(
                customs("changelings"),
                a_custom("changelings", "two", spec={"size": 9}),
                query={"dryRun": "All"},
                until=status_is(422),
            ),
            patch(
                f"{DEFINITIONS}/changelings.example.com/status",
                {"status": {"storedVersions": []}},
                shown=lambda body: body["status"]["storedVersions"],
            ),
            patch(f"{DEFINITIONS}/changelings.example.com", {"spec": {"versions": [a_version("v9")]}}),
        ],
    ),
    Story(
        "a definition goes and takes its objects along",
        [
            *defined(a_definition("gonelings")),
            post(customs("gonelings"), a_custom("gonelings"), until=status_is(201)),
            post(
                customs("gonelings"),
                {**a_custom("gonelings"), "metadata": {"name": "held", "finalizers": ["example.com/hold"]}},
            ),
            delete(f"{DEFINITIONS}/gonelings.example.com", shown=lambda body: body["metadata"]["finalizers"]),
            get(f"{customs('gonelings')}/one", until=status_is(404)),
            post(customs("gonelings"), a_custom("gonelings", "two")),
            patch(
                f"{customs('gonelings')}/held",
                {"metadata": {"finalizers": None}},
                shown=lambda body: body["metadata"]["name"],
            ),
            get(f"{DEFINITIONS}/gonelings.example.com", until=status_is(404)),
            get(customs("gonelings"), until=status_is(404)),
        ],
    ),
]
