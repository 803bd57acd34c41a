"""What every pod needs, kept as the objects are that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shoal.api import kai_names as names
from shoal.api.core import Pod
from shoal.scheduler.devices import device_uses
from shoal.scheduler.ground import Ground
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.storage import claim_uses
from shoal.scheduler.watching.needs.config_maps import config_map_problem, required_config_maps
from shoal.scheduler.watching.needs.devices import device_reach
from shoal.scheduler.watching.needs.gear import NO_GEAR, Gear, gear_of
from shoal.scheduler.watching.needs.need import NO_NEED, Need
from shoal.scheduler.watching.needs.stock import (
    LIMITS,
    NODES,
    Key,
    Kind,
    Look,
    ObjectKey,
    Stock,
    Topic,
    topics_of,
    use_of,
)
from shoal.scheduler.watching.needs.volumes import ATTACHABLE, volume_reach


class Needs:
    """What pods need. Asked for a pod it looks at what is known; told of a change it names the pods it concerns."""

    def __init__(self, nodes: Nodes, has_place: Callable[[Key], bool], *, queue_key: str = names.QUEUE) -> None:
        """``has_place``: whether a pod is on a node, or on its way to one."""
        self._has_place = has_place
        self._queue_key = queue_key
        self._stock = Stock()
        self._ground = Ground(nodes)
        self._gear: dict[str, Gear] = {}
        self._other_gear = NO_GEAR
        self._looked_at: dict[Key, frozenset[Topic]] = {}
        self._lookers: dict[Topic, set[Key]] = {}

    def of(self, pod: Pod, queue: Callable[[], str | None]) -> Need:
        """What a pod needs as things are. ``queue``: that of its gang, if anybody knows."""
        config_maps, claims, devices = required_config_maps(pod), claim_uses(pod), device_uses(pod)
        key = pod.metadata.namespace, pod.metadata.name
        if not (config_maps or claims or devices):
            if key in self._looked_at:
                self.forget(key)
            return NO_NEED
        look = Look(self._stock)
        look.topics |= {(str(Kind.CLAIM), key[0], use.name) for use in claims}
        look.topics |= {(str(Kind.DEVICE_CLAIM), key[0], use.name) for use in devices}
        absent = tuple(name for name in config_maps if not look.has_config_map(key[0], name))

        def users(kind: Kind, claim: Key) -> Sequence[str]:
            return self._users(kind, claim, key)

        volumes = volume_reach(pod, claims, look, self._ground, users)
        claimed = device_reach(
            pod,
            devices,
            look,
            self._ground,
            users,
            is_placed=bool(devices) and self._has_place(key),
            queue=queue,
            queue_key=self._queue_key,
        )
        if volumes.drivers:
            look.topics.add(LIMITS)
        self._note(key, frozenset(look.topics))
        allowed = [mask for mask in (volumes.nodes, claimed.nodes) if mask is not None]
        problems = [config_map_problem(absent), volumes.problem, claimed.problem]
        return Need(
            missing="; ".join(problem for problem in problems if problem),
            allowed=self._ground.names(allowed[0] if len(allowed) == 1 else allowed[0] & allowed[1])
            if allowed
            else None,
            claimed_gpus=claimed.claimed,
            taken_gpus=claimed.taken,
            attached=tuple(
                (resource, count)
                for driver, count in sorted(volumes.drivers.items())
                if (resource := f"{ATTACHABLE}{driver}") in self._other_gear.attachable
            ),
        )

    def forget(self, key: Key) -> None:
        """A pod is gone."""
        self._note(key, frozenset())

    def gear(self, node: str) -> Gear:
        """What a node has by the word of other objects."""
        return self._gear.get(node, self._other_gear)

    def is_awaited(self, key: ObjectKey, *values: Any | None) -> bool:
        """Whether a change of an object that was, or is, like this concerns anybody."""
        if key[0] in (Kind.SLICE, Kind.NODE_DRIVERS, Kind.NAMESPACE):
            return True
        return any(topic in self._lookers for topic in topics_of(key, *values))

    def take_in(self, objects: Mapping[ObjectKey, Any | None]) -> tuple[set[Key], set[str] | None]:
        """Takes what was seen of objects. Says which pods that concerns, and which nodes; None: all of these."""
        topics: set[Topic] = set()
        for key, value in objects.items():
            topics |= self._stock.put(key, value)
        nodes: set[str] | None = set()
        if any(key[0] in (Kind.SLICE, Kind.NODE_DRIVERS) for key in objects):
            before, others_before = self._gear, self._other_gear
            self._gear, self._other_gear = gear_of(self._stock)
            if self._other_gear != others_before:
                topics.add(LIMITS)
                nodes = None
            else:
                nodes = {name for name in {*before, *self._gear} if before.get(name) != self._gear.get(name)}
        return self._concerned(topics), nodes

    def stand_on(self, nodes: Nodes) -> set[Key]:
        """The nodes are others; says which pods that concerns."""
        self._ground = Ground(nodes)
        return self._concerned((NODES,))

    def beside(self, key: Key) -> set[Key]:
        """The pods that use what this pod uses, itself among them, where it matters who else does."""
        topics = (
            use_of(kind, (topic[1], topic[2]))
            for topic in self._looked_at.get(key, ())
            for kind in (Kind.CLAIM, Kind.DEVICE_CLAIM)
            if topic[0] == str(kind)
        )
        return self._concerned(topics)

    def _users(self, kind: Kind, claim: Key, asking: Key) -> list[str]:
        """The other pods that have a place and use a claim."""
        lookers = self._lookers.get((str(kind), *claim), ())
        return sorted(key[1] for key in lookers if key != asking and key[0] == claim[0] and self._has_place(key))

    def _concerned(self, topics: Iterable[Topic]) -> set[Key]:
        return {key for topic in topics for key in self._lookers.get(topic, ())}

    def _note(self, key: Key, topics: frozenset[Topic]) -> None:
        before = self._looked_at.get(key, frozenset())
        if topics == before:
            return
        for topic in before - topics:
            lookers = self._lookers[topic]
            lookers.discard(key)
            if not lookers:
                del self._lookers[topic]
        for topic in topics - before:
            self._lookers.setdefault(topic, set()).add(key)
        if topics:
            self._looked_at[key] = topics
        else:
            self._looked_at.pop(key, None)
