"""What a DaemonSet tells of its nodes and pods."""

from __future__ import annotations

import msgspec

from shoal.api.apps import DaemonSetStatus
from shoal.api.core import is_ready
from shoal.cluster.controllers.daemon_sets.eligibility import Verdict
from shoal.cluster.controllers.daemon_sets.objects import oldest_first
from shoal.cluster.controllers.daemon_sets.plan import Observed


def status_of(seen: Observed, *, collisions: int | None) -> DaemonSetStatus:
    """The status; of a node with several pods the oldest counts."""
    daemon_set = seen.daemon_set
    at_once = daemon_set.spec.min_ready_seconds == 0
    desired = current = misscheduled = ready = updated = available = 0
    for node, verdict in seen.verdicts.items():
        pods = seen.pods.get(node)
        if verdict is not Verdict.RUN:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        if is_ready(pod):
            ready += 1
            available += at_once or seen.is_available(pod)
        updated += seen.is_updated(pod)
    return msgspec.structs.replace(
        daemon_set.status,
        observed_generation=daemon_set.metadata.generation,
        desired_number_scheduled=desired,
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        number_ready=ready,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
        collision_count=collisions,
    )
