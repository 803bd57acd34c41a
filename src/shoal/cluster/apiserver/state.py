"""The server's state as its parts see it: the store, the kinds, and objects as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.storage import Changed, Encoded, Record, Store

_REMEMBERED = 4096


class State:
    """Store and kinds together. Objects that it hands out are shared: never to be changed."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self.registry = registry
        self._decoded: dict[tuple[str, str, str], tuple[int, Object]] = {}

    # Reader and Writer, for admission, access and the server's own controllers

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        """One object in its stored version, decoded once."""
        record = self.store.get(storage, namespace, name)
        if record is None:
            self._decoded.pop((storage, namespace, name), None)
            return None
        return self._remembered(storage, record)

    def list(self, storage: str, namespace: str | None = None) -> Iterator[Object]:
        """All objects of a kind, or those of a namespace."""
        if not self.store.count(storage):
            return  # admission asks for several kinds on each write, and of most there are none
        for record in self.store.page(storage, namespace).records:
            yield self._remembered(storage, record)

    def scan(self, storage: str, namespace: str | None = None) -> tuple[int, Iterator[Object]]:
        """The number of objects of a kind, and each of them, decoded when it is read and not kept."""
        kind = self.registry.stored(storage)
        assert kind is not None, storage
        records = self.store.page(storage, namespace).records
        return len(records), (decoded(kind, record) for record in records)

    def changed(self, storage: str) -> int:
        """The revision of the last change of a kind that this process saw."""
        return self.store.changed(storage)

    async def update(
        self, storage: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object | None:
        """Replaces an object by what ``change`` makes of a copy of it, again when it was changed meanwhile."""
        while True:
            previous = self.store.latest(storage, namespace, name)
            if previous is None:
                return None
            kind = self.registry.stored(storage)
            assert kind is not None, storage
            new = change(decoded(kind, previous))
            if new is None:
                return decoded(kind, previous)
            try:
                written = self.store.put(storage, namespace, name, encoder(kind, new), previous=previous)
            except Changed:
                continue
            return decoded(kind, await written)

    def stored_kind(self, kind: Kind) -> Kind:
        """The version in which a kind is kept."""
        return self.registry.stored(kind.storage) or kind

    def _remembered(self, storage: str, record: Record) -> Object:
        key = (storage, record.namespace, record.name)
        held = self._decoded.get(key)
        if held is not None and held[0] == record.revision:
            return held[1]
        kind = self.registry.stored(storage)
        assert kind is not None, storage
        if len(self._decoded) >= _REMEMBERED:
            self._decoded.clear()
        value = decoded(kind, record)
        self._decoded[key] = (record.revision, value)
        return value


def decoded(stored: Kind, record: Record) -> Object:
    """A stored object as plain values of its own, with its apiVersion and kind."""
    return {"apiVersion": stored.api_version, "kind": stored.kind, **msgspec.json.decode(record.data)}


def encoder(stored: Kind, value: Object) -> Callable[[int], Encoded]:
    """Makes the stored form of an object (in the stored version) once its revision is known."""

    def encode(revision: int) -> Encoded:
        metadata = value["metadata"]
        metadata["resourceVersion"] = str(revision)
        content = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
        return Encoded(
            data=msgspec.json.encode(content),
            labels=metadata.get("labels") or {},
            fields={name: find(value) for name, find in stored.rules.fields.items()},
            uid=metadata.get("uid", ""),
        )

    return encode
