"""The whole JobSets of the runtimes that come with Shoal, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.trainer import TrainingRuntimeSpec
from shoal.training.runtimes import built_in_runtimes
from tests.training.builders import INDEX, a_train_job, job_set_of, objects_of

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
PORTS = [{"containerPort": 29500}]


def made(runtime: str, **spec: Any) -> dict[str, Any]:
    body = msgspec.convert(built_in_runtimes()[runtime]["spec"], TrainingRuntimeSpec)
    return job_set_of(a_train_job(runtime=runtime, **spec), body)


def image_of(runtime: str, job: int = 0) -> str:
    spec = built_in_runtimes()[runtime]["spec"]["template"]["spec"]["replicatedJobs"][job]
    image: str = spec["template"]["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def env(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "valueFrom" if value is INDEX else "value": value} for name, value in pairs]


def expected_job(name: str, pod: dict[str, Any], *, count: int = 1, step: str = "", **fields: Any) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {"parallelism": count, "completions": count, "template": {"spec": pod}}}
    if step:
        template["metadata"] = {"labels": {STEP: step}}
        fields["replicas"] = 1
    return {"name": name, "template": template, **fields}


def test_torch() -> None:
    gpus = {"limits": {"nvidia.com/gpu": 4}}
    trainer = {"numNodes": 2, "command": ["torchrun", "train.py"], "resourcesPerNode": gpus}
    told = env(
        ("PET_NNODES", "2"),
        ("PET_NPROC_PER_NODE", "auto"),
        ("PET_NODE_RANK", INDEX),
        ("PET_MASTER_ADDR", "demo-node-0-0.demo"),
        ("PET_MASTER_PORT", "29500"),
    )
    node = {
        "name": "node",
        "image": image_of("torch-distributed"),
        "command": ["torchrun", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": "4"}},
        "env": told,
        "ports": PORTS,
    }
    assert made("torch-distributed", trainer=trainer) == {
        "metadata": {},
        "spec": {
            "suspend": False,
            "replicatedJobs": [expected_job("node", {"containers": [node]}, count=2, step="trainer")],
        },
    }


def test_torch_without_a_trainer_is_the_runtime_itself() -> None:
    node = {"name": "node", "image": image_of("torch-distributed")}
    assert made("torch-distributed")["spec"]["replicatedJobs"] == [
        expected_job("node", {"containers": [node]}, step="trainer")
    ]


def test_jax() -> None:
    told = env(
        ("JAX_NUM_PROCESSES", "3"), ("JAX_PROCESS_ID", INDEX), ("JAX_COORDINATOR_ADDRESS", "demo-node-0-0.demo:29500")
    )
    node = {"name": "node", "image": image_of("jax-distributed"), "env": told, "ports": PORTS}
    [job] = made("jax-distributed", trainer={"numNodes": 3})["spec"]["replicatedJobs"]
    assert job == expected_job("node", {"containers": [node]}, count=3, step="trainer")


def test_xgboost() -> None:
    told = env(
        ("DMLC_TRACKER_URI", "demo-node-0-0.demo"),
        ("DMLC_TRACKER_PORT", "29500"),
        ("DMLC_TASK_ID", INDEX),
        ("DMLC_NUM_WORKER", "2"),
    )
    node = {"name": "node", "image": image_of("xgboost-distributed"), "env": told, "ports": PORTS}
    [job] = made("xgboost-distributed", trainer={"numNodes": 2})["spec"]["replicatedJobs"]
    assert job == expected_job("node", {"containers": [node]}, count=2, step="trainer")


@pytest.mark.parametrize("runtime", ["deepspeed-distributed", "mlx-distributed"])
def test_mpi(runtime: str) -> None:
    trainer = {"numNodes": 3, "command": ["mpirun", "python", "train.py"], "image": "mine:2"}
    keys = {
        "name": "mpi-ssh-auth",
        "secret": {
            "secretName": "demo-mpi-ssh-auth",
            "defaultMode": 0o400,
            "items": [
                {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o640},
                {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
                {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
            ],
        },
    }
    hosts = {
        "name": "mpi-hostfile",
        "configMap": {"name": "demo-mpi-hostfile", "items": [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]},
    }
    keys_mount = {"name": "mpi-ssh-auth", "mountPath": "/home/mpiuser/.ssh"}
    worker = {
        "name": "node",
        "image": image_of(runtime),
        "command": ["/usr/sbin/sshd"],
        "args": ["-De", "-f", "/home/mpiuser/.sshd_config"],
        "readinessProbe": {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5},
        "securityContext": {"runAsUser": 1000},
        "volumeMounts": [keys_mount],
    }
    launcher = {
        "name": "node",
        "image": "mine:2",
        "command": ["mpirun", "python", "train.py"],
        "securityContext": {"runAsUser": 1000},
        "env": env(
            ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_set_default_slots", "1"),
            ("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
        ),
        "volumeMounts": [keys_mount, {"name": "mpi-hostfile", "mountPath": "/etc/mpi"}],
    }
    pod = {"securityContext": {"fsGroup": 1000}}
    assert made(runtime, trainer=trainer) == {
        "metadata": {},
        "spec": {
            "suspend": False,
            "network": {"publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
            "replicatedJobs": [
                expected_job("node", {**pod, "containers": [worker], "volumes": [keys]}, count=2),
                expected_job(
                    "launcher",
                    {**pod, "containers": [launcher], "volumes": [keys, hosts]},
                    step="trainer",
                    dependsOn=[{"name": "node", "status": "Ready"}],
                ),
            ],
        },
    }


TUNED = {
    "torchtune-llama3.2-1b": ("llama3_2/1B", "hf://meta-llama/Llama-3.2-1B-Instruct"),
    "torchtune-llama3.2-3b": ("llama3_2/3B", "hf://meta-llama/Llama-3.2-3B-Instruct"),
    "torchtune-qwen2.5-1.5b": ("qwen2_5/1.5B", "hf://Qwen/Qwen2.5-1.5B-Instruct"),
}


@pytest.mark.parametrize(("runtime", "model", "source"), [(name, *facts) for name, facts in TUNED.items()])
def test_torchtune(runtime: str, model: str, source: str) -> None:
    initializer = {"dataset": {"storageUri": "hf://mine/data", "secretRef": {"name": "token"}}}
    trainer = {"command": ["tune", "run"], "args": ["batch_size=4"]}
    spec = made(runtime, trainer=trainer, initializer=initializer, suspend=True)["spec"]
    assert spec["suspend"] is True
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    assert spec["volumeClaimPolicies"][0]["templates"] == [{"metadata": {"name": "initializer"}, "spec": claim}]
    dataset, model_job, node_job = spec["replicatedJobs"]
    mounts = [{"name": "initializer", "mountPath": "/workspace"}]
    fetch = {
        "name": "dataset-initializer",
        "image": image_of(runtime, 0),
        "env": env(("STORAGE_URI", "hf://mine/data")),
        "envFrom": [{"secretRef": {"name": "token"}}],
        "volumeMounts": mounts,
    }
    assert dataset == expected_job("dataset-initializer", {"containers": [fetch]}, step="dataset-initializer")
    [fetch_model] = model_job["template"]["spec"]["template"]["spec"]["containers"]
    assert fetch_model["env"] == env(("STORAGE_URI", source))
    assert node_job["dependsOn"] == [
        {"name": "dataset-initializer", "status": "Complete"},
        {"name": "model-initializer", "status": "Complete"},
    ]
    [node] = node_job["template"]["spec"]["template"]["spec"]["containers"]
    assert node["command"][:6] == [
        "tune", "run", "--rdzv_endpoint=demo-node-0-0.demo:29500", "full_finetune_distributed", "--config",
        f"{model}_full",
    ]  # fmt: skip
    kept = [word.partition("=")[0] for word in node["command"][6:]]
    assert {"output_dir", "tokenizer.path", "checkpointer.checkpoint_dir"} <= set(kept)
    assert node["args"] == ["batch_size=4"]
    assert node["env"] == env(("PET_NNODES", "1"), ("PET_NPROC_PER_NODE", "auto"), ("PET_NODE_RANK", INDEX))
    assert node["volumeMounts"] == mounts


def test_every_runtime_makes_objects_and_the_same_ones_each_time() -> None:
    for name, runtime in built_in_runtimes().items():
        body = msgspec.convert(runtime["spec"], TrainingRuntimeSpec)
        job = a_train_job(runtime=name, trainer={"numNodes": 2})
        first, second = objects_of(job, body), objects_of(job, body)
        first.pop("Secret/demo-mpi-ssh-auth", None)  # made once, and then kept
        second.pop("Secret/demo-mpi-ssh-auth", None)
        assert first == second
        assert list(first)[-1] == "JobSet/demo"
