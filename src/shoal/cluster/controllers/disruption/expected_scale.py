"""How many pods their controllers want in all: the sum of the sizes of everything that controls one of them."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.apps import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from shoal.api.core import REPLICATION_CONTROLLERS, Pod
from shoal.api.meta import OwnerReference
from shoal.cluster.controllers.scales import Scales, UnknownKind
from shoal.kube import Manager, NotFound

_APPS = ("apps", "extensions")


class CannotCount(Exception):
    """A pod's controller has no size, or cannot be found."""


class ExpectedScale:
    """Reads sizes from the cache where the kind is one of the well-known, else from the server."""

    def __init__(self, manager: Manager) -> None:
        self._deployments = manager.cache.informer(DEPLOYMENTS)
        self._replica_sets = manager.cache.informer(REPLICA_SETS)
        self._stateful_sets = manager.cache.informer(STATEFUL_SETS)
        self._replication_controllers = manager.cache.informer(REPLICATION_CONTROLLERS)
        self._scales = Scales(manager.client)

    async def of(self, pods: Sequence[Pod]) -> int:
        """The sum of the sizes; pods without a controller add nothing. Raises CannotCount."""
        sizes: dict[str, int] = {}
        seen: set[str] = set()
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None or owner.uid in seen:
                continue
            seen.add(owner.uid)
            found = self._cached(owner, pod.metadata.namespace)
            if found is None:
                found = await self._asked(owner, pod.metadata.namespace)
            if found is None:
                raise CannotCount(f'found no controllers for pod "{pod.metadata.name}"')
            uid, size = found
            sizes[uid] = size
        return sum(sizes.values())

    def _cached(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        group = owner.api_version.rpartition("/")[0]
        match owner.kind:
            case "ReplicationController" if not group:
                return _size(self._replication_controllers.get(owner.name, namespace), owner)
            case "StatefulSet" if group == "apps":
                return _size(self._stateful_sets.get(owner.name, namespace), owner)
            case "ReplicaSet" if group in _APPS:
                replica_set = self._replica_sets.get(owner.name, namespace)
                if replica_set is None or replica_set.metadata.uid != owner.uid:
                    return None
                above = replica_set.metadata.controller
                if above is None or above.kind != "Deployment":
                    return _size(replica_set, owner)
                # What a deployment wants counts, not what its replica sets have come to while it rolls.
                if above.api_version.rpartition("/")[0] not in _APPS:
                    return None
                return _size(self._deployments.get(above.name, namespace), above)
        return None

    async def _asked(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        try:
            sized = await self._scales.kind(owner.api_version, owner.kind)
        except UnknownKind as error:
            raise CannotCount(str(error)) from error
        if not sized.has_scale:
            raise CannotCount(f"{sized.group_resource} does not implement the scale subresource")
        try:
            scale = await self._scales.read(sized, owner.name, namespace)
        except NotFound:
            return None
        return (owner.uid, scale.spec.replicas) if scale.metadata.uid == owner.uid else None


def _size(found: object, owner: OwnerReference) -> tuple[str, int] | None:
    if found is None or found.metadata.uid != owner.uid:  # type: ignore[attr-defined]
        return None
    replicas = found.spec.replicas  # type: ignore[attr-defined]
    return owner.uid, 1 if replicas is None else int(replicas)
