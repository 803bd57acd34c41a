"""MPI: how many workers, the keys they trust, and the list that the launcher starts processes by."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_public_key,
)

from shoal.training.plugins import load_framework
from tests.training.builders import (
    a_container,
    a_job,
    a_runtime,
    a_train_job,
    container_of,
    env_of,
    job_set_of,
    objects_of,
    pod_of,
    replicated_job,
)

NODES: dict[str, tuple[int | None, bool, int]] = {
    "all are workers": (4, False, 4),
    "the launcher is one of them": (4, True, 3),
    "beside a launcher there is always a worker": (1, True, 1),
    "none, if so asked": (0, False, 0),
    "as the runtime has it": (None, True, 1),
}
SLOTS: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "as the TrainJob says": ({"numProcPerNode": 3}, 2, 8, 3),
    "as the policy says": ({}, 2, 8, 2),
    "one for each GPU where the policy says one": ({}, 1, 8, 8),
    "one where there is one GPU": ({}, 1, 1, 1),
    "one where there is none": ({}, 1, 0, 1),
}


def mpi(*, workers: dict[str, Any] | None = None, **policy: Any) -> Any:
    fields: dict[str, Any] = {"job": workers} if workers else {}
    jobs = (a_job("node", **fields), a_job("launcher", ancestor="trainer"))
    return a_runtime(*jobs, ml={"mpi": {"sshAuthMountPath": "/home/mpiuser/.ssh", **policy}})


@pytest.mark.parametrize(("said", "launcher_trains", "expected"), NODES.values(), ids=NODES)
def test_how_many_workers_there_are(said: int | None, launcher_trains: bool, expected: int) -> None:
    trainer = {} if said is None else {"numNodes": said}
    made = job_set_of(a_train_job(trainer=trainer), mpi(runLauncherAsNode=launcher_trains))
    assert replicated_job(made)["template"]["spec"]["parallelism"] == expected
    assert replicated_job(made, "launcher")["template"]["spec"]["parallelism"] == 1


@pytest.mark.parametrize(("launcher_trains", "expected"), [(True, 3), (False, 4)])
def test_the_number_of_nodes_in_the_runtime_is_that_of_workers_too(launcher_trains: bool, expected: int) -> None:
    runtime = mpi(runLauncherAsNode=launcher_trains)
    policy = msgspec.structs.replace(runtime.ml_policy, num_nodes=4)
    made = job_set_of(a_train_job(), msgspec.structs.replace(runtime, ml_policy=policy))
    assert replicated_job(made)["template"]["spec"]["parallelism"] == expected
    assert replicated_job(made, "launcher")["template"]["spec"]["parallelism"] == 1


def test_workers_that_the_template_counts_stay_as_many() -> None:
    made = job_set_of(a_train_job(), mpi(workers={"parallelism": 5}))
    assert replicated_job(made)["template"]["spec"]["parallelism"] == 5


@pytest.mark.parametrize(("trainer", "policy", "gpus", "expected"), SLOTS.values(), ids=SLOTS)
def test_slots(trainer: dict[str, Any], policy: int, gpus: int, expected: int) -> None:
    resources = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    made = objects_of(a_train_job(trainer={**trainer, **resources}), mpi(numProcPerNode=policy))
    env = dict(env_of(container_of(made["JobSet/demo"], "launcher")))
    assert env["OMPI_MCA_orte_set_default_slots"] == str(expected)
    hostfile = made["ConfigMap/demo-mpi-hostfile"]["data"]["hostfile"]
    assert hostfile == f"demo-node-0-0.demo slots={expected}\n"


def test_the_list_of_nodes_has_the_launcher_where_it_trains() -> None:
    made = objects_of(a_train_job(trainer={"numNodes": 3}), mpi(runLauncherAsNode=True))
    assert made["ConfigMap/demo-mpi-hostfile"] == {
        "data": {"hostfile": "demo-node-0-0.demo slots=1\ndemo-node-0-1.demo slots=1\ndemo-launcher-0-0.demo slots=1\n"}
    }


def test_the_launchers_variables_come_before_the_users() -> None:
    job = a_train_job(trainer={"env": [{"name": "USER", "value": "u"}]})
    made = job_set_of(job, mpi(runLauncherAsNode=True))
    assert env_of(container_of(made, "launcher")) == [
        ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
        ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        ("OMPI_MCA_orte_set_default_slots", "1"),
        ("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
        ("USER", "u"),
    ]
    assert env_of(container_of(made)) == [("USER", "u")]


def test_workers_get_the_users_variables_only_where_the_launcher_trains() -> None:
    job = a_train_job(trainer={"env": [{"name": "USER", "value": "u"}]})
    assert "env" not in container_of(job_set_of(job, mpi()))


def test_the_workers_keep_their_own_program_and_image() -> None:
    job = a_train_job(trainer={"image": "mine:2", "command": ["mpirun", "x"]})
    made = job_set_of(job, mpi(runLauncherAsNode=True))
    assert container_of(made) | {"volumeMounts": []} == a_container(volumeMounts=[])
    assert container_of(made, "launcher")["image"] == "mine:2"


KEYS = {
    "name": "mpi-ssh-auth",
    "secret": {
        "secretName": "demo-mpi-ssh-auth",
        "defaultMode": 256,
        "items": [
            {"key": "ssh-privatekey", "path": "id_rsa", "mode": 416},
            {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 420},
            {"key": "ssh-publickey", "path": "authorized_keys", "mode": 420},
        ],
    },
}
HOSTS = {
    "name": "mpi-hostfile",
    "configMap": {"name": "demo-mpi-hostfile", "items": [{"key": "hostfile", "path": "hostfile", "mode": 292}]},
}


def test_volumes_and_where_they_are_mounted() -> None:
    made = job_set_of(a_train_job(trainer={}), mpi())
    assert pod_of(made)["volumes"] == [KEYS]
    assert pod_of(made, "launcher")["volumes"] == [KEYS, HOSTS]
    keys = {"name": "mpi-ssh-auth", "mountPath": "/home/mpiuser/.ssh"}
    assert container_of(made)["volumeMounts"] == [keys]
    hosts = {"name": "mpi-hostfile", "mountPath": "/etc/mpi"}
    assert container_of(made, "launcher")["volumeMounts"] == [keys, hosts]


def test_the_keys_are_a_pair_and_are_made_once() -> None:
    [wanted] = [one for one in load_framework().objects(a_train_job(), mpi()) if one.resource.kind == "Secret"]
    body = wanted.make()
    assert wanted.name == "demo-mpi-ssh-auth"
    assert (body["type"], body["immutable"]) == ("kubernetes.io/ssh-auth", True)
    private, public = (base64.b64decode(body["data"][key]) for key in ("ssh-privatekey", "ssh-publickey"))
    assert private.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")
    assert public.startswith(b"ecdsa-sha2-nistp521 ")
    assert public.endswith(b"\n")
    key = load_pem_private_key(private, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP521R1)
    same = load_ssh_public_key(public).public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert same == key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert wanted.make()["data"] != body["data"]
    assert wanted.is_kept(None)  # type: ignore[arg-type]


def test_other_runtimes_get_neither_keys_nor_a_list() -> None:
    assert list(objects_of(a_train_job(trainer={}), a_runtime(ml={"torch": {}}))) == ["JobSet/demo"]
