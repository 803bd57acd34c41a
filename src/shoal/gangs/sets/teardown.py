"""Tearing down a replica that was broken for too long: all its cliques at once, so that it starts as a whole again."""

from __future__ import annotations

import msgspec

from shoal.api.grove import (
    GANG_TERMINATION_IN_PROGRESS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from shoal.api.meta import Condition, now, set_condition
from shoal.gangs.caches import Caches
from shoal.gangs.last_errors import GangError
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.termination import is_breached
from shoal.gangs.together import all_of, raise_all, worth_telling
from shoal.kube import About, Manager, NotFound, Writer, retry_on_conflict

CODE = "ERR_DELETE_PODCLIQUESET_REPLICA"
ACTIVE = "GangTerminationActive"
"""Reason of the condition of scaling groups whose replica was torn down."""


class Teardown:
    """Deletes the cliques of replicas, and marks their scaling groups."""

    def __init__(self, manager: Manager, caches: Caches, writer: Writer) -> None:
        self._client = manager.client
        self._events = manager.events
        self._caches = caches
        self._writer = writer

    async def carry_out(self, pcs: PodCliqueSet, replica: int) -> None:
        """Deletes all cliques of a replica, those of scaled gangs too; they are made anew as any that is missing.

        They go at once, so that none is made anew while another is still there and looks well. Whoever is stopped in
        between finds the replica broken still, and begins anew: the broken cliques go last, and scaling groups are
        marked after that, since one that is marked is not found broken.
        """
        seen = ReplicaSeen.of(pcs, replica, self._caches)
        cliques = [one for one in (*seen.cliques.values(), *seen.members) if not one.metadata.is_deleting]
        for are_broken in (False, True):
            chosen = [clique for clique in cliques if is_breached(clique) is are_broken]
            failures = await all_of(CODE, (self._writer.delete(POD_CLIQUES, clique) for clique in chosen))
            if told := worth_telling(failures):
                said = f"Replica {replica} was broken for too long, and could not be torn down: {told[0]}"
                self._events.warning(About.of(POD_CLIQUE_SETS, pcs), "PodCliqueSetReplicaDeleteFailed", said)
                raise GangError(CODE, said) from told[0]
            raise_all(failures)
        self._events.normal(
            About.of(POD_CLIQUE_SETS, pcs),
            "PodCliqueSetReplicaDeleteSuccessful",
            f"Replica {replica} was broken for longer than its termination delay: deleted {len(cliques)} PodCliques",
        )
        for group in seen.groups.values():
            await retry_on_conflict(lambda found=group: self._mark(found), tries=6)  # type: ignore[misc]

    async def _mark(self, seen: PodCliqueScalingGroup) -> None:
        """Says on a scaling group that it was torn down; it is read anew, since its own controller writes there too."""
        try:
            group = await self._client.get(SCALING_GROUPS, seen.metadata.name, seen.metadata.namespace)
        except NotFound:
            return
        if group.metadata.uid != seen.metadata.uid:
            return  # another one, which was never broken
        condition = Condition(
            type=GANG_TERMINATION_IN_PROGRESS,
            status="True",
            reason=ACTIVE,
            message="the replica of the set was torn down, and is not well again yet",
            observed_generation=group.metadata.generation,
        )
        conditions = set_condition(group.status.conditions, condition, now())
        after = msgspec.structs.replace(group.status, conditions=conditions)
        await self._writer.patch_status(SCALING_GROUPS, group, before=group.status, after=after)
