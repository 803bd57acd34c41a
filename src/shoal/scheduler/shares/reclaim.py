"""When a queue may take back what others use: the gate, the first choice of victims, and the test of a whole plan.

Queues meet where their ancestries part: there stand the two siblings whose entitlements are weighed against each other.
A plan is tested against what queues held before it; each piece that is taken must, at its turn, still be more than the
victim's side is entitled to, or go to a side that does not even have its quota. Nobody gains by it who has more than
his share already and would have more of it than the one he took from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.shares.tree import Held, QueueTree, Share

Reclaimer = tuple[str, Amounts, bool]
"""The queue, what the job needs, and whether it is preemptible."""

Victim = tuple[str, Sequence[Amounts], bool]
"""The queue, the pieces that are taken one after the other (each surplus pod, then the core), whether preemptible."""


def may_reclaim(tree: QueueTree, queue: str, amounts: Amounts, *, is_preemptible: bool) -> bool:
    """Whether the queue would stay within its fair share; within its quota for what cannot be evicted again."""
    share = tree[queue]
    if not share.allocated.plus(amounts).is_within(share.fair_share):
        return False
    return is_preemptible or share.allocated_non_preemptible.plus(amounts).is_within(share.queue.quota)


def is_candidate(tree: QueueTree, reclaimer_queue: str, amounts: Amounts, victim_queue: str) -> bool:
    """Whether jobs of a queue are worth looking at: a cheap test, by what is asked for, before any plan is made."""
    if reclaimer_queue == victim_queue:
        return False
    own, other = where_they_part(tree[reclaimer_queue], tree[victim_queue])
    if not own.allocated.plus(amounts).is_within(own.queue.quota):
        return other.allocated.exceeds_somewhere(other.allocatable)
    is_over = is_under = False
    for asked, held, quota in zip(amounts, other.allocated, other.queue.quota, strict=True):
        if asked > 0 and quota != UNLIMITED:
            is_over = is_over or held > quota
            is_under = is_under or held < quota
    return is_over or not is_under


def is_fair(
    tree: QueueTree,
    reclaimer: Reclaimer,
    victims: Sequence[Victim],
    *,
    saturation_multiplier: float = 1.0,
    at: Mapping[str, Held] | None = None,
) -> bool:
    """Whether a plan respects what everybody is entitled to. The tree is left as it is.

    ``at`` is what queues held before the plan was tried (``tree.copy_of_amounts()``), where the tree shows it tried.
    """
    queue, amounts, is_preemptible = reclaimer
    plan = _Plan(tree, at or {}, {}, {})
    if not all(plan.takes(tree[queue], amounts, tree[name], chunks) for name, chunks in _by_queue(victims)):
        return False
    for own in tree[queue].path:
        if not plan.stays_below_siblings(own, amounts, saturation_multiplier):
            return False
        if not is_preemptible and not plan.non_preemptible(own).plus(amounts).is_within(own.queue.quota):
            return False
    return True


def where_they_part(left: Share, right: Share) -> tuple[Share, Share]:
    """The ancestors of each, or itself, that are siblings; where one is the other's ancestor, the last common level."""
    pair = left, right
    for of_left, of_right in zip(reversed(left.path), reversed(right.path), strict=False):
        pair = of_left, of_right
        if of_left is not of_right:
            break
    return pair


def _by_queue(victims: Sequence[Victim]) -> Iterable[tuple[str, list[Amounts]]]:
    made: dict[str, list[Amounts]] = {}
    for name, chunks, _ in victims:
        if chunks:
            made.setdefault(name, []).extend(chunks)
    return made.items()


@dataclass(slots=True)
class _Plan:
    """What would be left to each queue that a plan takes from, and of which resources it takes."""

    tree: QueueTree
    at: Mapping[str, Held]
    remaining: dict[str, Amounts]
    involved: dict[str, set[int]]

    def allocated(self, share: Share) -> Amounts:
        held = self.at.get(share.name)
        return share.allocated if held is None else held.allocated

    def non_preemptible(self, share: Share) -> Amounts:
        held = self.at.get(share.name)
        return share.allocated_non_preemptible if held is None else held.allocated_non_preemptible

    def left_to(self, share: Share) -> Amounts:
        left = self.remaining.get(share.name)
        return self.allocated(share) if left is None else left

    def takes(self, reclaimer: Share, amounts: Amounts, victim: Share, chunks: Sequence[Amounts]) -> bool:
        """Takes the pieces one after the other, as long as each may be taken; says whether all could be."""
        own, other = where_they_part(reclaimer, victim)
        is_within_quota = self.allocated(own).plus(amounts).is_within(own.queue.quota)
        involved = set().union(*map(_involved, chunks))
        for chunk in chunks:
            left = self.left_to(other)
            is_more_than_fair = left.exceeds_somewhere(other.allocatable)
            is_for_quota = is_within_quota and left.exceeds_somewhere(other.queue.quota)
            if not is_more_than_fair and not is_for_quota:
                return False
            for share in victim.path:
                self.remaining[share.name] = self.left_to(share).minus(chunk)
                self.involved.setdefault(share.name, set()).update(involved)
        return True

    def stays_below_siblings(self, own: Share, amounts: Amounts, multiplier: float) -> bool:
        """Whether it has, of nothing it has too much of, more than a sibling that was taken from, by fair share."""
        held = self.left_to(own).plus(amounts)
        asked = _involved(amounts)
        siblings = own.parent.children if own.parent else self.tree.roots
        for sibling in siblings:
            if sibling is own or sibling.name not in self.remaining:
                continue
            left = self.remaining[sibling.name]
            for resource in asked | self.involved[sibling.name]:
                ratio = _saturation(held[resource], own.fair_share[resource])
                other = _saturation(left[resource], sibling.fair_share[resource])
                if ratio > 1 and sibling.fair_share[resource] > 0 and ratio * multiplier >= other:
                    return False
        return True


def _involved(amounts: Amounts) -> set[int]:
    return {resource for resource, amount in enumerate(amounts) if amount > 0}


def _saturation(held: float, fair_share: float) -> float:
    if fair_share == 0:
        return math.inf if held > 0 else 0.0
    return held / fair_share
