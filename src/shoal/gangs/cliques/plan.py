"""How many pods a clique lacks, and which of them it gives up when it has too many.

A pod that is on its way out counts as gone, so that its replacement is made at once. One that has ended, well or badly,
still counts until somebody deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.api.core import PENDING, RUNNING, Pod, is_ready
from shoal.api.grove import names
from shoal.gangs.cliques.indexes import index_of

_PHASES = {PENDING: 0, "Unknown": 1, RUNNING: 2}


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """What brings a clique to its size: pods to make, or pods to delete."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def sizing(pods: Sequence[Pod], *, replicas: int, template_hash: str) -> Sizing:
    """What is missing or too much; ``template_hash`` is that of pods that are made now."""
    staying = [pod for pod in pods if not pod.metadata.is_deleting]
    surplus = len(staying) - replicas
    if surplus > 0:
        return Sizing(delete=tuple(first_to_go(staying, template_hash)[:surplus]))
    return Sizing(create=-surplus)


def first_to_go(pods: Sequence[Pod], template_hash: str) -> list[Pod]:
    """The pods, those whose loss costs least at the front.

    Those without a node, then pending ones, then those that are not ready, then those of an old template, then the
    youngest; of those that were made in the same second the one with the highest number.
    """
    youngest_first = sorted(pods, key=_age, reverse=True)
    return sorted(youngest_first, key=lambda pod: _worth(pod, template_hash))


def _worth(pod: Pod, template_hash: str) -> tuple[bool, int, bool, bool]:
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == template_hash,
    )


def _age(pod: Pod) -> tuple[float, int]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, index_of(pod) or 0)
