"""Every command of the README, typed in a fresh copy of the project as a newcomer would."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kube_binaries import binary
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
BY_CI = ["make test"]
"""Run by .ci/run itself: a test of ours that runs all tests would never end."""


def commands(document: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    return [
        line[2:].split("  #")[0].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


def test_what_only_ci_runs_is_run_there() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert [command for command in BY_CI if command not in script] == []
    assert set(BY_CI) < set(commands(ROOT / "README.md"))


def test_every_link_of_the_documents_leads_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert broken == []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what is tracked or would be, without anything that was installed or built here."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = tmp_path / "shoal" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return tmp_path / "shoal"


@pytest.fixture
def running(clone: Path) -> Iterator[Path]:
    """What the README starts first, in a terminal of its own, until it says that it is ready."""
    output = clone / "make-run.log"
    with output.open("w") as log:
        process = subprocess.Popen(["make", "run"], cwd=clone, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(
            lambda: "Shoal is ready" in output.read_text() or process.poll() is not None,
            "Shoal to be ready",
            within=600,
        )
        assert process.poll() is None, output.read_text()
        yield clone
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=15)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.kube
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_readme_works_as_it_is_written(running: Path) -> None:
    kubectl = binary("kubectl")
    assert kubectl is not None
    typed = [command for command in commands(ROOT / "README.md") if command not in [*BY_CI, "make run"]]
    script = "set -euo pipefail\n" + "".join(f"echo '$ {command}'\n{command}\n" for command in typed)
    environment = {**os.environ, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}
    environment.pop("KUBECONFIG", None)
    done = subprocess.run(
        ["bash", "-c", script], cwd=running, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "queue.scheduling.run.ai/vision created" in done.stdout
    assert re.search(r"vision +100 +research", done.stdout)
    assert "customresourcedefinition.apiextensions.k8s.io/greetings.example.shoal.dev created" in done.stdout
    assert "customresourcedefinition.apiextensions.k8s.io/queues.scheduling.run.ai serverside-applied" in done.stdout
