"""How long a container that ended rests before it is started again: as long as a kubelet makes it wait."""

from __future__ import annotations

from shoal.api.core import Pod
from shoal.api.core.pods import WaitingState

FIRST, LONGEST = 10, 300


def rest_before_restart(restarts: int) -> int:
    """Seconds between the end of a container that was restarted so often, and its next start.

    The first restart is at once; each one after that takes twice as long, up to five minutes.
    """
    return 0 if restarts == 0 else min(FIRST << min(restarts - 1, 10), LONGEST)


def crash_loop(pod: Pod, container: str, restarts: int) -> WaitingState:
    """What such a container is said to wait for."""
    metadata = pod.metadata
    length = rest_before_restart(restarts)
    shown = f"{length // 60}m{length % 60}s" if length >= 60 else f"{length}s"
    who = f"container={container} pod={metadata.name}_{metadata.namespace}({metadata.uid})"
    return WaitingState(reason="CrashLoopBackOff", message=f"back-off {shown} restarting failed {who}")
