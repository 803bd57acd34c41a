"""The reconcile of a scaling group: its claims, its cliques, its status, and what of it must go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    GANG_TERMINATION_IN_PROGRESS,
    MIN_AVAILABLE_BREACHED,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    ScalingGroupTemplate,
    names,
)
from shoal.api.meta import find_condition, is_controlled_by, is_left_behind, now, owner_reference
from shoal.gangs.caches import Caches
from shoal.gangs.groups.claims import GroupClaims
from shoal.gangs.groups.members import initial_fields, member_clique
from shoal.gangs.groups.replicas import GroupReplica, Member, group_replicas
from shoal.gangs.groups.rolling import Step, next_step
from shoal.gangs.groups.status import healthy_count, status_of
from shoal.gangs.plan import group_named
from shoal.gangs.retries import RETRIES
from shoal.gangs.settings import GangSettings
from shoal.gangs.termination import Due, due_group_replicas, is_breached, termination_delay
from shoal.gangs.together import Failure, all_of, raise_all, worth_telling
from shoal.gangs.updates import expected_hashes, is_rolling, updating_replicas
from shoal.kube import About, Conflict, Controller, Key, Manager, Requeue, Watch
from shoal.kube.changes import (
    annotations_changed,
    any_of,
    controlling_owner,
    field_changed,
    labels_changed,
    spec_changed,
)
from shoal.kube.store import key_of
from shoal.kube.writer import merged

CREATE_ERROR = "ERR_CREATE_PODCLIQUES"
DELETE_ERROR = "ERR_DELETE_PODCLIQUE"


def add_groups(manager: Manager, caches: Caches, settings: GangSettings) -> None:
    """Adds the controller of PodCliqueScalingGroups."""
    groups = ScalingGroups(manager, caches)
    watches = [
        Watch(resource=POD_CLIQUES, keys=controlling_owner(SCALING_GROUPS), when=field_changed(_of_clique)),
        # What is written is compared with documents, whose watch may be slower than that of the values.
        Watch(
            resource=POD_CLIQUES.documents(),
            keys=controlling_owner(SCALING_GROUPS),
            when=any_of(spec_changed, labels_changed, annotations_changed),
        ),
        Watch(resource=POD_CLIQUE_SETS, keys=groups.keys_of_set, when=field_changed(_of_set)),
        # Of a set with many replicas, an update that moves on concerns two of them.
        Watch(resource=POD_CLIQUE_SETS, keys=groups.keys_of_updating, when=field_changed(updating_replicas)),
        *groups.claims.watches(),
    ]
    manager.add(
        Controller(
            "podcliquescalinggroup",
            SCALING_GROUPS,
            groups.reconcile,
            watches=watches,
            when=field_changed(_of_group),
            workers=settings.workers.groups,
            retries=RETRIES,
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """A scaling group with all that decides what it should be."""

    pcs: PodCliqueSet
    group: PodCliqueScalingGroup
    template: ScalingGroupTemplate
    set_replica: int
    replicas: Sequence[GroupReplica]
    surplus: Sequence[PodClique]
    """Cliques of replicas that are not wanted any more."""


class ScalingGroups:
    """Keeps the cliques of each scaling group as its set's template and its own replicas say."""

    def __init__(self, manager: Manager, caches: Caches) -> None:
        self._caches = caches
        self._documents = manager.cache.informer(POD_CLIQUES.documents())
        self._writer = manager.writer("grove-groups")
        self._events = manager.events
        self.claims = GroupClaims(manager, caches, self._writer)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes the next steps for one scaling group, and tells how it is."""
        group = self._caches.groups.store.get(key)
        if group is None:
            return None
        if group.metadata.is_deleting:
            await self._writer.clear_finalizer(SCALING_GROUPS, group, names.SCALING_GROUP_FINALIZER)
            return None
        wanted = self._wanted(group)
        if wanted is None:
            return None
        if await self._writer.set_finalizer(SCALING_GROUPS, group, names.SCALING_GROUP_FINALIZER):
            return None

        moment = now()
        failures = await self.claims.keep(wanted.pcs, wanted.template, group)
        failures += await self._keep_members(wanted)
        failures += await self._delete_replicas(group, _by_replica(wanted.surplus), "is not wanted any more")
        step = next_step(wanted.pcs, wanted.set_replica, group, wanted.replicas, moment)
        status = status_of(wanted.pcs, group, wanted.replicas, step, worth_telling(failures), moment)
        await self._writer.patch_status(SCALING_GROUPS, group, before=group.status, after=status)

        due = _due(wanted, step, moment)
        for chosen, why in ((step.delete, "is replaced"), (due.replicas, "was broken for too long")):
            cliques = {index: wanted.replicas[index].cliques for index in chosen}
            failures += await self._delete_replicas(group, cliques, why)
        raise_all(failures)
        return Requeue(after=due.again_after) if due.again_after is not None else None

    def keys_of_set(self, pcs: PodCliqueSet) -> Iterable[Key]:
        """All scaling groups of a set."""
        return [key_of(group) for group in self._caches.groups_of_set(pcs)]

    def keys_of_updating(self, pcs: PodCliqueSet) -> Iterable[Key]:
        """The scaling groups of the replicas that are updated now."""
        return [
            key_of(group)
            for replica in updating_replicas(pcs)
            for group in self._caches.groups_of_replica(pcs, replica)
        ]

    def _wanted(self, group: PodCliqueScalingGroup) -> _Wanted | None:
        """What a group should be; None where its set is gone, going, or does not know it any more."""
        pcs = self._caches.set_of(group)
        index = names.index_in(group.metadata.labels, names.SET_REPLICA_LABEL)
        if pcs is None or pcs.metadata.is_deleting or not is_controlled_by(group.metadata, pcs.metadata.uid):
            return None
        if index is None or (template := group_named(pcs, index, group.metadata.name)) is None:
            return None
        cliques = [
            clique
            for clique in self._caches.cliques_of_group(group)
            if is_controlled_by(clique.metadata, group.metadata.uid)
        ]
        replicas = group_replicas(pcs, index, template, group.spec.replicas, cliques, expected_hashes(pcs))
        planned = {member.planned.name for replica in replicas for member in replica.members}
        return _Wanted(
            pcs=pcs,
            group=group,
            template=template,
            set_replica=index,
            replicas=replicas,
            surplus=[clique for clique in cliques if clique.metadata.name not in planned],
        )

    async def _keep_members(self, wanted: _Wanted) -> list[Failure]:
        """Makes the cliques that are missing. Others are left as they are, or patched if no update recreates them."""
        members = [
            member
            for replica in wanted.replicas
            for member in replica.members
            if member.seen is None or (wanted.pcs.spec.updates_on_delete and member.present is not None)
        ]
        steps = (self._keep_member(wanted, member) for member in members if not self._is_awaited(wanted, member))
        return await all_of(CREATE_ERROR, steps)

    def _is_awaited(self, wanted: _Wanted, member: Member) -> bool:
        """Whether a clique of an earlier group of the same name must go first; its last event brings us back."""
        found = self._documents.get(member.planned.name, wanted.group.metadata.namespace)
        owner = owner_reference(wanted.group, SCALING_GROUPS)
        return found is not None and is_left_behind(found.metadata, owner)

    async def _keep_member(self, wanted: _Wanted, member: Member) -> None:
        body = member_clique(wanted.pcs, wanted.template, member.planned, member.template_hash)
        owner = owner_reference(wanted.group, SCALING_GROUPS)
        about = About.of(SCALING_GROUPS, wanted.group)
        if member.seen is not None:
            initial = initial_fields(member.seen.spec.replicas)
            await self._writer.apply(self._documents, body, owner=owner, initial=initial)
            return
        whole = merged(body, initial_fields(member.planned.template.spec.replicas))
        try:
            await self._writer.apply(self._documents, whole, owner=owner)
        except Exception as error:
            if not isinstance(error, Conflict):
                message = f"PodClique {member.planned.name} could not be made: {error}"
                self._events.warning(about, "PodCliqueCreateFailed", message)
            raise
        self._events.normal(about, "PodCliqueCreateSuccessful", f"PodClique {member.planned.name} was made")

    async def _delete_replicas(
        self, group: PodCliqueScalingGroup, replicas: Mapping[int, Sequence[PodClique]], why: str
    ) -> list[Failure]:
        """Deletes the cliques of replicas; the broken ones last, so that half a teardown is found broken still."""
        failures = []
        about = About.of(SCALING_GROUPS, group)
        for index, cliques in sorted(replicas.items()):
            present = [clique for clique in cliques if not clique.metadata.is_deleting]
            broken = [clique for clique in present if is_breached(clique)]
            others = [clique for clique in present if not is_breached(clique)]
            failed = await all_of(DELETE_ERROR, (self._writer.delete(POD_CLIQUES, clique) for clique in others))
            if not failed:
                failed = await all_of(DELETE_ERROR, (self._writer.delete(POD_CLIQUES, clique) for clique in broken))
            if failed:
                message = f"Replica {index}, which {why}, could not be deleted: {failed[0].error}"
                self._events.warning(about, "PodCliqueScalingGroupReplicaDeleteFailed", message)
            elif present:
                message = f"Replica {index}, which {why}, was deleted"
                self._events.normal(about, "PodCliqueScalingGroupReplicaDeleteSuccessful", message)
            failures += failed
        return failures


def _due(wanted: _Wanted, step: Step, moment: datetime) -> Due:
    """The replicas whose time is up; none while replicas are replaced anyway."""
    if step.is_running:
        return Due()
    return due_group_replicas(
        {replica.index: replica.cliques for replica in wanted.replicas},
        healthy=healthy_count(wanted.replicas),
        minimum=wanted.group.spec.minimum,
        delay=termination_delay(wanted.pcs),
        now=moment,
    )


def _by_replica(cliques: Iterable[PodClique]) -> dict[int, list[PodClique]]:
    found: dict[int, list[PodClique]] = {}
    for clique in cliques:
        index = names.index_in(clique.metadata.labels, names.SCALING_GROUP_REPLICA_LABEL)
        found.setdefault(-1 if index is None else index, []).append(clique)
    return found


def _of_group(group: PodCliqueScalingGroup) -> Any:
    """What of a group asks for a reconcile: its status is our own, but for one condition."""
    metadata = group.metadata
    torn_down = find_condition(group.status.conditions, GANG_TERMINATION_IN_PROGRESS)
    return metadata.generation, metadata.is_deleting, metadata.labels, metadata.finalizers, torn_down


def _of_clique(clique: PodClique) -> Any:
    """What of a clique changes what is said of its group, or done about it: not every pod that comes up."""
    metadata, status = clique.metadata, clique.status
    breached = find_condition(status.conditions, MIN_AVAILABLE_BREACHED)
    scheduled = find_condition(status.conditions, CLIQUE_SCHEDULED)
    return (
        (metadata.generation, metadata.is_deleting, metadata.controller, metadata.labels, metadata.annotations),
        (breached and (breached.status, breached.last_transition_time)),
        (scheduled and (scheduled.status, scheduled.last_transition_time)),
        status.ready_replicas >= clique.spec.minimum,
        status.current_pod_template_hash,
    )


def _of_set(pcs: PodCliqueSet) -> Any:
    """What of a set concerns all its scaling groups."""
    return pcs.spec.template, pcs.spec.updates_on_delete, pcs.status.current_generation_hash, is_rolling(pcs)
