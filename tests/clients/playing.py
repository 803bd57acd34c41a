"""The scripts of kubectl commands, and what the real server made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from shoal.cluster.kubernetes import AdminApi, Refused
from tests.clients.transcript import Place, Script

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))
RECORDED = Path(__file__).parent / "recorded"


class Server(Protocol):
    """A server that kubectl can be signed in to."""

    @property
    def kubeconfig(self) -> Path: ...
    @property
    def admin(self) -> AdminApi: ...


def which(kubectl: Path) -> str:
    """The server's own minor release of kubectl, or the other one."""
    return "own" if kubectl.parent.name.startswith("kubernetes") else "other"


def recording(script: Path, kubectl: Path) -> Path:
    """The file with what the real server made of a script."""
    return RECORDED / f"{script.stem}-{which(kubectl)}.txt"


def played(script: Path, kubectl: Path, server: Server, folder: Path) -> str:
    """What is said when a script is played to a server, in an empty folder."""
    namespace = f"{script.stem}-{which(kubectl)}"
    prepare(server.admin, namespace)
    folder.mkdir(parents=True)
    return Place(kubectl, server.kubeconfig, folder, namespace).play(Script.read(script, namespace))


def prepare(admin: AdminApi, namespace: str) -> None:
    """A namespace with the account that a controller would make."""
    for path, name in (("namespaces", namespace), (f"namespaces/{namespace}/serviceaccounts", "default")):
        try:
            admin.request("POST", f"/api/v1/{path}", {"metadata": {"name": name}})
        except Refused as error:
            if error.status != 409:
                raise
