"""The controllers of the grouper: one finds out which group each pod is in, one keeps the groups.

Finding out goes pod by pod, reads much and writes nothing. A group is kept as a whole: however many pods ask for it, it
is written once where it differs, and then each pod that does not name it yet is marked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec
from prometheus_client import Gauge

from shoal.api.meta import Document, is_owned_by
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import ApiError, Change, Controller, Foreign, Informer, Key, Manager, NotFound, Requeue
from shoal.kube.backoff import Backoff
from shoal.kube.queue import RESYNC, RetryLimits
from shoal.kube.store import key_of
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Ungroupable, annotations_of, name_of, uid_of
from shoal.scheduler.grouper.kinds import beside, subject, wanted_group
from shoal.scheduler.grouper.knowledge import Knowledge
from shoal.scheduler.grouper.marking import Marking
from shoal.scheduler.grouper.members import Member, Members
from shoal.scheduler.grouper.owners import OwnerGone, Owners
from shoal.scheduler.grouper.pods import (
    GROUPED_PODS,
    GroupedPod,
    facts_of,
    group_name,
    is_grouped_elsewhere,
    wants_no_group,
)
from shoal.scheduler.grouper.problems import Problems
from shoal.scheduler.grouper.settings import GrouperSettings
from shoal.scheduler.grouper.wanted import GroupWanted, checked

FIELD_MANAGER: Final = "pod-grouper"
LOOK_AGAIN: Final = 60.0
"""Seconds after which a pod that cannot be grouped is looked at again, though nothing that we watch has changed."""

_RETRIES: Final = RetryLimits(backoff=Backoff(initial=1.0, cap=60.0))


def add_grouper(manager: Manager, settings: GrouperSettings) -> None:
    """Adds the controllers that put pods into groups."""
    Grouper(manager, settings)


class Grouper:
    """Gives every pod of our schedulers a PodGroup, unless somebody else did."""

    def __init__(self, manager: Manager, settings: GrouperSettings) -> None:
        self._settings = settings
        self._movable = frozenset({settings.queue_label, settings.node_pool_label})
        self._client = manager.client
        self._writer = manager.writer(FIELD_MANAGER)
        self._problems = Problems(manager)
        self._marking = Marking(manager.client, FIELD_MANAGER)
        self._members = Members()
        self._pods: Informer[GroupedPod] = manager.cache.informer(GROUPED_PODS)
        self._groups: Informer[Document] = manager.cache.informer(POD_GROUPS.documents())
        self._resolving = Controller(
            "pod-grouper-owners",
            GROUPED_PODS,
            self.resolve,
            when=self._matters,
            workers=settings.workers,
            retries=_RETRIES,
        )
        self._keeping = Controller(
            "pod-grouper",
            POD_GROUPS.documents(),
            self.reconcile,
            when=_group_matters,
            workers=settings.workers,
            retries=_RETRIES,
        )
        manager.add(self._resolving)
        manager.add(self._keeping)
        self._knowledge = Knowledge(manager, settings, self._keep_all, self._resolve_all)
        self._owners = Owners(manager, self._owner_changed, self._knowledge.describes)
        self._groups.on_serving(self._keep_all)
        _measure(manager, self._members)

    async def resolve(self, key: Key) -> Requeue | None:
        """Finds out which group a pod is in, and has that group looked at."""
        pod = self._pods.store.get(key)
        if pod is None or pod.spec.scheduler_name not in self._settings.scheduler_names or is_grouped_elsewhere(pod):
            self._members.depends(key, ())
            self._leave(key)
            return None
        known = self._members.get(key)
        if known is None and pod.metadata.is_deleting:
            return None
        try:
            member = await self._member(pod)
        except Ungroupable as problem:
            if known is not None and isinstance(problem, OwnerGone):
                return None  # the pod is about to follow its owner
            self._problems.tell(pod, problem)
            return Requeue(after=LOOK_AGAIN, priority=RESYNC)
        if member is None:
            self._leave(key)
            return None
        self._problems.forget(key)
        self._members.put(member)
        if known is not None and known.group != member.group:
            self._keeping.enqueue(known.group)
        self._keeping.enqueue(member.group)
        return None

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes a group what its pods ask for, and marks those that do not name it yet."""
        found = {member.pod: pod for member in self._members.of(key) if (pod := self._pod_of(member)) is not None}
        if not found or not self._groups.is_served:
            return None
        leading = min(found, key=lambda one: _seniority(found[one]))
        try:
            group = checked(wanted_group(self._case(leading, found)))
        except Ungroupable as problem:
            self._problems.tell(found[leading], problem)
            return Requeue(after=LOOK_AGAIN, priority=RESYNC)
        if group.name != key.name:
            return None  # the pod has changed, and is looked at anew
        try:
            await self._apply(group)
        except Foreign as problem:
            # When that one goes its event brings us back.
            self._problems.tell(found[leading], problem)
            return None
        except ApiError as error:
            if error.has_cause("NamespaceTerminating"):
                return None
            raise
        for pod, misfit in await self._marking.mark(group, found.values()):
            self._problems.tell(pod, misfit)
        return None

    async def _member(self, pod: GroupedPod) -> Member | None:
        """The membership of a pod; None where somebody else groups it."""
        owners = await self._owners.above(pod)
        self._members.depends(key_of(pod), owners)
        if any(wants_no_group(annotations_of(owner)) for owner in owners):
            return None
        case = subject(Case(pod=pod, owners=owners, facts=self._knowledge.facts()))
        wanted = beside(case)
        found = None if wanted is None else await self._owners.beside(wanted, pod.metadata.namespace)
        if found is not None:
            self._members.depends(key_of(pod), (*owners, found))
            kept = self._groups.get(group_name(name_of(found), uid_of(found)), pod.metadata.namespace)
            has_backend = kept is not None and kept.metadata.controller is not None
            if wants_no_group(annotations_of(found)) or is_grouped_elsewhere(pod, gang_has_backend=has_backend):
                return None
        group = wanted_group(replace(case, beside=found))
        group.part_of(pod)  # what is wrong with this pod alone is told now
        return Member(
            pod=key_of(pod),
            uid=pod.metadata.uid,
            group=Key(group.namespace, group.name),
            owners=owners,
            beside=found,
        )

    def _case(self, leading: Key, found: dict[Key, GroupedPod]) -> Case:
        member = self._members.get(leading)
        assert member is not None
        pods = tuple(found.values())
        return Case(
            pod=found[leading],
            owners=member.owners,
            beside=member.beside,
            members=pods,
            facts=self._knowledge.facts(),
        )

    async def _apply(self, group: GroupWanted) -> None:
        """Writes a group where it differs; raises Foreign where somebody else has one of its name.

        A group that is there is ours where the same owner owns it and nobody controls it: KAI's own grouper makes such
        ones too.
        """
        body, initial = group.body(self._movable), group.initial(self._movable)
        seen = self._groups.get(group.name, group.namespace)
        if seen is None:
            try:
                await self._writer.apply(self._groups, body, owner=group.owner, initial=initial)
                return
            except Foreign:
                seen = await self._live(group)
                if seen is None or not _is_ours(seen, group):
                    raise
        if not _is_ours(seen, group):
            raise Foreign(POD_GROUPS.documents(), seen, group.owner)
        owned = {**body, "metadata": {**body["metadata"], "ownerReferences": [msgspec.to_builtins(group.owner)]}}
        await self._writer.apply(self._groups, owned, owner=None, initial=initial)

    async def _live(self, group: GroupWanted) -> Document | None:
        try:
            return await self._client.get(POD_GROUPS.documents(), group.name, group.namespace)
        except NotFound:
            return None

    def _pod_of(self, member: Member) -> GroupedPod | None:
        pod = self._pods.store.get(member.pod)
        return pod if pod is not None and pod.metadata.uid == member.uid else None

    def _leave(self, pod: Key) -> None:
        self._problems.forget(pod)
        member = self._members.leave(pod)
        if member is not None:
            self._keeping.enqueue(member.group)

    def _owner_changed(self, uid: str) -> None:
        for pod in self._members.below(uid):
            self._resolving.enqueue(pod)

    def _resolve_all(self) -> None:
        for pod in self._pods.items():
            if pod.spec.scheduler_name in self._settings.scheduler_names and pod.metadata.owner_references:
                self._resolving.enqueue(key_of(pod))

    def _keep_all(self) -> None:
        for group in self._members.groups:
            self._keeping.enqueue(group)

    def _matters(self, change: Change[GroupedPod]) -> bool:
        before, after = change.before, change.after
        names = {pod.spec.scheduler_name for pod in (before, after) if pod is not None}
        if not names & self._settings.scheduler_names:
            return False
        return before is None or after is None or facts_of(before) != facts_of(after)


def _group_matters(change: Change[Document]) -> bool:
    """Whether more of a group has changed than what the scheduler writes into its status."""
    if change.before is None or change.after is None:
        return True
    before, after = change.before.metadata, change.after.metadata
    return (before.generation, before.labels, before.annotations, before.owner_references) != (
        after.generation,
        after.labels,
        after.annotations,
        after.owner_references,
    )


def _is_ours(seen: Document, group: GroupWanted) -> bool:
    return is_owned_by(seen.metadata, group.owner.uid) and seen.metadata.controller is None


def _seniority(pod: GroupedPod) -> tuple[bool, str, str]:
    """Whose word counts in a group: the oldest of those that are not over."""
    created = pod.metadata.creation_timestamp
    return (pod.is_over, created.isoformat() if created else "", pod.metadata.name)


def _measure(manager: Manager, members: Members) -> None:
    registry = manager.metrics.registry
    Gauge("kai_podgrouper_pods", "Pods that the grouper keeps in groups.", registry=registry).set_function(
        lambda: len(members)
    )
    Gauge("kai_podgrouper_pod_groups", "PodGroups that the grouper keeps.", registry=registry).set_function(
        lambda: len(members.groups)
    )
