"""Whether a gang may be evicted for others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.api import kai_names as names
from shoal.api.scheduling_k8s_io import PriorityClass
from shoal.api.scheduling_run_ai import PodGroupSpec

PREEMPTIBLE: Final = "preemptible"
NON_PREEMPTIBLE: Final = "non-preemptible"


def is_preemptible(spec: PodGroupSpec, priority: int) -> bool:
    """What the gang says of itself, else whether its priority is low enough."""
    if spec.preemptibility in (PREEMPTIBLE, NON_PREEMPTIBLE):
        return spec.preemptibility == PREEMPTIBLE
    return priority < names.NON_PREEMPTIBLE_FROM


def priority_of(own: PriorityClass | None, classes: Iterable[PriorityClass]) -> int:
    """The value of a gang's own class; else of the cluster's default class, else 50.

    Where several classes say that they are the default the lowest counts, as for pods.
    """
    if own is not None:
        return own.value
    return min((each.value for each in classes if each.global_default), default=names.DEFAULT_PRIORITY)
