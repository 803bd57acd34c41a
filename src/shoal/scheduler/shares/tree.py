"""The queues as a tree, with what each holds, wants and is entitled to.

What a queue holds, its ancestors hold too, so taking and giving back walk up the path; both are called for every task
that is placed or evicted, in simulations as well, and cost about a microsecond for each level: tuples, no arrays.

A change is noted in ``changes``, so that whoever derived an order from the amounts learns which queues to look at
again. The notes begin anew with every division, which changes everything; ``divisions`` counts these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from shoal.scheduler.model.amounts import NONE, WITHOUT_LIMIT, Amounts
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.shares.division import Claim, divide

FLAT_PARENT: Final = "default"
"""The parent of all where the hierarchy does not count."""

_DIGITS: Final = 6
_new = tuple.__new__


class Held(NamedTuple):
    """What a queue had at some moment."""

    allocated: Amounts
    allocated_non_preemptible: Amounts


class Share:
    """One queue of the tree. Whoever changes amounts does so through the tree."""

    __slots__ = (
        "_fair_share",
        "allocatable",
        "allocated",
        "allocated_non_preemptible",
        "asked",
        "children",
        "parent",
        "path",
        "queue",
    )

    def __init__(self, queue: Queue, parent: Share | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: list[Share] = []
        self.path: tuple[Share, ...] = (self, *parent.path) if parent else (self,)
        """Itself and its ancestors, up to the root."""
        self.allocated = NONE
        self.allocated_non_preemptible = NONE
        self.asked = NONE
        """What its pending tasks ask for."""
        self.allocatable = NONE
        """What it may have before others may take it back: its quota or, where that is more, its fair share."""
        self.fair_share = NONE

    def __repr__(self) -> str:
        return f"Share({self.queue.name!r}, allocated={self.allocated!r}, fair_share={self._fair_share!r})"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.queue.name

    @property
    def is_leaf(self) -> bool:
        """Whether jobs may run in it."""
        return not self.children

    @property
    def request(self) -> Amounts:
        """What it could use: what it holds and what its pending tasks ask for."""
        return self.allocated.plus(self.asked)

    @property
    def fair_share(self) -> Amounts:
        """What the division gave it."""
        return self._fair_share

    @fair_share.setter
    def fair_share(self, amounts: Amounts) -> None:
        self._fair_share = amounts
        entitled = map(max, self.queue.quota, amounts)
        self.allocatable = Amounts(*map(min, self.queue.limit, entitled))


class QueueTree:
    """All queues that have their place: those whose ancestors are there up to a root."""

    def __init__(self, shares: dict[str, Share]) -> None:
        self._shares = shares
        self.roots = [share for share in shares.values() if share.parent is None]
        self.total = NONE
        """What was divided: the whole cluster, as far as it is there to be shared."""
        self.changes: list[Share] = []
        """The queues that took or gave back since the last division, one after the other."""
        self.divisions = 0

    @staticmethod
    def of(queues: Mapping[str, Queue], *, full_hierarchy: bool = True) -> QueueTree:
        """Builds the tree.

        Queues without their parent are left out with all below them; those in a cycle, which have no root, too. Where
        the hierarchy does not count, all queues that have a parent compete as children of one that has no limits.
        """
        known = queues if full_hierarchy else _flattened(queues)
        children: dict[str, list[Queue]] = {}
        for queue in sorted(known.values(), key=lambda queue: (queue.created, queue.name)):
            children.setdefault(queue.parent, []).append(queue)
        shares: dict[str, Share] = {}
        waiting = [Share(queue, None) for queue in children.get("", [])]
        for share in waiting:  # which grows meanwhile, level by level
            shares[share.name] = share
            share.children = [Share(queue, share) for queue in children.get(share.name, [])]
            waiting.extend(share.children)
        return QueueTree(shares)

    def __getitem__(self, name: str) -> Share:
        return self._shares[name]

    def __contains__(self, name: object) -> bool:
        return name in self._shares

    def __iter__(self) -> Iterator[Share]:
        """Parents before their children."""
        return iter(self._shares.values())

    def __len__(self) -> int:
        return len(self._shares)

    def get(self, name: str) -> Share | None:
        """The queue, where it has a place."""
        return self._shares.get(name)

    def take(self, name: str, amounts: Amounts, *, is_preemptible: bool) -> None:
        """A queue and its ancestors hold this much more; nothing happens for a queue without a place."""
        self._hold(name, amounts[0], amounts[1], round(amounts[2], _DIGITS), is_preemptible)

    def give_back(self, name: str, amounts: Amounts, *, is_preemptible: bool) -> None:
        """They hold this much less."""
        self._hold(name, -amounts[0], -amounts[1], -round(amounts[2], _DIGITS), is_preemptible)

    def ask(self, name: str, amounts: Amounts) -> None:
        """A pending task of the queue asks for this much."""
        self._ask(name, amounts[0], amounts[1], round(amounts[2], _DIGITS))

    def unask(self, name: str, amounts: Amounts) -> None:
        """It asks for it no more."""
        self._ask(name, -amounts[0], -amounts[1], -round(amounts[2], _DIGITS))

    def divide(self, total: Amounts, *, k: float) -> None:
        """Sets everybody's fair share, from the roots down: a queue's share is what its children divide."""
        self.total = total
        level = [(total, self.roots)]
        while level:
            for amounts, shares in level:
                _divide(amounts, shares, k)
            level = [(share.fair_share, share.children) for _, shares in level for share in shares if share.children]
        self.divisions += 1
        self.changes.clear()

    def copy_of_amounts(self) -> dict[str, Held]:
        """What everybody holds at this moment, for rules that ask how it was before a simulation."""
        return {name: Held(share.allocated, share.allocated_non_preemptible) for name, share in self._shares.items()}

    def _hold(self, name: str, cpu: float, memory: float, gpu: float, is_preemptible: bool) -> None:
        leaf = self._shares.get(name)
        if leaf is None:
            return
        for share in leaf.path:
            held = share.allocated
            share.allocated = _new(Amounts, (held[0] + cpu, held[1] + memory, round(held[2] + gpu, _DIGITS)))
            if not is_preemptible:
                held = share.allocated_non_preemptible
                share.allocated_non_preemptible = _new(
                    Amounts, (held[0] + cpu, held[1] + memory, round(held[2] + gpu, _DIGITS))
                )
        self.changes.append(leaf)

    def _ask(self, name: str, cpu: float, memory: float, gpu: float) -> None:
        leaf = self._shares.get(name)
        for share in leaf.path if leaf else ():
            asked = share.asked
            share.asked = _new(Amounts, (asked[0] + cpu, asked[1] + memory, round(asked[2] + gpu, _DIGITS)))


def _divide(total: Amounts, shares: list[Share], k: float) -> None:
    gotten: list[dict[str, float]] = []
    requests = [(share.queue, share.request) for share in shares]
    for place, amount in enumerate(total):
        claims = [
            Claim(
                name=queue.name,
                quota=queue.quota[place],
                weight=queue.weight[place],
                request=request[place],
                limit=queue.limit[place],
                priority=queue.priority,
                usage=queue.usage[place],
                created=queue.created,
            )
            for queue, request in requests
        ]
        gotten.append(divide(amount, claims, k=k).shares)
    for share in shares:
        cpu, memory, gpu = (resource[share.name] for resource in gotten)
        share.fair_share = Amounts(cpu, memory, round(gpu, _DIGITS))


def _flattened(queues: Mapping[str, Queue]) -> dict[str, Queue]:
    """Every queue that has a parent as a child of one; roots that have no children remain what they are."""
    parents = {queue.parent for queue in queues.values()}
    below = {name: queue for name, queue in queues.items() if queue.parent}
    name = FLAT_PARENT if FLAT_PARENT not in below else f"{FLAT_PARENT} of all"
    made = {queue.name: queue for queue in queues.values() if not queue.parent and queue.name not in parents | {name}}
    made.update({queue.name: replace(queue, parent=name) for queue in below.values()})
    made[name] = Queue(name=name, quota=WITHOUT_LIMIT, limit=WITHOUT_LIMIT, weight=Amounts(1.0, 1.0, 1.0))
    return made
