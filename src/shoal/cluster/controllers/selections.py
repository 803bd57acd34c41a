"""Which pods somebody's selector means, kept as pods change: nobody searches a namespace for each event.

``shown`` writes a selector in the words of Kubernetes' own messages.
"""

from __future__ import annotations

from shoal.api.core import Pod
from shoal.api.meta import LabelSelector, Selector
from shoal.cluster.indexes import BY_NAMESPACE
from shoal.kube import Change, Informer, Key
from shoal.kube.store import key_of


class Selections:
    """The pods of every selector, and the selectors of a pod; each selector belongs to an object in a namespace."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._pods = pods
        self._selectors: dict[str, dict[Key, Selector]] = {}
        """By namespace."""
        self._members: dict[Key, dict[Key, None]] = {}
        pods.subscribe(self._on_pod)

    def put(self, owner: Key, selector: Selector) -> None:
        """An object selects pods of its namespace; the same selector again costs nothing."""
        selectors = self._selectors.setdefault(owner.namespace, {})
        if selectors.get(owner) == selector:
            return
        selectors[owner] = selector
        self._members[owner] = {
            key_of(pod): None
            for pod in self._pods.find(BY_NAMESPACE, owner.namespace)
            if selector.matches(pod.metadata.labels)
        }

    def drop(self, owner: Key) -> None:
        """An object selects no pods any more."""
        self._members.pop(owner, None)
        selectors = self._selectors.get(owner.namespace, {})
        selectors.pop(owner, None)
        if not selectors:
            self._selectors.pop(owner.namespace, None)

    def pods_of(self, owner: Key) -> list[Pod]:
        """The pods that an object selects."""
        found = (self._pods.store.get(key) for key in self._members.get(owner, ()))
        return [pod for pod in found if pod is not None]

    def owners_of(self, pod: Pod) -> list[Key]:
        """The objects that select a pod, by the labels that it has in this state."""
        labels = pod.metadata.labels
        selectors = self._selectors.get(pod.metadata.namespace, {})
        return [key for key, selector in selectors.items() if selector.matches(labels)]

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.latest
        key = key_of(pod)
        for owner, selector in self._selectors.get(key.namespace, {}).items():
            if change.after is not None and selector.matches(pod.metadata.labels):
                self._members[owner][key] = None
            else:
                self._members[owner].pop(key, None)


def shown(selector: LabelSelector | None) -> str:
    """A selector in the words of Kubernetes' own messages."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
