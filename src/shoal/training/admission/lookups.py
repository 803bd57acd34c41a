"""What admission has to know of other objects, read from the API server when it is asked for.

Never from a cache: a TrainJob that is posted right after its runtime is not to be refused. What is read for one may be
for others who have asked meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import yaml

from shoal.api.core import CONFIG_MAPS
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import HasMetadata, PartialObject, Resource
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.trainer import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    RuntimeReference,
    TrainingRuntime,
    TrainingRuntimeSpec,
    names,
)
from shoal.kube import Client, NotFound
from shoal.training.sharing import SharedReads

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, kw_only=True)
class Lookups:
    """Each gives what was asked for, or None where there is none."""

    runtime: Callable[[RuntimeReference, str], Awaitable[ClusterTrainingRuntime | TrainingRuntime | None]]
    """By reference and namespace; a ClusterTrainingRuntime is in none."""
    snapshot: Callable[[str, str], Awaitable[TrainingRuntimeSpec | None]]
    """The runtime of a TrainJob as it was when the TrainJob began, by the TrainJob's namespace and name."""
    active_jobs: Callable[[str, str], Awaitable[tuple[str, ...]]]
    """The replicated jobs of a TrainJob that have pods, by its namespace and name."""
    has_priority_class: Callable[[str], Awaitable[bool]]
    runtimes: Callable[[str], Awaitable[tuple[RuntimeReference, ...]]]
    """All runtimes that a TrainJob of a namespace may name."""

    @classmethod
    def live(cls, client: Client) -> Lookups:
        """Asks the API server, so that what was made a moment ago is seen."""

        async def found(resource: Resource[T], name: str, namespace: str = "") -> T | None:
            try:
                return await client.get(resource, name, namespace) if name else None
            except NotFound:
                return None

        in_namespaces = SharedReads[tuple[str, str], TrainingRuntime | None](
            lambda key: found(TRAINING_RUNTIMES, name=key[1], namespace=key[0])
        )
        in_none = SharedReads[str, ClusterTrainingRuntime | None](lambda name: found(CLUSTER_TRAINING_RUNTIMES, name))

        async def runtime(
            reference: RuntimeReference, namespace: str
        ) -> ClusterTrainingRuntime | TrainingRuntime | None:
            if reference.kind == names.TRAINING_RUNTIME:
                return await in_namespaces((namespace, reference.name))
            return await in_none(reference.name)

        async def snapshot(namespace: str, train_job: str) -> TrainingRuntimeSpec | None:
            kept = await found(CONFIG_MAPS, names.runtime_snapshot(train_job), namespace)
            return runtime_in(kept.data.get(names.SNAPSHOT_KEY, "")) if kept is not None else None

        async def active_jobs(namespace: str, train_job: str) -> tuple[str, ...]:
            job_set = await found(JOB_SETS, train_job, namespace)
            statuses = job_set.status.replicated_jobs_status if job_set is not None else ()
            return tuple(each.name for each in statuses if each.active > 0)

        async def has_priority_class(name: str) -> bool:
            return await found(PRIORITY_CLASSES.view(PartialObject), name) is not None

        async def runtimes(namespace: str) -> tuple[RuntimeReference, ...]:
            kinds = ((CLUSTER_TRAINING_RUNTIMES, ""), (TRAINING_RUNTIMES, namespace))
            listings = [(kind, await client.list(kind.view(PartialObject), place)) for kind, place in kinds]
            return tuple(
                RuntimeReference(kind=kind.kind, name=one.metadata.name)
                for kind, found in listings
                for one in found.items
            )

        return cls(
            runtime=runtime,
            snapshot=snapshot,
            active_jobs=active_jobs,
            has_priority_class=has_priority_class,
            runtimes=runtimes,
        )


def runtime_in(snapshot: str) -> TrainingRuntimeSpec | None:
    """What a snapshot says of its runtime; None where somebody has made something else of it."""
    try:
        return msgspec.convert(yaml.safe_load(snapshot), TrainingRuntime).spec
    except (yaml.YAMLError, msgspec.ValidationError):
        return None
