"""kubectl and helm cannot tell a simulated cluster of Shoal from a real one whose kubelets are simulated."""

from __future__ import annotations

import difflib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients.conftest import OWN
from tests.clients.live.reading import settled
from tests.clients.transcript import Place, Script
from tests.support.clusters.engines import Engine
from tests.support.programs import kube_binaries
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("kubectl_binary", [OWN], indirect=True),
]

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_clients_say_the_same(
    path: Path, kubectl_binary: Path, simulated: Engine, reference: Engine, tmp_path: Path
) -> None:
    namespace = f"live-{path.stem}"
    script = Script.read(path, namespace)

    def play(engine: Engine, name: str) -> list[str]:
        folder = tmp_path / name / "folder"
        folder.mkdir(parents=True)
        engine.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_until(lambda: engine.admin.exists(account), "the namespace's account")
        said = Place(kubectl_binary, engine.kubeconfig, folder, namespace, kube_binaries.binary("helm")).play(script)
        engine.admin.request("DELETE", f"/api/v1/namespaces/{namespace}")
        return settled(said).splitlines()

    with ThreadPoolExecutor() as both:
        theirs, ours = both.map(play, (reference, simulated), ("real", "simulated"))
    found = "\n".join(difflib.unified_diff(theirs, ours, "real", "simulated", lineterm="", n=12))
    assert not found, f"\n{found}"
