"""When nodes were last heard of, by our own clock: clocks of nodes need not agree with ours.

A node is heard of when the heartbeat of its Ready condition changes, or when its lease is renewed. One lease may vouch
for ten thousand nodes, so a renewal only notes the time at the lease. Time limits are kept by lease too: a heap holds
one entry for each, which is put back when it comes up and the lease has been renewed since. Only once a lease has run
out are its nodes looked at one by one.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from shoal.api import meta
from shoal.api.coordination import Lease
from shoal.api.core import LEASE, Node, node_condition
from shoal.cluster.controllers.node_lifecycle.conditions import READY
from shoal.kube import Change


@dataclass(slots=True)
class _HeardOf:
    """What is remembered of a node."""

    uid: str
    lease: str
    at: float
    heartbeat: datetime | None
    has_posted: bool


@dataclass(slots=True)
class _Renewed:
    """What is remembered of a lease."""

    at: float
    renew_time: str | None
    is_due: bool = False
    """Whether the heap has its time limit."""


class SignsOfLife:
    """Told of every change of nodes and of their leases; says for how long a node may still be silent."""

    def __init__(
        self,
        *,
        grace: float,
        startup_grace: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = meta.now,
    ) -> None:
        self._grace = grace
        self._startup_grace = startup_grace
        self._clock = clock
        self._now = now
        self._nodes: dict[str, _HeardOf] = {}
        self._leases: dict[str, _Renewed] = {}
        self._vouched: dict[str, set[str]] = {}
        self._due: list[tuple[float, str]] = []
        self._amnesty = float("-inf")

    def node_changed(self, change: Change[Node]) -> None:
        """Takes note of a node's heartbeat, and of which lease vouches for it."""
        name = change.latest.metadata.name
        known = self._nodes.get(name)
        node = change.after
        if node is None:
            self._forget(name)
            return
        ready = node_condition(node, READY)
        heartbeat = ready.last_heartbeat_time if ready is not None else None
        lease = lease_of(node)
        if known is None or known.uid != node.metadata.uid:
            self._forget(name)
            at = self._clock() if ready is not None else self._clock() - self._age(node)
            self._nodes[name] = _HeardOf(node.metadata.uid, lease, at, heartbeat, ready is not None)
            self._vouched.setdefault(lease, set()).add(name)
            return
        if known.lease != lease:
            self._withdraw(known.lease, name)
            self._vouched.setdefault(lease, set()).add(name)
            known.lease = lease
        if (known.has_posted, known.heartbeat) != (ready is not None, heartbeat):
            known.has_posted, known.heartbeat, known.at = ready is not None, heartbeat, self._clock()

    def lease_changed(self, change: Change[Lease]) -> None:
        """Takes note of a renewal. A lease that is deleted vouches for the rest of its time."""
        if change.after is not None:
            self.lease_seen(change.after)

    def lease_seen(self, lease: Lease) -> bool:
        """Takes note of a lease as it is; says whether that was a sign of life."""
        name, renew_time = lease.metadata.name, lease.spec.renew_time
        known = self._leases.get(name)
        if known is None:
            known = self._leases[name] = _Renewed(self._clock(), renew_time)
        elif renew_time is None or renew_time == known.renew_time:
            return False
        known.at, known.renew_time = self._clock(), renew_time
        if not known.is_due:
            known.is_due = True
            heapq.heappush(self._due, (known.at + self._grace, name))
        return True

    def lapsed(self) -> list[str]:
        """The leases that have run out since this was asked last."""
        now = self._clock()
        found = []
        while self._due and self._due[0][0] <= now:
            _, name = heapq.heappop(self._due)
            lease = self._leases.get(name)
            if lease is None:
                continue
            due = lease.at + self._grace
            if due > now:
                heapq.heappush(self._due, (due, name))
            else:
                lease.is_due = False
                found.append(name)
        return found

    def lease_gone(self, name: str) -> None:
        """Forgets a lease that has run out and is not there any more."""
        self._leases.pop(name, None)

    def next_lapse_in(self) -> float:
        """Seconds until a lease may have run out; a lease that is new by then cannot run out earlier."""
        return max(0.0, self._due[0][0] - self._clock()) if self._due else self._grace

    def vouched_by(self, lease: str) -> Iterable[str]:
        """The nodes that a lease vouches for."""
        return tuple(self._vouched.get(lease, ()))

    def silent_in(self, name: str) -> float:
        """Seconds until a node counts as silent; not above zero where it does."""
        known = self._nodes.get(name)
        if known is None:
            return self._startup_grace
        renewed = self._leases.get(known.lease)
        at = max(known.at, self._amnesty, renewed.at if renewed is not None else known.at)
        return at + (self._grace if known.has_posted else self._startup_grace) - self._clock()

    def is_vouched_for(self, name: str) -> bool:
        """Whether a node has a lease that has not run out, whose time limit is that of the node too."""
        known = self._nodes.get(name)
        renewed = self._leases.get(known.lease) if known is not None else None
        return renewed is not None and renewed.at + self._grace > self._clock()

    def give_all_time(self) -> None:
        """Counts every node as heard of now: after an outage of all, none is to be blamed for it."""
        self._amnesty = self._clock()

    def _age(self, node: Node) -> float:
        created = node.metadata.creation_timestamp
        return (self._now() - created).total_seconds() if created is not None else 0.0

    def _forget(self, name: str) -> None:
        known = self._nodes.pop(name, None)
        if known is not None:
            self._withdraw(known.lease, name)

    def _withdraw(self, lease: str, name: str) -> None:
        nodes = self._vouched.get(lease, set())
        nodes.discard(name)
        if not nodes:
            self._vouched.pop(lease, None)


def lease_of(node: Node) -> str:
    """The name of the lease that vouches for a node."""
    return node.metadata.annotations.get(LEASE) or node.metadata.name
