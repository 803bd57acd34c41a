"""The rules for ClusterTopologyBindings."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shoal.api.grove import ClusterTopologyBinding
from shoal.gangs.admission.rules.places import repeated
from shoal.kube.admission import FieldProblem, not_supported, required


def binding_problems(binding: ClusterTopologyBinding, topology_schedulers: Collection[str]) -> Iterator[FieldProblem]:
    """Each level is one of its own, and each scheduler is named once and knows topologies."""
    domains: set[str] = set()
    keys: set[str] = set()
    if not binding.spec.levels:
        yield required("spec.levels", "a topology has at least one level")
    for index, level in enumerate(binding.spec.levels):
        path = f"spec.levels[{index}]"
        if level.domain in domains:
            yield repeated(f"{path}.domain", level.domain, "name each level differently")
        if level.key in keys:
            yield repeated(f"{path}.key", level.key, "two levels cannot go by the same node label")
        domains.add(level.domain)
        keys.add(level.key)
    schedulers: set[str] = set()
    for index, entry in enumerate(binding.spec.scheduler_topology_bindings):
        path = f"spec.schedulerTopologyBindings[{index}].schedulerName"
        if not entry.scheduler_name:
            yield required(path, "name the scheduler whose topology is meant")
        elif entry.scheduler_name in schedulers:
            yield repeated(path, entry.scheduler_name, "name each scheduler once")
        elif entry.scheduler_name not in topology_schedulers:
            yield not_supported(path, entry.scheduler_name, sorted(topology_schedulers))
        schedulers.add(entry.scheduler_name)
