"""A suite runs what is due, records what passed, and says what it left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suites import listing
from tests.support.suites.__main__ import ROOT, SUITES, main
from tests.support.suites.inputs import Tree
from tests.support.suites.passes import Passes
from tests.support.suites.recordings import FOLDERS, fingerprint, is_confirmed

FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\nmarkers = ['alone: x']\n",
    "tests/test_good.py": "import pytest\npytestmark = pytest.mark.alone\ndef test_it(): ...\n",
    "tests/test_bad.py": "import pytest\npytestmark = pytest.mark.alone\ndef test_it(): assert False\n",
    "tests/test_other.py": "def test_it(): assert False\n",
}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "clone" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SHOAL_SKIP_PASSED", "1")
    return tmp_path / "clone"


def run(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = (
        f"from pathlib import Path; from {main.__module__} import main; raise SystemExit(main({['alone', *arguments]}"
    )
    command = [sys.executable, "-c", f"{line}, Path({str(clone)!r})))"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_what_passed_is_skipped_and_what_failed_runs_again(clone: Path) -> None:
    first = run(clone)
    assert (first.returncode, "1 failed, 1 passed" in first.stdout) == (1, True), first.stdout + first.stderr
    assert "files skipped" not in first.stdout

    second = run(clone)
    assert second.returncode == 1
    assert "alone: 1 of 2 test files skipped, unchanged since they passed on this machine: tests/test_good.py (1)" in (
        second.stdout
    )
    assert "1 failed in" in second.stdout

    (clone / "tests/test_bad.py").write_text(FILES["tests/test_bad.py"].replace("False", "True"))
    assert "1 passed in" in run(clone).stdout
    third = run(clone)
    assert (third.returncode, "2 of 2 test files skipped" in third.stdout) == (0, True)

    (clone / "tests/test_good.py").write_text(FILES["tests/test_good.py"] + "# changed\n")
    assert "1 passed in" in run(clone).stdout


def test_arguments_run_it_whole_and_leave_no_record(clone: Path) -> None:
    assert "1 passed, 2 deselected" in run(clone, "-k", "good").stdout
    assert "1 failed, 1 passed" in run(clone).stdout


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"usage: .*\{test,kube,alone,training\}"):
        main(["podal"])


def test_a_broken_record_is_as_none(tmp_path: Path) -> None:
    passes = Passes("test", tmp_path)
    passes.add({"a": "1"})
    passes.add({"b": "2"})
    assert passes.read() == {"a": "1", "b": "2"}
    (tmp_path / "test.json").write_text("{")
    assert passes.read() == {}


@pytest.mark.slow
def test_no_test_is_outside_the_files_of_its_suite() -> None:
    """pytest, which reads everything, finds no test of a suite in a file that the suite does not give it."""
    tree = Tree(ROOT)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", listing.__name__]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100).stdout
    marked = [line.split()[1:] for line in listed.splitlines() if line.startswith(listing.LISTED)]
    found = {mark: {file for name, file in marked if name == mark} for mark in ("kube", "slow", "alone", "training")}
    for mark, suite in {"kube": "kube", "slow": "kube", "alone": "alone", "training": "training"}.items():
        assert found[mark]
        assert {file for file in found[mark] if not SUITES[suite].can_hold(tree, file)} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_recordings_are_confirmed_as_they_are_and_not_after_a_change(tmp_path: Path, folder: str) -> None:
    story, confirmed = tmp_path / folder / "stories" / "one.py", tmp_path / folder / "recorded" / "confirmed"
    for file in (story, confirmed):
        file.parent.mkdir(parents=True)
    story.write_text("")
    assert not is_confirmed(tmp_path, folder)
    confirmed.write_text(fingerprint(tmp_path, folder))
    assert is_confirmed(tmp_path, folder)
    (tmp_path / folder / "test_embedded.py").write_text("")
    assert is_confirmed(tmp_path, folder)
    story.write_text("another")
    assert not is_confirmed(tmp_path, folder)
