"""TrainJobStatus: tells the training program where to report how far it is, and gives it a token for that.

It is there where a server is that takes such reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from shoal.api.core import CONFIG_MAPS
from shoal.api.trainer import TrainJob, names
from shoal.training.framework import Container, Info, Plugin, PodSet, Wanted, wanted
from shoal.training.plugins.variables import variable

VOLUME: Final = "kubeflow-trainer-token"
DIRECTORY: Final = "/var/run/secrets/kubeflow/trainer"
TOKEN: Final = "token"  # noqa: S105 - a file's name
TOKEN_SECONDS: Final = 3600


@dataclass(frozen=True, kw_only=True)
class StatusServer:
    """The server that takes reports, as pods reach it."""

    url: str
    """Its base, as in ``https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443``."""
    authority: Callable[[], str]
    """The certificate, in PEM, that vouches for the server's."""


def report_path(namespace: str, name: str) -> str:
    """Where reports of a TrainJob go."""
    return f"/apis/{names.GROUP}/{names.VERSION}/namespaces/{namespace}/trainjobs/{name}/status"


def audience(namespace: str, name: str) -> str:
    """For whom a token is that lets its bearer report of one TrainJob, and nothing else."""
    return f"{names.GROUP}/{names.VERSION}/namespaces/{namespace}/trainjobs/{name}/status"


class TrainJobStatus(Plugin):
    """For all TrainJobs."""

    name = "TrainJobStatus"
    kinds = (CONFIG_MAPS.documents(),)

    def __init__(self, server: StatusServer) -> None:
        self._server = server

    def enforce_pod_spec(self, info: Info, train_job: TrainJob) -> Info:
        """Where to report, in every container of the pods that train."""
        namespace, name = train_job.metadata.namespace, train_job.metadata.name
        told = [
            variable(names.STATUS_SERVER_URL, f"{self._server.url}{report_path(namespace, name)}"),
            variable(names.STATUS_SERVER_CA, f"{DIRECTORY}/{names.CA_KEY}"),
            variable(names.STATUS_SERVER_TOKEN, f"{DIRECTORY}/{TOKEN}"),
        ]
        token = {"audience": audience(namespace, name), "expirationSeconds": TOKEN_SECONDS, "path": TOKEN}
        authority = {
            "name": names.tls_config_map(name),
            "items": [{"key": names.CA_KEY, "path": names.CA_KEY}],
        }
        volume = {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": authority}]}}
        mount = {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}

        def tell(container: Container) -> Container:
            return container.with_env(told).with_mounts([mount])

        def equip(pods: PodSet) -> PodSet:
            return replace(pods.with_volumes([volume]), containers=tuple(map(tell, pods.containers)))

        return info.with_trainer_set(equip)

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The authority that the program trusts."""
        name = names.tls_config_map(train_job.metadata.name)
        yield wanted(CONFIG_MAPS, name, {"data": {names.CA_KEY: self._server.authority()}})
