"""kubectl and helm cannot tell a simulated cluster of Shoal from a real one whose kubelets are simulated."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.clients.conftest import OWN
from tests.clients.live.playing import SCRIPTS, played, recording
from tests.support.clusters.engines import Engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("kubectl_binary", [OWN], indirect=True),
]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_clients_say_the_same(script: Path, kubectl_binary: Path, simulated: Engine, tmp_path: Path) -> None:
    theirs = recording(script).read_text().splitlines()
    ours = played(script, kubectl_binary, simulated, tmp_path / "simulated" / "folder").splitlines()
    found = "\n".join(difflib.unified_diff(theirs, ours, "real", "simulated", lineterm="", n=12))
    assert not found, f"\n{found}"
