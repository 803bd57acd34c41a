"""Every name, label, annotation, reason and message of Kubeflow Trainer's objects, and the names in pods' environments.

Names are made here and never taken apart: what belongs together is found by label or owner.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "trainer.kubeflow.org"
VERSION: Final = "v1alpha1"

# Who writes.
FIELD_MANAGER: Final = "trainer"
STATUS_FIELD_MANAGER: Final = "trainer-status"
EVENT_SOURCE: Final = "trainer-trainjob-controller"
TRAIN_JOB_CONTROLLER: Final = "trainjob_controller"
TRAINING_RUNTIME_CONTROLLER: Final = "trainingruntime_controller"
CLUSTER_TRAINING_RUNTIME_CONTROLLER: Final = "clustertrainingruntime_controller"
MANAGED_BY: Final = "trainer.kubeflow.org/trainjob-controller"
MANAGED_BY_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
"""Who looks after a TrainJob: this controller, unless the other is named."""

# Kinds of runtimes, as a runtimeRef names them.
TRAINING_RUNTIME: Final = "TrainingRuntime"
CLUSTER_TRAINING_RUNTIME: Final = "ClusterTrainingRuntime"

# Labels.
ANCESTOR_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER_STEP: Final = "trainer"
DATASET_INITIALIZER: Final = "dataset-initializer"
MODEL_INITIALIZER: Final = "model-initializer"
"""What a replicated job does for a TrainJob. The initializers' containers have the same names."""
FRAMEWORK_LABEL: Final = "trainer.kubeflow.org/framework"
SUPPORT_LABEL: Final = "trainer.kubeflow.org/support"
DEPRECATED: Final = "deprecated"
VALIDATION_LABEL: Final = "trainer.kubeflow.org/webhook-validation"
VALIDATION_DISABLED: Final = "disabled"
MANAGED_BY_LABEL: Final = "trainer.kubeflow.org/managed-by"
INSTALLER: Final = "runtimes-installer"

LEFTOVER_FINALIZER: Final = "trainer.kubeflow.org/resource-in-use"
"""On runtimes of earlier versions; nothing waits for it any more."""

DEPRECATION_POLICY: Final = (
    "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
)

# Parts of a JobSet.
NODE: Final = "node"
"""The container that trains, and by custom the replicated job that it is in."""
LAUNCHER: Final = "launcher"
INITIALIZER_VOLUME: Final = "initializer"

ANCESTOR_CONTAINERS: Final = {
    TRAINER_STEP: NODE,
    DATASET_INITIALIZER: DATASET_INITIALIZER,
    MODEL_INITIALIZER: MODEL_INITIALIZER,
}
"""The container that a replicated job cannot be without, by what it does for a TrainJob."""

# Conditions of a TrainJob, and why they hold. There are no others: clients take an empty list to mean that it runs.
SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED_REASON: Final = "Suspended"
SUSPENDED_MESSAGE: Final = "TrainJob is suspended"
RESUMED_REASON: Final = "Resumed"
RESUMED_MESSAGE: Final = "TrainJob is resumed"
DEADLINE_REASON: Final = "DeadlineExceeded"
DEADLINE_MESSAGE: Final = "TrainJob exceeded its active deadline"
UNSUPPORTED_RUNTIME_REASON: Final = "TrainingRuntimeNotSupported"

# Events.
CREATION_FAILED_EVENT: Final = "TrainJobResourcesCreationFailed"
CREATION_FAILED_ACTION: Final = "Reconciling"
CREATION_FAILED_MESSAGE: Final = "TrainJob resources reconciliation failed: "
CREATION_FAILED_LENGTH: Final = 950
CUT: Final = " ..."
"""How much of an error an event repeats, and what stands for the rest."""
DEPRECATED_EVENT: Final = "Deprecated"

# Where processes find each other.
TRAINER_PORT: Final = 29500
COMPLETION_INDEX_FIELD: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# Environments. The order is the order in which they are added.
STORAGE_URI: Final = "STORAGE_URI"
PET_NNODES: Final = "PET_NNODES"
PET_NPROC_PER_NODE: Final = "PET_NPROC_PER_NODE"
PET_NODE_RANK: Final = "PET_NODE_RANK"
PET_MASTER_ADDR: Final = "PET_MASTER_ADDR"
PET_MASTER_PORT: Final = "PET_MASTER_PORT"
TORCH_ENVIRONMENT: Final = (PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT)

OMPI_HOSTFILE: Final = "OMPI_MCA_orte_default_hostfile"
OMPI_KEEP_FQDN: Final = "OMPI_MCA_orte_keep_fqdn_hostnames"
OMPI_DEFAULT_SLOTS: Final = "OMPI_MCA_orte_set_default_slots"
OMPI_RSH_ARGS: Final = "OMPI_MCA_plm_rsh_args"
OPENMPI_ENVIRONMENT: Final = (OMPI_HOSTFILE, OMPI_KEEP_FQDN, OMPI_DEFAULT_SLOTS, OMPI_RSH_ARGS)

JAX_NUM_PROCESSES: Final = "JAX_NUM_PROCESSES"
JAX_PROCESS_ID: Final = "JAX_PROCESS_ID"
JAX_COORDINATOR_ADDRESS: Final = "JAX_COORDINATOR_ADDRESS"

DMLC_TRACKER_URI: Final = "DMLC_TRACKER_URI"
DMLC_TRACKER_PORT: Final = "DMLC_TRACKER_PORT"
DMLC_TASK_ID: Final = "DMLC_TASK_ID"
DMLC_NUM_WORKER: Final = "DMLC_NUM_WORKER"
XGBOOST_ENVIRONMENT: Final = (DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_TASK_ID, DMLC_NUM_WORKER)

FLUX_VIEW_IMAGE: Final = "FLUX_VIEW_IMAGE"
FLUX_NETWORK_DEVICE: Final = "FLUX_NETWORK_DEVICE"
FLUX_QUEUE_POLICY: Final = "FLUX_QUEUE_POLICY"

STATUS_SERVER_URL: Final = "KUBEFLOW_TRAINER_SERVER_URL"
STATUS_SERVER_CA: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
STATUS_SERVER_TOKEN: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - a variable's name, no token

# MPI.
OPENMPI: Final = "OpenMPI"
SSH_AUTH_MOUNT_PATH: Final = "/root/.ssh"
SSH_AUTH_VOLUME: Final = "mpi-ssh-auth"
SSH_PRIVATE_KEY: Final = "ssh-privatekey"
SSH_PUBLIC_KEY: Final = "ssh-publickey"
HOSTFILE_VOLUME: Final = "mpi-hostfile"
HOSTFILE: Final = "hostfile"
HOSTFILE_DIRECTORY: Final = "/etc/mpi"

# Torchtune.
TORCHTUNE_COMMAND: Final = ("tune", "run")
TORCHTUNE_FIXED_CONFIGS: Final = (
    "output_dir",
    "tokenizer.path",
    "tokenizer.merges_file",
    "checkpointer.checkpoint_dir",
)
"""What a torchtune runtime decides, and a TrainJob may not."""
TORCHTUNE_LORA: Final = "model.lora_attn_modules"
TORCHTUNE_QUANTIZE: Final = "model.quantize_base"
TORCHTUNE_DORA: Final = "model.use_dora"
LLAMA3_2_1B: Final = "llama3_2/1B"
LLAMA3_2_3B: Final = "llama3_2/3B"
LLAMA3_3_70B: Final = "llama3_3/70B"
QWEN2_5_1_5B: Final = "qwen2_5/1.5B"
TORCHTUNE_MODELS: Final = (LLAMA3_2_1B, LLAMA3_2_3B, LLAMA3_3_70B, QWEN2_5_1_5B)

# Flux.
FLUX_INSTALLER: Final = "flux-installer"

# Gangs.
COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
VOLCANO_QUEUE_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
SYSTEM_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
"""Priorities that are always there."""

SNAPSHOT_KEY: Final = "runtime"
CURVE_KEY: Final = "curve.cert"
CA_KEY: Final = "ca.crt"

PUBLIC_CONFIG_MAP: Final = "kubeflow-trainer-public"
PUBLIC_VERSION_KEY: Final = "kubeflow_trainer_version"
SYSTEM_NAMESPACE: Final = "kubeflow-system"


def registry_key(kind: str, group: str = GROUP) -> str:
    """By what a kind of runtime is registered, such as ``TrainingRuntime.trainer.kubeflow.org``."""
    return f"{kind}.{group}"


def unsupported_runtime_message(key: str) -> str:
    """What a TrainJob is told whose runtime's kind nobody knows."""
    return f"unsupported runtime: {key}"


def runtime_snapshot(train_job: str) -> str:
    """The ConfigMap with the runtime as it was when the TrainJob began."""
    return f"{train_job}-runtime-snapshot"


def ssh_auth_secret(train_job: str) -> str:
    """The Secret with the keys by which MPI's nodes trust each other."""
    return f"{train_job}-mpi-ssh-auth"


def hostfile_config_map(train_job: str) -> str:
    """The ConfigMap with the nodes that MPI runs on."""
    return f"{train_job}-mpi-hostfile"


def flux_config_map(train_job: str) -> str:
    """The ConfigMap with Flux's programs."""
    return f"{train_job}-flux-entrypoint"


def flux_curve_secret(train_job: str) -> str:
    """The Secret with the certificate of Flux's brokers."""
    return f"{train_job}-flux-curve"


def tls_config_map(train_job: str) -> str:
    """The ConfigMap with the authority of the status server's certificate."""
    return f"{train_job}-tls-config"


def first_node(train_job: str) -> str:
    """The address of the pod that the others meet at."""
    return f"{train_job}-{NODE}-0-0.{train_job}"


def pod_address(train_job: str, replicated_job: str, replica: int, pod: int, subdomain: str) -> str:
    """The address of any pod of a TrainJob."""
    return f"{train_job}-{replicated_job}-{replica}-{pod}.{subdomain}"
