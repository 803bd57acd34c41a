"""kubectl cannot tell the embedded server from the real one: same words, same exit codes, command by command."""

from __future__ import annotations

import difflib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import AdminApi, RealKubernetes, Refused
from tests.clients.transcript import Place, Script, normalised
from tests.support.embedded import Embedded
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    "form", [["--show-labels"], ["--output-watch-events"], ["-o", "json"]], ids=["table", "events", "json"]
)
def test_kubectl_watches_the_same(
    form: list[str], kubectl_binary: Path, embedded: Embedded, reference: RealKubernetes, tmp_path: Path
) -> None:
    namespace = f"watch-{'own' if kubectl_binary.parent.name.startswith('kubernetes') else 'other'}"

    def is_whole(text: str) -> bool:
        return "last" in text and text.endswith(("s\n", "<none>\n", "}\n"))

    def watched(server: Embedded | RealKubernetes, name: str) -> str:
        prepare(server.admin, namespace)
        folder = tmp_path / name / "folder"
        folder.mkdir(parents=True)
        place = Place(kubectl_binary, server.kubeconfig, folder, namespace)
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        server.admin.request("POST", maps, {"metadata": {"name": "first"}})
        said = folder / "said"
        with said.open("w") as output:
            command = place.command("get", "configmaps", "--watch", *form)
            process = subprocess.Popen(command, stdout=output, env=place.environment({}), cwd=folder)
        try:
            wait_until(lambda: "first" in said.read_text(), "the first object")
            server.admin.request("POST", maps, {"metadata": {"name": "second", "labels": {"a": "b"}}})
            wait_until(lambda: "second" in said.read_text(), "the second object")
            server.admin.request("DELETE", f"{maps}/second")
            server.admin.request("DELETE", f"{maps}/first")
            server.admin.request("POST", maps, {"metadata": {"name": "last"}})
            wait_until(lambda: is_whole(said.read_text()), "the last object")
        finally:
            process.terminate()
            process.wait()
        server.admin.request("DELETE", f"{maps}/last")
        return normalised(said.read_text())

    with ThreadPoolExecutor() as both:
        theirs, ours = both.map(watched, (reference, embedded), ("real", "embedded"))
    assert ours == theirs


def prepare(admin: AdminApi, namespace: str) -> None:
    """A namespace with the account that a controller would make."""
    for path, name in (("namespaces", namespace), (f"namespaces/{namespace}/serviceaccounts", "default")):
        try:
            admin.request("POST", f"/api/v1/{path}", {"metadata": {"name": name}})
        except Refused as error:
            if error.status != 409:
                raise
