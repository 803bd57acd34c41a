"""The ResourceClaims that the pods of a clique share: made before the pods, gone when no pod can have their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shoal.api.core import Pod, is_active
from shoal.api.grove import POD_CLIQUES, PodClique, PodCliqueSet, names
from shoal.api.meta import Document, owner_reference
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.gangs.caches import OURS, Caches
from shoal.gangs.claims.templates import MissingTemplate, Templates, external_templates, template_specs
from shoal.gangs.claims.wanted import clique_claims, split
from shoal.gangs.cliques.indexes import index_of
from shoal.gangs.cliques.pod_writes import Failures, words
from shoal.gangs.plan import PlannedClique
from shoal.kube import ApiError, ConnectionFault, Foreign, Key, Manager, Writer, by_owner
from shoal.kube.store import BY_OWNER, key_of

CODE = "ERR_SYNC_RESOURCE_CLAIM"
INDEXES = {BY_OWNER: by_owner}


class SharedClaims:
    """Keeps the claims of cliques as their templates say."""

    def __init__(self, manager: Manager, caches: Caches, writer: Writer) -> None:
        self._caches = caches
        self._writer = writer
        self._claims = manager.cache.informer(RESOURCE_CLAIMS, label_selector=OURS, indexes=INDEXES)
        self._templates = manager.cache.informer(RESOURCE_CLAIM_TEMPLATES)

    async def sync(
        self, clique: PodClique, pcs: PodCliqueSet, planned: PlannedClique, pods: Sequence[Pod], failures: Failures
    ) -> None:
        """Makes what is missing and deletes what is stale; a foreign claim of our name is left alone, and told."""
        present = self._claims.find(BY_OWNER, clique.metadata.uid)
        if not planned.template.resource_sharing and not present:
            return
        templates = self._found_templates(pcs, planned)
        for missing in _missing(pcs, planned, templates):
            failures.add(missing.code, missing.description, missing, is_awaited=True)
        wanted = clique_claims(pcs, planned, clique.spec.replicas, templates=templates)
        owner = owner_reference(clique, POD_CLIQUES)
        try:
            for claim in wanted:
                body, initial = split(claim)
                await self._writer.apply(self._claims, body, owner=owner, initial=initial)
            if not failures:
                await self._writer.prune(RESOURCE_CLAIMS, _unused(present, pods), _names(wanted))
        except (ApiError, ConnectionFault, Foreign) as error:
            failures.add(CODE, f"a shared claim could not be kept: {words(error)}", error)

    def cliques_of_template(self, template: Document) -> Iterable[Key]:
        """The cliques of the sets that share claims of a ResourceClaimTemplate."""
        place = (template.metadata.namespace, template.metadata.name)
        for pcs in self._caches.sets.items():
            if place in external_templates(pcs):
                yield from map(key_of, self._caches.cliques_of_set(pcs))

    def _found_templates(self, pcs: PodCliqueSet, planned: PlannedClique) -> Templates:
        found = (self._templates.get(name, namespace) for namespace, name in _needed(pcs, planned))
        return template_specs(template for template in found if template is not None)


def _needed(pcs: PodCliqueSet, planned: PlannedClique) -> list[tuple[str, str]]:
    own = {template.name for template in pcs.spec.template.resource_claim_templates}
    return [
        (sharing.namespace or pcs.metadata.namespace, sharing.name)
        for sharing in planned.template.resource_sharing
        if sharing.name not in own
    ]


def _missing(pcs: PodCliqueSet, planned: PlannedClique, templates: Templates) -> list[MissingTemplate]:
    return [MissingTemplate(*place) for place in _needed(pcs, planned) if place not in templates]


def _names(claims: Iterable[dict[str, Any]]) -> list[str]:
    return [claim["metadata"]["name"] for claim in claims]


def _unused(claims: Iterable[Document], pods: Iterable[Pod]) -> list[Document]:
    """The claims of no pod that is there: a pod keeps its number when the clique becomes smaller than that."""
    used = {str(index_of(pod)) for pod in pods if is_active(pod)}
    return [claim for claim in claims if claim.metadata.labels.get(names.POD_INDEX_LABEL) not in used]
