"""The labels, annotations and names of objects by which KAI's parts and their users know each other."""

from __future__ import annotations

from typing import Final

# Labels of pods and of what owns them.
QUEUE: Final = "kai.scheduler/queue"
NODE_POOL: Final = "kai.scheduler/node-pool"
SUBGROUP: Final = "kai.scheduler/subgroup-name"
TASK_PRIORITY: Final = "kai.scheduler/task-priority"
PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
PRIORITY_CLASS: Final = "priorityClassName"
PROJECT: Final = "project"
USER: Final = "user"

# Annotations of pods and of what owns them.
POD_GROUP: Final = "pod-group-name"
GPU_FRACTION: Final = "gpu-fraction"
GPU_MEMORY: Final = "gpu-memory"
GPU_FRACTION_DEVICES: Final = "gpu-fraction-num-devices"
GPU_FRACTION_CONTAINER: Final = "gpu-fraction-container-name"
MPS: Final = "mps"
RECEIVED_RESOURCE_TYPE: Final = "received-resource-type"
SHARED_GPU_CONFIG_MAP: Final = "runai/shared-gpu-configmap"
RESERVED_GPU_INDEX: Final = "run.ai/reserve_for_gpu_index"
SKIP_GROUPER: Final = "kai.scheduler/skip-podgrouper"
TOP_OWNER: Final = "kai.scheduler/top-owner-metadata"
BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"
PREEMPTION_DELAY: Final = "kai.scheduler/preemption-delay"
STALENESS_GRACE_PERIOD: Final = "kai.scheduler/staleness-grace-period"
TOPOLOGY: Final = "kai.scheduler/topology"
TOPOLOGY_REQUIRED: Final = "kai.scheduler/topology-required-placement"
TOPOLOGY_PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
SEGMENT_SIZE: Final = "kai.scheduler/segment-size"
SEGMENT_TOPOLOGY_REQUIRED: Final = "kai.scheduler/segment-topology-required-placement"
SEGMENT_TOPOLOGY_PREFERRED: Final = "kai.scheduler/segment-topology-preferred-placement"
NUMA_PREDICTED: Final = "kai.scheduler/numa-placement-predicted"
NUMA_OBSERVED: Final = "kai.scheduler/numa-placement-observed"

# Shoal's own: how long a pod runs, as far as its author knows, such as 30m.
EXPECTED_RUNTIME: Final = "shoal.dev/expected-runtime"

# Annotations of PodGroups, written by the scheduler.
STALE_SINCE: Final = "kai.scheduler/stale-podgroup-timestamp"
LAST_START: Final = "kai.scheduler/last-start-timestamp"
LAST_EVICTION: Final = "kai.scheduler/last-eviction-timestamp"

# Which shared GPUs a pod is on: the label itself for one device, with a slash and the group's name for several.
GPU_GROUP: Final = "runai-gpu-group"

# Labels of nodes.
NODE_GPU_MEMORY: Final = "nvidia.com/gpu.memory"
NODE_GPU_COUNT: Final = "nvidia.com/gpu.count"
NODE_GPU_PRODUCT: Final = "nvidia.com/gpu.product"
NODE_MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
CPU_WORKER: Final = "node-role.kubernetes.io/cpu-worker"
GPU_WORKER: Final = "node-role.kubernetes.io/gpu-worker"
MIG_WORKER: Final = "node-role.kubernetes.io/mig-enabled"

# Extended resources.
NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
GPUS: Final = (NVIDIA_GPU, AMD_GPU)
MIG_PREFIX: Final = "nvidia.com/mig-"

# Names.
SCHEDULER: Final = "kai-scheduler"
NAMESPACE: Final = "kai-scheduler"
RESERVATION_NAMESPACE: Final = "kai-resource-reservation"
SCALE_ADJUST_NAMESPACE: Final = "kai-scale-adjust"
DEFAULT_PARENT_QUEUE: Final = "default-parent-queue"
DEFAULT_QUEUE: Final = "default-queue"

# PriorityClasses and the numbers behind them.
PRIORITIES: Final = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
DEFAULT_PRIORITY: Final = 50
NON_PREEMPTIBLE_FROM: Final = 100
DEFAULT_QUEUE_PRIORITY: Final = 100
