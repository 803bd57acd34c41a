"""What a rule decides about: a pod, the objects above it, and what the cluster knows of priorities."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from shoal.scheduler.grouper.defaults import KindDefaults
from shoal.scheduler.grouper.definitions import Definition, KindKey
from shoal.scheduler.grouper.fields import Json, annotations_of, group_kind, labels_of
from shoal.scheduler.grouper.pods import GroupedPod, as_owner
from shoal.scheduler.grouper.settings import GrouperSettings


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What holds for all pods."""

    settings: GrouperSettings = field(default_factory=GrouperSettings)
    priority_classes: Collection[str] = frozenset()
    """The PriorityClasses that exist: names of others are passed over."""
    defaults: Mapping[str, KindDefaults] = field(default_factory=dict)
    """Default priorities, by ``Kind.group`` or ``Kind``."""
    definitions: Mapping[KindKey, Definition] = field(default_factory=dict)
    """How kinds that no rule knows are grouped, by API version and kind."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One pod with everything above it, as plain JSON."""

    pod: GroupedPod
    owners: tuple[Json, ...] = ()
    """From the pod upwards; empty where nobody owns the pod, or its owner may not be read."""
    beside: Json | None = None
    """The object beside the owners that the rule asked for, such as the PodGang of a Grove pod."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Group and kind of the owners above that no group is made for, topmost first."""
    members: tuple[GroupedPod, ...] = ()
    """The pods that are known to be in the same group, this one included; empty where only its name is asked for."""
    facts: Facts = field(default_factory=Facts)

    @property
    def top(self) -> Json:
        """The object that the group is made for, as long as a rule does not choose another."""
        return self.owners[-1] if self.owners else as_owner(self.pod)

    def below_top(self) -> Case:
        """The same pod without the topmost owner; what that one is labelled with, the next one inherits."""
        above = self.owners[-1]
        heir = self.owners[-2] if len(self.owners) > 1 else as_owner(self.pod)
        owners = (*self.owners[:-2], inheriting(heir, above))
        return replace(self, owners=owners, skipped=(*self.skipped, group_kind(above)))

    @property
    def kinds(self) -> Iterator[tuple[str, str]]:
        """Group and kind of everything above the pod, topmost first, and of the pod itself where there is nothing."""
        yield from self.skipped
        yield from (group_kind(owner) for owner in reversed(self.owners or (self.top,)))


def inheriting(heir: Json, above: Json) -> Json:
    """An object with the labels and annotations of another, where it has none of its own."""
    metadata = {
        **heir["metadata"],
        "labels": {**labels_of(above), **labels_of(heir)},
        "annotations": {**annotations_of(above), **annotations_of(heir)},
    }
    return {**heir, "metadata": metadata}
