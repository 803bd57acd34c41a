"""The ResourceClaims that the pods of a scaling group share."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.grove import SCALING_GROUPS, PodCliqueScalingGroup, PodCliqueSet, ScalingGroupTemplate, names
from shoal.api.meta import Document, is_controlled_by, owner_reference
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.gangs.caches import BY_SCALING_GROUP, OURS, Caches
from shoal.gangs.claims import MissingTemplate, external_templates, group_claims, split, template_specs
from shoal.gangs.together import Failure, all_of
from shoal.kube import Key, Manager, Watch, Writer, by_label
from shoal.kube.changes import any_of, controlling_owner, field_changed, labels_changed, spec_changed
from shoal.kube.store import key_of

CLAIM_ERROR = "ERR_SYNC_RESOURCE_CLAIM"
_INDEXES = {BY_SCALING_GROUP: by_label(names.SCALING_GROUP_LABEL)}


class GroupClaims:
    """Keeps the claims of scaling groups; they belong to the group."""

    def __init__(self, manager: Manager, caches: Caches, writer: Writer) -> None:
        self._caches = caches
        self._writer = writer
        self._claims = manager.cache.informer(RESOURCE_CLAIMS, label_selector=OURS, indexes=_INDEXES)
        self._templates = manager.cache.informer(RESOURCE_CLAIM_TEMPLATES)

    async def keep(
        self, pcs: PodCliqueSet, template: ScalingGroupTemplate, group: PodCliqueScalingGroup
    ) -> list[Failure]:
        """Makes the claims that a group should have, and removes those of replicas that are not wanted any more."""
        if not template.resource_sharing:
            return []  # what is shared never changes, so there are none to remove either
        shared = {sharing.name for sharing in template.resource_sharing}
        named = [(namespace, name) for namespace, name in external_templates(pcs) if name in shared]
        found = [one for namespace, name in named if (one := self._templates.get(name, namespace)) is not None]
        specs = template_specs(found)
        wanted = group_claims(pcs, template, group.metadata.name, group.spec.replicas, templates=specs)
        owner = owner_reference(group, SCALING_GROUPS)
        parts = [split(claim) for claim in wanted]
        failures = await all_of(
            CLAIM_ERROR,
            (self._writer.apply(self._claims, body, owner=owner, initial=initial) for body, initial in parts),
        )
        surplus = (self._writer.delete(RESOURCE_CLAIMS, claim) for claim in self._surplus(group))
        failures += await all_of(CLAIM_ERROR, surplus)
        missing = [MissingTemplate(*key) for key in named if key not in specs]
        failures += [Failure(CLAIM_ERROR, problem, is_awaited=True) for problem in missing]
        return failures

    def watches(self) -> list[Watch]:
        """What is made anew where somebody takes it away, and what may be made once there is a template for it."""
        owner = controlling_owner(SCALING_GROUPS)
        gone = any_of(spec_changed, labels_changed)
        return [
            Watch(resource=RESOURCE_CLAIMS, keys=owner, when=gone, label_selector=OURS, indexes=_INDEXES),
            Watch(resource=RESOURCE_CLAIM_TEMPLATES, keys=self._keys_of_template, when=field_changed(_exists)),
        ]

    def _keys_of_template(self, template: Document) -> Iterable[Key]:
        """The scaling groups of sets that share claims of a ResourceClaimTemplate."""
        wanted = key_of(template)
        return [
            key_of(group)
            for pcs in self._caches.sets.items()
            if pcs.spec.template.pod_clique_scaling_groups and wanted in external_templates(pcs)
            for group in self._caches.groups_of_set(pcs)
        ]

    def _surplus(self, group: PodCliqueScalingGroup) -> list[Document]:
        claims = self._claims.find(BY_SCALING_GROUP, (group.metadata.namespace, group.metadata.name))
        return [
            claim
            for claim in claims
            if is_controlled_by(claim.metadata, group.metadata.uid)
            and (index := names.index_in(claim.metadata.labels, names.SCALING_GROUP_REPLICA_LABEL)) is not None
            and index >= group.spec.replicas
        ]


def _exists(found: Document) -> bool:
    """The same for every version of an object: only that it comes and goes matters."""
    return True
