"""Pods as a training cluster has them, about 10 KB of JSON each; the same ones every time.

Three containers with probes, environment and mounts, an init container, affinity, tolerations, conditions, and the
managedFields of those who wrote them. What is equal among many pods of a real cluster (images, probes, mounts) is equal
here, and what differs (names, uids, nodes, addresses) differs.
"""

from __future__ import annotations

import functools
import uuid
from typing import Any

import msgspec

NAMESPACE_COUNT = 40
NODE_COUNT = 1250
VERSION_DIGITS = 12


def pod_json(number: int, version: int) -> bytes:
    """One pod; ``version`` fills a place of fixed width, so that a watch can count it up."""
    return msgspec.json.encode(pod(number, version))


def pod(number: int, version: int) -> dict[str, Any]:
    job, rank = divmod(number, 8)
    name = f"llama-pretrain-{job:05}-worker-{rank}"
    uid = str(uuid.UUID(int=(0x5F3A << 112) | (0x4 << 76) | (0x8 << 60) | number))
    team = number // 8 % NAMESPACE_COUNT
    node = f"gpu-node-{number // 8 % NODE_COUNT:04}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"llama-pretrain-{job:05}-worker-",
            "namespace": f"team-{team:02}",
            "uid": uid,
            "resourceVersion": str(version).zfill(VERSION_DIGITS),
            "generation": 1,
            "creationTimestamp": f"2026-03-{1 + job % 28:02}T{job % 24:02}:{number % 60:02}:{job % 60:02}Z",
            "labels": {
                "app.kubernetes.io/name": "llama-pretrain",
                "app.kubernetes.io/managed-by": "trainer",
                "batch.kubernetes.io/job-name": f"llama-pretrain-{job:05}-worker",
                "batch.kubernetes.io/job-completion-index": str(rank),
                "jobset.sigs.k8s.io/jobset-name": f"llama-pretrain-{job:05}",
                "jobset.sigs.k8s.io/replicatedjob-name": "worker",
                "kai.scheduler/queue": f"team-{team:02}",
                "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
            },
            "annotations": {
                "pod-group-name": f"pg-llama-pretrain-{job:05}-{uid[:8]}",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9400",
                "jobset.sigs.k8s.io/jobset-uid": uid,
                "batch.kubernetes.io/job-completion-index": str(rank),
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"llama-pretrain-{job:05}-worker",
                    "uid": str(uuid.UUID(int=(0x7B21 << 112) | (0x4 << 76) | (0x8 << 60) | job)),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "managedFields": _managed_fields(),
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "nodeName": node,
            "hostname": f"{name}",
            "subdomain": f"llama-pretrain-{job:05}",
            "restartPolicy": "Never",
            "priority": 50,
            "priorityClassName": "train",
            "preemptionPolicy": "PreemptLowerPriority",
            "serviceAccountName": "trainer",
            "serviceAccount": "trainer",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "nodeSelector": {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "topology.kubernetes.io/zone": "zone-a",
            },
            **_shared_spec(),
            "containers": [
                _trainer(job, rank),
                _sidecar("metrics", 9400),
                _sidecar("log-shipper", 9500),
            ],
        },
        "status": _status(number, node),
    }


def _trainer(job: int, rank: int) -> dict[str, Any]:
    environment = {
        "PET_NNODES": "8",
        "PET_NPROC_PER_NODE": "8",
        "PET_NODE_RANK": str(rank),
        "PET_MASTER_ADDR": f"llama-pretrain-{job:05}-worker-0.llama-pretrain-{job:05}",
        "PET_MASTER_PORT": "29400",
        "NCCL_DEBUG": "WARN",
        "NCCL_IB_HCA": "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7",
        "NCCL_SOCKET_IFNAME": "eth0",
        "OMP_NUM_THREADS": "12",
        "HF_HOME": "/cache/huggingface",
        "CHECKPOINT_DIR": f"/checkpoints/llama-pretrain-{job:05}",
        "WANDB_RUN_ID": f"llama-pretrain-{job:05}",
    }
    return {
        "name": "node",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        **_shared_trainer(),
    }


@functools.cache
def _shared_trainer() -> dict[str, Any]:
    resources = {"cpu": "96", "memory": "1600Gi", "nvidia.com/gpu": "8", "rdma/hca": "8"}
    return {
        "image": "registry.example.com/research/llama-trainer:2.9.1-cuda12.8-cudnn9-ubuntu24.04",
        "imagePullPolicy": "IfNotPresent",
        "command": ["torchrun", "--max-restarts=3", "-m", "trainer.pretrain"],
        "args": ["--config=/etc/trainer/config.yaml", "--sequence-length=8192", "--global-batch-size=1024"],
        "ports": [{"name": "rendezvous", "containerPort": 29400, "protocol": "TCP"}],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/trainer", "readOnly": True},
            {"name": "checkpoints", "mountPath": "/checkpoints"},
            {"name": "cache", "mountPath": "/cache"},
            {"name": "shm", "mountPath": "/dev/shm"},
            _token_mount(),
        ],
        "startupProbe": _probe("/startup", 8080, failures=60),
        "livenessProbe": _probe("/healthz", 8080, failures=3),
        "readinessProbe": _probe("/readyz", 8080, failures=3),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


@functools.cache
def _sidecar(name: str, port: int) -> dict[str, Any]:
    resources = {"cpu": "100m", "memory": "128Mi"}
    return {
        "name": name,
        "image": f"registry.example.com/platform/{name}:1.14.2",
        "imagePullPolicy": "IfNotPresent",
        "args": [f"--listen=:{port}", "--log-format=json"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "resources": {"requests": resources, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}, _token_mount()],
        "livenessProbe": _probe("/healthz", port, failures=3),
        "readinessProbe": _probe("/readyz", port, failures=3),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


@functools.cache
def _shared_spec() -> dict[str, Any]:
    projected = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    return {
        "initContainers": [
            {
                "name": "fetch-dataset",
                "image": "registry.example.com/platform/dataset-initializer:0.8.3",
                "imagePullPolicy": "IfNotPresent",
                "args": ["--from=s3://datasets/slimpajama", "--to=/cache/dataset"],
                "resources": {"requests": {"cpu": "4", "memory": "16Gi"}},
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, _token_mount()],
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["79000"]},
                                {"key": "node.example.com/quarantined", "operator": "DoesNotExist"},
                            ]
                        }
                    ]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "llama-pretrain"}},
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }
                ]
            },
        },
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
            {
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
        ],
        "securityContext": {"fsGroup": 2000, "runAsUser": 1000, "runAsGroup": 1000},
        "volumes": [
            {"name": "config", "configMap": {"name": "llama-pretrain-config", "defaultMode": 420}},
            {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
            {"name": "cache", "hostPath": {"path": "/mnt/nvme/cache", "type": "DirectoryOrCreate"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
            {"name": "shared", "emptyDir": {}},
            {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": projected}},
        ],
    }


def _status(number: int, node: str) -> dict[str, Any]:
    since = f"2026-03-{1 + number % 28:02}T10:00:00Z"
    address = f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}"
    names = ["Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready", "PodScheduled"]
    return {
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": since,
        "hostIP": f"10.200.{number // 8 % NODE_COUNT // 256}.{number // 8 % NODE_COUNT % 256}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {
                "type": name,
                "status": "True",
                "observedGeneration": 1,
                "lastProbeTime": None,
                "lastTransitionTime": since,
            }
            for name in names
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": f"registry.example.com/{image}",
                "imageID": f"registry.example.com/{image}@sha256:{'9f86d081884c7d65' * 4}",
                "containerID": f"containerd://{uuid.UUID(int=number * 3 + position).hex * 2}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": since}},
                "lastState": {},
            }
            for position, (name, image) in enumerate(
                [("node", "research/llama-trainer"), ("metrics", "platform/metrics"), ("log-shipper", "platform/log")]
            )
        ],
    }


def _probe(path: str, port: int, *, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "initialDelaySeconds": 5,
        "timeoutSeconds": 2,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def _token_mount() -> dict[str, Any]:
    return {
        "name": "kube-api-access-x7k2p",
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }


@functools.cache
def _managed_fields() -> list[dict[str, Any]]:
    """What the job controller and the kubelet own, in the form in which a server records it."""
    made = {"f:metadata": _owned({"labels": {"app": ""}, "generateName": "", "ownerReferences": {}})}
    made |= {
        "f:spec": {
            "f:affinity": {},
            "f:nodeSelector": {},
            "f:priorityClassName": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:tolerations": {},
            "f:containers": {
                f'k:{{"name":"{name}"}}': {
                    ".": {},
                    **_owned(
                        {
                            "args": "",
                            "env": "",
                            "image": "",
                            "imagePullPolicy": "",
                            "livenessProbe": {"httpGet": {"path": "", "port": ""}, "periodSeconds": ""},
                            "name": "",
                            "resources": {"limits": {"memory": ""}, "requests": {"cpu": "", "memory": ""}},
                            "volumeMounts": "",
                        }
                    ),
                }
                for name in ("node", "metrics")
            },
        }
    }
    seen = {
        "f:status": {
            "f:conditions": {
                f'k:{{"type":"{name}"}}': {".": {}, **_owned({"lastTransitionTime": "", "status": "", "type": ""})}
                for name in ("ContainersReady", "Initialized", "Ready")
            },
            **_owned({"containerStatuses": "", "phase": "", "podIP": "", "startTime": ""}),
        }
    }
    times = {"time": "2026-03-01T10:00:00Z", "apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update"}
    return [
        {"manager": "kube-controller-manager", **times, "fieldsV1": made},
        {"manager": "kubelet", **times, "fieldsV1": seen, "subresource": "status"},
    ]


def _owned(fields: dict[str, Any]) -> dict[str, Any]:
    return {f"f:{name}": _owned(more) if isinstance(more, dict) else {} for name, more in fields.items()}
