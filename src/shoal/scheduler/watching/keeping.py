"""Jobs that stay sorted from cycle to cycle, so that a cycle looks at those that changed and at no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shoal.scheduler.actions.pools import Key, Pools
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.plugins import Plugins
from shoal.scheduler.session.ordering import Ordering
from shoal.scheduler.session.settings import Settings


class KeptPools:
    """The pools that every cycle goes on with.

    Where a third party's plugin has a say in the order of jobs, which may change though no job does, none are kept.
    """

    def __init__(self, settings: Settings, plugins: Plugins) -> None:
        ordering = Ordering(settings, plugins)
        self._rank = None if ordering.asks_for_jobs else ordering.job_rank
        self._pools: Pools | None = None

    def renewed(self, jobs: Mapping[Key, Job], changed: Collection[Key]) -> Pools | None:
        """The pools, once these jobs have been looked at again: all that are new, gone or others since the last time.

        None where none are kept.
        """
        if self._rank is None:
            return None
        if self._pools is None:
            self._pools = Pools(jobs.values(), rank=self._rank)
        else:
            self._pools.renew(jobs, changed)
        return self._pools

    def forget(self) -> None:
        """A cycle failed, and nobody knows how far they followed: they are made anew."""
        self._pools = None
