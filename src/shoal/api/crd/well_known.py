"""The schemas of what all kinds share: quantities, qualified names, conditions, label selectors.

The types of ``api.meta`` say how these are read; the shapes here say what the API server holds writers to, which is
what it holds them to in Kubernetes' own kinds. Wherever such a type is used its shape stands in for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from shoal.api.crd.fields import Int64, field_schema, struct_schema
from shoal.api.meta.conditions import Condition
from shoal.api.meta.objects import Wire
from shoal.api.meta.selector import LabelSelector

_SIGN = r"(\+|-)?"
_DECIMAL = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_SUFFIX = rf"(([KMGTPE]i)|[numkMGTPE]|([eE]{_SIGN}{_DECIMAL}))?"
QUANTITY_PATTERN = f"^{_SIGN}{_DECIMAL}{_SUFFIX}$"

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*/"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
DNS_LABEL_PATTERN = f"^{_DNS_LABEL}$"
QUALIFIED_NAME_PATTERN = f"^({_PREFIX})?({_NAME})$"
QUALIFIED_NAME_LENGTH = 316


class ConditionShape(Wire, frozen=True, kw_only=True):
    """One aspect of an object's state."""

    type: Annotated[
        str,
        field_schema("The aspect.", max_length=QUALIFIED_NAME_LENGTH, pattern=QUALIFIED_NAME_PATTERN),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], field_schema("Whether it holds.")]
    observed_generation: Annotated[Int64 | None, field_schema("The generation that was looked at.", minimum=0)] = None
    last_transition_time: Annotated[datetime, field_schema("When the status last changed.")]
    reason: Annotated[
        str,
        field_schema(
            "Why, in one word.", min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
    ]
    message: Annotated[str, field_schema("Why, for people.", max_length=32768)]


class LabelSelectorRequirementShape(Wire, frozen=True, kw_only=True):
    """One condition on a label."""

    key: Annotated[str, field_schema("The label.")]
    operator: Annotated[str, field_schema("In, NotIn, Exists or DoesNotExist.")]
    values: Annotated[list[str], field_schema("What In and NotIn compare with.", list_type="atomic")] = []


class LabelSelectorShape(Wire, frozen=True, kw_only=True):
    """Objects whose labels meet every condition; with none, all objects."""

    SCHEMA = struct_schema(map_type="atomic")

    match_labels: Annotated[dict[str, str], field_schema("Labels and the values that they must have.")] = {}
    match_expressions: Annotated[
        list[LabelSelectorRequirementShape], field_schema("Conditions on labels.", list_type="atomic")
    ] = []


SHAPES: Mapping[type[Any], type[Any]] = {Condition: ConditionShape, LabelSelector: LabelSelectorShape}
