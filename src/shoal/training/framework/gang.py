"""Which of a TrainJob's pods start together.

All but those that must have ended before others begin: initializers, and whatever another pod set waits for to be
complete. Nor can a gang wait for pods that are made only when others of it are ready, as MPI's launcher is: those
belong to it and are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.jobset.job_sets import COMPLETE
from shoal.training.framework.info import INITIALIZERS, Info, PodSet
from shoal.training.framework.resources import Amounts, sum_of, times


@dataclass(frozen=True, kw_only=True)
class Gang:
    """The pods that start together, and those that go before them."""

    members: tuple[PodSet, ...]
    counted: tuple[PodSet, ...]
    """Those members without which none starts."""
    earlier: tuple[PodSet, ...]
    """The pod sets that end before the gang begins; each is on its own."""

    @property
    def minimum(self) -> int:
        """How many pods start together."""
        return sum(one.pods for one in self.counted)

    @property
    def resources(self) -> Amounts:
        """What they ask for, all together."""
        return sum_of(times(one.pods, one.requests) for one in self.counted)

    def has(self, pod_set: PodSet) -> bool:
        """Whether pods belong to the gang."""
        return any(one.name == pod_set.name for one in self.members)


def gang_of(info: Info) -> Gang:
    """The gang of a TrainJob's pods."""
    awaited = {name for one in info.pod_sets for name, reached in one.depends_on.items() if reached == COMPLETE}
    earlier = tuple(one for one in info.pod_sets if one.ancestor in INITIALIZERS or one.name in awaited)
    members = tuple(one for one in info.pod_sets if one not in earlier)
    named = {one.name for one in members}
    counted = tuple(one for one in members if not named & one.depends_on.keys())
    return Gang(members=members, counted=counted, earlier=earlier)
