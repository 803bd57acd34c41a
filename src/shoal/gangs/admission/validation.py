"""All rules for a PodCliqueSet, put together."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.grove import ClusterTopologyBinding, PodCliqueSet
from shoal.gangs.admission.rules.autoscaling import autoscaling_problems
from shoal.gangs.admission.rules.cliques import clique_problems, scheduler_of, scheduler_problems, set_problems
from shoal.gangs.admission.rules.mnnvl import mnnvl_problems
from shoal.gangs.admission.rules.names import metadata_problems, name_problems
from shoal.gangs.admission.rules.pods import environment_problems, placement_problems
from shoal.gangs.admission.rules.scaling_groups import group_problems, member_problems
from shoal.gangs.admission.rules.sharing import claim_template_problems, sharing_problems
from shoal.gangs.admission.rules.start_order import start_order_problems
from shoal.gangs.admission.rules.topology import new_topology_problems
from shoal.gangs.admission.rules.updates import update_problems
from shoal.gangs.backends import Backends
from shoal.gangs.settings import GangSettings
from shoal.kube.admission import FieldProblem, Finding


def set_findings(
    pcs: PodCliqueSet,
    old: PodCliqueSet | None,
    *,
    is_new: bool,
    binding: ClusterTopologyBinding | None,
    settings: GangSettings,
    backends: Backends,
) -> list[Finding]:
    """What is wrong with a set, or doubtful; ``binding`` is the topology that a new one names, if it exists.

    The scheduler's own rules are heard last, and only of a set that is sound otherwise.
    """
    found = list(_sound(pcs, settings))
    if is_new:
        found += placement_problems(pcs)
        found += new_topology_problems(pcs, binding, has_topologies=settings.has_topologies)
        found += mnnvl_problems(pcs, has_mnnvl=settings.has_mnnvl)
    if old is not None:
        found += update_problems(pcs, old, settings.default_scheduler)
    if not any(isinstance(one, FieldProblem) for one in found):
        found += _scheduler_findings(pcs, settings, backends)
    return found


def _sound(pcs: PodCliqueSet, settings: GangSettings) -> Iterator[Finding]:
    """What holds for every set at any time."""
    yield from name_problems(pcs)
    yield from metadata_problems(pcs)
    yield from set_problems(pcs)
    yield from clique_problems(pcs)
    yield from scheduler_problems(pcs, settings.default_scheduler)
    yield from start_order_problems(pcs)
    yield from autoscaling_problems(pcs)
    yield from environment_problems(pcs)
    yield from group_problems(pcs)
    yield from member_problems(pcs)
    yield from claim_template_problems(pcs)
    yield from sharing_problems(pcs)


def _scheduler_findings(pcs: PodCliqueSet, settings: GangSettings, backends: Backends) -> Iterator[Finding]:
    scheduler = scheduler_of(pcs.spec.template.cliques[0], settings.default_scheduler)
    wanted = backends.label(scheduler)
    for backend in backends:
        if backend.name == wanted:
            yield from backend.problems(pcs)
