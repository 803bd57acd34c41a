"""Everything of a pod goes, whatever is in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from shoal.cluster.node.process.contents.removal import remove_tree
from tests.support.programs.ordinary_user import USER, as_ordinary_user, is_root


def test_a_folder_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    gone = tmp_path / "gone"
    (gone / "a" / "b").mkdir(parents=True)
    (gone / "a" / "file").write_text("x")
    (gone / "a" / "b" / "link").symlink_to(kept)
    (gone / "link").symlink_to(kept)
    os.mkfifo(gone / "pipe")
    remove_tree(gone)
    assert not gone.exists()
    assert (kept / "file").exists(), "links are not followed"


def test_what_is_not_there_is_fine_and_a_link_goes_alone(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_folders_within_folders_beyond_every_limit_go_as_well(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("a-folder", dir_fd=here)
        below = os.open("a-folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(deep)
    assert not deep.exists()


def test_an_ordinary_user_removes_what_nobody_may_enter() -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        if is_root():
            os.chown(folder, USER, USER)
        script = """
import os, sys
from pathlib import Path
from shoal.cluster.node.process.contents.removal import remove_tree
pod = Path(sys.argv[1]) / "pod"
(pod / "scratch" / "work" / "work").mkdir(parents=True)
(pod / "scratch" / "work" / "work").chmod(0)
(pod / "read-only" / "inner").mkdir(parents=True)
(pod / "read-only" / "inner" / "file").touch()
(pod / "read-only" / "inner").chmod(0o555)
(pod / "read-only").chmod(0o555)
remove_tree(pod)
assert not pod.exists()
assert os.getuid() != 0
"""
        command = as_ordinary_user(sys.executable, "-c", script, str(folder))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(not is_root(), reason="only root can make files of others")
def test_root_removes_what_other_users_made(tmp_path: Path) -> None:
    pod = tmp_path / "pod"
    (pod / "theirs").mkdir(parents=True)
    (pod / "theirs" / "file").touch()
    for path in (pod / "theirs" / "file", pod / "theirs"):
        os.chown(path, USER, USER)
        path.chmod(0)
    remove_tree(pod)
    assert not pod.exists()
