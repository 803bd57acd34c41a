"""Zones, pods and clusters of both in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod
from shoal.scheduler.actions import cycle
from shoal.scheduler.numa import NodeResourceTopology, NodeTopology, NumaSettings, Policy, Scope, Zone, topology_of
from shoal.scheduler.numa.topologies import a_topology
from shoal.scheduler.resource_lists import amounts_of
from shoal.scheduler.session.session import Bind, Session
from shoal.scheduler.session.settings import PLUGINS, Settings
from shoal.scheduler.watching.groups import Dialect, GangKey
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.reading import job_of, queue_of
from tests.scheduler.watching.worlds import MOMENT, a_gpu_node, a_group, a_mirrored_pod
from tests.support.builders.queues import a_queue

GPU = names.NVIDIA_GPU
Asked = Mapping[str, str]


def zones(
    *amounts: Asked,
    policy: Policy = Policy.SINGLE_NUMA_NODE,
    scope: Scope = Scope.CONTAINER,
    free: Sequence[Asked] = (),
) -> NodeTopology:
    """Zones ``node-0``, ``node-1`` … that have so much, and of which so much is free: all of it, if nothing is said."""
    made = [
        Zone(f"node-{place}", amounts_of(own), amounts_of(left))
        for place, (own, left) in enumerate(zip(amounts, free or amounts, strict=True))
    ]
    return a_topology(policy, scope, made)


def a_report(
    node: str,
    *amounts: Asked,
    policy: str = "single-numa-node",
    scope: str = "container",
    free: Sequence[Asked] = (),
    **more: Any,
) -> dict[str, Any]:
    """A NodeResourceTopology, as the agents of nodes write it."""
    made = [
        {
            "name": f"node-{place}",
            "type": "Node",
            "resources": [
                {"name": name, "capacity": nano, "allocatable": nano, "available": left.get(name, "0")}
                for name, nano in own.items()
            ],
        }
        for place, (own, left) in enumerate(zip(amounts, free or amounts, strict=True))
    ]
    said = [{"name": "topologyManagerPolicy", "value": policy}, {"name": "topologyManagerScope", "value": scope}]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": said,
        "zones": made,
        **more,
    }


def read(report: Mapping[str, Any]) -> NodeTopology | None:
    """What a report says."""
    return topology_of(msgspec.convert(report, NodeResourceTopology))


def a_container(asks: Asked, *, stays: bool = False) -> dict[str, Any]:
    """A container that asks for so much, and gets no more."""
    made: dict[str, Any] = {"name": "one", "resources": {"requests": dict(asks), "limits": dict(asks)}}
    return {**made, "restartPolicy": "Always"} if stays else made


def a_numa_pod(
    name: str, *asks: Asked, first: Sequence[dict[str, Any]] = (), quality: str = "Guaranteed", **more: Any
) -> Pod:
    """A pod of one container for each of these, after those that come first."""
    containers = [a_container(one) for one in asks]
    given = {"scheduler": "default-scheduler", **more}
    return a_mirrored_pod(name, containers=containers, init=first, status={"qosClass": quality}, **given)


class Stage:
    """A model of nodes with zones, and cycles on it."""

    def __init__(self, *, reads_zones: bool = True, numa: NumaSettings = NumaSettings()) -> None:
        schedulers = frozenset({"default-scheduler", names.SCHEDULER})
        self.mirror = Mirror(
            MirrorSettings(scheduler_names=schedulers, grouped=frozenset({names.SCHEDULER}), reads_zones=reads_zones)
        )
        self.settings = Settings(plugins=(*PLUGINS, "numa"), numa=numa if reads_zones else None)
        self.mirror.noted.queues[names.DEFAULT_QUEUE] = queue_of(a_queue(names.DEFAULT_QUEUE, quota=4))
        self.now = MOMENT

    def node(self, name: str, *amounts: Asked, gpus: int = 8, cpu: str = "32", **more: Any) -> None:
        """A node, and its zones if it has any."""
        self.mirror.noted.nodes[name] = a_gpu_node(name, gpus=gpus, cpu=cpu)
        if amounts:
            self.mirror.noted.zones[name] = read(a_report(name, *amounts, **more))

    def pod(self, name: str, *asks: Asked, **more: Any) -> None:
        """A pod."""
        self.mirror.noted.pods["default", name] = a_numa_pod(name, *asks, **more)

    def gang(self, name: str, members: int, asks: Asked, *, at_least: int | None = None) -> None:
        """Pods that start together, or not at all."""
        group = a_group(name, queue=names.DEFAULT_QUEUE, members=members if at_least is None else at_least)
        self.mirror.noted.gangs[GangKey(Dialect.KAI, "default", name)] = partial(job_of, group, lambda _: 50, {})
        for place in range(members):
            self.pod(f"{name}-{place}", asks, group=name, scheduler=names.SCHEDULER)

    def decide(self, *actions: str) -> Session:
        """A cycle's session, still open."""
        mirror = self.mirror
        mirror.catch_up(self.now)
        session = Session(
            mirror.cluster,
            self.settings,
            now=self.now,
            filters=mirror.filters,
            pods=mirror.pods,
            shares=mirror.shares,
            numa=mirror.numa(self.settings.numa),
        )
        cycle.run(session, actions or ("allocate",))
        return session

    def cycle(self, *actions: str) -> dict[str, str]:
        """One cycle: whoever gets a place has it from now on. The nodes, by pod."""
        session = self.decide(*actions)
        self.carry_out(session)
        return places(session)

    def carry_out(self, session: Session) -> None:
        """Whoever got a place has it from now on."""
        session.close()
        for one in session.decisions:
            if isinstance(one, Bind):
                self.mirror.assume(one.task, one.node, one.gpu_groups, until=self.now + 100, zones=one.zones)


def places(session: Session) -> dict[str, str]:
    """The nodes that were given, by pod."""
    return {one.task.name: one.node for one in session.decisions if isinstance(one, Bind)}


def zones_given(session: Session) -> dict[str, list[str]]:
    """The zones that were given, by pod."""
    return {one.task.name: [name for name, _ in one.zones] for one in session.decisions if isinstance(one, Bind)}
