"""The first objects of a cluster, made at the first start and mended at later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.cluster.apiserver.access.authorization import GROUP
from shoal.cluster.apiserver.access.bootstrap import default_objects, kubernetes_service, reconciled
from shoal.cluster.apiserver.apply import record_update
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.state import State, encoder
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.verbs.writing import new_uid

_SERVICES = "services"
_ENDPOINTS = "endpoints"
_ADDED = {"namespaces": ("finalizers",), _SERVICES: ("clusterIPs", "ipFamilies")}
_SLICES = "endpointslices.discovery.k8s.io"


async def make_first_objects(state: State, *, now: Callable[[], str]) -> None:
    """Writes what is missing, all in one commit; what people have changed since stays."""
    written = []
    for storage, wanted in default_objects():
        namespace, name = wanted["metadata"].get("namespace", ""), wanted["metadata"]["name"]
        live = state.get(storage, namespace, name)
        new = _new(state, storage, wanted, now()) if live is None else None
        if live is not None and storage.endswith(GROUP):
            new = reconciled(live, wanted)
        if new is not None:
            written.append(_put(state, storage, new))
    for one in written:
        await one


async def publish_address(state: State, *, host: str, port: int, cluster_ip: str, now: Callable[[], str]) -> None:
    """Tells pods where this server is: the Service ``kubernetes``, and what stands behind it."""
    service = kubernetes_service(cluster_ip=cluster_ip, target_port=port)
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints: Object = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "subsets": [{"addresses": [{"ip": host}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    }
    endpoint_slice: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in host else "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    for storage, wanted in ((_SERVICES, service), (_ENDPOINTS, endpoints), (_SLICES, endpoint_slice)):
        live = state.get(storage, "default", "kubernetes")
        if live is None:
            await _put(state, storage, _new(state, storage, wanted, now()))
            continue
        content = {key: value for key, value in wanted.items() if key != "metadata"}
        if any(live.get(key) != value for key, value in content.items()):
            await _put(state, storage, {**live, **content})


def _new(state: State, storage: str, wanted: Object, now: str) -> Object:
    kind = state.registry.stored(storage)
    assert kind is not None, storage
    metadata = {**wanted["metadata"], "uid": new_uid(), "creationTimestamp": now}
    if kind.rules.has_generation:
        metadata["generation"] = 1
    made: Object = decode(kind.schema, {**wanted, "metadata": metadata}, [])
    # What the server would add to such an object by itself is nobody's.
    stated = dict(made)
    if added := _ADDED.get(storage):
        stated["spec"] = {name: value for name, value in made["spec"].items() if name not in added}
    record_update(kind.schema, None, stated, manager="kube-apiserver", subresource="", now=now, resets=(("status",),))
    made["metadata"] = stated["metadata"]
    return made


def _put(state: State, storage: str, new: Object) -> asyncio.Future[Record]:
    kind = state.registry.stored(storage)
    assert kind is not None, storage
    namespace, name = new["metadata"].get("namespace", ""), new["metadata"]["name"]
    previous = state.store.latest(storage, namespace, name)
    return state.store.put(storage, namespace, name, encoder(kind, new), previous=previous)
