"""The reconcile of a StatefulSet: its revisions, its pods, its status, and what of its history is too old."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

from shoal.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS, ControllerRevision, StatefulSet
from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from shoal.cluster.controllers.availability import seconds_until_available
from shoal.cluster.controllers.claims import (
    Claims,
    concerns_claimants,
    keys_of_claimants,
    selector_of_spec,
    selector_or_give_up,
)
from shoal.cluster.controllers.revisions import (
    Draft,
    RevisionHistory,
    in_order,
    latest_number,
    revision_data,
    same_data,
    surplus,
    template_of,
)
from shoal.cluster.controllers.stateful_sets.identity import is_member, revision_of
from shoal.cluster.controllers.stateful_sets.plan import Observed, Version, members, plan
from shoal.cluster.controllers.stateful_sets.pods import StatefulPods
from shoal.cluster.controllers.stateful_sets.status import status_of
from shoal.cluster.controllers.stateful_sets.volumes import may_have_claim
from shoal.cluster.controllers.template_hash import template_hash
from shoal.cluster.indexes import CHILD_INDEXES, POD_INDEXES, all_pods
from shoal.kube import Change, Controller, Key, Manager, Requeue, Watch
from shoal.kube.store import key_of

HASH_LABEL = "controller.kubernetes.io/hash"
"""Label of a StatefulSet's revision: the hash of its data."""


def add_stateful_sets(manager: Manager, *, workers: int = 5, honour_max_unavailable: bool = False) -> None:
    """Adds the controller of StatefulSets.

    ``honour_max_unavailable`` lets a rolling update replace several pods at once, which Kubernetes has off.
    """
    sets = StatefulSets(manager, honour_max_unavailable=honour_max_unavailable)
    claimants = keys_of_claimants(STATEFUL_SETS, sets.sets, selector_of_spec)
    watches = [
        Watch(resource=PODS, keys=claimants, when=concerns_claimants, indexes=POD_INDEXES),
        Watch(resource=CONTROLLER_REVISIONS, keys=claimants, when=concerns_claimants, indexes=CHILD_INDEXES),
        # A pod may wait for a claim of its name to be gone.
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=sets.keys_of_claim, when=_has_gone),
    ]
    manager.add(Controller("statefulset", STATEFUL_SETS, sets.reconcile, watches=watches, workers=workers))


class StatefulSets:
    """Keeps the pods of each StatefulSet as it says."""

    def __init__(self, manager: Manager, *, honour_max_unavailable: bool) -> None:
        self.sets = manager.cache.informer(STATEFUL_SETS, indexes=CHILD_INDEXES)
        self._volume_claims = manager.cache.informer(PERSISTENT_VOLUME_CLAIMS)
        self._pods = all_pods(manager)
        self._claims = Claims(manager.client, STATEFUL_SETS, PODS)
        self._writer = manager.writer("statefulset-controller")
        self._history = RevisionHistory(manager, STATEFUL_SETS, self._writer)
        self._actor = StatefulPods(manager.client, self._writer, manager.events)
        self._honour_max_unavailable = honour_max_unavailable

    async def reconcile(self, key: Key) -> Requeue | None:
        """Takes the next steps for one StatefulSet, and tells how it is."""
        stateful_set = self.sets.store.get(key)
        if stateful_set is None:
            return None
        selector = selector_or_give_up(stateful_set)
        history = in_order(await self._history.of(stateful_set, selector))
        pods = await self._claims.claim(stateful_set, selector, self._pods, only=partial(is_member, stateful_set))
        newest = history[-1].data if history else {}
        if stateful_set.metadata.is_deleting and not same_data(newest, revision_data(stateful_set.spec.template)):
            return None  # its history goes with it, and is not begun anew
        current, update, collisions = await self._revisions(stateful_set, history)

        moment = datetime.now(UTC)
        observed = Observed(
            stateful_set=stateful_set,
            pods=pods,
            claim_of=partial(self._volume_claims.get, namespace=key.namespace),
            current=Version(name=current.metadata.name, template=template_of(current)),
            update=Version(name=update.metadata.name, template=template_of(update)),
            now=moment,
        )
        steps = plan(observed, honour_max_unavailable=self._honour_max_unavailable)
        failure = await self._actor.carry_out(stateful_set, steps, observed.claim_of)
        status = status_of(
            stateful_set,
            members(pods),
            current=current.metadata.name,
            update=update.metadata.name,
            collisions=collisions,
            replaced=0 if failure else steps.replaced,
            now=moment,
        )
        await self._writer.patch_status(STATEFUL_SETS, stateful_set, before=stateful_set.status, after=status)
        await self._truncate(stateful_set, history, pods, {current.metadata.name, update.metadata.name})
        if failure is not None:
            raise failure
        seconds = stateful_set.spec.min_ready_seconds
        after = seconds_until_available(pods, min_ready_seconds=seconds, now=moment)
        return Requeue(after=after) if after is not None else None

    def keys_of_claim(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        """The StatefulSets that could have a claim of this name."""
        found = self.sets.items(claim.metadata.namespace)
        return [key_of(stateful_set) for stateful_set in found if may_have_claim(stateful_set, claim.metadata.name)]

    async def _revisions(
        self, stateful_set: StatefulSet, history: Sequence[ControllerRevision]
    ) -> tuple[ControllerRevision, ControllerRevision, int]:
        """The revision that pods have, the one that they are to get, and the collisions of names so far."""
        collisions = stateful_set.status.collision_count or 0
        template = stateful_set.spec.template
        data = revision_data(template)
        number = latest_number(history) + 1
        if history and same_data(history[-1].data, data):
            update = history[-1]
        elif equal := [found for found in history if same_data(found.data, data)]:
            update = await self._history.renumber(equal[-1], number)
        else:
            draft = Draft(
                number=number,
                data=data,
                labels=(template.get("metadata") or {}).get("labels") or {},
                annotations=stateful_set.metadata.annotations,
                hash_label=HASH_LABEL,
                hash_of=lambda count: template_hash(data, count),
            )
            update, counted = await self._history.create(stateful_set, draft, collisions)
            collisions = counted or 0
        named = stateful_set.status.current_revision
        current = next((found for found in history if found.metadata.name == named), update)
        return current, update, collisions

    async def _truncate(
        self, stateful_set: StatefulSet, history: Sequence[ControllerRevision], pods: Sequence[Pod], used: set[str]
    ) -> None:
        live = used | {revision_of(pod) for pod in pods}
        for revision in surplus(
            history,
            limit=stateful_set.spec.revision_history_limit,
            is_live=lambda found: found.metadata.name in live,
            live_count=False,
        ):
            await self._history.delete(revision)


def _has_gone(change: Change[PersistentVolumeClaim]) -> bool:
    return change.after is None
