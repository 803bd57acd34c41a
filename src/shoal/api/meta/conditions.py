"""Conditions: what a controller reports of an object, one entry per question, each with when its answer last changed.

The rules are pure and return the very list they were given where nothing changed, so that a controller sees by identity
that it has nothing to write.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from shoal.api.meta.objects import Wire

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


class Condition(Wire, frozen=True, kw_only=True):
    """One question about an object (``type``), its answer (``status``), and why that is the answer."""

    type: str
    status: ConditionStatus
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    # These must be on the wire even when they are empty, which a factory achieves: only plain defaults are left out.
    reason: str = msgspec.field(default_factory=str)
    message: str = msgspec.field(default_factory=str)


def find_condition(conditions: list[Condition], type: str) -> Condition | None:  # noqa: A002 - the wire's own word
    """The condition of a type, if the object has it."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: list[Condition], type: str) -> bool:  # noqa: A002
    """Whether the object has the condition and its answer is True: Unknown and absent are not."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


def set_condition(conditions: list[Condition], new: Condition, now: datetime) -> list[Condition]:
    """The conditions with one set, in its place or at the end.

    The time of transition moves only with the status: to the time that the new condition brings, or else to now.
    """
    old = find_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        changed = old.last_transition_time or new.last_transition_time or now
    else:
        changed = new.last_transition_time or now
    placed = msgspec.structs.replace(new, last_transition_time=changed)
    if old is None:
        return [*conditions, placed]
    if placed == old:
        return conditions
    return [placed if condition is old else condition for condition in conditions]


def remove_condition(conditions: list[Condition], type: str) -> list[Condition]:  # noqa: A002
    """The conditions without those of a type."""
    if find_condition(conditions, type) is None:
        return conditions
    return [condition for condition in conditions if condition.type != type]
