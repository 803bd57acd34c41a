"""kubectl cannot tell the embedded server from the real one: same words, same exit codes, command by command."""

from __future__ import annotations

import difflib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import AdminApi, RealKubernetes, Refused
from tests.clients.transcript import Place, Script
from tests.support.embedded import Embedded

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_kubectl_says_the_same(
    path: Path, kubectl_binary: Path, embedded: Embedded, reference: RealKubernetes, tmp_path: Path
) -> None:
    minor = "own" if kubectl_binary.parent.name.startswith("kubernetes") else "other"
    namespace = f"{path.stem}-{minor}"
    script = Script.read(path, namespace)

    def play(server: Embedded | RealKubernetes, name: str) -> list[str]:
        prepare(server.admin, namespace)
        folder = tmp_path / name / "folder"
        folder.mkdir(parents=True)
        place = Place(kubectl_binary, server.kubeconfig, folder, namespace)
        return place.play(script).splitlines()

    with ThreadPoolExecutor() as both:
        theirs, ours = both.map(play, (reference, embedded), ("real", "embedded"))
    found = "\n".join(difflib.unified_diff(theirs, ours, "real", "embedded", lineterm="", n=12))
    assert not found, f"\n{found}"


def prepare(admin: AdminApi, namespace: str) -> None:
    """A namespace with the account that a controller would make."""
    for path, name in (("namespaces", namespace), (f"namespaces/{namespace}/serviceaccounts", "default")):
        try:
            admin.request("POST", f"/api/v1/{path}", {"metadata": {"name": name}})
        except Refused as error:
            if error.status != 409:
                raise
