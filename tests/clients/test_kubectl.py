"""kubectl cannot tell the embedded server from the real one: same words, same exit codes, command by command."""

from __future__ import annotations

import difflib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shoal.cluster.kubernetes import RealKubernetes
from tests.clients.playing import SCRIPTS, played, prepare, recording, which
from tests.clients.transcript import Place, normalised
from tests.support.clusters.embedded import Embedded
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_kubectl_says_the_same(script: Path, kubectl_binary: Path, embedded: Embedded, tmp_path: Path) -> None:
    theirs = recording(script, kubectl_binary).read_text().splitlines()
    ours = played(script, kubectl_binary, embedded, tmp_path / "embedded" / "folder").splitlines()
    found = "\n".join(difflib.unified_diff(theirs, ours, "real", "embedded", lineterm="", n=12))
    assert not found, f"\n{found}"


@pytest.mark.parametrize(
    "form", [["--show-labels"], ["--output-watch-events"], ["-o", "json"]], ids=["table", "events", "json"]
)
def test_kubectl_watches_the_same(
    form: list[str], kubectl_binary: Path, embedded: Embedded, reference: RealKubernetes, tmp_path: Path
) -> None:
    namespace = f"watch-{which(kubectl_binary)}"

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
