"""What has changed from one view to another, found without looking into what is the same object in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from shoal.api.visualizer import ClusterView, View

Part = TypeVar("Part", bound=View)


class Difference(NamedTuple):
    """The keys of what is new or other than before, and of what is gone."""

    upserted: list[str]
    deleted: list[str]

    @property
    def size(self) -> int:
        """How many have changed."""
        return len(self.upserted) + len(self.deleted)


class Changes(NamedTuple):
    """What has changed of each kind."""

    nodes: Difference
    queues: Difference
    jobs: dict[str, Difference]
    """By namespace, where there are any."""

    @property
    def size(self) -> int:
        """How many have changed."""
        return self.nodes.size + self.queues.size + sum(difference.size for difference in self.jobs.values())


def changes(before: ClusterView, after: ClusterView) -> Changes:
    """What became of each part of a view."""
    jobs: dict[str, Difference] = {}
    if before.jobs is not after.jobs:
        for namespace in sorted(before.jobs.keys() | after.jobs.keys()):
            difference = _difference(before.jobs.get(namespace, {}), after.jobs.get(namespace, {}))
            if difference.size:
                jobs[namespace] = difference
    return Changes(_difference(before.nodes, after.nodes), _difference(before.queues, after.queues), jobs)


def _difference(before: Mapping[str, Part], after: Mapping[str, Part]) -> Difference:
    if before is after:
        return Difference([], [])
    upserted = [key for key, part in after.items() if (was := before.get(key)) is not part and was != part]
    return Difference(sorted(upserted), sorted(key for key in before if key not in after))
