"""How quickly a size may change: bounds, policies for each direction, and windows in which recent wishes still count.

What was wished for and done lately is kept in memory only: a restart forgets it, and begins with the size it finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shoal.api.autoscaling import Behavior, ScalingPolicy, ScalingRules

DEFAULT_UP = ScalingRules(
    stabilization_window_seconds=0,
    select_policy="Max",
    policies=[
        ScalingPolicy(type="Pods", value=4, period_seconds=15),
        ScalingPolicy(type="Percent", value=100, period_seconds=15),
    ],
)
DEFAULT_DOWN = ScalingRules(select_policy="Max", policies=[ScalingPolicy(type="Percent", value=100, period_seconds=15)])

_KEPT = timedelta(hours=1)
"""The longest window that a rule can have."""


@dataclass(frozen=True, slots=True)
class Said:
    """The reason and message of a condition."""

    reason: str
    message: str


WITHIN_RANGE = Said("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY = Said("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = Said("TooFewReplicas", "the desired replica count is less than the minimum replica count")
UP_LIMIT = Said("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT = Said("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
READY = Said("ReadyForNewScale", "recommended size matches current size")
DOWN_STABILIZED = Said(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
UP_STABILIZED = Said(
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


@dataclass(slots=True)
class History:
    """What was wished for, and what was done, with the time of each."""

    wishes: list[tuple[int, datetime]] = field(default_factory=list)
    added: list[tuple[int, datetime]] = field(default_factory=list)
    removed: list[tuple[int, datetime]] = field(default_factory=list)

    def begin(self, current: int, now: datetime) -> None:
        """The first size that is seen counts as a wish: a restart alone shall not shrink anything."""
        if not self.wishes:
            self.wishes.append((current, now))

    def wish(self, replicas: int, now: datetime) -> None:
        """Notes the size that metrics ask for."""
        self.wishes = [entry for entry in self.wishes if entry[1] > now - _KEPT]
        self.wishes.append((replicas, now))

    def changed(self, before: int, after: int, now: datetime) -> None:
        """Notes a change that was carried out."""
        changes = self.added if after > before else self.removed
        changes[:] = [entry for entry in changes if entry[1] > now - _KEPT]
        changes.append((abs(after - before), now))


@dataclass(frozen=True, slots=True)
class Normalized:
    """The size to have now, whether it was held by recent wishes, and whether and by what it is limited."""

    replicas: int
    able: Said
    is_limited: bool
    limit: Said


def normalized(
    wanted: int,
    *,
    current: int,
    minimum: int,
    maximum: int,
    behavior: Behavior | None,
    history: History,
    downscale_window: timedelta,
    now: datetime,
) -> Normalized:
    """The size to have now, where metrics ask for ``wanted``; the wish is noted."""
    if behavior is None:
        held, able = _held_by_default(wanted, history, downscale_window, now)
        replicas, limit = _bounded(held, current=current, minimum=minimum, maximum=maximum)
    else:
        up = behavior.scale_up or DEFAULT_UP
        down = behavior.scale_down or DEFAULT_DOWN
        held, able = _held(wanted, current, up, down, history, downscale_window, now)
        replicas, limit = _paced(held, current, minimum, maximum, up, down, history, now)
    return Normalized(replicas, able, replicas != held, limit)


def _held_by_default(wanted: int, history: History, window: timedelta, now: datetime) -> tuple[int, Said]:
    """No lower than any wish within the window."""
    held = max([wanted, *(wish for wish, at in history.wishes if at >= now - window)])
    history.wish(wanted, now)
    return held, READY if held == wanted else DOWN_STABILIZED


def _bounded(wanted: int, *, current: int, minimum: int, maximum: int) -> tuple[int, Said]:
    """Within the bounds, and at most doubled, or four."""
    rate = max(2 * current, 4)
    highest, limit = (rate, UP_LIMIT) if maximum > rate else (maximum, TOO_MANY)
    if wanted < minimum:
        return minimum, TOO_FEW
    return (highest, limit) if wanted > highest else (wanted, WITHIN_RANGE)


def _held(
    wanted: int,
    current: int,
    up: ScalingRules,
    down: ScalingRules,
    history: History,
    downscale_window: timedelta,
    now: datetime,
) -> tuple[int, Said]:
    """No higher than any wish within the window for growing, no lower than any within that for shrinking."""
    lowest = min([wanted, *_since(history.wishes, _window(up, timedelta(0)), now)])
    highest = max([wanted, *_since(history.wishes, _window(down, downscale_window), now)])
    history.wish(wanted, now)
    held = min(max(current, lowest), highest)
    if held == wanted:
        return held, READY
    return held, UP_STABILIZED if wanted >= current else DOWN_STABILIZED


def _paced(
    wanted: int,
    current: int,
    minimum: int,
    maximum: int,
    up: ScalingRules,
    down: ScalingRules,
    history: History,
    now: datetime,
) -> tuple[int, Said]:
    """Within the bounds, and no quicker than the policies allow."""
    if wanted > current:
        rate = max(current, growth_limit(current, up, history, now))
        highest, limit = (rate, UP_LIMIT) if maximum > rate else (maximum, TOO_MANY)
        if wanted > highest:
            return highest, limit
    elif wanted < current:
        rate = min(current, shrink_limit(current, down, history, now))
        lowest, limit = (rate, DOWN_LIMIT) if minimum < rate else (minimum, TOO_FEW)
        if wanted < lowest:
            return lowest, limit
    return wanted, WITHIN_RANGE


def growth_limit(current: int, rules: ScalingRules, history: History, now: datetime) -> int:
    """The largest size that the policies for growing allow now."""
    if rules.select_policy == "Disabled":
        return current
    sizes = [
        start + policy.value if policy.type == "Pods" else math.ceil(start * (1 + policy.value / 100))
        for policy, start in _starts(current, rules.policies, history, now)
    ]
    return (min if rules.select_policy == "Min" else max)(sizes, default=current)


def shrink_limit(current: int, rules: ScalingRules, history: History, now: datetime) -> int:
    """The smallest size that the policies for shrinking allow now."""
    if rules.select_policy == "Disabled":
        return current
    sizes = [
        start - policy.value if policy.type == "Pods" else int(start * (1 - policy.value / 100))
        for policy, start in _starts(current, rules.policies, history, now)
    ]
    return (max if rules.select_policy == "Min" else min)(sizes, default=current)


def _starts(
    current: int, policies: Sequence[ScalingPolicy], history: History, now: datetime
) -> Iterable[tuple[ScalingPolicy, int]]:
    """Each policy, and the size at the beginning of its period."""
    for policy in policies:
        period = timedelta(seconds=policy.period_seconds)
        yield policy, current - sum(_since(history.added, period, now)) + sum(_since(history.removed, period, now))


def _since(entries: Sequence[tuple[int, datetime]], window: timedelta, now: datetime) -> list[int]:
    return [count for count, at in entries if at > now - window]


def _window(rules: ScalingRules, otherwise: timedelta) -> timedelta:
    seconds = rules.stabilization_window_seconds
    return otherwise if seconds is None else timedelta(seconds=seconds)
