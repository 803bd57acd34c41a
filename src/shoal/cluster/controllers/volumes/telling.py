"""Says on a claim why it waits, once for each reason and not each time that one looks.

A claim that was there before this process began is taken to have been told already.
"""

from __future__ import annotations

from datetime import datetime

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from shoal.kube import About, Change, Recorder
from shoal.kube.events import EventType


class Telling:
    """Remembers what was said last of each claim."""

    def __init__(self, events: Recorder, *, since: datetime) -> None:
        self._events = events
        self._since = since
        self._said: dict[str, tuple[str, str]] = {}

    def tell(self, claim: PersistentVolumeClaim, type: EventType, reason: str, message: str) -> None:  # noqa: A002
        """Says something on a claim, unless it was the last thing said."""
        uid, created = claim.metadata.uid, claim.metadata.creation_timestamp
        before = self._said.get(uid)
        self._said[uid] = (reason, message)
        is_old = before is None and created is not None and created < self._since
        if before != (reason, message) and not is_old:
            self._events.record(About.of(PERSISTENT_VOLUME_CLAIMS, claim), type, reason, message)

    def claim_changed(self, change: Change[PersistentVolumeClaim]) -> None:
        """Forgets claims that are gone."""
        if change.after is None:
            self._said.pop(change.latest.metadata.uid, None)
