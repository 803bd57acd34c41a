"""What a simulated container says: that it is simulated, what its pod's annotation has it say, and that time passes."""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.api.core import ContainerStatus, Pod, TerminatedState
from shoal.cluster.node.kubelet import Line, Refused
from shoal.cluster.node.simulated.rules import rules_of

EVERY = 10
"""Seconds between two signs of life."""
MOST = 1000
"""Lines that are kept, as if older ones had been rotated away."""


def lines_until(pod: Pod, container: str, started: datetime, moment: datetime) -> list[Line]:
    """The lines of a container that began at ``started``, up to a moment; always the same ones."""
    metadata = pod.metadata
    where = f"pod {metadata.namespace}/{metadata.name} on node {pod.spec.node_name}"
    said = [f"simulated: container {container} of {where} started; nothing runs here"]
    said += rules_of(pod)[0].log.splitlines()
    beats = max(0, int((moment - started).total_seconds()) // EVERY)
    first = max(1, beats + len(said) - MOST + 1)
    signs = [
        Line(started + timedelta(seconds=EVERY * beat), f"simulated: running for {EVERY * beat} s")
        for beat in range(first, beats + 1)
    ]
    return [*(Line(started, text) for text in said), *signs][-MOST:]


def last_line(ended: TerminatedState) -> Line | None:
    """What is said at the end."""
    if ended.finished_at is None:
        return None
    return Line(ended.finished_at, f"simulated: ended with exit code {ended.exit_code} ({ended.reason})")


def log_so_far(pod: Pod, status: ContainerStatus, *, previous: bool, now: datetime) -> list[Line]:
    """All lines that a container has said; raises Refused where it has not begun, or has no former life."""
    name = pod.metadata.name
    ended = status.last_state.terminated if previous else status.state.terminated
    if previous and ended is None:
        raise Refused(400, f'previous terminated container "{status.name}" in pod "{name}" not found')
    if ended is None and status.state.running is None:
        # A container that rests before its restart still has the log of its last life.
        ended = status.last_state.terminated
        if ended is None:
            reason = status.state.waiting.reason if status.state.waiting else "ContainerCreating"
            raise Refused(400, f'container "{status.name}" in pod "{name}" is waiting to start: {reason}')
    if ended is not None:
        end = last_line(ended)
        lines = lines_until(pod, status.name, ended.started_at, ended.finished_at or now) if ended.started_at else []
        return [*lines, end] if end else lines
    running = status.state.running
    assert running is not None
    return lines_until(pod, status.name, running.started_at or now, now)
