"""How it went to tell a scheduler of a gang: the gang's condition, and the event that goes with it.

The condition is part of the gang's status, which the controller of PodGangs writes as well. What went well can wait a
moment, so that both are written at once: ``Outcomes`` is where that controller finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.api.meta import Condition, ConditionStatus, HasMetadata
from shoal.api.scheduler_grove_io import BACKEND_READY
from shoal.gangs.backends.backend import Untranslatable, Wanted
from shoal.kube import ApiError, Foreign, Key
from shoal.kube.store import key_of

_SHOWN = 3
"""So many objects are named in a condition; of more their number is told."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether the scheduler was told; why not, in one word and for people; and the event's reason, if one is due."""

    is_ready: bool
    reason: str
    message: str
    event: str = ""

    @classmethod
    def waiting(cls, message: str) -> Outcome:
        """An object has to go before it can be made anew."""
        return cls(is_ready=False, reason="Replacing", message=message)

    @property
    def condition(self) -> Condition:
        """As the gang's status says it; without a generation, which moves with every pod that joins the gang."""
        status: ConditionStatus = "True" if self.is_ready else "False"
        return Condition(type=BACKEND_READY, status=status, reason=self.reason, message=self.message)


def synced(wanted: Sequence[Wanted]) -> Outcome:
    """All objects are as they should be."""
    said = [f"{one.resource.kind} {one.body['metadata']['name']}" for one in wanted]
    message = ", ".join(said) if len(said) <= _SHOWN else f"{said[0]} and {len(said) - 1} more"
    return Outcome(is_ready=True, reason="Synced", message=message)


def told_by(error: Untranslatable | Foreign) -> Outcome:
    """The gang cannot be translated, or somebody else has the name."""
    if isinstance(error, Untranslatable):
        return Outcome(is_ready=False, reason=error.reason, message=str(error), event=error.event)
    return Outcome(is_ready=False, reason="Foreign", message=str(error), event="BackendObjectForeign")


def refused(error: ApiError) -> Outcome:
    """The server does not take an object as it is wanted."""
    return Outcome(is_ready=False, reason="Refused", message=error.message or error.reason, event="BackendRefused")


class Outcomes:
    """The last outcome of each gang that is there, and since when it is so; told to all controllers of a process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._noted: dict[Key, tuple[str, Outcome, float]] = {}

    def note(self, gang: HasMetadata, outcome: Outcome) -> float:
        """Keeps an outcome; gives the seconds for which it has been the same."""
        known, now = self._noted.get(key_of(gang)), self._clock()
        if known is None or known[:2] != (gang.metadata.uid, outcome):
            known = self._noted[key_of(gang)] = (gang.metadata.uid, outcome, now)
        return now - known[2]

    def condition(self, gang: HasMetadata) -> Condition | None:
        """What is to be said of a gang, if anything is known."""
        known = self._noted.get(key_of(gang))
        return known[1].condition if known is not None and known[0] == gang.metadata.uid else None

    def forget(self, key: Key) -> None:
        """The gang is gone, or nobody here speaks for its scheduler any more."""
        self._noted.pop(key, None)
