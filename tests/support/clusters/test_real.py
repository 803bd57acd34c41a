"""What happens to tests that need a real Kubernetes where it is not built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KUBE_TESTS = "tests/cluster/kubernetes/test_launcher.py"
OTHER_TESTS = "tests/cluster/kubernetes/test_binaries.py"


def run_pytest(*arguments: str, cache: Path, require: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SHOAL_CACHE": str(cache), "SHOAL_REQUIRE_KUBE": "1" if require else ""}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


def test_they_are_left_out_with_one_line(tmp_path: Path) -> None:
    done = run_pytest(KUBE_TESTS, OTHER_TESTS, cache=tmp_path)
    said = [line for line in done.stdout.splitlines() if "kube" in line.lower()]
    assert done.returncode == 0, done.stdout
    assert len(said) == 1
    assert said[0].startswith("kube: ")
    assert said[0].endswith("tests skipped: real Kubernetes is not built: run make kube-binaries")
    assert " passed" in done.stdout


def test_a_run_of_nothing_else_is_no_failure(tmp_path: Path) -> None:
    assert run_pytest(KUBE_TESTS, cache=tmp_path).returncode == 0


def test_nothing_is_said_where_none_was_asked_for(tmp_path: Path) -> None:
    assert "real Kubernetes" not in run_pytest(KUBE_TESTS, OTHER_TESTS, "-m", "not kube", cache=tmp_path).stdout


def test_where_they_are_required_it_is_an_error(tmp_path: Path) -> None:
    done = run_pytest(KUBE_TESTS, OTHER_TESTS, cache=tmp_path, require=True)
    assert done.returncode == 4
    assert "tests cannot run: real Kubernetes is not built: run make kube-binaries" in done.stdout + done.stderr
