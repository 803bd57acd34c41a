"""A newcomer's first minutes: a fresh clone, an empty home, no kubectl and no Go; then the README, as it is written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs.kube_binaries import binary
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
BY_CI = ["make test"]
"""Run by .ci/run itself: a test of ours that runs all tests would never end."""
NOT_THERE = re.compile(r"kube.*|go|gofmt|etcd|helm|kwok|docker|podman|shoal")
"""Programs that a newcomer's machine does not have."""


def commands(document: Path) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    return [
        line[2:].split("  #")[0].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


def test_what_only_ci_runs_is_run_there() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert [command for command in BY_CI if command not in script] == []
    assert set(BY_CI) < set(commands(ROOT / "README.md"))


@pytest.fixture
def clone() -> Iterator[Path]:
    """A copy of what is tracked or would be, without anything that was installed or built here.

    It lies where people put one: the folders of tests have names too long for the sockets of a data dir.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    folder = tempfile.mkdtemp(prefix="newcomer-")
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = Path(folder, "shoal", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    yield Path(folder, "shoal")
    shutil.rmtree(folder)


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with Python and make; of the present one only how pip finds packages is kept."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in (Path(sys.base_prefix) / "bin", Path("/usr/bin"), Path("/bin")):
        for tool in folder.iterdir():
            if not NOT_THERE.fullmatch(tool.name) and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    home = tmp_path / "home"
    home.mkdir()
    packages = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    asked = [sys.executable, "-m", "pip", "cache", "dir"]
    packages["PIP_CACHE_DIR"] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    own = Path.home() / ".config" / "pip" / "pip.conf"
    if own.exists():
        packages.setdefault("PIP_CONFIG_FILE", str(own))
    return {"PATH": str(tools), "HOME": str(home), "TERM": "dumb", "COLUMNS": "80", "LANG": "C.UTF-8", **packages}


@pytest.fixture
def running(clone: Path, bare: dict[str, str]) -> Iterator[Path]:
    """What the README starts first, in a terminal of its own, until it says that it is ready."""
    output = clone / "make-run.log"
    with output.open("w") as log:
        process = subprocess.Popen(["make", "run"], cwd=clone, env=bare, stdout=log, stderr=log, start_new_session=True)
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
def test_the_readme_works_as_it_is_written(running: Path, bare: dict[str, str]) -> None:
    kubectl = binary("kubectl")
    assert kubectl is not None
    typed = [command for command in commands(ROOT / "README.md") if command not in [*BY_CI, "make run"]]
    script = "set -euo pipefail\n" + "".join(f"echo {shlex.quote(f'$ {one}')}\n{one}\n" for one in typed)
    (Path(bare["PATH"]) / "kubectl").symlink_to(kubectl)  # which the README asks for
    done = subprocess.run(
        ["bash", "-c", script], cwd=running, env=bare, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nhello from a pod\n" in done.stdout
    assert re.search(r"podclique\.grove\.io/hello-0-worker +2 +2 +2 +2 ", done.stdout)
    assert "queue.scheduling.run.ai/vision created" in done.stdout
    assert re.search(r"vision +100 +research", done.stdout)
    assert "customresourcedefinition.apiextensions.k8s.io/greetings.example.shoal.dev created" in done.stdout
    assert "customresourcedefinition.apiextensions.k8s.io/queues.scheduling.run.ai serverside-applied" in done.stdout


def fake_python(folder: Path, name: str, *, can: str) -> None:
    """An interpreter that passes the checks whose text holds ``can``, and no others."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\ncase "$*" in *{can}*) exit 0;; esac\nexit 1\n')
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("can", "chosen", "said"),
    [
        pytest.param("nothing", "", "Python 3.11 or later is missing: install it (apt-get install python3)", id="old"),
        pytest.param("nothing", "python3", "PYTHON=python3 is no Python 3.11 or later: name another", id="chosen"),
        pytest.param("version_info", "", "python3 cannot make virtual environments: install its venv", id="no venv"),
    ],
)
def test_what_python_lacks_is_said_and_nothing_is_made(tmp_path: Path, can: str, chosen: str, said: str) -> None:
    tools = tmp_path / "tools"
    fake_python(tools, "python3", can=can)
    refused = subprocess.run(
        ["/bin/sh", str(ROOT / ".ci" / "make-venv"), ".venv", str(ROOT / "requirements" / "dev.txt")],
        cwd=tmp_path,
        env={"PATH": str(tools), **({"PYTHON": chosen} if chosen else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"setup: {said}")
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()
