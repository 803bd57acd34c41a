"""How a field or a struct states what its Python type cannot say: bounds, formats, rules, list keys, a description.

Such facts ride on ``msgspec.Meta`` in the two places that msgspec carries and never checks (``extra_json_schema`` and
``extra``). So they reach the schema, which the API server enforces on writers, while our reading stays lenient: an
object stored before a rule was tightened still decodes.

    class GangSpec(Wire, frozen=True, kw_only=True):
        SCHEMA = struct_schema(rules=[Rule("has(self.size) || has(self.template)", "give a size or a template")])

        size: Annotated[int | None, field_schema("Pods needed to start.", minimum=0, format="int32")] = None
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

STRUCT_FACTS = "SCHEMA"
"""The class attribute where a struct keeps what ``struct_schema`` gave it."""

_RULE = "rule: "
_REQUIRED = "required"
_SHAPE = "shape"


@dataclass(frozen=True)
class Rule:
    """One CEL rule (x-kubernetes-validations) and what the server says where it does not hold."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    def to_wire(self) -> dict[str, Any]:
        """The rule as a schema carries it."""
        wire = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {key: value for key, value in wire.items() if value not in ("", None)}


@dataclass(frozen=True)
class Facts:
    """What was stated about one place in the schema, gathered from all its annotations."""

    keywords: Mapping[str, Any]
    rules: tuple[Rule, ...] = ()
    required: bool | None = None
    shape: Any = None

    def over(self, inner: Facts) -> Facts:
        """Both together; where they disagree the outer one (this) holds, and rules add up."""
        return Facts(
            keywords={**inner.keywords, **self.keywords},
            rules=inner.rules + self.rules,
            required=inner.required if self.required is None else self.required,
            shape=inner.shape if self.shape is None else self.shape,
        )


NOTHING = Facts(keywords={})


def field_schema(
    doc: str = "",
    /,
    *,
    required: bool | None = None,
    shape: Any = None,
    default: Any = msgspec.UNSET,
    nullable: bool = False,
    enum: Sequence[Any] = (),
    format: str = "",  # noqa: A002 - the schema's own word
    pattern: str = "",
    min_length: int | None = None,
    max_length: int | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive_minimum: bool = False,
    exclusive_maximum: bool = False,
    multiple_of: float | None = None,
    min_items: int | None = None,
    max_items: int | None = None,
    min_properties: int | None = None,
    max_properties: int | None = None,
    list_type: Literal["atomic", "set", "map"] | None = None,
    list_map_keys: Sequence[str] = (),
    map_type: Literal["atomic", "granular"] | None = None,
    preserve_unknown_fields: bool = False,
    embedded_resource: bool = False,
    rules: Sequence[Rule] = (),
) -> msgspec.Meta:
    """States facts about a field, to be put into its ``Annotated``.

    ``required`` overrules what the Python default implies. ``shape`` gives the field the schema of another type than
    the one it decodes into, or of a ``KubernetesType``. ``default`` is what the server fills in, which no Python
    default implies.
    """
    keywords = {
        "description": doc,
        "format": format,
        "nullable": nullable,
        "enum": list(enum),
        "pattern": pattern,
        "minLength": min_length,
        "maxLength": max_length,
        "minimum": minimum,
        "maximum": maximum,
        "exclusiveMinimum": exclusive_minimum,
        "exclusiveMaximum": exclusive_maximum,
        "multipleOf": multiple_of,
        "minItems": min_items,
        "maxItems": max_items,
        "minProperties": min_properties,
        "maxProperties": max_properties,
        "x-kubernetes-list-type": list_type,
        "x-kubernetes-list-map-keys": list(list_map_keys),
        "x-kubernetes-map-type": map_type,
        "x-kubernetes-preserve-unknown-fields": preserve_unknown_fields,
        "x-kubernetes-embedded-resource": embedded_resource,
    }
    said = {key: value for key, value in keywords.items() if not _is_unsaid(value)}
    if default is not msgspec.UNSET:
        said["default"] = default
    # Nested annotations are merged key by key: a key for each rule lets them add up instead of replacing each other.
    extra: dict[str, Any] = {f"{_RULE}{rule.rule}": rule for rule in rules}
    if required is not None:
        extra[_REQUIRED] = required
    if shape is not None:
        extra[_SHAPE] = shape
    return msgspec.Meta(extra_json_schema=said, extra=extra)


def struct_schema(
    *,
    rules: Sequence[Rule] = (),
    map_type: Literal["atomic", "granular"] | None = None,
    min_properties: int | None = None,
    max_properties: int | None = None,
    preserve_unknown_fields: bool = False,
    embedded_resource: bool = False,
) -> msgspec.Meta:
    """States facts about a struct wherever it is used, to be its class attribute ``SCHEMA``."""
    return field_schema(
        rules=rules,
        map_type=map_type,
        min_properties=min_properties,
        max_properties=max_properties,
        preserve_unknown_fields=preserve_unknown_fields,
        embedded_resource=embedded_resource,
    )


def facts_of(keywords: Mapping[str, Any] | None, extra: Mapping[Any, Any] | None) -> Facts:
    """Reads back what ``field_schema`` wrote into a Meta's two open places."""
    extra = extra or {}
    return Facts(
        keywords=dict(keywords or {}),
        rules=tuple(value for key, value in extra.items() if isinstance(key, str) and key.startswith(_RULE)),
        required=extra.get(_REQUIRED),
        shape=extra.get(_SHAPE),
    )


def _is_unsaid(value: Any) -> bool:
    return value is None or value is False or value in ("", [])


Int32: TypeAlias = Annotated[int, field_schema(format="int32")]
Int64: TypeAlias = Annotated[int, field_schema(format="int64")]
