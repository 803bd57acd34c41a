"""Replacing pods of an old template, no more at a time than the DaemonSet allows.

Without surge old pods are deleted, and their nodes get new ones as any node does that has none. With surge a new pod is
made beside the old one, which goes when the new one is available. A node whose old pod does not serve loses nothing,
and is never waited with.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shoal.api.core import Pod
from shoal.cluster.controllers.daemon_sets.eligibility import Verdict
from shoal.cluster.controllers.daemon_sets.plan import Observed, Work, surge_of, unavailable_of


def next_replacements(seen: Observed) -> Work:
    """Which old pods go, and which nodes get a second pod, now."""
    if all(map(seen.is_updated, itertools.chain.from_iterable(seen.pods.values()))):
        return Work()
    desired = sum(verdict is Verdict.RUN for verdict in seen.verdicts.values())
    surge = surge_of(seen.daemon_set, desired)
    if surge == 0:
        # Neither surge nor unavailability would mean that nothing ever moves.
        return _deleting_first(seen, max(unavailable_of(seen.daemon_set, desired), 1 if desired else 0))
    return _surging(seen, surge, desired)


def _deleting_first(seen: Observed, allowed: int) -> Work:
    unavailable = sum(verdict is Verdict.RUN and node not in seen.pods for node, verdict in seen.verdicts.items())
    broken: list[Pod] = []
    candidates: list[Pod] = []
    for pods in seen.pods.values():
        new, old = _new_and_old(seen, pods)
        if len(new) + len(old) != 1:
            unavailable += 1  # there is something to do there first
        elif new:
            unavailable += not seen.is_available(new[0])
        elif seen.is_available(old[0]):
            candidates.append(old[0])
        else:
            broken.append(old[0])
            unavailable += 1
    return Work(delete=[*broken, *candidates[: max(allowed - unavailable, 0)]])


def _surging(seen: Observed, allowed: int, desired: int) -> Work:
    work = Work()
    surging = available = 0
    candidates: list[str] = []
    unwanted: list[Pod] = []
    for node, pods in seen.pods.items():
        new, old = _new_and_old(seen, pods)
        if len(new) > 1 or len(old) > 1:
            surging += 1  # there is something to do there first
            continue
        serving = old or new
        available += bool(serving) and seen.is_available(serving[0])
        if not old:
            continue
        if new:
            if seen.is_available(new[0]):
                work.delete.append(old[0])
            else:
                surging += 1
        elif seen.verdicts.get(node) is not Verdict.RUN:
            if seen.is_available(old[0]):
                unwanted.append(old[0])
            else:
                work.delete.append(old[0])
        elif seen.is_available(old[0]):
            candidates.append(node)
        else:
            work.create_on.append(node)
    # Who asks for a surge wants to lose nothing: a pod that is out of place goes when enough others serve.
    work.delete += unwanted[: max(available - desired, 0)]
    work.create_on += candidates[: max(allowed - surging, 0)]
    return work


def _new_and_old(seen: Observed, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    """A node's pods that stay, of the present template and of others."""
    new: list[Pod] = []
    old: list[Pod] = []
    for pod in pods:
        if not pod.metadata.is_deleting:
            (new if seen.is_updated(pod) else old).append(pod)
    return new, old
