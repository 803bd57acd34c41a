"""The kinds of runtimes that TrainJobs may name, by their registry key, and reading one of them.

A kind of a third party has the same specification as a TrainingRuntime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TrainJob, names
from shoal.kube import Client, NotFound
from shoal.training.framework import Unbuildable


class RuntimeKinds:
    """Kinds of runtimes by registry key, such as ``ClusterTrainingRuntime.trainer.kubeflow.org``."""

    def __init__(self, kinds: Iterable[Resource[Any]] = (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)) -> None:
        self._kinds = {names.registry_key(kind.kind, kind.group): kind for kind in kinds}

    def __contains__(self, key: str) -> bool:
        return key in self._kinds

    def __iter__(self) -> Iterator[Resource[Any]]:
        return iter(self._kinds.values())

    def of(self, train_job: TrainJob) -> Resource[Any] | None:
        """The kind of a TrainJob's runtime, if it is known."""
        return self._kinds.get(train_job.spec.runtime_ref.key)


async def read_runtime(client: Client, kind: Resource[Any], train_job: TrainJob) -> Document:
    """The runtime that a TrainJob names, as it is on the server now. Raises Unbuildable where there is none."""
    name = train_job.spec.runtime_ref.name
    namespace = train_job.metadata.namespace if kind.namespaced else ""
    try:
        return await client.get(kind.documents(), name, namespace)
    except NotFound as error:
        where = f" in namespace {namespace}" if namespace else ""
        raise Unbuildable(f"{kind.kind} {name!r} does not exist{where}: create it, or name another one") from error
