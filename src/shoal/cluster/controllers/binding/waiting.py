"""The pods that wait for a node, in lines: those of one line fit on the same nodes, so where the first of them fits
nowhere the others need not be tried.

A line whose first pod fitted nowhere sleeps until something happens that can help it. Among the lines that are awake
the pod of the highest priority comes first, then the oldest.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from shoal.api.core import Pod
from shoal.cluster.controllers.binding.demand import Load
from shoal.cluster.controllers.binding.peers import NamespaceLabels

Order = tuple[int, float, str, str, str]


@dataclass(slots=True, eq=False)
class Entry:
    """One pod that waits."""

    pod: Pod
    load: Load
    claims: tuple[str, ...]
    order: Order
    line: Line
    told: str = ""
    """What the pod says of why it waits, less the numbers."""


@dataclass(slots=True, eq=False)
class Line:
    """Pods that fit on the same nodes."""

    key: Hashable
    on_nodes: frozenset[str] | None
    """The nodes that alone can help; None where any can."""
    minds_neighbours: bool = False
    """Whether who is on other nodes matters: one who leaves any of the same zone may help."""
    entries: dict[str, Entry] = field(default_factory=dict)
    order: list[tuple[Order, str]] = field(default_factory=list)
    is_awake: bool = False
    queued: Order | None = None
    """Under which order the line is among those that are awake."""
    untold: set[str] = field(default_factory=set)
    said_at: float = 0.0
    message: str = ""
    story: str = ""
    """When and what its pods were last told, and the same without numbers."""
    grounds: tuple[int, str] | None = None
    """On what grounds it was last said why its pods wait: the version of the nodes, and the problem of their claims."""

    def first(self) -> Entry | None:
        """The pod that is next."""
        while self.order:
            order, uid = self.order[0]
            entry = self.entries.get(uid)
            if entry is not None and entry.order == order:
                return entry
            heapq.heappop(self.order)
        return None


class Waiting:
    """All pods that wait."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lines: dict[Hashable, Line] = {}
        self._awake: list[tuple[Order, int, Line]] = []
        self._asleep: dict[Line, None] = {}
        self._asleep_on: dict[str, dict[Line, None]] = {}
        self._for_company: dict[Line, None] = {}
        """Those of the sleeping lines whose pods want others near them."""
        self._by_claim: dict[tuple[str, str], dict[str, None]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Entry | None:
        """The pod of that uid, if it waits."""
        return self._entries.get(uid)

    def put(self, pod: Pod, load: Load, claims: tuple[str, ...], *, told: str, alone: bool = False) -> Entry:
        """A pod waits, or has changed while it waits; ``alone`` puts it into a line of its own.

        What has changed about it may let it in, so that its line wakes; where nothing did, the line sleeps on.
        """
        uid = pod.metadata.uid
        known = self._entries.get(uid)
        order = order_of(pod)
        if known is not None:
            if known.load.equals(load) and known.order == order and known.claims == claims:
                known.pod = pod
                return known
            told = known.told
            self.remove(uid)
        line = self._line(_key(load, claims, uid if alone else ""), load, minds_neighbours=alone or bool(load.peers))
        entry = Entry(pod, load, claims, order, line, told)
        self._entries[uid] = entry
        for claim in claims:
            self._by_claim.setdefault((pod.metadata.namespace, claim), {})[uid] = None
        line.entries[uid] = entry
        line.untold.add(uid)
        heapq.heappush(line.order, (order, uid))
        self._wake(line)
        return entry

    def remove(self, uid: str) -> Entry | None:
        """A pod waits no longer."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        for claim in entry.claims:
            place = (entry.pod.metadata.namespace, claim)
            uids = self._by_claim.get(place, {})
            uids.pop(uid, None)
            if not uids:
                self._by_claim.pop(place, None)
        line = entry.line
        del line.entries[uid]
        line.untold.discard(uid)
        if not line.entries:
            self._lines.pop(line.key, None)
            self._no_longer_asleep(line)
        return entry

    def first(self) -> Entry | None:
        """The pod to try next; None while all sleep."""
        while self._awake:
            order, number, line = self._awake[0]
            if line.queued != order:
                heapq.heappop(self._awake)
                continue
            entry = line.first() if line.is_awake else None
            if entry is None:
                heapq.heappop(self._awake)
                line.queued = None
            elif entry.order != order:
                heapq.heapreplace(self._awake, (entry.order, number, line))
                line.queued = entry.order
            else:
                return entry
        return None

    def sleep(self, line: Line) -> None:
        """The first of a line fits nowhere: none of it does until something happens."""
        line.is_awake = False
        first = line.first()
        if first is None:
            return
        if first.load.peers.company:
            self._for_company[line] = None
        if line.on_nodes is None:
            self._asleep[line] = None
        else:
            for name in line.on_nodes:
                self._asleep_on.setdefault(name, {})[line] = None

    def set_apart(self, entry: Entry) -> Line:
        """Puts a pod that fits nowhere for a reason of its own into a line of its own, and lets that sleep."""
        if entry.line.key == _key(entry.load, entry.claims, entry.pod.metadata.uid):
            alone = entry.line
        else:
            self.remove(entry.pod.metadata.uid)
            alone = self.put(entry.pod, entry.load, entry.claims, told=entry.told, alone=True).line
        self.sleep(alone)
        return alone

    def wake_for_node(self, name: str, helps: Callable[[Load], bool] = lambda load: True) -> None:
        """A node has more room, or has changed; ``helps`` says whether it would have a pod, its neighbours aside.

        Nothing else has changed since lines fell asleep, so those that it does not help sleep on.
        """
        for line in [*self._asleep, *self._asleep_on.get(name, ())]:
            first = line.first()
            if first is not None and (line.minds_neighbours or helps(first.load)):
                self._wake(line)

    def asleep(self) -> list[Line]:
        """The lines whose pods fit nowhere, as far as is known."""
        return [line for line in self._lines.values() if not line.is_awake]

    def wake_all(self) -> None:
        """Anything may have changed."""
        for line in list(self._lines.values()):
            self._wake(line)

    def wake_for_claim(self, namespace: str, name: str) -> None:
        """A claim has changed."""
        for uid in list(self._by_claim.get((namespace, name), ())):
            self._wake(self._entries[uid].line)

    def wake_for_claims(self) -> None:
        """What claims are has changed."""
        for namespace, name in list(self._by_claim):
            self.wake_for_claim(namespace, name)

    def was_not_told(self, entry: Entry) -> None:
        """A pod does not say why it waits, though it was to: its line wakes, and says so if it still waits."""
        if self._entries.get(entry.pod.metadata.uid) is entry:
            entry.told = ""
            entry.line.untold.add(entry.pod.metadata.uid)
            self._wake(entry.line)

    def wake_for_company(self, came: Load, namespace_labels: NamespaceLabels) -> None:
        """A pod has come that some may have wanted to be near to."""
        for line in list(self._for_company):
            first = line.first()
            if first is not None and any(term.selects(came, namespace_labels) for term in first.load.peers.company):
                self._wake(line)

    def _line(self, key: Hashable, load: Load, *, minds_neighbours: bool) -> Line:
        line = self._lines.get(key)
        if line is None:
            on_nodes = None if minds_neighbours else load.shape.pinned
            line = self._lines[key] = Line(key, on_nodes, minds_neighbours)
        return line

    def _wake(self, line: Line) -> None:
        first = line.first()
        if first is None:
            return
        self._no_longer_asleep(line)
        line.is_awake = True
        if line.queued is None or first.order < line.queued:
            line.queued = first.order
            heapq.heappush(self._awake, (first.order, next(self._numbers), line))

    def _no_longer_asleep(self, line: Line) -> None:
        self._asleep.pop(line, None)
        self._for_company.pop(line, None)
        for name in line.on_nodes or ():
            lines = self._asleep_on.get(name, {})
            lines.pop(line, None)
            if not lines:
                self._asleep_on.pop(name, None)


def order_of(pod: Pod) -> Order:
    """What puts pods in order: priority, then age, then name."""
    metadata = pod.metadata
    created = metadata.creation_timestamp
    age = created.timestamp() if created is not None else 0.0
    return (-pod.spec.priority, age, metadata.namespace, metadata.name, metadata.uid)


def _key(load: Load, claims: tuple[str, ...], alone: str) -> Hashable:
    """Pods of equal keys fit on the same nodes: claims, and what their neighbours think of them, are their own."""
    if alone:
        return ("alone", alone)
    own = (load.namespace, claims) if claims else ()
    peers = (load.namespace, tuple(sorted(load.labels.items()))) if load.peers else ()
    return (load.shape, load.peers, own, peers)
