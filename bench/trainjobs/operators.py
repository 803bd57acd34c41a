"""Who looks after TrainJobs on a cluster that has everything else: Shoal's processes, or those of upstream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.trainjobs import registering
from bench.trainjobs.programs import HOST, Program, free_port, started
from bench.trainjobs.upstream import JOB_SET, TRAINER, Limits, job_set_configuration, trainer_configuration


@contextmanager
def ours(
    shoal: Sequence[str], kubeconfig: Path, folder: Path, *, environment: Mapping[str, str]
) -> Iterator[dict[str, int]]:
    """``shoal operator`` and ``shoal webhooks``, for training alone, by a command line that stands for ``shoal``."""
    metrics, operator_health, webhooks, webhooks_health = (free_port() for _ in range(4))
    programs = [
        Program(
            name="operator",
            command=[
                *shoal,
                "operator",
                "--enable=training",
                f"--kubeconfig={kubeconfig}",
                f"--metrics-bind-address={HOST}:{metrics}",
                f"--health-probe-bind-address={HOST}:{operator_health}",
            ],
            health_port=operator_health,
            environment=environment,
        ),
        Program(
            name="webhooks",
            command=[
                *shoal,
                "webhooks",
                "--only=training",
                f"--kubeconfig={kubeconfig}",
                f"--url=https://{HOST}:{webhooks}",
                f"--port={webhooks}",
                f"--health-probe-bind-address={HOST}:{webhooks_health}",
            ],
            health_port=webhooks_health,
            environment=environment,
        ),
    ]
    with started(programs, folder) as processes:
        yield processes


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """Upstream's two programs, and how fast they may ask the API server."""

    binaries: Path
    limits: Limits

    @contextmanager
    def running(self, kubeconfig: Path, folder: Path) -> Iterator[dict[str, int]]:
        """Both of them, with their webhooks registered by address; gives their processes."""
        authority = registering.make_certificates(folder)
        webhooks = {TRAINER: free_port(), JOB_SET: free_port()}
        programs = []
        for name, configuration in ((TRAINER, trainer_configuration), (JOB_SET, job_set_configuration)):
            health = free_port()
            config = folder / f"{name}.yaml"
            config.write_text(configuration(webhook_port=webhooks[name], health_port=health, limits=self.limits))
            programs.append(
                Program(
                    name=name,
                    command=[
                        str(self.binaries / name),
                        f"--config={config}",
                        f"--kubeconfig={kubeconfig}",
                        "--zap-log-level=2",
                    ],
                    health_port=health,
                    # Where controller-runtime looks for certificates that nobody names.
                    environment={"TMPDIR": str(folder)},
                )
            )
        with started(programs, folder) as processes:
            registering.register(kubeconfig, webhooks, authority)
            yield processes
