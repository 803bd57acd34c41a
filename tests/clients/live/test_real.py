"""What is recorded of kubectl and helm is what they say of a real cluster whose kubelets kwok plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import OWN
from tests.clients.live.playing import SCRIPTS, played, recording
from tests.support.clusters.engines import Engine
from tests.support.suites.recordings import unless_confirmed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    unless_confirmed("tests/clients/live"),
    pytest.mark.parametrize("kubectl_binary", [OWN], indirect=True),
]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_the_recording_is_true(script: Path, kubectl_binary: Path, reference: Engine, tmp_path: Path) -> None:
    said = played(script, kubectl_binary, reference, tmp_path / "real" / "folder")
    assert said.splitlines() == recording(script).read_text().splitlines()
