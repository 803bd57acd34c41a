"""Which changes concern cliques, and which of them: pods, gangs, cliques of the base gang, and the set.

Filters are narrow, since a set may have a thousand cliques: a pod wakes its own clique alone, a step of an update the
cliques of the replicas in work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.api.core import ContainerStatus, Pod, is_ready, pod_condition
from shoal.api.grove import PodClique, PodCliqueSet, names
from shoal.api.meta import is_true
from shoal.api.scheduler_grove_io import INITIALIZED, PodGang
from shoal.gangs.caches import Caches
from shoal.gangs.cliques.gates import is_gated
from shoal.gangs.updates import updating_replicas
from shoal.kube import Change, Key, by_label
from shoal.kube.changes import annotations_changed, any_of, field_changed, labels_changed, spec_changed
from shoal.kube.store import key_of

BY_BASE_GANG: Final = "grove base gang"
INDEXES: Final = {BY_BASE_GANG: by_label(names.BASE_GANG_LABEL)}
"""Finds cliques of scaled gangs by the gang that they wait for."""


def _of_pod(pod: Pod) -> object:
    """What of a pod matters; its gates do not, since nobody but its clique lifts them."""
    scheduled = pod_condition(pod, "PodScheduled")
    return (
        pod.metadata.is_deleting,
        pod.metadata.owner_references,
        pod.metadata.labels,
        pod.metadata.annotations,
        pod.status.phase,
        is_ready(pod),
        scheduled and (scheduled.status, scheduled.reason),
        [_of_container(container) for container in pod.status.container_statuses],
        [_of_container(container) for container in pod.status.init_container_statuses],
    )


def _of_container(container: ContainerStatus) -> object:
    ended = container.last_state.terminated
    return (container.started, container.ready, ended is not None and ended.exit_code != 0)


def _members(gang: PodGang) -> object:
    return (
        gang.metadata.uid,
        gang.metadata.owner_references,
        gang.metadata.is_deleting,
        gang.metadata.labels.get(names.SCHEDULER_BACKEND_LABEL),
        # Before a gang is complete no gate is lifted, whichever pods it names.
        gang.spec.pod_groups if is_true(gang.status.conditions, INITIALIZED) else None,
    )


def _minimums(gang: PodGang) -> object:
    return (gang.metadata.is_deleting, [(group.name, group.min_replicas) for group in gang.spec.pod_groups])


def _templates(pcs: PodCliqueSet) -> object:
    return (pcs.status.current_generation_hash, pcs.spec.updates_on_delete, pcs.metadata.is_deleting)


clique_concerns = any_of(spec_changed, labels_changed, annotations_changed)
"""Not the status: that is our own."""
_pod_differs = field_changed(_of_pod)


def pod_concerns(change: Change[Pod]) -> bool:
    """Whether a change of a pod asks for work, or is to be told: that one was made does not, which was counted then."""
    pod = change.after
    if change.before is None and pod is not None and not change.is_resync and is_gated(pod):
        return False
    return _pod_differs(change)


gang_concerns = field_changed(_members)
base_gang_concerns = field_changed(_minimums)
schedule_concerns = field_changed(lambda clique: clique.status.scheduled_replicas >= clique.spec.minimum)
templates_concern = field_changed(_templates)
turn_concerns = field_changed(updating_replicas)


def cliques_of_gang(gang: PodGang) -> Iterable[Key]:
    """The cliques whose pods a gang names."""
    return [Key(gang.metadata.namespace, group.name) for group in gang.spec.pod_groups]


class Wakes:
    """Finds in the caches whom a change concerns."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        caches.cliques.add_indexes(INDEXES)

    def waiting_for_gang(self, gang: PodGang) -> Iterable[Key]:
        """The cliques of scaled gangs that wait for a base gang."""
        return map(key_of, self._waiting(gang.metadata.namespace, gang.metadata.name))

    def waiting_for_clique(self, clique: PodClique) -> Iterable[Key]:
        """The cliques of scaled gangs that wait for the base gang of a clique."""
        labels = clique.metadata.labels
        if names.BASE_GANG_LABEL in labels:
            return ()
        return map(key_of, self._waiting(clique.metadata.namespace, labels.get(names.GANG_LABEL, "")))

    def of_set(self, pcs: PodCliqueSet) -> Iterable[Key]:
        """All cliques of a set."""
        return map(key_of, self._caches.cliques_of_set(pcs))

    def in_turn(self, pcs: PodCliqueSet) -> Iterable[Key]:
        """The cliques of the replicas that are updated now."""
        for replica in updating_replicas(pcs):
            yield from map(key_of, self._caches.cliques_of_replica(pcs, replica))

    def _waiting(self, namespace: str, gang: str) -> list[PodClique]:
        return self._caches.cliques.find(BY_BASE_GANG, (namespace, gang))
