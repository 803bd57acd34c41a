"""How one amount is divided among the queues of one level.

Quota comes first, for everybody, even where there is not enough for all quotas: a promise is a promise, and it is the
order of jobs that decides who is served. What is left goes to the queues that want more, the highest priority first, in
proportion to their weights, in whole units. What is then left over by rounding down goes out in single units, to those
who lost most by it.

Queues that used much lately weigh less (and those that used little weigh more) by ``k``: 0 leaves the past alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from shoal.scheduler.model.amounts import UNLIMITED

_NOISE: Final = 1e-12
"""How far, in proportion, a float may be from the number it stands for: a third of three is one."""

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue brings to the division."""

    name: str
    quota: float = 0.0
    weight: float = 0.0
    request: float = 0.0
    limit: float = UNLIMITED
    priority: int = 100
    usage: float = 0.0
    """What part of the whole it used lately, 0 to 1."""
    created: float = 0.0

    @property
    def wanted(self) -> float:
        """What it could use: its request, as far as its limit goes."""
        return min(self.limit, self.request)


@dataclass(frozen=True, slots=True)
class Division:
    """Who gets what, and what nobody gets."""

    shares: dict[str, float]
    remaining: float


def divide(total: float, claims: Sequence[Claim], *, k: float) -> Division:
    """Quota first, then the surplus by weight within each priority, then single units by the largest remainder."""
    shares = {claim.name: min(total if claim.quota == UNLIMITED else claim.quota, claim.wanted) for claim in claims}
    left = max(0.0, total - math.fsum(shares.values()))
    rounded_off: list[dict[str, float]] = []
    groups = [
        sorted(group, key=_age)
        for _, group in groupby(sorted(claims, key=lambda claim: -claim.priority), lambda claim: claim.priority)
    ]
    for group in groups:
        left, rest = _by_weight(left, group, shares, max(0.0, k))
        rounded_off.append(rest)
    for group, rest in zip(groups, rounded_off, strict=True):
        left = _by_single_units(left, group, rest, shares)
    return Division(shares, left)


def _by_weight(
    left: float, claims: Sequence[Claim], shares: dict[str, float], k: float
) -> tuple[float, dict[str, float]]:
    """Rounds of offers to queues of one priority, until nobody took less than was offered.

    Gives what is left, and by queue the part of its last offer that rounding down kept from it.
    """
    rest: dict[str, float] = {}
    is_another_round = True
    while is_another_round and left > 0:
        is_another_round = False
        weights = _weights([claim for claim in claims if shares[claim.name] < claim.wanted], k)
        sum_of_weights = math.fsum(weights.values())
        if sum_of_weights == 0:
            break
        at_start = left
        for claim in claims:
            if left <= 0:
                break
            if not weights.get(claim.name):
                continue
            offer = at_start * (weights[claim.name] / sum_of_weights)
            noise = _NOISE * max(1.0, offer)
            missing = claim.wanted - shares[claim.name]
            if missing <= offer + noise:
                shares[claim.name] = claim.wanted
                left -= missing
                rest.pop(claim.name, None)
                is_another_round = is_another_round or missing < offer - noise
            else:
                given = float(math.floor(offer + noise))
                shares[claim.name] += given
                left -= given
                if offer > given + noise:
                    rest[claim.name] = round(offer - given, _DIGITS)
    return max(0.0, round(left, _DIGITS)), rest


def _weights(claims: Sequence[Claim], k: float) -> dict[str, float]:
    whole = math.fsum(claim.weight for claim in claims)
    if whole <= 0:
        return {}
    made = {}
    for claim in claims:
        part = claim.weight / whole
        made[claim.name] = max(0.0, part + k * (part - claim.usage)) if claim.weight > 0 else 0.0
    return made


def _by_single_units(left: float, claims: Sequence[Claim], rest: dict[str, float], shares: dict[str, float]) -> float:
    """One unit each, or what there is, to those whom rounding down cost most."""
    for claim in sorted((claim for claim in claims if claim.name in rest), key=lambda claim: -rest[claim.name]):
        if left <= 0:
            break
        given = min(1.0, left)
        shares[claim.name] += given
        left -= given
    return left


def _age(claim: Claim) -> tuple[float, str]:
    return claim.created, claim.name
