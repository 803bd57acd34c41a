"""Which of two queues is served first.

Eight rules, the first that tells them apart decides:

1. a queue that holds more than its fair share of everything goes last;
2. a queue that stays within its quota with its next job goes first;
3. the higher priority goes first;
4. a queue that would use something of which it may have nothing goes last;
5. the smaller dominant share with the next job goes first (of victims: without those chosen so far, and the next);
6. the smaller dominant share as it is goes first;
7. the queue that may have less goes first: no more of anything and less of something;
8. the older goes first; of equally old ones, the first by name.

The first six are a key that sorts. The seventh is not: of three queues, each may go before the next, in a circle. So
among queues with the same key, the oldest of those that none of the others goes before is the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from shoal.scheduler.model.amounts import NONE, UNLIMITED, Amounts
from shoal.scheduler.shares.tree import Share

Standing = tuple[bool, bool, int, bool, float, float]
"""Rules 1 to 6 as a key: the smaller goes first."""

_PENALTY: Final = 1000.0
"""What each unit counts that is used of a resource of which a queue may have nothing."""


def standing(share: Share, divisors: Amounts, *, job: Amounts = NONE, victims: Amounts = NONE) -> Standing:
    """Where a queue stands by rules 1 to 6, given what its next job takes, or its victims give."""
    held, fair, may = share.allocated, share.fair_share, share.allocatable
    quota = share.queue.quota
    if job is NONE:
        cpu, memory, gpu = held
    else:
        cpu, memory, gpu = held[0] + job[0], held[1] + job[1], round(held[2] + job[2], 6)
    if victims is NONE:
        dominant = _dominant(cpu, memory, gpu, divisors)
    else:
        dominant = _dominant(cpu - victims[0], memory - victims[1], round(gpu - victims[2], 6), divisors)
    return (
        held[0] > fair[0] and held[1] > fair[1] and held[2] > fair[2],
        cpu > quota[0] or memory > quota[1] or gpu > quota[2],
        -share.queue.priority,
        (not may[0] and cpu > 0) or (not may[1] and memory > 0) or (not may[2] and gpu > 0),
        dominant,
        _dominant(held[0], held[1], held[2], divisors),
    )


def divisors_of(share: Share, total: Amounts) -> Amounts:
    """What the parts of a queue are measured by: what it may have or, where that has no limit, the whole cluster."""
    return Amounts(*(whole if own == UNLIMITED else own for own, whole in zip(share.allocatable, total, strict=True)))


def dominant_share(amounts: Amounts, divisors: Amounts) -> float:
    """The largest part that these amounts are of what a queue may have."""
    return _dominant(amounts[0], amounts[1], amounts[2], divisors)


def _dominant(cpu: float, memory: float, gpu: float, divisors: Amounts) -> float:
    most = 0.0
    part = cpu / divisors[0] if divisors[0] else cpu * _PENALTY
    most = part if part > most else most
    part = memory / divisors[1] if divisors[1] else memory * _PENALTY
    most = part if part > most else most
    part = gpu / divisors[2] if divisors[2] else gpu * _PENALTY
    return part if part > most else most


def may_have_less(left: Share, right: Share) -> bool:
    """Rule 7: no more of anything, and less of something."""
    return left.allocatable != right.allocatable and left.allocatable.is_within(right.allocatable)


def age(share: Share) -> tuple[float, str]:
    """Rule 8 as a key."""
    return share.queue.created, share.queue.name


def before(
    left: Share,
    right: Share,
    *,
    total: Amounts,
    left_job: Amounts = NONE,
    right_job: Amounts = NONE,
    left_victims: Amounts = NONE,
    right_victims: Amounts = NONE,
) -> bool:
    """Whether the left queue is served before the right one, of which each has this job next (or these victims)."""
    of_left = standing(left, divisors_of(left, total), job=left_job, victims=left_victims)
    of_right = standing(right, divisors_of(right, total), job=right_job, victims=right_victims)
    if of_left != of_right:
        return of_left < of_right
    if may_have_less(left, right) or may_have_less(right, left):
        return may_have_less(left, right)
    return age(left) < age(right)


def first_of_equals(shares: Sequence[Share], *, last: bool = False) -> int:
    """The place of the queue that rules 7 and 8 put first, or last, among those that the others leave equal."""
    candidates = sorted(range(len(shares)), key=lambda place: age(shares[place]), reverse=last)
    for place in candidates:
        one = shares[place]
        if not any(may_have_less(one, other) if last else may_have_less(other, one) for other in shares):
            return place
    return candidates[0]


def is_chain(shares: Sequence[Share]) -> bool:
    """Whether rule 7 puts all of these in one line: then their allocatable shares are a key that sorts."""
    ordered = sorted(share.allocatable for share in shares)
    return all(lower.is_within(upper) for lower, upper in pairwise(ordered))
