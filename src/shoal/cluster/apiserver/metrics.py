"""What the server counts, under the names that kube-apiserver's dashboards read."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from shoal.cluster.apiserver.front.request_info import RequestInfo
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.storage import Store

_SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_MOST_SERIES = 1_000
_VERBS = frozenset(
    {"create", "delete", "deletecollection", "get", "head", "list", "patch", "post", "put", "update", "watch"}
)
"""Kinds come and go, and their series stay: beyond so many, requests are counted without what they were on."""
_LABELS = ("verb", "group", "version", "resource", "subresource")


class Metrics:
    """Counts requests; what the store holds is looked up when it is asked for."""

    def __init__(self, store: Store, kinds: Registry) -> None:
        self._store = store
        self._kinds = kinds
        self.registry = CollectorRegistry()
        """For what other parts of the server count."""
        self._requests = Counter(
            "apiserver_request_total",
            "Requests by what they were on and how they ended.",
            (*_LABELS, "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took, watches aside.",
            _LABELS,
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._objects = Gauge(
            "apiserver_storage_objects", "Objects in the store.", ("resource",), registry=self.registry
        )
        self._revision = Gauge("shoal_storage_revision", "The newest resourceVersion.", registry=self.registry)
        self._children: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}

    def request(self, info: RequestInfo, status: int, seconds: float) -> None:
        """Counts one request."""
        labels = (_verb(info), info.group, info.version, info.resource, info.subresource)
        kind = self._kinds.find(info.group, info.version, info.resource)
        if kind is None or (info.subresource and info.subresource not in kind.subresources):
            # What clients make up must not become labels.
            labels = (_verb(info), "", "", "", "")
        key = (*labels, str(status))
        if key not in self._children and len(self._children) >= _MOST_SERIES:
            labels = (_verb(info), "", "", "", "")
            key = (*labels, str(status))
        children = self._children.get(key)
        if children is None:
            children = self._requests.labels(*key), self._seconds.labels(*labels)
            self._children[key] = children
        children[0].inc()
        if info.verb != "watch":
            children[1].observe(seconds)

    def text(self) -> bytes:
        """All figures in Prometheus' format."""
        self._objects.clear()
        for storage in self._store.storages():
            self._objects.labels(storage).set(self._store.count(storage))
        self._revision.set(self._store.revision)
        return generate_latest(self.registry)


def _verb(info: RequestInfo) -> str:
    return info.verb.upper() if info.verb in _VERBS else "OTHER"
