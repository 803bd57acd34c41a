"""From typed structs to CustomResourceDefinitions: what the API server enforces, stated once, beside the Python types.

A field says with ``field_schema`` what its type cannot; ``CustomResource`` adds what a kind declares as a whole, and
its ``manifest()`` is the CRD as plain JSON values. Everything here is pure.
"""

from shoal.api.crd.definition import Column, CustomResource, DefinitionError, Scale, Version
from shoal.api.crd.fields import Int32, Int64, Rule, field_schema, struct_schema
from shoal.api.crd.kubernetes_types import KubernetesType
from shoal.api.crd.schema import SchemaError, object_schema, schema_of
from shoal.api.crd.well_known import DNS_LABEL_PATTERN, QUALIFIED_NAME_LENGTH, QUALIFIED_NAME_PATTERN

__all__ = [
    "DNS_LABEL_PATTERN",
    "QUALIFIED_NAME_LENGTH",
    "QUALIFIED_NAME_PATTERN",
    "Column",
    "CustomResource",
    "DefinitionError",
    "Int32",
    "Int64",
    "KubernetesType",
    "Rule",
    "Scale",
    "SchemaError",
    "Version",
    "field_schema",
    "object_schema",
    "schema_of",
    "struct_schema",
]
