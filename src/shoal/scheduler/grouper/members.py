"""Which pod is in which group, as far as this process has found out: found by pod, by group and by owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shoal.kube import Key
from shoal.scheduler.grouper.fields import Json, uid_of


@dataclass(frozen=True, kw_only=True)
class Member:
    """A pod that belongs to a group, and the objects that say so."""

    pod: Key
    uid: str
    group: Key
    owners: tuple[Json, ...]
    beside: Json | None = None


class Members:
    """The membership of all pods."""

    def __init__(self) -> None:
        self._by_pod: dict[Key, Member] = {}
        self._by_group: dict[Key, dict[Key, Member]] = {}
        self._by_owner: dict[str, dict[Key, None]] = {}
        self._owners: dict[Key, frozenset[str]] = {}

    @property
    def groups(self) -> list[Key]:
        """All groups that have a member."""
        return list(self._by_group)

    def __len__(self) -> int:
        return len(self._by_pod)

    def get(self, pod: Key) -> Member | None:
        """The membership of a pod."""
        return self._by_pod.get(pod)

    def of(self, group: Key) -> list[Member]:
        """The members of a group."""
        return list(self._by_group.get(group, {}).values())

    def below(self, owner: str) -> list[Key]:
        """The pods whose group depends on the object of a uid."""
        return list(self._by_owner.get(owner, ()))

    def depends(self, pod: Key, owners: Iterable[Json]) -> None:
        """Notes what a pod's group depends on, whether or not there is one yet."""
        for uid in self._owners.pop(pod, ()):
            _take_out(self._by_owner, uid, pod)
        uids = frozenset(uid_of(owner) for owner in owners)
        if uids:
            self._owners[pod] = uids
        for uid in uids:
            self._by_owner.setdefault(uid, {})[pod] = None

    def put(self, member: Member) -> None:
        """Takes a pod into a group, and out of any other."""
        self.leave(member.pod)
        self._by_pod[member.pod] = member
        self._by_group.setdefault(member.group, {})[member.pod] = member

    def leave(self, pod: Key) -> Member | None:
        """Takes a pod out of its group, and tells what it was in."""
        member = self._by_pod.pop(pod, None)
        if member is not None:
            _take_out(self._by_group, member.group, pod)
        return member


def _take_out(index: dict[Any, dict[Key, Any]], value: Any, pod: Key) -> None:
    pods = index.get(value, {})
    pods.pop(pod, None)
    if not pods:
        index.pop(value, None)
