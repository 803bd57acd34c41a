"""The scripts for clusters in which things happen by themselves, and what was said of the real one."""

from __future__ import annotations

from pathlib import Path

from tests.clients.live.reading import settled
from tests.clients.playing import Server
from tests.clients.transcript import Place, Script
from tests.support.programs import kube_binaries
from tests.support.waiting import wait_until

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


def recording(script: Path) -> Path:
    """The file with what the real cluster made of a script."""
    return script.parents[1] / "recorded" / script.name


def played(script: Path, kubectl: Path, server: Server, folder: Path) -> str:
    """What is said when a script is played to a cluster, in an empty folder, less what differs from run to run."""
    namespace = f"live-{script.stem}"
    folder.mkdir(parents=True)
    server.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_until(lambda: server.admin.exists(account), "the namespace's account")
    place = Place(kubectl, server.kubeconfig, folder, namespace, kube_binaries.binary("helm"))
    said = place.play(Script.read(script, namespace))
    server.admin.request("DELETE", f"/api/v1/namespaces/{namespace}")
    return settled(said)
