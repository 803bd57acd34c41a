"""Which pods may be scheduled: a gate keeps each from its scheduler until its gang is complete.

A gang is complete when all its pods were made and the PodGang names them. What is beyond the minimum of a scaling group
is a gang of its own, which only starts once the base gang that it adds to has its pods on nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.core import Pod
from shoal.api.grove import PodClique, names
from shoal.api.meta import is_true
from shoal.api.scheduler_grove_io import INITIALIZED, PodGang
from shoal.gangs.backends import Marks

NOT_GATED: Final = "NoPodsGated"
GANG_MISSING: Final = "PodGangMissing"
GANG_INCOMPLETE: Final = "PodGangIncomplete"
NOT_REFERENCED: Final = "PodsNotInPodGang"
BASE_NOT_SCHEDULED: Final = "BasePodGangNotScheduled"
NOT_LIFTED: Final = "GatesNotLifted"
"""Why pods are gated: reasons of the condition PodsGated."""


@dataclass(frozen=True, kw_only=True)
class Gating:
    """The pods whose gates may be lifted now, and why others are still gated; ``reason`` says whether any is."""

    lift: tuple[Pod, ...] = ()
    reason: str = NOT_GATED
    message: str = "every pod may be scheduled"

    @property
    def is_holding(self) -> bool:
        """Whether any pod may not be scheduled yet."""
        return self.reason != NOT_GATED


def gating(
    clique: PodClique,
    pods: Sequence[Pod],
    *,
    gang: PodGang | None,
    base_gang: PodGang | None,
    scheduled: Callable[[str], int],
) -> Gating:
    """What may be lifted now; ``scheduled`` tells how many pods of a clique, by its full name, have nodes."""
    gated = [pod for pod in pods if is_gated(pod) and not pod.metadata.is_deleting]
    labels = clique.metadata.labels
    if gang is None:
        is_lacking = len([pod for pod in pods if not pod.metadata.is_deleting]) < clique.spec.replicas
        if not gated and not is_lacking:
            return Gating()
        name = labels.get(names.GANG_LABEL, "")
        return Gating(reason=GANG_MISSING, message=f"PodGang {name} is not there yet: its pods are made once it is")
    if not gated:
        return Gating()
    if not is_true(gang.status.conditions, INITIALIZED):
        words = (
            f"PodGang {gang.metadata.name} is not complete: pods of its cliques are still to be made and named in it"
        )
        return Gating(reason=GANG_INCOMPLETE, message=words)
    if (base := labels.get(names.BASE_GANG_LABEL)) is not None:
        short = ["it is not there"] if base_gang is None else list(unscheduled(base_gang, scheduled))
        if short:
            words = f"base PodGang {base} is not scheduled: {', '.join(short)}"
            return Gating(reason=BASE_NOT_SCHEDULED, message=words)
    named = set(references(gang, clique.metadata.name))
    lift = tuple(pod for pod in gated if pod.metadata.name in named)
    if len(lift) < len(gated):
        words = f"PodGang {gang.metadata.name} does not name {len(gated) - len(lift)} of {len(gated)} gated pods yet"
        return Gating(lift=lift, reason=NOT_REFERENCED, message=words)
    return Gating(lift=lift)


def is_gated(pod: Pod) -> bool:
    """Whether our gate keeps a pod from being scheduled."""
    return any(gate.name == names.GATE for gate in pod.spec.scheduling_gates)


def references(gang: PodGang, clique: str) -> Iterator[str]:
    """The pods of a clique that a gang names."""
    for group in gang.spec.pod_groups:
        if group.name == clique:
            yield from (reference.name for reference in group.pod_references)


def unscheduled(gang: PodGang, scheduled: Callable[[str], int]) -> Iterator[str]:
    """The cliques of a gang with too few pods on nodes, in words."""
    for group in gang.spec.pod_groups:
        count = scheduled(group.name)
        if count < group.min_replicas:
            yield f"PodClique {group.name} has {count} of {group.min_replicas} pods on nodes"


def correction(pod: Pod, marks: Marks, *, lift: bool) -> list[dict[str, Any]]:
    """The JSON patch that lifts a pod's gate, and makes its scheduler's marks true; empty where there is nothing to do.

    It tests what it goes by, so that it never takes another gate away or changes another pod.
    """
    operations = [
        *_marking(pod, "labels", pod.metadata.labels, marks.labels),
        *_marking(pod, "annotations", pod.metadata.annotations, marks.annotations),
    ]
    if lift:
        position = next(index for index, gate in enumerate(pod.spec.scheduling_gates) if gate.name == names.GATE)
        path = f"/spec/schedulingGates/{position}"
        operations += [{"op": "test", "path": f"{path}/name", "value": names.GATE}, {"op": "remove", "path": path}]
    return [{"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}, *operations] if operations else []


def _marking(pod: Pod, field: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    wrong = {key: value for key, value in wanted.items() if found.get(key) != value}
    if not wrong:
        return
    if not found:
        # The map itself has to be made, and must not replace one that somebody else makes in this moment.
        yield {"op": "test", "path": "/metadata/resourceVersion", "value": pod.metadata.resource_version}
        yield {"op": "add", "path": f"/metadata/{field}", "value": wrong}
        return
    for key, value in wrong.items():
        pointer = key.replace("~", "~0").replace("/", "~1")
        yield {"op": "add", "path": f"/metadata/{field}/{pointer}", "value": value}
