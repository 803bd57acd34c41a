"""Claims of storage inside workloads, and a pod's claims of devices."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.claims import claim_spec_problems
from shoal.cluster.apiserver.builtin.metadata import annotations_problems
from shoal.cluster.apiserver.builtin.names import label_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import labels_problems
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, invalid, required

MIRROR = "kubernetes.io/config.mirror"
_TEMPLATE_METADATA = frozenset({"labels", "annotations"})


def claim_template_problems(template: dict[str, Any], path: str) -> list[FieldProblem]:
    """A claim that is made together with its pod."""
    metadata = template.get("metadata") or {}
    problems = annotations_problems(metadata.get("annotations"), f"{path}.metadata.annotations")
    problems += labels_problems(metadata.get("labels"), f"{path}.metadata.labels")
    problems += [
        forbidden(f"{path}.metadata.{field}", "cannot be set")
        for field, value in metadata.items()
        if value and field not in _TEMPLATE_METADATA
    ]
    return problems + claim_spec_problems(template.get("spec") or {}, f"{path}.spec")


def check_resource_claims(
    claims: list[dict[str, Any]], annotations: dict[str, str], path: str, problems: list[FieldProblem]
) -> None:
    """A pod's claims of devices; a pod that mirrors a file of its node can have none."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        if MIRROR in annotations:
            problems.append(forbidden("", "static pods do not support resource claims"))
            continue
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            problems.append(required(f"{here}.name"))
        elif name in seen:
            problems.append(duplicate(f"{here}.name", name))
        else:
            problems += [invalid(f"{here}.name", name, each) for each in label_problems(name)]
            seen.add(name)
        one, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": one, "ResourceClaimTemplateName": template}
        if one is not None and template is not None:
            words = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            problems.append(invalid(here, shown, words))
        if one is None and template is None:
            words = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            problems.append(invalid(here, shown, words))
        for field, value in (("resourceClaimName", one), ("resourceClaimTemplateName", template)):
            if value is not None:
                problems += [invalid(f"{here}.{field}", value, each) for each in subdomain_problems(value)]
