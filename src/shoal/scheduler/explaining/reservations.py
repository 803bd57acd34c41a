"""Room that is kept for a job that found none, for whoever asks about that job, or about one that is kept out by it."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.scheduler.explaining.explanation import KeptRoom, Remedy
from shoal.scheduler.explaining.reasons import failure_of
from shoal.scheduler.explaining.words import counted, figures, moment, moment_words
from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import CPU, GPU, MEMORY
from shoal.scheduler.session.failures import NoRoom
from shoal.scheduler.session.reserving import UNKNOWN, Reservation
from shoal.scheduler.session.session import Session

_MOST_NAMED: Final = 20
_EXAMPLES: Final = 3


def kept_room(session: Session, job: Job) -> KeptRoom | None:
    """What is kept for a job, or keeps it out; None where nothing is kept that concerns it."""
    found = _concerning(session, job)
    if found is None:
        return None
    rows = np.flatnonzero(found.rows)
    kept = found.kept[rows].sum(axis=0)
    return KeptRoom(
        job="/".join(found.job.key),
        own=found.job is job,
        nodes=[session.nodes.nodes[row].name for row in rows[:_MOST_NAMED]],
        node_count=len(rows),
        free=figures(Amounts(float(kept[CPU]), float(kept[MEMORY]), float(kept[GPU]))),
        until=None if found.when == UNKNOWN else moment(found.when),
    )


def reservation_remedy(session: Session, job: Job) -> Remedy | None:
    """What a job has to wait for whose room is kept for it."""
    found = session.reservation
    room = kept_room(session, job)
    if found is None or room is None or not room.own:
        return None
    names = ", ".join(room.nodes[:_EXAMPLES]) + (" …" if room.node_count > _EXAMPLES else "")
    where = f"{counted(room.node_count, 'node')} ({names})"
    verb = "is" if room.node_count == 1 else "are"
    if room.until is None:
        words = f"wait until enough has ended on {where}: what becomes free there is kept for it"
    else:
        words = f"wait until {moment_words(found.when)}, when it can start at the latest: {where} {verb} kept for it"
    return Remedy(what="Reservation", message=words, until=room.until)


def _concerning(session: Session, job: Job) -> Reservation | None:
    found = session.reservation
    if found is None or job.root.is_satisfied:
        return None
    failure = failure_of(session, job)
    is_kept_out = isinstance(failure, NoRoom) and failure.kept_for == found.job.key
    return found if found.job is job or is_kept_out else None
