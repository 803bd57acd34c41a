"""TrainJobs: one training run, described by what differs from its runtime."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from shoal.api.crd import (
    Column,
    CustomResource,
    Int32,
    Int64,
    KubernetesType,
    Rule,
    Version,
    field_schema,
    struct_schema,
)
from shoal.api.meta import Condition, Object, Resource, ResourceList, Wire, is_true
from shoal.api.trainer.embedded import Environment
from shoal.api.trainer.names import (
    CLUSTER_TRAINING_RUNTIME,
    COMPLETE,
    FAILED,
    GROUP,
    MANAGED_BY,
    MANAGED_BY_MULTIKUEUE,
    VERSION,
    registry_key,
)
from shoal.api.trainer.runtime_patches import IMMUTABLE, RuntimePatch

_WORD_LENGTH = 1048576
Words: TypeAlias = Annotated[
    list[Annotated[str, field_schema(max_length=_WORD_LENGTH)]] | None,
    field_schema(list_type="atomic", max_items=128),
]


class RuntimeReference(Wire, frozen=True, kw_only=True):
    """The runtime that a TrainJob is run by."""

    name: Annotated[str, field_schema("The runtime.", required=True, min_length=1, max_length=253)] = ""
    api_group: Annotated[str, field_schema("Its API group.", default=GROUP, max_length=253)] = GROUP
    kind: Annotated[str, field_schema("Its kind.", default=CLUSTER_TRAINING_RUNTIME, max_length=253)] = (
        CLUSTER_TRAINING_RUNTIME
    )

    @property
    def key(self) -> str:
        """By what its kind is registered."""
        return registry_key(self.kind, self.api_group)


class SecretReference(Wire, frozen=True, kw_only=True):
    """A Secret of the same namespace."""

    name: Annotated[str, field_schema("The Secret.", default="")] = ""


class InitializerSource(Wire, frozen=True, kw_only=True):
    """Where a dataset or a model comes from."""

    storage_uri: Annotated[
        str | None,
        field_schema(
            "Where it is, as in hf://org/name.",
            max_length=2048,
            rules=[
                Rule(
                    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
                    "storageUri may be empty, or it must be a valid URI (scheme://...)",
                )
            ],
        ),
    ] = None
    env: Annotated[Environment, field_schema("Variables for the initializer.")] = []
    secret_ref: Annotated[
        SecretReference | None,
        field_schema("A Secret whose keys become variables.", shape=KubernetesType("core.v1.LocalObjectReference")),
    ] = None


class Initializer(Wire, frozen=True, kw_only=True):
    """What is fetched before training begins."""

    dataset: Annotated[InitializerSource | None, field_schema("The dataset.")] = None
    model: Annotated[InitializerSource | None, field_schema("The model.")] = None


class ResourcesPerNode(Wire, frozen=True, kw_only=True):
    """What each node asks for, and may not exceed."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[dict[str, Any]] = []


class Trainer(Wire, frozen=True, kw_only=True):
    """What the nodes run."""

    image: Annotated[str | None, field_schema("The image.", max_length=500)] = None
    command: Annotated[Words, field_schema("The program; the runtime's where unset.")] = None
    args: Annotated[Words, field_schema("Its arguments; the runtime's where unset.")] = None
    env: Annotated[Environment, field_schema("Variables of its environment.")] = []
    num_nodes: Annotated[Int32 | None, field_schema("How many nodes train.", minimum=0)] = None
    resources_per_node: Annotated[
        ResourcesPerNode | None,
        field_schema("What each node asks for.", shape=KubernetesType("core.v1.ResourceRequirements")),
    ] = None
    num_proc_per_node: Annotated[
        Int32 | None,
        field_schema(
            "How many processes train on each node.",
            rules=[Rule("self >= 1", "numProcPerNode must be greater than or equal to 1")],
        ),
    ] = None


class TrainJobSpec(Wire, frozen=True, kw_only=True):
    """One training run: its runtime, and what differs from it."""

    runtime_ref: Annotated[
        RuntimeReference, field_schema("The runtime that it is run by.", required=True, rules=[IMMUTABLE])
    ] = RuntimeReference()
    initializer: Annotated[
        Initializer | None, field_schema("What is fetched before training begins.", rules=[IMMUTABLE])
    ] = None
    trainer: Annotated[Trainer | None, field_schema("What the nodes run.", rules=[IMMUTABLE])] = None
    runtime_patches: Annotated[
        list[RuntimePatch],
        field_schema("Changes of the runtime.", list_type="map", list_map_keys=["manager"], max_items=16),
    ] = []
    suspend: Annotated[bool, field_schema("Whether it is to wait.", default=False)] = False
    active_deadline_seconds: Annotated[
        Int64 | None, field_schema("How long it may run.", minimum=1, rules=[IMMUTABLE])
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, field_schema("How long it is kept once it has finished; for ever where unset.", minimum=0)
    ] = None
    managed_by: Annotated[
        str,
        field_schema(
            "Who looks after it.",
            default=MANAGED_BY,
            max_length=253,
            rules=[
                Rule(
                    f"self in ['{MANAGED_BY}', '{MANAGED_BY_MULTIKUEUE}']",
                    f"ManagedBy must be {MANAGED_BY} or {MANAGED_BY_MULTIKUEUE} if set",
                ),
                IMMUTABLE,
            ],
        ),
    ] = MANAGED_BY


class JobStatus(Wire, frozen=True, kw_only=True):
    """How the Jobs of one replicated job are. Every number is written, zero too: clients insist on it."""

    name: Annotated[str, field_schema("The replicated job.", min_length=1, max_length=253)]
    ready: Annotated[Int32, field_schema("Jobs whose pods are ready or have succeeded.", minimum=0)]
    succeeded: Annotated[Int32, field_schema("Jobs that have succeeded.", minimum=0)]
    failed: Annotated[Int32, field_schema("Jobs that have failed.", minimum=0)]
    active: Annotated[Int32, field_schema("Jobs with pods that run or wait.", minimum=0)]
    suspended: Annotated[Int32, field_schema("Jobs that are suspended.", minimum=0)]


class Metric(Wire, frozen=True, kw_only=True):
    """A figure that training reports, such as its loss."""

    name: Annotated[str, field_schema("Its name.", min_length=1, max_length=64)]
    value: Annotated[str, field_schema("Its value.", min_length=1, max_length=64)]


class TrainerStatus(Wire, frozen=True, kw_only=True):
    """How far training is, as the training program itself reports it."""

    SCHEMA = struct_schema(
        rules=[Rule("has(self.lastUpdatedTime)", "lastUpdatedTime is required when trainerStatus is present")]
    )

    progress_percentage: Annotated[
        Int32 | None, field_schema("How much is done, in percent.", minimum=0, maximum=100)
    ] = None
    estimated_remaining_seconds: Annotated[Int32 | None, field_schema("How long the rest takes.", minimum=0)] = None
    metrics: Annotated[list[Metric], field_schema("What it measures.", list_type="atomic", max_items=256)] = []
    last_updated_time: Annotated[datetime | None, field_schema("When this was reported.")] = None


class LastError(Wire, frozen=True, kw_only=True):
    """What last kept a TrainJob's objects from being made."""

    time: Annotated[datetime, field_schema("When this went wrong first.")]
    message: Annotated[str, field_schema("What went wrong.", max_length=32768)]


class TrainJobStatus(Wire, frozen=True, kw_only=True):
    """How a training run is. An empty status is refused: it is either not there or says something."""

    SCHEMA = struct_schema(min_properties=1)

    conditions: Annotated[
        list[Condition],
        field_schema(
            "Suspended, Complete or Failed; none while it runs.",
            list_type="map",
            list_map_keys=["type"],
            max_items=8,
        ),
    ] = []
    jobs_status: Annotated[
        list[JobStatus],
        field_schema("How each replicated job is.", list_type="map", list_map_keys=["name"], max_items=100),
    ] = []
    trainer_status: Annotated[
        TrainerStatus | None, field_schema("How far training is, as the program itself reports it.")
    ] = None
    start_time: Annotated[datetime | None, field_schema("When it was first allowed to run.")] = None
    completion_time: Annotated[datetime | None, field_schema("When it completed or failed.")] = None
    last_error: Annotated[
        LastError | None, field_schema("What keeps its objects from being made; unset while nothing does.")
    ] = None


class TrainJob(Object, frozen=True, kw_only=True):
    """One training run."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must match RFC 1035 DNS label format",
            ),
            Rule("size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters"),
        ]
    )

    spec: Annotated[TrainJobSpec, field_schema("What is asked for.")] = TrainJobSpec()
    status: Annotated[TrainJobStatus, field_schema("What there is.")] = TrainJobStatus()


def is_finished(train_job: TrainJob) -> bool:
    """Whether a TrainJob has completed or failed: nothing is made for it any more."""
    conditions = train_job.status.conditions
    return is_true(conditions, COMPLETE) or is_true(conditions, FAILED)


TRAIN_JOBS = Resource(type=TrainJob, group=GROUP, version=VERSION, kind="TrainJob", plural="trainjobs")

DEFINITION = CustomResource(
    versions=(
        Version(
            resource=TRAIN_JOBS,
            status=True,
            columns=(
                Column(name="State", path='.status.conditions[?(@.status=="True")].type'),
                Column(name="Age", path=".metadata.creationTimestamp", type="date"),
            ),
        ),
    ),
)
