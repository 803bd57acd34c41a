"""TrainingRuntimes and ClusterTrainingRuntimes: how a kind of training is run, for TrainJobs to name.

The JobSet that a runtime describes is kept as plain JSON values: it is merged and handed on, and read only in parts.
"""

from __future__ import annotations

from typing import Annotated, Any

from shoal.api.crd import CustomResource, Int32, Rule, Version, field_schema, struct_schema
from shoal.api.jobset import JobSetSpec
from shoal.api.meta import Object, Resource, Wire
from shoal.api.trainer.embedded import TEMPLATE_METADATA, TemplateMetadata
from shoal.api.trainer.names import (
    CLUSTER_TRAINING_RUNTIME,
    GROUP,
    NODE,
    OPENMPI,
    SSH_AUTH_MOUNT_PATH,
    TRAINING_RUNTIME,
    VERSION,
)


class EnvInjectionTarget(Wire, frozen=True, kw_only=True):
    """Further containers that are told where the nodes of a torch job are."""

    job_name: Annotated[str, field_schema("The replicated job.", min_length=1, max_length=253)]
    container_names: Annotated[
        list[Annotated[str, field_schema(max_length=63)]],
        field_schema(
            "Its containers.",
            list_type="set",
            min_items=1,
            max_items=8,
            rules=[
                Rule(
                    f"!self.exists(c, c == '{NODE}')",
                    "containerNames must not include the main node container because PET_* envs are always "
                    "injected into it",
                )
            ],
        ),
    ]


class EnvInjection(Wire, frozen=True, kw_only=True):
    """Which further containers are told where the nodes are."""

    targets: Annotated[
        list[EnvInjectionTarget],
        field_schema("The containers.", list_type="map", list_map_keys=["jobName"], max_items=16),
    ] = []


class TorchPolicy(Wire, frozen=True, kw_only=True):
    """PyTorch: nodes find each other through torchrun."""

    env_injection: Annotated[
        EnvInjection | None, field_schema("Further containers that are told where the nodes are.")
    ] = None


class MPIPolicy(Wire, frozen=True, kw_only=True):
    """MPI: a launcher starts processes on the nodes over SSH."""

    num_proc_per_node: Annotated[
        Int32,
        field_schema(
            "Processes on each node.",
            default=1,
            rules=[Rule("self >= 1", "NumProcPerNode in mpiPolicy must be >= 1")],
        ),
    ] = 1
    mpi_implementation: Annotated[
        str, field_schema("Whose MPI it is; OpenMPI where it is empty.", default=OPENMPI, enum=("", OPENMPI))
    ] = OPENMPI
    ssh_auth_mount_path: Annotated[
        str, field_schema("Where SSH's keys are put.", default=SSH_AUTH_MOUNT_PATH, max_length=4096)
    ] = SSH_AUTH_MOUNT_PATH
    run_launcher_as_node: Annotated[bool, field_schema("Whether the launcher trains too.", default=False)] = False


class FluxPolicy(Wire, frozen=True, kw_only=True):
    """Flux: a small batch system of its own on the nodes."""

    num_proc_per_node: Annotated[
        Int32,
        field_schema(
            "Processes on each node.",
            default=1,
            rules=[Rule("self >= 1", "NumProcPerNode in fluxPolicy must be >= 1")],
        ),
    ] = 1


class JAXPolicy(Wire, frozen=True, kw_only=True):
    """JAX: processes find each other through the first of them."""


class XGBoostPolicy(Wire, frozen=True, kw_only=True):
    """XGBoost: workers find each other through a tracker on the first node."""


class MLPolicy(Wire, frozen=True, kw_only=True):
    """How training is spread over nodes."""

    SCHEMA = struct_schema(
        rules=[
            Rule(
                "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
                ".filter(x, x).size() <= 1",
                "Only one of the policy can be configured",
            )
        ]
    )

    num_nodes: Annotated[Int32 | None, field_schema("How many nodes train; one where unset.")] = None
    torch: Annotated[TorchPolicy | None, field_schema("Trains with PyTorch.")] = None
    mpi: Annotated[MPIPolicy | None, field_schema("Trains with MPI.")] = None
    jax: Annotated[JAXPolicy | None, field_schema("Trains with JAX.")] = None
    xgboost: Annotated[XGBoostPolicy | None, field_schema("Trains with XGBoost.")] = None
    flux: Annotated[FluxPolicy | None, field_schema("Trains with Flux.")] = None


class CoschedulingPolicy(Wire, frozen=True, kw_only=True):
    """A PodGroup of the scheduler-plugins project."""

    schedule_timeout_seconds: Annotated[
        Int32, field_schema("How long the group may wait until it is tried anew.", default=60)
    ] = 60


class NetworkTopology(Wire, frozen=True, kw_only=True):
    """How close together Volcano puts the pods."""

    mode: Annotated[
        str, field_schema("Whether that is demanded or preferred.", default="hard", enum=("soft", "hard"))
    ] = "hard"
    highest_tier_allowed: Annotated[int, field_schema("The widest tier that they may spread over.", default=1)] = 1


class VolcanoPolicy(Wire, frozen=True, kw_only=True):
    """A PodGroup of Volcano."""

    network_topology: Annotated[NetworkTopology | None, field_schema("How close together the pods run.")] = None


class KaiPolicy(Wire, frozen=True, kw_only=True):
    """A gang of Shoal's own scheduler, or of KAI's."""

    queue: Annotated[str, field_schema("The queue, unless a label of the TrainJob names another.", max_length=253)] = ""


class PodGangPolicy(Wire, frozen=True, kw_only=True):
    """A PodGang, for any scheduler that there is a backend of gangs for."""

    queue: Annotated[str, field_schema("The queue, unless a label of the TrainJob names another.", max_length=253)] = ""
    scheduler_name: Annotated[
        str, field_schema("The scheduler, unless the pods' template names another.", max_length=63)
    ] = ""


class PodGroupPolicy(Wire, frozen=True, kw_only=True):
    """Who makes sure that all nodes start together."""

    coscheduling: Annotated[CoschedulingPolicy | None, field_schema("The coscheduling plugin.")] = None
    volcano: Annotated[VolcanoPolicy | None, field_schema("Volcano.")] = None
    kai: Annotated[KaiPolicy | None, field_schema("Shoal's own scheduler, or KAI's.")] = None
    pod_gang: Annotated[PodGangPolicy | None, field_schema("Any scheduler with a backend of gangs.")] = None


class RuntimeTemplate(Wire, frozen=True, kw_only=True):
    """The JobSet that is made for a TrainJob, before the TrainJob's own wishes."""

    SCHEMA = struct_schema(min_properties=1)

    metadata: Annotated[
        TemplateMetadata | None,
        field_schema("Labels and annotations of the JobSet.", shape=TEMPLATE_METADATA),
    ] = None
    spec: Annotated[dict[str, Any], field_schema("The JobSet.", shape=JobSetSpec)] = {}


class TrainingRuntimeSpec(Wire, frozen=True, kw_only=True):
    """How a kind of training is run."""

    SCHEMA = struct_schema(min_properties=1)

    ml_policy: Annotated[MLPolicy | None, field_schema("How training is spread over nodes.")] = None
    pod_group_policy: Annotated[
        PodGroupPolicy | None, field_schema("Who makes sure that all nodes start together.")
    ] = None
    template: Annotated[RuntimeTemplate, field_schema("The JobSet that is made for a TrainJob.")] = RuntimeTemplate()


class TrainingRuntime(Object, frozen=True, kw_only=True):
    """How a kind of training is run, for the TrainJobs of a namespace."""

    spec: Annotated[TrainingRuntimeSpec, field_schema("How it is run.")] = TrainingRuntimeSpec()


class ClusterTrainingRuntime(Object, frozen=True, kw_only=True):
    """How a kind of training is run, for the TrainJobs of all namespaces."""

    spec: Annotated[TrainingRuntimeSpec, field_schema("How it is run.")] = TrainingRuntimeSpec()


TRAINING_RUNTIMES = Resource(
    type=TrainingRuntime, group=GROUP, version=VERSION, kind=TRAINING_RUNTIME, plural="trainingruntimes"
)
CLUSTER_TRAINING_RUNTIMES = Resource(
    type=ClusterTrainingRuntime,
    group=GROUP,
    version=VERSION,
    kind=CLUSTER_TRAINING_RUNTIME,
    plural="clustertrainingruntimes",
    namespaced=False,
)

CLUSTER_DEFINITION = CustomResource(versions=(Version(resource=CLUSTER_TRAINING_RUNTIMES),))
DEFINITION = CustomResource(versions=(Version(resource=TRAINING_RUNTIMES),))
