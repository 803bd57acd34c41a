"""What the controllers of sets see of the objects that they make, and how they write one.

Kinds that others have many objects of are watched by the label that ours have. A foreign object of a wanted name lies
outside of that, and is found by the writer when it looks for the name on the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api import rbac
from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import SECRETS, SERVICE_ACCOUNTS, SERVICES
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, PodCliqueSet, names
from shoal.api.meta import Document, Resource, is_controlled_by, is_left_behind, owner_reference
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.gangs.caches import BY_REPLICA, BY_SET, CHILD_INDEXES, OURS
from shoal.gangs.claims import Templates, template_specs
from shoal.gangs.last_errors import GangError
from shoal.gangs.sets.replica_keys import replica_index, set_key
from shoal.gangs.settings import GangSettings
from shoal.kube import About, ApiError, Change, Conflict, Foreign, Informer, Key, Manager, Watch
from shoal.kube.changes import Mapping as Keys


@dataclass(frozen=True, kw_only=True)
class Child:
    """An object that should be there; ``initial`` is said once, when it is made."""

    body: Mapping[str, Any]
    initial: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of children: where it is seen, and what is said when one cannot be written."""

    informer: Informer[Document]
    selector: str
    code: str
    is_told: bool = False
    """Whether making and deleting one is worth an event."""
    making: str = "CreateOrUpdate"
    """What it is called in an event that one could not be made."""

    @property
    def resource(self) -> Resource[Document]:
        """The kind itself."""
        return self.informer.resource

    def watch(self, keys: Keys, when: Any) -> Watch:
        """Wakes a controller by changes of what this kind's informer holds."""
        return Watch(resource=self.resource, keys=keys, when=when, label_selector=self.selector, indexes=CHILD_INDEXES)

    def of_replica(self, pcs: PodCliqueSet, index: int) -> list[Document]:
        """Those that belong to one replica of a set."""
        return self._owned(pcs, BY_REPLICA, (pcs.metadata.namespace, pcs.metadata.name, str(index)))

    def of_set(self, pcs: PodCliqueSet) -> list[Document]:
        """Those that belong to a set."""
        return self._owned(pcs, BY_SET, (pcs.metadata.namespace, pcs.metadata.name))

    def _owned(self, pcs: PodCliqueSet, index: str, value: tuple[str, ...]) -> list[Document]:
        found = self.informer.find(index, value)
        return [child for child in found if is_controlled_by(child.metadata, pcs.metadata.uid)]


class Children:
    """The kinds that are made for sets, and the writing of one object."""

    def __init__(self, manager: Manager, settings: GangSettings) -> None:
        self._manager = manager
        self.writer = manager.writer("grove-sets")
        self.accounts = self._kind(SERVICE_ACCOUNTS, "ERR_SYNC_SERVICEACCOUNT")
        self.roles = self._kind(rbac.ROLES, "ERR_SYNC_ROLE")
        self.role_bindings = self._kind(rbac.ROLE_BINDINGS, "ERR_SYNC_ROLEBINDING")
        self.secrets = self._kind(SECRETS, "ERR_SECRET_CONFLICT")
        self.services = self._kind(SERVICES, "ERR_SYNC_PODCLIQUESET_SERVICE")
        self.autoscalers = self._kind(HORIZONTAL_POD_AUTOSCALERS, "ERR_SYNC_HPA")
        self.claims = self._kind(RESOURCE_CLAIMS, "ERR_SYNC_RESOURCE_CLAIM")
        self.cliques = self._kind(POD_CLIQUES, "ERR_SYNC_PODCLIQUE", selector="", is_told=True)
        self.groups = self._kind(SCALING_GROUPS, "ERR_SYNC_PODCLIQUESCALINGGROUP", selector="", is_told=True)
        self.compute_domains: Kind | None = None
        if settings.has_mnnvl:
            self.compute_domains = self._kind(COMPUTE_DOMAINS, "ERR_SYNC_COMPUTEDOMAIN", is_told=True, making="Create")
        self.claim_templates = manager.cache.informer(RESOURCE_CLAIM_TEMPLATES)

    def of_replicas(self) -> list[Kind]:
        """The kinds of which each replica has its own, in the order in which they are made."""
        domains = [] if self.compute_domains is None else [self.compute_domains]
        return [self.services, self.autoscalers, self.claims, *domains, self.cliques, self.groups]

    def templates(self, keys: list[tuple[str, str]]) -> Templates:
        """Those of some ResourceClaimTemplates, by namespace and name, that are there."""
        found = [self.claim_templates.get(name, namespace) for namespace, name in keys]
        return template_specs(template for template in found if template is not None)

    async def apply(self, pcs: PodCliqueSet, kind: Kind, child: Child) -> bool:
        """Makes a child as it should be; False where one is on its way out and must be gone first."""
        seen = kind.informer.get(child.name, pcs.metadata.namespace)
        if seen is not None and _is_going(seen, pcs):
            if kind is self.compute_domains:
                await self.release(seen)
            return False
        owner = owner_reference(pcs, POD_CLIQUE_SETS)
        try:
            await self.writer.apply(kind.informer, child.body, owner=owner, initial=child.initial)
        except (Foreign, ApiError) as error:
            raise self._failed(pcs, kind, kind.making, error) from error
        if seen is None and kind.is_told:
            self._tell(pcs, kind, child.name, "Create")
        return True

    async def prune(self, pcs: PodCliqueSet, kind: Kind, seen: list[Document], keep: set[str]) -> None:
        """Deletes those children that are not wanted any more."""
        for child in seen:
            if child.metadata.name in keep:
                continue
            if not child.metadata.is_deleting:
                try:
                    await self.writer.delete(kind.resource, child)
                except ApiError as error:
                    raise self._failed(pcs, kind, "Delete", error) from error
                if kind.is_told:
                    self._tell(pcs, kind, child.metadata.name, "Delete")
            elif kind is self.compute_domains:
                await self.release(child)

    async def release(self, compute_domain: Document) -> None:
        """Lets a ComputeDomain go that is not needed any more."""
        await self.writer.clear_finalizer(COMPUTE_DOMAINS, compute_domain, names.COMPUTE_DOMAIN_FINALIZER)

    async def release_left(self, replica: Key) -> None:
        """Lets the ComputeDomains of a replica go whose set is gone, or going, and can do so itself no more.

        A set does that before it goes; one that was let go by force did not, nor for what was made at the same moment.
        """
        if self.compute_domains is not None:
            place = (replica.namespace, set_key(replica).name, str(replica_index(replica)))
            for domain in self.compute_domains.informer.find(BY_REPLICA, place):
                if domain.metadata.is_deleting:
                    await self.release(domain)

    def _kind(self, resource: Resource[Any], code: str, *, selector: str = OURS, **told: Any) -> Kind:
        informer = self._manager.cache.informer(resource.documents(), label_selector=selector, indexes=CHILD_INDEXES)
        return Kind(informer=informer, selector=selector, code=code, **told)

    def _failed(self, pcs: PodCliqueSet, kind: Kind, verb: str, error: Foreign | ApiError) -> Exception:
        """What keeps a child from being as it should, in a status' words; what may pass by itself stays as it is."""
        if isinstance(error, ApiError) and (isinstance(error, Conflict) or error.is_retryable):
            return error
        said = error.message if isinstance(error, ApiError) else str(error)
        if kind.is_told:
            reason = f"{kind.resource.kind}{verb}Failed"
            self._manager.events.warning(About.of(POD_CLIQUE_SETS, pcs), reason, said)
        return GangError(kind.code, said)

    def _tell(self, pcs: PodCliqueSet, kind: Kind, name: str, verb: str) -> None:
        words = f"{verb}d {kind.resource.kind} {pcs.metadata.namespace}/{name}"
        reason = f"{kind.resource.kind}{verb}Successful"
        self._manager.events.normal(About.of(POD_CLIQUE_SETS, pcs), reason, words)


def _is_going(child: Document, pcs: PodCliqueSet) -> bool:
    """Whether a child is on its way out: deleted, or left by an earlier set of the same name, as its owner says.

    Either way there is an event when it is gone, since it has the set's labels.
    """
    metadata = child.metadata
    if names.default_labels(pcs.metadata.name).items() - metadata.labels.items():
        return False
    return metadata.is_deleting or is_left_behind(metadata, owner_reference(pcs, POD_CLIQUE_SETS))


def has_changed(change: Change[Document]) -> bool:
    """Whether anything of a child differs that is ours to keep: what is observed of it is not, nor is bookkeeping."""
    if change.before is None or change.after is None:
        return True
    return _kept(change.before) != _kept(change.after)


def _kept(child: Document) -> tuple[Any, ...]:
    metadata = child.metadata
    content = {key: value for key, value in child.content.items() if key not in ("metadata", "status")}
    return (metadata.labels, metadata.annotations, metadata.owner_references, metadata.is_deleting, content)
