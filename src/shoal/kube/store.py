"""The objects of one kind in memory, with indexes; what readers get is shared and never changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from shoal.api.meta.objects import HasMetadata

T = TypeVar("T", bound=HasMetadata)


class Key(NamedTuple):
    """The namespace (empty for cluster-scoped kinds) and name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(found: HasMetadata) -> Key:
    """The key of an object."""
    return Key(found.metadata.namespace, found.metadata.name)


IndexFunction = Callable[[Any], Iterable[Hashable]]
"""The values under which an object is found: none, one or many."""

BY_NAMESPACE = "namespace"
BY_OWNER = "owner"


def by_namespace(found: HasMetadata) -> Iterable[Hashable]:
    """Finds objects by their namespace."""
    return (found.metadata.namespace,)


def by_owner(found: HasMetadata) -> Iterable[Hashable]:
    """Finds objects by the uid of each owner."""
    return [owner.uid for owner in found.metadata.owner_references]


@functools.cache
def by_label(label: str) -> IndexFunction:
    """Finds objects by the value of one label, together with their namespace."""

    def values(found: HasMetadata) -> Iterable[Hashable]:
        value = found.metadata.labels.get(label)
        return () if value is None else ((found.metadata.namespace, value),)

    return values


class Store(Generic[T]):
    """Objects by key, and by the values of any number of indexes. Its owner alone writes to it."""

    def __init__(self, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._functions: dict[str, IndexFunction] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, None]]] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def get(self, key: Key) -> T | None:
        """The object of that key, if there is one."""
        return self._objects.get(key)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def keys(self) -> KeysView[Key]:
        """The keys of all objects."""
        return self._objects.keys()

    def items(self, namespace: str | None = None) -> list[T]:
        """All objects, or those of a namespace."""
        if namespace is None:
            return list(self._objects.values())
        if BY_NAMESPACE in self._indexes:
            return self.find(BY_NAMESPACE, namespace)
        return [found for key, found in self._objects.items() if key.namespace == namespace]

    def find(self, index: str, value: Hashable) -> list[T]:
        """The objects that an index has under a value."""
        keys = self._index(index).get(value, ())
        return [self._objects[key] for key in keys]

    def values(self, index: str) -> KeysView[Hashable]:
        """The values that an index knows."""
        return self._index(index).keys()

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Adds an index, over what is there too; adding the same one again changes nothing."""
        known = self._functions.get(name)
        if known is not None:
            if known is not function:
                raise ValueError(f"the index {name!r} is there already with another function: choose another name")
            return
        self._functions[name] = function
        index = self._indexes[name] = {}
        for key, found in self._objects.items():
            for value in function(found):
                index.setdefault(value, {})[key] = None

    def put(self, found: T) -> T | None:
        """Adds or replaces an object, and gives the one that it replaced."""
        key = key_of(found)
        # First, since a function that fails must leave the store as it was.
        values = {name: tuple(function(found)) for name, function in self._functions.items()}
        before = self._objects.get(key)
        self._objects[key] = found
        for name, new in values.items():
            index = self._indexes[name]
            if before is not None:
                for value in self._functions[name](before):
                    if value not in new:
                        self._forget(index, value, key)
            for value in new:
                index.setdefault(value, {})[key] = None
        return before

    def remove(self, key: Key) -> T | None:
        """Removes an object, and gives it."""
        before = self._objects.pop(key, None)
        if before is not None:
            for name, function in self._functions.items():
                for value in function(before):
                    self._forget(self._indexes[name], value, key)
        return before

    def _index(self, name: str) -> dict[Hashable, dict[Key, None]]:
        try:
            return self._indexes[name]
        except KeyError:
            raise KeyError(f"no index {name!r}: declare it when the informer is made") from None

    @staticmethod
    def _forget(index: dict[Hashable, dict[Key, None]], value: Hashable, key: Key) -> None:
        keys = index.get(value)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del index[value]
