"""Our own writes of pods that a cache may not show yet, where the runtime does not wait for them itself.

The runtime keeps a key from its next reconcile until the caches show what the last one wrote, but for caches that hold
a selection: what was written might lie outside of it. The pods of cliques never do, so they are waited for here:
without that a clique could make a pod twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.api.core import PODS, Pod
from shoal.kube import Informer, Key
from shoal.kube.freshness import Deleted, place_of

_PLACE = place_of(PODS)


@dataclass
class _Unseen:
    version: int = 0
    deletions: list[Deleted] = field(default_factory=list)


class OwnWrites:
    """The newest pod written for each clique, and the pods deleted, until the cache shows them."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._pods = pods
        self._unseen: dict[Key, _Unseen] = {}

    def wrote(self, key: Key, pod: Pod) -> None:
        """A pod was made or changed for a clique."""
        if self._pods.is_selective and pod.metadata.resource_version.isdigit():
            unseen = self._unseen.setdefault(key, _Unseen())
            unseen.version = max(unseen.version, int(pod.metadata.resource_version))

    def deleted(self, key: Key, pod: Pod) -> None:
        """The deletion of a clique's pod was asked for."""
        if self._pods.is_selective:
            metadata = pod.metadata
            gone = Deleted(_PLACE, metadata.namespace, metadata.name, metadata.uid)
            self._unseen.setdefault(key, _Unseen()).deletions.append(gone)

    def are_shown(self, key: Key) -> bool:
        """Whether the cache shows all that was written for a clique; its events come with what it lacks."""
        unseen = self._unseen.get(key)
        if unseen is None:
            return True
        if not self._pods.has_seen(unseen.version) or not all(map(self._pods.shows_deletion, unseen.deletions)):
            return False
        del self._unseen[key]
        return True

    def forget(self, key: Key) -> None:
        """The clique is gone."""
        self._unseen.pop(key, None)
