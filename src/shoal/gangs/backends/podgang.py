"""What several backends read of a PodGang: its minimum, its constraints, and what is copied from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.grove import names
from shoal.api.meta import LAST_APPLIED, dns1123_label_problems
from shoal.api.scheduler_grove_io import GangTopologyConstraint, PodGang
from shoal.gangs.backends.backend import Untranslatable

_ITS_OWN = (LAST_APPLIED, names.PODS_CARRY_ANNOTATION)


def required_key(constraint: GangTopologyConstraint | None) -> str:
    """The label whose value all pods must share; empty where there is none."""
    pack = constraint.pack_constraint if constraint else None
    return (pack.required if pack else None) or ""


def preferred_key(constraint: GangTopologyConstraint | None) -> str:
    """The label whose value pods should share; empty where there is none."""
    pack = constraint.pack_constraint if constraint else None
    return (pack.preferred if pack else None) or ""


def has_constraint(gang: PodGang) -> bool:
    """Whether a gang says anything of where its pods run."""
    spec = gang.spec
    parts = [spec.topology_constraint]
    parts += [group.topology_constraint for group in spec.topology_constraint_group_configs]
    parts += [group.topology_constraint for group in spec.pod_groups]
    return any(required_key(part) or preferred_key(part) for part in parts)


def copied_annotations(gang: PodGang) -> dict[str, str]:
    """The annotations of a gang, less kubectl's record of the whole object and what its pods are told."""
    return {key: value for key, value in gang.metadata.annotations.items() if key not in _ITS_OWN}


def identity(gang: PodGang, name: str) -> dict[str, str]:
    """The name and namespace of an object that is made for a gang."""
    return {"name": name, "namespace": gang.metadata.namespace}


def minimum(gang: PodGang) -> int:
    """How many pods of a gang must start together."""
    return sum(group.min_replicas for group in gang.spec.pod_groups)


def check_labels(groups: Iterable[str], reason: str, what: str) -> None:
    """Raises Untranslatable where a name of a group is no DNS label, as its scheduler demands."""
    for name in groups:
        if problems := dns1123_label_problems(name):
            raise Untranslatable(reason, f"{what} {name!r} {problems[0]}: choose shorter names without dots")


def without_empty(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that say something."""
    return {key: value for key, value in fields.items() if value not in ("", None, [], {})}
