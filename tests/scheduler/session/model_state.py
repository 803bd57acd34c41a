"""The whole model as plain values, to see whether it is exactly as it was."""

from __future__ import annotations

from typing import Any

from shoal.scheduler.session.session import Session


def state_of(session: Session) -> dict[str, Any]:
    """Everything that a session may change and has to put back: arrays to the byte, tasks, counters, queues, pods."""
    nodes = session.nodes
    return {
        "idle": nodes.idle.tobytes(),
        "releasing": nodes.releasing.tobytes(),
        "gpus": (nodes.free_gpus().tobytes(), nodes.releasing_gpus().tobytes()),
        "shared": {
            (node.name, group): (device.allocated, device.releasing, device.pipelined)
            for node in nodes.nodes
            for group, device in node.shared.items()
        },
        "holds": {
            (node.name, *key): (id(hold), hold.status, hold.gpu_groups)
            for node in nodes.nodes
            for key, hold in node.holds.items()
        },
        "tasks": {
            task.uid: (
                task.status,
                task.node,
                task.gpu_groups,
                task.is_virtual,
                task.accepted,
                task.hold and (id(task.hold), task.hold.status),
                session.pods._placed.rows(task),
            )
            for job in session.cluster.jobs.values()
            for task in job.tasks.values()
        },
        "pod sets": {
            (job.name, pod_set.name): (
                pod_set.pending,
                pod_set.gated,
                pod_set.allocated,
                pod_set.active_allocated,
                pod_set.active_used,
                pod_set.alive,
                pod_set.pipelined,
                job.succeeded,
            )
            for job in session.cluster.jobs.values()
            for pod_set in job.pod_sets.values()
        },
        "queues": {share.name: (share.allocated, share.allocated_non_preemptible) for share in session.shares},
    }
