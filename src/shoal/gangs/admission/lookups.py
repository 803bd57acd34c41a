"""What admission has to know of other objects, read when it is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shoal.api.grove import POD_CLIQUE_SETS, TOPOLOGY_BINDINGS, ClusterTopologyBinding, PodCliqueSet
from shoal.api.meta import HasMetadata, PartialObject
from shoal.kube import Client, Informer, NotFound


@dataclass(frozen=True, kw_only=True)
class Lookups:
    """Each gives the object of that name, or None where there is none."""

    topology: Callable[[str], Awaitable[ClusterTopologyBinding | None]]
    pod_clique_set: Callable[[str, str], Awaitable[HasMetadata | None]]
    """By namespace and name; its metadata is enough."""

    @classmethod
    def live(cls, client: Client, sets: Informer[PodCliqueSet] | None = None) -> Lookups:
        """Asks the API server, so that what was made a moment ago is seen.

        Where an informer of sets is at hand, those that it knows are not asked for: every pod of a gang belongs to one.
        """

        async def topology(name: str) -> ClusterTopologyBinding | None:
            try:
                return await client.get(TOPOLOGY_BINDINGS, name)
            except NotFound:
                return None

        async def pod_clique_set(namespace: str, name: str) -> HasMetadata | None:
            if sets is not None and (known := sets.get(name, namespace)) is not None:
                return known
            try:
                return await client.get(POD_CLIQUE_SETS.view(PartialObject), name, namespace)
            except NotFound:
                return None

        return cls(topology=topology, pod_clique_set=pod_clique_set)
