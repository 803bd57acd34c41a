"""What all versions share: how many groups a Workload holds, who made it, and what its groups are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.api.meta import fit_name
from shoal.api.meta.names import SUBDOMAIN_LIMIT
from shoal.api.scheduler_grove_io import POD_GANGS, GangPodGroup, PodGang
from shoal.api.scheduling_k8s_io import MOST_POD_GROUPS
from shoal.gangs.backends.backend import Untranslatable
from shoal.gangs.backends.podgang import check_labels, identity

UNTRANSLATABLE: Final = "WorkloadMappingFailed"


def controller_ref(gang: PodGang) -> dict[str, str]:
    """A Workload's link back to its gang."""
    return {"apiGroup": POD_GANGS.group, "kind": POD_GANGS.kind, "name": gang.metadata.name}


def metadata(gang: PodGang, name: str) -> dict[str, Any]:
    """The metadata of an object that is made for a gang."""
    return {**identity(gang, name), "labels": dict(gang.metadata.labels)}


def gang_policy(group: GangPodGroup) -> dict[str, Any]:
    """All or nothing; a group that needs no pod at all is no gang."""
    return {"gang": {"minCount": group.min_replicas}} if group.min_replicas else {"basic": {}}


def pod_group_name(gang: PodGang, clique: str) -> str:
    """The PodGroup of a clique's pods, where a group is an object of its own."""
    return fit_name(f"{gang.metadata.name}-{clique}", SUBDOMAIN_LIMIT)


def check(gang: PodGang) -> None:
    """Raises Untranslatable where a gang has groups that no version has names for."""
    groups = gang.spec.pod_groups
    if not groups:
        raise Untranslatable(UNTRANSLATABLE, "the gang has no groups yet")
    check_labels((group.name for group in groups), UNTRANSLATABLE, "the group")


def too_many(count: int, what: str) -> Untranslatable:
    """A gang that does not fit into one Workload."""
    return Untranslatable(
        UNTRANSLATABLE,
        f"the gang has {count} {what} and a Workload holds at most {MOST_POD_GROUPS}: its pods are scheduled one "
        "by one; use fewer cliques, or another scheduler such as kai-scheduler",
    )


def templates_of(gang: PodGang, fields: Mapping[str, Mapping[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The templates of a Workload, and which of them each clique's group is made from.

    ``fields`` say what each clique's template holds. As long as there is room every clique has a template of its own
    name; beyond that cliques that ask for the same share the template of the first of them.
    """
    cliques = [group.name for group in gang.spec.pod_groups]
    if len(cliques) <= MOST_POD_GROUPS:
        return [{"name": clique, **fields[clique]} for clique in cliques], {clique: clique for clique in cliques}
    templates: list[dict[str, Any]] = []
    chosen: dict[str, str] = {}
    for clique in cliques:
        known = next((each for each in templates if {**fields[clique], "name": each["name"]} == each), None)
        if known is None:
            known = {"name": clique, **fields[clique]}
            templates.append(known)
        chosen[clique] = known["name"]
    if len(templates) > MOST_POD_GROUPS:
        raise too_many(len(templates), "different groups")
    return templates, chosen


def minimums(entries: Iterable[Mapping[str, Any]], policy: str) -> list[tuple[str, Any]]:
    """Which groups there are, and how many pods each needs: what cannot be changed in a Workload."""
    return sorted((entry.get("name", ""), entry.get(policy)) for entry in entries)
