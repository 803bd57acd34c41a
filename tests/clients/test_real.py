"""What is recorded of kubectl is what it says when a real API server answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cluster.kubernetes import RealKubernetes
from tests.clients.playing import SCRIPTS, played, recording
from tests.support.suites.recordings import unless_confirmed

pytestmark = [pytest.mark.slow, unless_confirmed("tests/clients")]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_the_recording_is_true(script: Path, kubectl_binary: Path, reference: RealKubernetes, tmp_path: Path) -> None:
    said = played(script, kubectl_binary, reference, tmp_path / "real" / "folder")
    assert said.splitlines() == recording(script, kubectl_binary).read_text().splitlines()
