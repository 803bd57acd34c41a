"""The pods that have a node in view, and hold their place on it until their claims are bound for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.api.core import Pod
from shoal.kube import Key


@dataclass(frozen=True, slots=True)
class _Prepared:
    pod: Pod
    node: str
    claims: tuple[Key, ...]


class Preparing:
    """Finds these pods by what can bring them further, or back: their claims, and their node."""

    def __init__(self) -> None:
        self._pods: dict[str, _Prepared] = {}
        self._by_claim: dict[Key, set[str]] = {}
        self._by_node: dict[str, set[str]] = {}

    def put(self, pod: Pod, node: str, claims: tuple[str, ...]) -> None:
        """A pod holds a place until these claims of its namespace are bound."""
        uid = pod.metadata.uid
        held = _Prepared(pod, node, tuple(Key(pod.metadata.namespace, name) for name in claims))
        self._pods[uid] = held
        self._by_node.setdefault(node, set()).add(uid)
        for claim in held.claims:
            self._by_claim.setdefault(claim, set()).add(uid)

    def remove(self, uid: str) -> None:
        """A pod's claims are bound, or it does not go there after all."""
        held = self._pods.pop(uid, None)
        if held is None:
            return
        _discard(self._by_node, held.node, uid)
        for claim in held.claims:
            _discard(self._by_claim, claim, uid)

    def for_claim(self, claim: Key) -> list[tuple[Pod, str]]:
        """The pods that wait for a claim, and their nodes."""
        return [(self._pods[uid].pod, self._pods[uid].node) for uid in self._by_claim.get(claim, ())]

    def on_node(self, node: str) -> list[Pod]:
        """The pods that hold a place on a node."""
        return [self._pods[uid].pod for uid in self._by_node.get(node, ())]


def _discard(index: dict[Any, set[str]], key: Any, uid: str) -> None:
    index[key].discard(uid)
    if not index[key]:
        del index[key]
