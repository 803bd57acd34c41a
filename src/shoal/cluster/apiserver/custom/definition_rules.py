"""What the kind CustomResourceDefinition itself does beyond its schema."""

from __future__ import annotations

from shoal.cluster.apiserver.builtin.names import subdomain_problems
from shoal.cluster.apiserver.custom.definition_status import stored_versions
from shoal.cluster.apiserver.custom.definitions import (
    default_definition,
    definition_warnings,
    name_problems,
    validate_definition,
    validate_definition_update,
)
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem


def _prepare_create(new: Object) -> None:
    new.pop("status", None)
    new["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored_versions(new),
    }


def _prepare_update(new: Object, _old: Object) -> None:
    status = dict(new.get("status") or {})
    status["storedVersions"] = stored_versions(new)
    new["status"] = status


def _validate_status(new: Object, _old: Object) -> list[FieldProblem]:
    names = (new.get("status") or {}).get("acceptedNames") or {}
    return name_problems(names, "status.acceptedNames")


DEFINITION_RULES = Rules(
    name_problems=subdomain_problems,
    defaults=default_definition,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=validate_definition,
    validate_update=validate_definition_update,
    validate_status=_validate_status,
    warnings=definition_warnings,
    unconditional_update=False,
    resets={"": (("status",),), "status": (("spec",),)},
)
"""For ``apiextensions.k8s.io`` CustomResourceDefinition."""
