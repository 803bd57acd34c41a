"""A cycle: the actions that are asked for, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from shoal.scheduler.actions import allocate, consolidation, preempt, reclaim, stale_gangs
from shoal.scheduler.actions.giving import give_what_is_free
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.session.session import Session

ACTIONS: Final[Mapping[str, Callable[[Session, Pools], None]]] = {
    module.NAME: module.run for module in (allocate, consolidation, reclaim, preempt, stale_gangs)
}


def run(session: Session, actions: Sequence[str], pools: Pools | None = None) -> Pools:
    """Runs these actions, by their names; gives the pools that they worked with.

    ``pools``: those that are kept from cycle to cycle. They follow what the session does, and its being put back.
    """
    if pools is not None:
        session.on_change.append(pools.look_again)
    if pools is None or session.ordering.asks_for_jobs:
        pools = Pools(session.cluster.jobs.values(), rank=session.ordering.job_rank)
        session.on_change.append(pools.look_again)
    shares = session.shares
    for queue, ranked in pools.waiting.queues():
        share = shares.get(queue)
        if share is None or not share.is_leaf:
            session.without_queue += (job for _, job in ranked)
    for name in actions:
        start = time.perf_counter()
        ACTIONS[name](session, pools)
        session.measures.seconds[name] = time.perf_counter() - start
    give_what_is_free(session)
    return pools
