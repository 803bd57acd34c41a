"""How far the replicas of each set are, as the controller of replicas last found: kept in memory, told to sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal.api.grove import PodCliqueSet
from shoal.kube import Key
from shoal.kube.store import key_of

MOST_PROBLEMS = 10
"""So many problems of replicas are told in a set's status; the others are most likely the same."""


@dataclass(frozen=True)
class _Found:
    uid: str
    generation: int
    problem: Exception | None = None


class Progress:
    """For each replica: the generation of its set that it was brought to, or what kept it from that.

    ``changed`` is called with the key of the set whenever there is something new about it.
    """

    def __init__(self) -> None:
        self.changed: Callable[[Key], None] = lambda key: None
        self._found: dict[Key, dict[int, _Found]] = {}

    def passed(self, pcs: PodCliqueSet, index: int) -> None:
        """Everything of the replica is as the set asks for."""
        self._note(pcs, index, _Found(pcs.metadata.uid, pcs.metadata.generation))

    def failed(self, pcs: PodCliqueSet, index: int, problem: Exception) -> None:
        """Something keeps the replica from being as the set asks for."""
        known = self._found.get(key_of(pcs), {}).get(index)
        if known is not None and known.problem is not None and str(known.problem) == str(problem):
            return
        self._note(pcs, index, _Found(pcs.metadata.uid, -1, problem))

    def gone(self, pcs: PodCliqueSet, index: int) -> None:
        """The replica is not wanted any more, and nothing is left of it."""
        if self._found.get(key_of(pcs), {}).pop(index, None) is not None:
            self.changed(key_of(pcs))

    def forget(self, key: Key) -> None:
        """The set is gone."""
        self._found.pop(key, None)

    def is_complete(self, pcs: PodCliqueSet) -> bool:
        """Whether every replica was brought to what the set asks for now."""
        found, metadata = self._found.get(key_of(pcs), {}), pcs.metadata
        wanted = _Found(metadata.uid, metadata.generation)
        return all(found.get(index) == wanted for index in range(pcs.spec.replicas))

    def problems(self, pcs: PodCliqueSet) -> list[Exception]:
        """What keeps replicas from it, in the order of the replicas."""
        found = self._found.get(key_of(pcs), {})
        problems = [found[index].problem for index in sorted(found) if found[index].uid == pcs.metadata.uid]
        return [problem for problem in problems if problem is not None][:MOST_PROBLEMS]

    def _note(self, pcs: PodCliqueSet, index: int, found: _Found) -> None:
        replicas = self._found.setdefault(key_of(pcs), {})
        if replicas.get(index) != found:
            replicas[index] = found
            self.changed(key_of(pcs))
