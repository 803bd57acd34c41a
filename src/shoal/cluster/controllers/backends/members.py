"""Which pods each service selects, kept up to date instead of searched for.

A namespace may hold a hundred thousand pods and thousands of services: looking through all pods for each service, or
through all services for each pod, would cost their product. But there are few sorts of labels that services select by,
and a pod has one value for each sort: services and pods meet under the values of a sort, without a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from shoal.api.core import SERVICES, Pod, Service
from shoal.cluster.indexes import BY_NAMESPACE, all_pods
from shoal.kube import Key, Manager, by_namespace
from shoal.kube.informer import Change
from shoal.kube.store import key_of

_BY_SELECTOR = "backends-selector"

Sort = tuple[str, ...]
"""The labels that a service selects by, in order."""
Values = tuple[str, ...]
"""What it wants of each."""


class Members:
    """The pods that the selectors of services choose."""

    def __init__(self, manager: Manager) -> None:
        self.pods = all_pods(manager)
        self.services = manager.cache.informer(
            SERVICES, indexes={BY_NAMESPACE: by_namespace, _BY_SELECTOR: _by_selector}
        )
        self._sorts: dict[str, Counter[Sort]] = {}
        """How many services of each namespace select by the same labels."""
        self._members: dict[str, dict[Sort, dict[Values, dict[Key, None]]]] = {}
        """The pods of each namespace by the values of a sort, from the first look at a service of that sort on."""
        self.services.subscribe(self._on_service)
        self.pods.subscribe(self._on_pod)

    def of(self, service: Service) -> list[Pod]:
        """The pods that a service selects."""
        selector = service.spec.selector
        if not selector:
            return []
        sort = _sort(selector)
        chosen = self._of_sort(service.metadata.namespace, sort).get(_values(selector, sort), ())
        found = (self.pods.store.get(member) for member in chosen)
        return [pod for pod in found if pod is not None]

    def selecting(self, pod: Pod) -> list[Key]:
        """The services that select a pod."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return [
            key_of(service)
            for sort in self._sorts.get(namespace, ())
            if _has(labels, sort)
            for service in self.services.find(_BY_SELECTOR, (namespace, sort, _values(labels, sort)))
        ]

    def _of_sort(self, namespace: str, sort: Sort) -> dict[Values, dict[Key, None]]:
        known = self._members.setdefault(namespace, {})
        if sort not in known:
            members: dict[Values, dict[Key, None]] = {}
            for pod in self.pods.items(namespace):
                _put(members, sort, pod)
            if sort not in self._sorts.get(namespace, ()):
                return members  # of a service that is gone: nobody would forget it
            known[sort] = members
        return known[sort]

    def _on_pod(self, change: Change[Pod]) -> None:
        before, after = change.before, change.after
        known = self._members.get(change.latest.metadata.namespace)
        if not known:
            return
        if before is not None and after is not None and before.metadata.labels == after.metadata.labels:
            return
        for sort, members in known.items():
            if before is not None:
                _remove(members, sort, before)
            if after is not None:
                _put(members, sort, after)

    def _on_service(self, change: Change[Service]) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and before.spec.selector == after.spec.selector:
            return
        # What comes is counted first: of a sort that stays nothing is forgotten.
        self._count(after, 1)
        self._count(before, -1)

    def _count(self, service: Service | None, by: int) -> None:
        if service is None or not service.spec.selector:
            return
        namespace, sort = service.metadata.namespace, _sort(service.spec.selector)
        sorts = self._sorts.setdefault(namespace, Counter())
        sorts[sort] += by
        if sorts[sort] <= 0:
            del sorts[sort]
            self._members.get(namespace, {}).pop(sort, None)
        if not sorts:
            del self._sorts[namespace]
            self._members.pop(namespace, None)


def _by_selector(service: Service) -> Iterable[Hashable]:
    """Finds services by all that they select."""
    selector = service.spec.selector
    if not selector:
        return ()
    sort = _sort(selector)
    return ((service.metadata.namespace, sort, _values(selector, sort)),)


def _put(members: dict[Values, dict[Key, None]], sort: Sort, pod: Pod) -> None:
    if _has(pod.metadata.labels, sort):
        members.setdefault(_values(pod.metadata.labels, sort), {})[key_of(pod)] = None


def _remove(members: dict[Values, dict[Key, None]], sort: Sort, pod: Pod) -> None:
    if not _has(pod.metadata.labels, sort):
        return
    values = _values(pod.metadata.labels, sort)
    chosen = members.get(values, {})
    chosen.pop(key_of(pod), None)
    if not chosen:
        members.pop(values, None)


def _sort(selector: Mapping[str, str]) -> Sort:
    return tuple(sorted(selector))


def _has(labels: Mapping[str, str], sort: Sort) -> bool:
    return all(key in labels for key in sort)


def _values(labels: Mapping[str, str], sort: Sort) -> Values:
    return tuple(labels[key] for key in sort)
