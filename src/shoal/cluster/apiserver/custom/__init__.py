"""Custom kinds: the definitions that make them, and what their schemas do to every object on its way to the store.

``validate_definition`` and ``default_definition`` are for definitions themselves, ``kinds_of`` turns an accepted one
into kinds, ``Pipeline`` is the schema of one version at work, ``columns_of`` what tables show.
"""

from shoal.cluster.apiserver.custom.columns import Column, columns_of
from shoal.cluster.apiserver.custom.definition_rules import DEFINITION_RULES
from shoal.cluster.apiserver.custom.definition_status import CLEANUP, definition_status, mark_definition
from shoal.cluster.apiserver.custom.definitions import (
    DEFINITIONS,
    default_definition,
    definition_name_problems,
    definition_warnings,
    validate_definition,
    validate_definition_update,
)
from shoal.cluster.apiserver.custom.kinds import deprecation_warning, kinds_of
from shoal.cluster.apiserver.custom.pipeline import Pipeline

__all__ = [
    "CLEANUP",
    "DEFINITIONS",
    "DEFINITION_RULES",
    "Column",
    "Pipeline",
    "columns_of",
    "default_definition",
    "definition_name_problems",
    "definition_status",
    "definition_warnings",
    "deprecation_warning",
    "kinds_of",
    "mark_definition",
    "validate_definition",
    "validate_definition_update",
]
