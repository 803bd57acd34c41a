"""Kubeflow Trainer and JobSet, built from their Go modules once and kept in the cache; and how they are configured.

The pins are those of peers/training/go.mod.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.trainjobs.programs import HOST
from tests.support.programs.kube_binaries import Tool, build, folder_of, go_command, missing

TRAINER, JOB_SET = "trainer-controller-manager", "jobset-controller-manager"
_PEERS = Path(__file__).resolve().parent.parent / "peers"
Say = Callable[[str], None]


class NotBuilt(Exception):
    """The peer could not be had; says why."""


@dataclass(frozen=True)
class Limits:
    """Requests a second of one program, and how many at once beyond that."""

    trainer: tuple[int, int]
    job_set: tuple[int, int]


SHIPPED = Limits(trainer=(50, 100), job_set=(500, 500))
"""What their own manifests and defaults say."""
LIFTED = Limits(trainer=(100_000, 100_000), job_set=(100_000, 100_000))


class _Peer(Tool):
    """A tool whose pins lie with the peers."""

    @property
    def folder(self) -> Path:
        return _PEERS / self.name


TOOL = _Peer(
    "training",
    "github.com/kubeflow/trainer/v2",
    {TRAINER: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", JOB_SET: "sigs.k8s.io/jobset"},
)


def binaries(say: Say) -> Path:
    """The folder of both programs, which are built where they are not there; raises NotBuilt."""
    if missing((TOOL,)):
        say(f"upstream: building Trainer {TOOL.version} and JobSet (minutes, once)")
        try:
            build(TOOL, go_command())
        except (subprocess.CalledProcessError, OSError) as error:
            raise NotBuilt(f"upstream was not built: {error}") from error
    return folder_of(TOOL)


def trainer_configuration(*, webhook_port: int, health_port: int, limits: Limits) -> str:
    """As its manifest has it, but for addresses, certificates that are made for it, and no election."""
    shipped = {
        "TrainJob.trainer.kubeflow.org": 5,
        "TrainingRuntime.trainer.kubeflow.org": 1,
        "ClusterTrainingRuntime.trainer.kubeflow.org": 1,
    }
    return _configuration(
        "config.trainer.kubeflow.org/v1alpha1",
        health_port,
        limits.trainer,
        webhook={"port": webhook_port, "host": HOST},
        certManagement={"enable": False},
        controller={"groupKindConcurrency": shipped},
    )


def job_set_configuration(*, webhook_port: int, health_port: int, limits: Limits) -> str:
    """As its manifest has it, but for addresses, certificates that are made for it, and no election."""
    return _configuration(
        "config.jobset.x-k8s.io/v1alpha1",
        health_port,
        limits.job_set,
        webhook={"port": webhook_port, "host": HOST},
        internalCertManagement={"enable": False},
    )


def _configuration(version: str, health_port: int, limit: tuple[int, int], **more: Any) -> str:
    return json.dumps(
        {
            "apiVersion": version,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{HOST}:{health_port}"},
            "metrics": {"bindAddress": "0"},
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"qps": limit[0], "burst": limit[1]},
            **more,
        }
    )
