"""The errors that an object's status tells of: what kept its controller from its work when it last tried."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from shoal.api.grove import LastError
from shoal.kube import ReconcileError


class GangError(ReconcileError):
    """Something that keeps a controller from its work, with the word that a status has for it."""

    def __init__(self, code: str, description: str) -> None:
        self.code = code
        self.description = description
        super().__init__(description)


def last_errors(before: list[LastError], errors: Iterable[Exception], now: datetime) -> list[LastError]:
    """The errors of the last try; one that was there before keeps the time when it was seen first."""
    found = []
    for error in errors:
        code = error.code if isinstance(error, GangError) else "ERR_RECONCILE"
        known = next((old for old in before if (old.code, old.description) == (code, str(error))), None)
        found.append(known or LastError(code=code, description=str(error), observed_at=now))
    return found
