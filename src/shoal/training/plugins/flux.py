"""Flux: a workload manager is put into the TrainJob's pods, and runs its command over all nodes."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from shoal.api.core import CONFIG_MAPS, SECRETS
from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Container, Info, Plugin, PodSet, Unbuildable, Wanted, wanted
from shoal.training.framework.resources import effective_resources, gpus
from shoal.training.framework.upserts import Json
from shoal.training.plugins.curve import certificate
from shoal.training.plugins.flux_scripts import FluxCluster, entrypoint_script, init_script

DEFAULTS: Final = {
    names.FLUX_VIEW_IMAGE: "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    names.FLUX_NETWORK_DEVICE: "eth0",
    names.FLUX_QUEUE_POLICY: "fcfs",
}
"""What may be set by variables of the runtime's node, or of the TrainJob."""

ENTRYPOINT: Final = "entrypoint.sh"
INIT: Final = "init.sh"
_CONFIG: Final = "/etc/flux-config"
_INSTALLED: Final = {"name": "flux-install", "mountPath": "/mnt/flux"}


class Flux(Plugin):
    """For runtimes with the policy flux."""

    name = "Flux"
    kinds = (CONFIG_MAPS.documents(), SECRETS.documents())

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        """Flux in the pods, and the TrainJob's command as the argument of its entry point."""
        if info.policy.flux is None:
            return info
        nodes_of(train_job)
        command = ("/bin/bash", f"{_CONFIG}/{ENTRYPOINT}", command_line(info))
        image, name = settings(info, train_job)[names.FLUX_VIEW_IMAGE], train_job.metadata.name
        info = info.with_pod_set(names.NODE, lambda pods: _with_flux(pods, name, image))
        return replace(info, trainer=replace(info.trainer, command=command, args=()))

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The programs, and the certificate of the brokers."""
        if info.policy.flux is None:
            return
        name, cluster = train_job.metadata.name, flux_cluster(info, train_job)
        scripts = {ENTRYPOINT: entrypoint_script(cluster), INIT: init_script(cluster)}
        yield wanted(CONFIG_MAPS, names.flux_config_map(name), {"data": scripts})
        curve = base64.b64encode(certificate(name, train_job.metadata.uid).encode()).decode()
        yield wanted(SECRETS, names.flux_curve_secret(name), {"data": {names.CURVE_KEY: curve}})


def nodes_of(train_job: TrainJob) -> int:
    """How many nodes there are. Brokers know each other by number, so a TrainJob must say it."""
    trainer = train_job.spec.trainer
    if trainer is None or trainer.num_nodes is None:
        raise Unbuildable("a Flux runtime needs to know its nodes beforehand: set spec.trainer.numNodes")
    return trainer.num_nodes


def command_line(info: Info) -> str:
    """The command and its arguments, the TrainJob's or else the runtime's, as one line of shell.

    A single word is taken for a whole line.
    """
    said, runtime = info.trainer, info.trainer_container
    command = runtime.get("command") if said.command is None else said.command
    arguments = runtime.get("args") if said.args is None else said.args
    words = [*(command or ()), *(arguments or ())]
    return words[0].strip() if len(words) == 1 else shlex.join(words)


def settings(info: Info, train_job: TrainJob) -> dict[str, str]:
    """How Flux is set up: by default, by the runtime's variables, by the TrainJob's."""
    nodes = info.trainer_set
    node = nodes.container(names.NODE) if nodes else None
    trainer = train_job.spec.trainer
    told = [*(node.env if node else ()), *(trainer.env if trainer else ())]
    return {**DEFAULTS, **{one["name"]: one["value"] for one in told if one["name"] in DEFAULTS and one.get("value")}}


def flux_cluster(info: Info, train_job: TrainJob) -> FluxCluster:
    """What Flux's programs must know."""
    assert info.policy.flux is not None
    trainer, chosen = train_job.spec.trainer, settings(info, train_job)
    tasks = trainer.num_proc_per_node if trainer else None
    return FluxCluster(
        train_job=train_job.metadata.name,
        namespace=train_job.metadata.namespace,
        replicated_job=names.NODE,
        subdomain=info.subdomain(train_job.metadata.name),
        nodes=nodes_of(train_job),
        tasks=info.policy.flux.num_proc_per_node if tasks is None else tasks,
        gpus=gpus(effective_resources(train_job, info.spec)),
        network_device=chosen[names.FLUX_NETWORK_DEVICE],
        queue_policy=chosen[names.FLUX_QUEUE_POLICY],
    )


def _with_flux(pods: PodSet, train_job: str, image: str) -> PodSet:
    scripts = names.flux_config_map(train_job)
    configured = {"name": scripts, "mountPath": _CONFIG, "readOnly": True}
    installer = Container(
        name=names.FLUX_INSTALLER,
        image=image,
        command=("/bin/bash", f"{_CONFIG}/{INIT}"),
        volume_mounts=(_INSTALLED, configured),
    )
    mounts: list[Json] = [
        _INSTALLED,
        {"name": "spack-install", "mountPath": "/opt/software"},
        configured,
        {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
        {"name": "shared-memory", "mountPath": "/dev/shm", "readOnly": True},  # noqa: S108 - a mount, no file of ours
    ]
    pods = pods.with_volumes(_volumes(train_job)).with_container(names.NODE, lambda node: node.with_mounts(mounts))
    return replace(pods, init_containers=(*pods.init_containers, installer))


def _volumes(train_job: str) -> list[dict[str, Any]]:
    scripts = names.flux_config_map(train_job)
    return [
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": names.flux_curve_secret(train_job), "defaultMode": 0o400}},
    ]
