"""kube-controller-manager and kube-scheduler, unmodified, beside an embedded API server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shoal.cluster.keyring import Keyring, kubeconfig, write_private
from shoal.cluster.kubernetes import Binaries, flags
from shoal.cluster.kubernetes.processes import Child, Spawner, end_all
from tests.support.clusters.embedded import Embedded

# What a client says that cannot follow a kind, is refused what its role allows, or was sent what it cannot read.
_COMPLAINTS = re.compile(
    r"panic|Failed to watch|failed to list|fatal|forbidden|unable to decode|cannot unmarshal|"
    r"unexpected EOF|proto: |the server could not find|Observed a panic",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Companions:
    """The processes, and what they wrote."""

    children: dict[str, Child]

    def log(self, name: str) -> str:
        return self.children[name].log.read_text()

    def complaints(self) -> list[str]:
        """The lines of their logs that speak of a server they cannot work with."""
        lines = [line for name in self.children for line in self.log(name).splitlines()]
        return [line for line in lines if _COMPLAINTS.search(line)]


@contextmanager
def companions(binaries: Binaries, server: Embedded, data_dir: Path) -> Iterator[Companions]:
    """Runs both, each as the user that it is in any cluster, and each controller as its own service account."""
    keyring = Keyring(data_dir / "pki", now=datetime.now(UTC))
    certificate, key = keyring.serving_files
    files = flags.Files(
        data_dir=data_dir,
        authority=keyring.authority_file,
        authority_key=keyring.authority_key,
        serving_certificate=certificate,
        serving_key=key,
        kubelet_client_certificate=data_dir / "unused",
        kubelet_client_key=data_dir / "unused",
        service_account_key=keyring.service_account_key,
        tokens=data_dir / "unused",
        token_webhook=data_dir / "unused",
    )

    def signed_in(name: str) -> Path:
        pair = keyring.client(f"system:{name}", now=datetime.now(UTC))
        path = data_dir / f"{name}.kubeconfig"
        write_private(path, kubeconfig(server.server, authority=keyring.authority, user=name, sign_in=pair))
        return path

    manager, scheduler = "kube-controller-manager", "kube-scheduler"
    assert binaries.kube_controller_manager is not None
    assert binaries.kube_scheduler is not None
    commands = {
        manager: [
            str(binaries.kube_controller_manager),
            *flags.controller_manager(files, signed_in(manager)),
            "--leader-elect=true",
            "--use-service-account-credentials=true",
            # It reports on a kind that the embedded server does not serve.
            "--controllers=*,-validatingadmissionpolicy-status-controller",
        ],
        scheduler: [str(binaries.kube_scheduler), *flags.scheduler(signed_in(scheduler)), "--leader-elect=true"],
    }
    spawner = Spawner()
    children = {
        name: spawner.spawn(name, command, folder=data_dir, log=data_dir / f"{name}.log", environment=dict(os.environ))
        for name, command in commands.items()
    }
    try:
        yield Companions(children)
    finally:
        end_all(list(children.values()), grace=5)
        spawner.close()
