"""Small objects for the store's tests, encoded as the server encodes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.cluster.apiserver.storage import Encoded, Record, Store

Encode = Callable[[int], Encoded]


def an_object(
    name: str = "a", *, namespace: str = "default", labels: Mapping[str, str] | None = None, size: int = 0, **spec: Any
) -> Encode:
    def encode(revision: int) -> Encoded:
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{namespace}-{name}",
            "resourceVersion": str(revision),
            "labels": dict(labels or {}),
        }
        data = msgspec.json.encode({"metadata": metadata, "spec": spec, "filling": "x" * size})
        fields = {key: str(value) for key, value in spec.items()}
        return Encoded(data=data, labels=dict(labels or {}), fields=fields, uid=f"uid-of-{namespace}-{name}")

    return encode


async def write(
    store: Store, name: str = "a", *, storage: str = "pods", namespace: str = "default", **more: Any
) -> Record:
    """Creates or updates an object, whatever it was before."""
    encode = an_object(name, namespace=namespace, **more)
    return await store.put(storage, namespace, name, encode, previous=store.latest(storage, namespace, name))


async def delete(store: Store, name: str = "a", *, storage: str = "pods", namespace: str = "default") -> Record:
    previous = store.latest(storage, namespace, name)
    assert previous is not None
    return await store.remove(storage, namespace, name, an_object(name, namespace=namespace), previous=previous)


def decoded(record: Record) -> Any:
    return msgspec.json.decode(record.data)
