"""When a gang is stale: it lost members that it needs, and what is left of it runs for nothing."""

from __future__ import annotations

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup


def is_stale(job: Job) -> bool:
    """Whether some of its pods run, none has finished, and what it needs to run is not there."""
    return not job.succeeded and job.active_used > 0 and not _is_alive(job.root)


def _is_alive(place: SubGroup | PodSet) -> bool:
    if isinstance(place, PodSet):
        return place.active_used >= place.min_member
    return sum(map(_is_alive, place.children)) >= place.needed
