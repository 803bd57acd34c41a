"""MPI: a launcher starts processes on the nodes over SSH, with OpenMPI. DeepSpeed and MLX run so too.

The replicated jobs are known by their names: ``node``, and ``launcher``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from shoal.api.core import CONFIG_MAPS, SECRETS
from shoal.api.trainer import MPIPolicy, TrainJob, names
from shoal.training.framework import Container, Info, Plugin, PodSet, Wanted, wanted
from shoal.training.framework.plugin import always
from shoal.training.framework.resources import effective_resources, gpus
from shoal.training.plugins.ssh_keys import new_key_pair
from shoal.training.plugins.variables import variable

_PATIENCE: Final = "-o ConnectionAttempts=10"
"""How ssh is called: a node's daemon may come up a little later than its name."""
_OWNER_ONLY: Final = 0o400


class MPI(Plugin):
    """For runtimes with the policy mpi."""

    name = "MPI"
    kinds = (SECRETS.documents(), CONFIG_MAPS.documents())

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The number of nodes, the keys by which they trust each other, and the launcher's list of them."""
        policy, nodes = info.policy.mpi, _nodes(info, train_job)
        if policy is None:
            return info
        if nodes is not None:
            workers = max(nodes - 1, 1) if policy.run_launcher_as_node else nodes
            info = info.with_pod_set(names.NODE, lambda pods: replace(pods, count=workers))
        name, slots = train_job.metadata.name, slots_per_node(info, train_job, policy)
        info = info.with_pod_set(names.NODE, lambda pods: _trusting(pods, name, policy))
        return info.with_pod_set(names.LAUNCHER, lambda pods: _launching(_trusting(pods, name, policy), name, slots))

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The keys, which are made once, and the list of nodes."""
        policy = info.policy.mpi
        if policy is None:
            return
        name = train_job.metadata.name
        yield Wanted(resource=SECRETS.documents(), name=names.ssh_auth_secret(name), make=_secret, is_kept=always)
        nodes = hostfile(info, policy, slots_per_node(info, train_job, policy))
        yield wanted(CONFIG_MAPS, names.hostfile_config_map(name), {"data": {names.HOSTFILE: nodes}})


def slots_per_node(info: Info, train_job: TrainJob, policy: MPIPolicy) -> int:
    """How many processes run on each node: as the TrainJob or the policy says; where that is one, one for each GPU."""
    trainer = train_job.spec.trainer
    if trainer is not None and trainer.num_proc_per_node is not None:
        return trainer.num_proc_per_node
    devices = gpus(effective_resources(train_job, info.spec))
    return devices if policy.num_proc_per_node == 1 and devices > 1 else policy.num_proc_per_node


def hostfile(info: Info, policy: MPIPolicy, slots: int) -> str:
    """The addresses of all that run processes, a line for each."""
    taking_part = (names.NODE, names.LAUNCHER) if policy.run_launcher_as_node else (names.NODE,)
    addresses = (address for pods in info.pod_sets if pods.name in taking_part for address in pods.endpoints)
    return "".join(f"{address} slots={slots}\n" for address in addresses)


def _nodes(info: Info, train_job: TrainJob) -> int | None:
    """How many nodes there are: as the TrainJob says, or the runtime; None where it is for its Jobs to say.

    Every runtime says one where it means nothing by it.
    """
    trainer, policy = train_job.spec.trainer, info.policy.num_nodes
    if trainer is not None and trainer.num_nodes is not None:
        return trainer.num_nodes
    return policy if policy is not None and policy > 1 else None


def _trusting(pods: PodSet, train_job: str, policy: MPIPolicy) -> PodSet:
    """Pods that have the keys."""
    volume = {
        "name": names.SSH_AUTH_VOLUME,
        "secret": {
            "secretName": names.ssh_auth_secret(train_job),
            "defaultMode": _OWNER_ONLY,
            "items": [
                {"key": names.SSH_PRIVATE_KEY, "path": "id_rsa", "mode": 0o640},
                {"key": names.SSH_PUBLIC_KEY, "path": "id_rsa.pub", "mode": 0o644},
                {"key": names.SSH_PUBLIC_KEY, "path": "authorized_keys", "mode": 0o644},
            ],
        },
    }
    mount = {"name": names.SSH_AUTH_VOLUME, "mountPath": policy.ssh_auth_mount_path}
    return pods.with_volumes([volume]).with_container(names.NODE, lambda node: node.with_mounts([mount]))


def _launching(pods: PodSet, train_job: str, slots: int) -> PodSet:
    """Pods that have the list of nodes, and tell MPI of it."""
    volume = {
        "name": names.HOSTFILE_VOLUME,
        "configMap": {
            "name": names.hostfile_config_map(train_job),
            "items": [{"key": names.HOSTFILE, "path": names.HOSTFILE, "mode": 0o444}],
        },
    }
    mount = {"name": names.HOSTFILE_VOLUME, "mountPath": names.HOSTFILE_DIRECTORY}
    told = [
        variable(names.OMPI_HOSTFILE, f"{names.HOSTFILE_DIRECTORY}/{names.HOSTFILE}"),
        variable(names.OMPI_KEEP_FQDN, "true"),
        variable(names.OMPI_DEFAULT_SLOTS, slots),
        variable(names.OMPI_RSH_ARGS, _PATIENCE),
    ]

    def tell(node: Container) -> Container:
        return node.with_mounts([mount]).with_env(told)

    return pods.with_volumes([volume]).with_container(names.NODE, tell)


def _secret() -> dict[str, Any]:
    keys = new_key_pair()
    data = {names.SSH_PRIVATE_KEY: keys.private, names.SSH_PUBLIC_KEY: keys.public}
    return {
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
