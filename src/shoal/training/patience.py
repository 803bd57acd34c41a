"""How long a status waits that nobody waits for.

A Job is made, becomes active, then ready, then it is done; each step may come a moment after the other. Who counts for
every one of them tells almost the same four times, and wakes every reader of it each time. So what only counts waits
for a while, the shorter the more there is to tell, and is told as it is then; what decides something (a condition, an
end, a restart, an error) is told at once, with all counters as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from shoal.api.jobset import ReplicatedJobStatus
from shoal.api.trainer import JobStatus

Counters: TypeAlias = ReplicatedJobStatus | JobStatus
"""How the Jobs of one template are."""

SOON: Final = 1.0
"""Seconds after which it is told that Jobs are ready, done or stopped."""
LATER: Final = 5.0
"""The same where Jobs have begun, and are not ready yet: most of them are by then."""
AT_FIRST: Final = 300.0
"""The same where all that is to be told is that nothing has happened yet: counters that are missing say as much."""


def patience_with_counters(before: Iterable[Counters], after: Iterable[Counters]) -> float:
    """Seconds for which a change of counters alone can wait."""
    told, seen = list(before), list(after)
    if _reached(told) != _reached(seen):
        return SOON
    if told or any(each.active for each in seen):
        return LATER
    return AT_FIRST


def _reached(counters: Iterable[Counters]) -> list[tuple[str, int, int, int, int]]:
    """What one may look for, by template."""
    counted = [(each.name, each.ready, each.succeeded, each.failed, each.suspended) for each in counters]
    return [one for one in counted if any(one[1:])]
