"""A snapshot as the engine's model: its objects are noted as if they had just been seen."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import structlog

from shoal.api import kai_names as names
from shoal.api.core import NODES, PODS, Pod
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.api.meta import HasMetadata, Resource
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES, PriorityClass
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, QUEUES
from shoal.scheduler.configuration import EngineSetup, SchedulerOptions, configuration_of, engine_setup
from shoal.scheduler.numa import NODE_RESOURCE_TOPOLOGIES
from shoal.scheduler.numa import topology_of as zones_of_node
from shoal.scheduler.snapshots.parameters import options_of_parameters
from shoal.scheduler.snapshots.sections import NEEDED_SECTIONS
from shoal.scheduler.snapshots.snapshot import Snapshot
from shoal.scheduler.watching.groups import Dialect, GangKey
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.reading import Levels, job_of, queue_of, topology_of
from shoal.scheduler.watching.watches import NEEDED

T = TypeVar("T", bound=HasMetadata)
SAY_THEMSELVES: Final = frozenset({"default-scheduler", "koord-scheduler", "volcano"})
"""Schedulers whose pods say themselves to which gang they belong."""

log = structlog.get_logger("shoal.scheduler")


def setup_of(snapshot: Snapshot) -> tuple[EngineSetup, SchedulerOptions]:
    """What the scheduler was told that the snapshot is of; raises ConfigurationError."""
    options = options_of_parameters(snapshot.parameters)
    config = {name: value for name, value in snapshot.config.items() if value is not None}
    return engine_setup(configuration_of(config, source="the snapshot's configuration"), options), options


def mirror_settings(options: SchedulerOptions, setup: EngineSetup) -> MirrorSettings:
    """Whose pods these options are about."""
    schedulers = frozenset(options.scheduler_names)
    return MirrorSettings(
        scheduler_names=schedulers,
        grouped=schedulers - SAY_THEMSELVES,
        beside=frozenset(options.gangs_only),
        stuck_after=options.stuck_in_releasing_threshold,
        node_pool_key=options.node_pool_label_key,
        node_pool=options.partition_label_value,
        full_hierarchy=options.full_hierarchy_fairness,
        queue_key=options.queue_label_key,
        mig_label=options.mig_worker_label,
        filters=setup.filters,
        reads_zones=setup.settings.numa is not None,
    )


def mirror_of(snapshot: Snapshot, settings: MirrorSettings, *, now: float) -> Mirror:
    """The model. An object that does not decode is left out, and told; it keeps no other from being there."""
    mirror = Mirror(settings)
    noted = mirror.noted
    classes = {one.metadata.name: one for one in decoded(snapshot, "priorityClasses", PRIORITY_CLASSES)}
    topologies = decoded(snapshot, "topologies", TOPOLOGIES)
    levels: Levels = {
        one.metadata.name: {
            name: level.node_label for level in one.spec.levels for name in (level.alias, level.node_label) if name
        }
        for one in topologies
    }
    for topology in topologies:
        noted.topologies[topology.metadata.name] = topology_of(topology)
    for node in decoded(snapshot, "nodes", NODES):
        noted.nodes[node.metadata.name] = node
    for queue in decoded(snapshot, "queues", QUEUES):
        if settings.is_of_pool(queue.metadata.labels):
            noted.queues[queue.metadata.name] = queue_of(queue)
    for group in decoded(snapshot, "podGroups", POD_GROUPS):
        if settings.is_of_pool(group.metadata.labels):
            key = GangKey(Dialect.KAI, group.metadata.namespace, group.metadata.name)
            noted.gangs[key] = partial(job_of, group, partial(_priority, classes), levels)
    for section, kind in NEEDED_SECTIONS.items():
        for needed in decoded(snapshot, section, NEEDED[kind]):
            noted.objects[kind, needed.metadata.namespace, needed.metadata.name] = needed
    for one in decoded(snapshot, "nodeResourceTopologies", NODE_RESOURCE_TOPOLOGIES) if settings.reads_zones else ():
        noted.zones[one.metadata.name] = zones_of_node(one)
    for pod in decoded(snapshot, "pods", PODS):
        noted.pods[pod.metadata.namespace, pod.metadata.name] = _as_far_as_told(pod, snapshot)
    for request in decoded(snapshot, "bindRequests", BIND_REQUESTS):
        noted.requests[request.metadata.namespace, request.metadata.name] = request
    mirror.catch_up(now)
    return mirror


def decoded(snapshot: Snapshot, section: str, resource: Resource[T]) -> list[T]:
    """The objects of a section; one that cannot be read is left out, and told."""
    found: list[T] = []
    for one in snapshot.of(section):
        try:
            found.append(msgspec.convert(_without_nulls(one), resource.type))
        except msgspec.ValidationError as error:
            name = (one.get("metadata") or {}).get("name", "")
            log.warning("left out of the snapshot", kind=resource.kind, name=name, problem=str(error))
    return found


def _without_nulls(value: Any) -> Any:
    """Go writes null for much that it leaves empty."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _as_far_as_told(pod: Pod, snapshot: Snapshot) -> Pod:
    """A pod without what it needs of kinds that a snapshot has no section for: nobody knows whether it is there."""
    spec, told = pod.spec, snapshot.objects.keys()
    if "configMaps" not in told:
        bare: dict[str, list[Any]] = {"env": [], "env_from": [], "volume_mounts": []}
        spec = msgspec.structs.replace(
            spec,
            containers=[msgspec.structs.replace(one, **bare) for one in spec.containers],
            init_containers=[msgspec.structs.replace(one, **bare) for one in spec.init_containers],
        )
    if "persistentVolumeClaims" not in told:
        spec = msgspec.structs.replace(spec, volumes=[one for one in spec.volumes if one.config_map or one.projected])
    if "resourceClaims" not in told:
        spec = msgspec.structs.replace(spec, resource_claims=[])
    return pod if spec is pod.spec else msgspec.structs.replace(pod, spec=spec)


def _priority(classes: dict[str, PriorityClass], name: str) -> int:
    if name in classes:
        return classes[name].value
    return next((one.value for one in classes.values() if one.global_default), names.DEFAULT_PRIORITY)
