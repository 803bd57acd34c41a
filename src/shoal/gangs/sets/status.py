"""How a set is: pure functions from what was seen of its replicas and gangs to its status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from shoal.api.grove import (
    TOPOLOGY_LEVELS_UNAVAILABLE,
    GangStatus,
    PodCliqueSet,
    PodCliqueSetStatus,
    names,
)
from shoal.api.meta import Condition, is_true, remove_condition, set_condition
from shoal.api.scheduler_grove_io import INITIALIZED, PENDING, PodGang
from shoal.gangs.last_errors import last_errors
from shoal.gangs.plan import standalone_templates
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.updates import advance, expected_hashes, is_replica_updated

DETAILED = 100
"""Of so many gangs a set's status has the conditions; of more it has the phases alone, since all of it is written
whenever one gang changes, and an object can only be so large. The PodGangs themselves have them in any case."""


@dataclass(frozen=True, kw_only=True)
class SetSeen:
    """What there is of a set."""

    replicas: Sequence[ReplicaSeen]
    """Those that the set should have, in order."""
    gangs: Sequence[PodGang]
    is_complete: bool
    """Whether everything that is made for the set and its replicas is as the set asks for."""
    problems: Sequence[Exception]
    levels: Condition | None
    """What is to be said of the topology that the set asks for."""


def status_of(pcs: PodCliqueSet, seen: SetSeen, now: datetime) -> PodCliqueSetStatus:
    """The status of a set, which comes with the hash of its templates written in (``updates.start``)."""
    before = pcs.status
    available = [replica for replica in seen.replicas if is_available(pcs, replica)]
    hashes = expected_hashes(pcs)
    updated = [replica for replica in available if is_replica_updated(pcs, replica, hashes=hashes)]
    is_done = seen.is_complete and not seen.problems and all_initialized(pcs, seen)
    return msgspec.structs.replace(
        before,
        observed_generation=pcs.metadata.generation if is_done else before.observed_generation,
        conditions=_conditions(before.conditions, seen.levels, now),
        last_errors=last_errors(before.last_errors, seen.problems, now),
        replicas=pcs.spec.replicas,
        available_replicas=len(available),
        updated_replicas=len(updated),
        hpa_pod_selector=pod_selector(pcs),
        pod_gang_statuses=gang_statuses(seen.gangs),
        update_progress=advance(pcs, seen.replicas, now),
    )


def is_available(pcs: PodCliqueSet, replica: ReplicaSeen) -> bool:
    """Whether every clique and every scaling group of a replica has the pods, or replicas, that it needs."""
    set_name = pcs.metadata.name
    for template in standalone_templates(pcs):
        clique = replica.cliques.get(names.clique(set_name, replica.index, template.name))
        if clique is None or clique.metadata.is_deleting or clique.status.ready_replicas < clique.spec.minimum:
            return False
    for config in pcs.spec.template.pod_clique_scaling_groups:
        group = replica.groups.get(names.scaling_group(set_name, replica.index, config.name))
        if group is None or group.metadata.is_deleting or group.status.available_replicas < group.spec.minimum:
            return False
    return True


def all_initialized(pcs: PodCliqueSet, seen: SetSeen) -> bool:
    """Whether every gang that there should be has all its pods, and names them."""
    initialized = {gang.metadata.name for gang in seen.gangs if is_true(gang.status.conditions, INITIALIZED)}
    return all(name in initialized for replica in seen.replicas for name in gang_names(pcs, replica))


def gang_statuses(gangs: Sequence[PodGang]) -> list[GangStatus]:
    """How each gang is, replica by replica, the base gang of each first."""
    shown = [gang for gang in sorted(gangs, key=_place) if not gang.metadata.is_deleting]
    return [
        GangStatus(
            name=gang.metadata.name,
            phase=gang.status.phase or PENDING,
            conditions=gang.status.conditions if len(shown) <= DETAILED else [],
        )
        for gang in shown
    ]


def pod_selector(pcs: PodCliqueSet) -> str:
    """The pods of a set, for autoscalers."""
    return ",".join(f"{key}={value}" for key, value in sorted(names.default_labels(pcs.metadata.name).items()))


def gang_names(pcs: PodCliqueSet, replica: ReplicaSeen) -> Iterator[str]:
    """The names of a replica's gangs: the same ones as in ``plan``, without all that is in them."""
    set_name = pcs.metadata.name
    yield names.base_gang(set_name, replica.index)
    for config in pcs.spec.template.pod_clique_scaling_groups:
        full_name = names.scaling_group(set_name, replica.index, config.name)
        group = replica.groups.get(full_name)
        count = config.count if group is None else group.spec.replicas
        for index in range(config.minimum, count):
            yield names.scaled_gang(full_name, index, config.minimum)


def _conditions(before: list[Condition], levels: Condition | None, now: datetime) -> list[Condition]:
    if levels is None:
        return remove_condition(before, TOPOLOGY_LEVELS_UNAVAILABLE)
    return set_condition(before, levels, now)


def _place(gang: PodGang) -> tuple[int, str, int, str]:
    labels = gang.metadata.labels
    return (
        names.index_in(labels, names.SET_REPLICA_LABEL) or 0,
        labels.get(names.SCALING_GROUP_LABEL, ""),
        names.index_in(labels, names.SCALING_GROUP_REPLICA_LABEL) or 0,
        gang.metadata.name,
    )
