"""PodGroups of scheduling.sigs.k8s.io, as Koordinator and the scheduler plugins of Kubernetes read them.

A PodGroup starts when so many of its pods can. Koordinator's annotation ``groups`` names PodGroups that start together:
those that name the same ones are one gang, and one that is named and not there is waited for. Pods may also say all of
it themselves, by annotations, without a PodGroup.

How long pods hold places while others find none, how many there will be in all, and whether those that hold one give it
up with the others (the annotations ``waiting-time``, ``total-number`` and ``mode``) mean nothing here: no pod of a gang
has a place before all that it needs have one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shoal.api.core.pods import Pod
from shoal.api.meta import Object, Resource
from shoal.api.scheduling_sigs_k8s_io import GROUP, POD_GROUPS, PodGroup
from shoal.scheduler.watching.dialects.plans import Branch, Facts, Leaf, Nearness, Plan, alone, planned
from shoal.scheduler.watching.groups import KOORDINATOR, Dialect, GangKey, Seat

PLUGIN_POD_GROUPS: Final = Resource(
    type=PodGroup, group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups"
)
"""The same, as the scheduler plugins have called the group since 0.24."""
KINDS: Final = (POD_GROUPS, PLUGIN_POD_GROUPS)

LAYERS: Final = {
    "blockLayer": "topology.kubernetes.io/block",
    "rackLayer": "topology.kubernetes.io/rack",
    "hostLayer": "kubernetes.io/hostname",
}
"""The layers of Koordinator's topology, widest first, and the labels that nodes carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A PodGroup, or what pods say instead of one."""

    key: GangKey
    min_member: int
    annotations: Mapping[str, str]
    objects: tuple[Object, ...] = ()

    @property
    def path(self) -> str:
        """As the annotation names it."""
        return f"{self.key.namespace}/{self.key.name}"


def group_of(key: GangKey, found: PodGroup | None, pods: Iterable[Pod]) -> Group | None:
    """A PodGroup, or one that its pods describe; None where neither is there."""
    if found is not None:
        minimum = 1 if found.spec.min_member is None else found.spec.min_member
        return Group(key=key, min_member=minimum, annotations=found.metadata.annotations, objects=(found,))
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        said = pod.metadata.annotations.get(f"{KOORDINATOR}/min-available", "")
        if said.isascii() and said.isdigit():
            return Group(key=key, min_member=int(said), annotations=pod.metadata.annotations)
    return None


def companions(group: Group) -> tuple[str, ...]:
    """The PodGroups that start together with one, itself among them, by namespace and name, in order."""
    try:
        listed = json.loads(group.annotations.get(f"{KOORDINATOR}/groups") or "[]")
    except ValueError:
        listed = []
    named = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    paths = {one if "/" in one else f"{group.key.namespace}/{one}" for one in named}
    return tuple(sorted(paths)) if group.path in paths else (group.path,)


def seat_of(group: Group) -> Seat:
    """Where the pods of a PodGroup are."""
    together = companions(group)
    if len(together) == 1:
        return Seat(gang=group.key)
    first, _, _ = together[0].partition("/")
    gang = GangKey(Dialect.COSCHEDULING, first, ",".join(together))
    return Seat(gang=gang, pod_set=_short(group.path, first))


def plan_of(groups: Sequence[Group], pods: Iterable[Pod], facts: Facts) -> Plan:
    """The gang of PodGroups that name the same ones."""
    by_path = {group.path: group for group in sorted(groups, key=lambda group: group.path)}
    named = next(iter(by_path.values()))
    together = companions(named)
    near = _near(named.annotations)
    if len(together) == 1:
        namespace, root = named.key.namespace, alone(named.min_member, near)
    else:
        namespace, _, _ = together[0].partition("/")
        leaves = (
            Leaf(name=_short(path, namespace), min_member=by_path[path].min_member if path in by_path else 1)
            for path in together
        )
        root = Branch(near=near, leaves=tuple(leaves))
    return planned(
        facts,
        f"podgroup.{GROUP}/{named.key.name}",
        [one for group in by_path.values() for one in group.objects],
        pods,
        root,
        namespace=namespace,
    )


def _short(path: str, namespace: str) -> str:
    return path.removeprefix(f"{namespace}/")


def _near(annotations: Mapping[str, str]) -> Nearness | None:
    """What Koordinator's topology asks for; a layer that must be shared and has no label here can be had nowhere."""
    try:
        said = json.loads(annotations.get(f"{KOORDINATOR}/network-topology-spec") or "{}")
        strategies = {one["layer"]: one["strategy"] for one in said.get("gatherStrategy") or ()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    must = [layer for layer, strategy in strategies.items() if strategy == "MustGather"]
    if unknown := [layer for layer in must if layer not in LAYERS]:
        return Nearness(topology=f"Koordinator's layer {unknown[0]}", required=unknown[0])
    required = [label for layer, label in LAYERS.items() if layer in must]
    preferred = [label for layer, label in LAYERS.items() if strategies.get(layer) == "PreferGather"]
    if not required and not preferred:
        return None
    levels = tuple(label for label in LAYERS.values() if label in (*required, *preferred))
    return Nearness(levels=levels, required=required[-1] if required else "", preferred="".join(preferred[-1:]))
