"""The numbers of a clique's pods: each active pod has one of its own, and a new pod takes the lowest that is free.

Which numbers are free is told by the host names that we gave to pods, which nobody can change: they are made forward
and compared, never taken apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from shoal.api.core import Pod, is_active
from shoal.api.grove import names


def free_indexes(clique: str, pods: Iterable[Pod], count: int) -> list[int]:
    """The lowest numbers that no active pod of the clique has, given by its full name."""
    taken = {pod.spec.hostname for pod in pods if is_active(pod)}
    free = (index for index in itertools.count() if names.pod_hostname(clique, index) not in taken)
    return list(itertools.islice(free, count))


def index_of(pod: Pod) -> int | None:
    """The number that a pod's label says; None where somebody has changed it to none."""
    return names.index_in(pod.metadata.labels, names.POD_INDEX_LABEL)
