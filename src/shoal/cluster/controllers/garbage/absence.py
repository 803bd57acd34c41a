"""The owners that are known to be gone, so that a thousand dependents ask for theirs once.

An owner is known by all of its coordinates, its uid among them, and a uid never comes back: what is gone stays gone.
The memory is bounded; whoever is forgotten is looked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

REMEMBERED = 10_000


class Coordinates(NamedTuple):
    """Where an owner should be; the namespace is empty for a cluster-scoped kind."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


class Absent:
    """Remembers owners that are not where they should be."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._known: OrderedDict[Coordinates, bool] = OrderedDict()
        self._remembered = remembered

    def add(self, owner: Coordinates, *, is_elsewhere: bool = False) -> None:
        """Takes note that there is no such owner; ``is_elsewhere``: its uid lives in another namespace."""
        self._known[owner] = is_elsewhere
        self._known.move_to_end(owner)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)

    def find(self, owner: Coordinates) -> Coordinates | None:
        """The coordinates under which an owner is known to be absent, as a cluster-scoped or a namespaced object."""
        for one in (owner._replace(namespace=""), owner):
            if one in self._known:
                return one
        return None

    def is_elsewhere(self, owner: Coordinates) -> bool:
        """Whether an absent owner's uid was seen in another namespace."""
        return self._known.get(owner, False)
