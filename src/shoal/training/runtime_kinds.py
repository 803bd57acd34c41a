"""The kinds of runtimes that TrainJobs may name, by their registry key, and the reading of runtimes.

A kind of a third party has the same specification as a TrainingRuntime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.api.meta import Document, Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TrainJob, names
from shoal.kube import Client, NotFound
from shoal.training.framework import Unbuildable
from shoal.training.sharing import SharedReads


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


class Runtimes:
    """Runtimes as they are on the server when they are asked for; TrainJobs that begin together share what is read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reads = SharedReads[tuple[Resource[Document], str, str], Document | None](self._read)

    async def of(self, train_job: TrainJob, kind: Resource[Any]) -> Document:
        """The runtime that a TrainJob names. Raises Unbuildable where there is none."""
        name = train_job.spec.runtime_ref.name
        namespace = train_job.metadata.namespace if kind.namespaced else ""
        found = await self._reads((kind.documents(), namespace, name))
        if found is None:
            where = f" in namespace {namespace}" if namespace else ""
            raise Unbuildable(f"{kind.kind} {name!r} does not exist{where}: create it, or name another one")
        return found

    async def _read(self, key: tuple[Resource[Document], str, str]) -> Document | None:
        kind, namespace, name = key
        try:
            return await self._client.get(kind, name, namespace)
        except NotFound:
            return None
