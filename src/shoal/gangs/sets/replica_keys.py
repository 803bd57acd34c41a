"""The keys of a set's replicas: the set's name, a slash, which no name of an object has, and the index."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta import HasMetadata
from shoal.kube import Key


def replica_key(namespace: str, set_name: str, index: int) -> Key:
    """The key of one replica."""
    return Key(namespace, f"{set_name}/{index}")


def set_key(key: Key) -> Key:
    """The set that a replica is of."""
    return Key(key.namespace, key.name.rpartition("/")[0])


def replica_index(key: Key) -> int:
    """Which replica it is."""
    return int(key.name.rpartition("/")[2])


def keys_of_replicas(pcs: PodCliqueSet) -> list[Key]:
    """All replicas that a set should have."""
    metadata = pcs.metadata
    return [replica_key(metadata.namespace, metadata.name, index) for index in range(pcs.spec.replicas)]


def key_of_set(child: HasMetadata) -> Iterable[Key]:
    """The set that something was made for, by its labels."""
    labels = child.metadata.labels
    if labels.get(names.MANAGED_BY_LABEL) != names.MANAGER or names.PART_OF_LABEL not in labels:
        return ()
    return (Key(child.metadata.namespace, labels[names.PART_OF_LABEL]),)


def key_of_replica(child: HasMetadata) -> Iterable[Key]:
    """The replica that something was made for, by its labels."""
    index = names.index_in(child.metadata.labels, names.SET_REPLICA_LABEL)
    return [] if index is None else [replica_key(key.namespace, key.name, index) for key in key_of_set(child)]
