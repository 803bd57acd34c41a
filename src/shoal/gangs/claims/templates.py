"""Where the spec of a shared claim comes from: a template of the set itself, or a ResourceClaimTemplate beside it.

A template of the set hides a ResourceClaimTemplate of the same name. Which of the latter a set needs is told by
``external_templates``; a controller looks them up, and gives those that it found as ``Templates``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from shoal.api.grove import CliqueSharing, GroupSharing, PodCliqueSet, SetSharing
from shoal.api.meta import Document
from shoal.gangs.last_errors import GangError

Sharing: TypeAlias = SetSharing | GroupSharing | CliqueSharing
TemplateKey: TypeAlias = tuple[str, str]
"""Namespace and name of a ResourceClaimTemplate."""
Templates: TypeAlias = Mapping[TemplateKey, Mapping[str, Any]]
"""The ``spec`` of ResourceClaimTemplates that were found."""
NO_TEMPLATES: Final[Templates] = MappingProxyType({})


class MissingTemplate(GangError):
    """A set shares claims of a ResourceClaimTemplate that is not there."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(
            "ERR_SYNC_RESOURCE_CLAIM",
            f"ResourceClaimTemplate {namespace}/{name} does not exist: create it, or share another one",
        )


def external_templates(pcs: PodCliqueSet) -> list[TemplateKey]:
    """The ResourceClaimTemplates that a set shares claims of, at any level."""
    template = pcs.spec.template
    sharings: list[Sharing] = [
        *template.resource_sharing,
        *(sharing for group in template.pod_clique_scaling_groups for sharing in group.resource_sharing),
        *(sharing for clique in template.cliques for sharing in clique.resource_sharing),
    ]
    own = {one.name for one in template.resource_claim_templates}
    return list(dict.fromkeys(_key(pcs, sharing) for sharing in sharings if sharing.name not in own))


def template_specs(found: Iterable[Document]) -> Templates:
    """ResourceClaimTemplates as the rules read them."""
    return {(one.metadata.namespace, one.metadata.name): one.content.get("spec", {}) for one in found}


def claim_spec(pcs: PodCliqueSet, sharing: Sharing, templates: Templates) -> Mapping[str, Any] | None:
    """The spec of a shared claim; None where its template is not there."""
    for own in pcs.spec.template.resource_claim_templates:
        if own.name == sharing.name:
            return _inner(own.template_spec)
    found = templates.get(_key(pcs, sharing))
    return None if found is None else _inner(found)


def _inner(template: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = template.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _key(pcs: PodCliqueSet, sharing: Sharing) -> TemplateKey:
    return sharing.namespace or pcs.metadata.namespace, sharing.name
