"""What is known of a TrainJob's pods while its objects are worked out, as immutable values.

A plugin gets an ``Info`` and gives back another one; it never changes the TrainJob, the runtime, or the Info it got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from shoal.api.meta import Document, Quantity, Resource
from shoal.api.trainer import MLPolicy, PodGroupPolicy, names
from shoal.training.framework.resources import ancestor_of, pod_spec_of
from shoal.training.framework.upserts import (
    Entries,
    Json,
    upsert_env,
    upsert_mounts,
    upsert_ports,
    upsert_volumes,
)

Seen: TypeAlias = Callable[[Resource[Document], str], Document | None]
"""An object of a kind, by its name, as it was last seen."""


def nothing_seen(kind: Resource[Document], name: str) -> Document | None:
    """Where nothing is there, or it does not matter."""
    return None


INITIALIZERS = (names.DATASET_INITIALIZER, names.MODEL_INITIALIZER)


@dataclass(frozen=True, kw_only=True)
class Container:
    """What plugins may say of a container. An empty image or command leaves the runtime's."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    env: Entries = ()
    ports: Entries = ()
    volume_mounts: Entries = ()

    @classmethod
    def of(cls, container: Json) -> Container:
        """A container of a pod template."""
        return cls(
            name=container.get("name", ""),
            env=tuple(container.get("env") or ()),
            ports=tuple(container.get("ports") or ()),
            volume_mounts=tuple(container.get("volumeMounts") or ()),
        )

    def with_env(self, new: Iterable[Json]) -> Container:
        """The container with variables."""
        return replace(self, env=upsert_env(self.env, new))

    def with_ports(self, new: Iterable[Json]) -> Container:
        """The container with ports."""
        return replace(self, ports=upsert_ports(self.ports, new))

    def with_mounts(self, new: Iterable[Json]) -> Container:
        """The container with mounts."""
        return replace(self, volume_mounts=upsert_mounts(self.volume_mounts, new))


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """The pods of one replicated job, which are all alike."""

    name: str
    ancestor: str = ""
    """What the pods do for the TrainJob: trainer, dataset-initializer or model-initializer, or nothing with a name."""
    count: int = 1
    """How many pods each of the replicated job's Jobs has."""
    replicas: int = 1
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: Entries = ()
    requests: Mapping[str, Quantity] = field(default_factory=dict)
    """What one of the pods asks for."""
    endpoints: tuple[str, ...] = ()
    """The addresses of the pods; empty until they are known."""
    depends_on: Mapping[str, str] = field(default_factory=dict)
    """The pod sets that this one waits for, and what each must have reached."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What the pods carry for their scheduler, over what their template says."""
    scheduler: str = ""
    """The scheduler of the pods, which is that of their template where it names one."""
    fields: Json = field(default_factory=dict)
    """What else their spec says to their scheduler."""
    priority_class: str = ""

    @property
    def pods(self) -> int:
        """How many pods there are in all."""
        return self.count * self.replicas

    def container(self, name: str) -> Container | None:
        """A container that is no init container."""
        return next((one for one in self.containers if one.name == name), None)

    def with_container(self, name: str, change: Callable[[Container], Container]) -> PodSet:
        """The pod set with a container changed, wherever it has one of that name."""
        return replace(self, containers=tuple(change(one) if one.name == name else one for one in self.containers))

    def with_init_container(self, name: str, change: Callable[[Container], Container]) -> PodSet:
        """The pod set with an init container changed."""
        changed = tuple(change(one) if one.name == name else one for one in self.init_containers)
        return replace(self, init_containers=changed)

    def with_volumes(self, new: Iterable[Json]) -> PodSet:
        """The pod set with volumes."""
        return replace(self, volumes=upsert_volumes(self.volumes, new))


@dataclass(frozen=True, kw_only=True)
class TrainerOverrides:
    """What replaces the runtime's words in the trainer's container: what the TrainJob says, as plugins refine it.

    None keeps the runtime's.
    """

    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: Entries = ()


@dataclass(frozen=True, kw_only=True)
class Info:
    """A runtime as it applies to one TrainJob."""

    runtime: str
    """The runtime's name."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the JobSet."""
    spec: Json = field(default_factory=dict)
    """The JobSet's, with the TrainJob's patches and resources, and without what plugins say."""
    pod_sets: tuple[PodSet, ...] = ()
    ml_policy: MLPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    trainer: TrainerOverrides = TrainerOverrides()
    seen: Seen = nothing_seen
    """What is there of the kinds that plugins build, in the TrainJob's namespace."""
    waits_for: str = ""
    """Why pods cannot be made yet, for people; empty where they can."""

    @property
    def trainer_set(self) -> PodSet | None:
        """The pods that train."""
        return next((one for one in self.pod_sets if one.ancestor == names.TRAINER_STEP), None)

    @property
    def trainer_container(self) -> Json:
        """The container that trains, as the runtime has it; empty where it has none."""
        for job in self.spec.get("replicatedJobs") or ():
            template = job.get("template") or {}
            if ancestor_of(template) == names.TRAINER_STEP:
                containers = pod_spec_of(template).get("containers") or ()
                return next((one for one in containers if one.get("name") == names.NODE), {})
        return {}

    @property
    def policy(self) -> MLPolicy:
        """How training is spread over nodes; one that says nothing where the runtime has none."""
        return self.ml_policy or MLPolicy()

    def subdomain(self, train_job: str) -> str:
        """Under what the pods of a TrainJob are found."""
        return str((self.spec.get("network") or {}).get("subdomain") or train_job)

    def meeting_point(self, train_job: str) -> str:
        """The address of the first pod that trains, where the others meet."""
        nodes = self.trainer_set
        return names.pod_address(train_job, nodes.name if nodes else names.NODE, 0, 0, self.subdomain(train_job))

    def pod_set(self, name: str) -> PodSet | None:
        """The pods of a replicated job."""
        return next((one for one in self.pod_sets if one.name == name), None)

    def with_pod_set(self, name: str, change: Callable[[PodSet], PodSet]) -> Info:
        """With the pods of a replicated job changed."""
        return self.with_pod_sets(lambda one: change(one) if one.name == name else one)

    def with_pod_sets(self, change: Callable[[PodSet], PodSet]) -> Info:
        """With all pods changed."""
        return replace(self, pod_sets=tuple(change(one) for one in self.pod_sets))

    def with_trainer_set(self, change: Callable[[PodSet], PodSet]) -> Info:
        """With the pods changed that train."""
        found = self.trainer_set
        return self if found is None else self.with_pod_set(found.name, change)

    def with_nodes(self, count: int | None) -> Info:
        """With so many pods that train; as it is where no number is named."""
        return self if count is None else self.with_trainer_set(lambda one: replace(one, count=count))
