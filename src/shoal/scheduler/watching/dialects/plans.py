"""A gang as a plain value, whichever dialect it was said in.

What is said the same way makes an equal plan: so a change of an object that changes nothing here, such as its status,
changes nothing in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod
from shoal.api.meta import Object
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import DEFAULT_POD_SET, Job, PodSet, SubGroup, TopologyWish
from shoal.scheduler.watching.kinds import seconds
from shoal.scheduler.watching.reading import length_of

_NEVER_STALE: Final = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What of the cluster decides how a gang is understood."""

    priority: Callable[[str], int]
    """The number behind a PriorityClass; that of those without a class for "" and for one that is not there."""
    has_queue: Callable[[str], bool] = lambda name: False
    level: Callable[[str], tuple[str, str] | None] = lambda name: None
    """The topology and the label of a level that is called so."""
    default_queue: str = names.DEFAULT_QUEUE
    queue_key: str = names.QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """How near to each other pods are to be."""

    levels: tuple[str, ...] = ()
    """Labels of nodes, widest first, where no Topology of the cluster is meant."""
    topology: str = ""
    required: str = ""
    preferred: str = ""

    @property
    def name(self) -> str:
        """The topology that has the levels."""
        return self.topology or f"labels {' > '.join(self.levels)}"

    @property
    def wish(self) -> TopologyWish:
        """In the model's words."""
        return TopologyWish(self.name, self.required, self.preferred)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """Pods of which so many are needed."""

    name: str = DEFAULT_POD_SET
    min_member: int = 1
    near: Nearness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Parts of which so many are needed; None: all."""

    name: str = ""
    min_children: int | None = None
    near: Nearness | None = None
    branches: tuple[Branch, ...] = ()
    leaves: tuple[Leaf, ...] = ()

    def wishes(self) -> Iterator[Nearness]:
        """All that is said of nearness here and below."""
        for near in (self.near, *(leaf.near for leaf in self.leaves)):
            if near is not None:
                yield near
        for branch in self.branches:
            yield from branch.wishes()

    def grown(self) -> SubGroup:
        """As a tree of the model."""
        return SubGroup(
            name=self.name,
            min_children=self.min_children,
            topology=_wish(self.near),
            groups=[branch.grown() for branch in self.branches],
            pod_sets=[
                PodSet(name=leaf.name, min_member=leaf.min_member, topology=_wish(leaf.near)) for leaf in self.leaves
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One gang."""

    uid: str
    name: str
    namespace: str
    created: float
    queue: str
    priority: int
    is_preemptible: bool
    root: Branch
    preemption_delay: float = 0.0
    staleness_grace: float = _NEVER_STALE
    """None of those who speak so ends a gang that lost a member: only where it is asked for."""

    def job(self) -> Job:
        """As the model's job, without pods."""
        return Job(
            uid=self.uid,
            name=self.name,
            namespace=self.namespace,
            queue=self.queue,
            priority=self.priority,
            is_preemptible=self.is_preemptible,
            created=self.created,
            root=self.root.grown(),
            preemption_delay=self.preemption_delay,
            staleness_grace=self.staleness_grace,
        )

    def topologies(self) -> Iterator[Topology]:
        """The topologies that exist only because gangs name labels of nodes."""
        for near in self.root.wishes():
            if near.levels and not near.topology:
                yield Topology(near.name, near.levels)


def alone(minimum: int, near: Nearness | None = None) -> Branch:
    """The tree of a gang without parts."""
    return Branch(near=near, leaves=(Leaf(min_member=minimum),))


def missing(count: int) -> tuple[Leaf, ...]:
    """Parts that are needed and are not there yet: without them the gang is not whole, and does not start."""
    return tuple(Leaf(name=f"not there yet ({number})") for number in range(1, count + 1))


def planned(
    facts: Facts,
    name: str,
    objects: Sequence[Object],
    pods: Iterable[Pod],
    root: Branch,
    *,
    namespace: str,
    queue: str = "",
    priority_class: str = "",
    priority: int | None = None,
) -> Plan:
    """A gang of these objects, the first of which names it, and these pods.

    What an object does not say, the next does, then the pods. ``queue``: one that is taken if it is there and neither
    objects nor pods have a label.
    """
    pods = sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
    labels = [one.metadata.labels for one in (*objects, *pods)]
    annotations = [one.metadata.annotations for one in objects]
    value = _priority(facts, priority, priority_class, pods)
    preemptibility = _said(labels, names.PREEMPTIBILITY)
    grace = length_of(_said(annotations, names.STALENESS_GRACE_PERIOD))
    first = objects[0].metadata if objects else pods[0].metadata
    return Plan(
        uid=first.uid,
        name=name,
        namespace=namespace,
        created=seconds(first.creation_timestamp),
        queue=_said(labels, facts.queue_key) or (queue if queue and facts.has_queue(queue) else facts.default_queue),
        priority=value,
        is_preemptible=preemptibility == "preemptible" if preemptibility else value < names.NON_PREEMPTIBLE_FROM,
        root=root,
        preemption_delay=length_of(_said(annotations, names.PREEMPTION_DELAY)) or 0.0,
        staleness_grace=_NEVER_STALE if grace is None else grace,
    )


def _priority(facts: Facts, said: int | None, name: str, pods: Sequence[Pod]) -> int:
    if said is not None:
        return said
    if name:
        return facts.priority(name)
    return max((pod.spec.priority for pod in pods if pod.spec.priority), default=facts.priority(""))


def _said(marks: Iterable[Mapping[str, str]], key: str) -> str:
    return next((value for each in marks if (value := each.get(key))), "")


def _wish(near: Nearness | None) -> TopologyWish | None:
    return None if near is None else near.wish
