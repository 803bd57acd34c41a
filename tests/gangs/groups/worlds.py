"""A scaling group of two cliques whose replicas are in the states that a test names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.grove import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueSetUpdate,
    ReplicaUpdate,
)
from shoal.gangs.groups.replicas import GroupReplica, group_replicas
from shoal.gangs.hashes import generation_hash
from shoal.gangs.plan import group_cliques
from shoal.gangs.updates import expected_hashes
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed
from tests.gangs.groups.observed import MADE, WELL, a_clique, ago, breached, scheduled

ROLLING = PodCliqueSetUpdate(update_started_at=MADE, currently_updating=[ReplicaUpdate(replica_index=0)])
GROUP = a_scaling_group_template("group", ["leader", "worker"], 3)


def the_set(
    version: int = 1, *, progress: PodCliqueSetUpdate | None = None, known: int | None = None, **fields: Any
) -> PodCliqueSet:
    """A set of a version of its templates; its status knows of the same, or of another one."""
    cliques = [
        a_clique_template(name, 1, pod_spec=a_pod_spec(hostname=f"version-{version}")) for name in ("leader", "worker")
    ]
    pcs = typed(a_set("web", *cliques, groups=[GROUP], **fields))
    seen = generation_hash(pcs) if known is None else generation_hash(the_set(known))
    status = msgspec.structs.replace(pcs.status, current_generation_hash=seen, update_progress=progress)
    return msgspec.structs.replace(pcs, status=status)


def cliques_of(index: int, state: str, version: int) -> list[PodClique]:
    """The cliques of a replica that is so; what is wrong is wrong with its worker."""
    pcs = the_set(version)
    told: dict[str, Any] = {
        "well": {},
        "fresh": {"ready": 0, "current_hash": "", "conditions": ()},
        "pending": {"ready": 0, "conditions": [scheduled("False", MADE), breached("True", MADE)]},
        "unready": {"ready": 0, "conditions": [scheduled("True"), breached("False")]},
        "broken": {"ready": 0, "conditions": [scheduled("True"), breached("True", ago(hours=2))]},
        "going": {"deleting": True},
        "old pods": {"current_hash": "another"},
    }
    if state == "missing":
        return []
    found = []
    for planned in group_cliques(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0], index):
        template_hash = expected_hashes(pcs)[planned.template.name]
        wrong = told.get(state, {}) if planned.template.name == "worker" else {}
        found.append(
            a_clique(planned.name, **{"template_hash": template_hash, "minimum": 1, "conditions": WELL, **wrong})
        )
    return found[:1] if state == "half" else found


def replicas_of(pcs: PodCliqueSet, *states: tuple[str, int]) -> list[GroupReplica]:
    """What a controller sees of replicas that are in these states, each of a version of the templates."""
    cliques = [clique for index, (state, version) in enumerate(states) for clique in cliques_of(index, state, version)]
    template = pcs.spec.template.pod_clique_scaling_groups[0]
    return group_replicas(pcs, 0, template, len(states), cliques, expected_hashes(pcs))


def with_status(group: PodCliqueScalingGroup, **status: Any) -> PodCliqueScalingGroup:
    return msgspec.structs.replace(group, status=msgspec.structs.replace(group.status, **status))


def all_are(state: str, version: int, count: int = 3) -> Sequence[tuple[str, int]]:
    return [(state, version)] * count
