"""Files of the machine as volumes, and folders in memory."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cluster.node.process.contents.host_paths import host_path
from shoal.cluster.node.process.contents.memory import MemoryFolders
from shoal.cluster.node.process.contents.mounts import inside
from shoal.cluster.node.process.contents.problems import Missing


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with one thing of each kind; with a short path, since a socket's may not be long."""
    found = Path(tempfile.mkdtemp(dir="/tmp"))
    (found / "directory").mkdir()
    (found / "file").touch()
    (found / "link").symlink_to("directory")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(found / "socket"))
    yield found
    shutil.rmtree(found)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("directory", ""),
        ("directory", "Directory"),
        ("directory", "DirectoryOrCreate"),
        ("link", "Directory"),
        ("file", "File"),
        ("file", "FileOrCreate"),
        ("file", ""),
        ("socket", "Socket"),
    ],
)
def test_what_is_of_the_right_kind_is_taken_as_it_is(folder: Path, name: str, type_: str) -> None:
    assert host_path(str(folder / name), type_, hidden=()) == folder / name


def test_devices_are_known() -> None:
    assert host_path("/dev/null", "CharDevice", hidden=()) == Path("/dev/null")


@pytest.mark.parametrize(
    ("name", "type_", "title"),
    [
        ("file", "Directory", "a directory"),
        ("file", "DirectoryOrCreate", "a directory"),
        ("none", "Directory", "a directory"),
        ("directory", "File", "a file"),
        ("none", "File", "a file"),
        ("file", "Socket", "a socket"),
        ("file", "CharDevice", "a character device"),
        ("file", "BlockDevice", "a block device"),
    ],
)
def test_what_is_of_another_kind_is_refused(folder: Path, name: str, type_: str, title: str) -> None:
    with pytest.raises(Missing) as caught:
        host_path(str(folder / name), type_, hidden=())
    assert str(caught.value) == f"hostPath type check failed: {folder / name} is not {title}"


@pytest.mark.parametrize("type_", ["", "DirectoryOrCreate"])
def test_a_folder_that_may_be_made_is_made(folder: Path, type_: str) -> None:
    made = host_path(str(folder / "deep" / "new"), type_, hidden=())
    assert stat.S_IMODE(made.stat().st_mode) == 0o755


def test_a_file_that_may_be_made_is_made_but_not_its_folder(folder: Path) -> None:
    assert host_path(str(folder / "new"), "FileOrCreate", hidden=()).is_file()
    with pytest.raises(Missing, match="no such file or directory"):
        host_path(str(folder / "deep" / "new"), "FileOrCreate", hidden=())


def test_what_is_made_can_be_used_by_pods_of_any_user_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        made = host_path(str(folder / "deep" / "new"), "DirectoryOrCreate", hidden=())
        file = host_path(str(folder / "file"), "FileOrCreate", hidden=())
    finally:
        os.umask(before)
    assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in (made.parent, made, file)] == ["0o755", "0o755", "0o644"]


@pytest.mark.parametrize("type_", ["", "DirectoryOrCreate", "FileOrCreate", "File"])
@pytest.mark.parametrize("name", ["secrets", "secrets/file", "secrets/new", "way", "way/file", "again/file"])
def test_what_is_hidden_is_refused_by_every_way_and_nothing_is_made(folder: Path, name: str, type_: str) -> None:
    hidden = folder / "secrets"
    hidden.mkdir()
    (hidden / "file").touch()
    (folder / "way").symlink_to("secrets")
    (folder / "again").symlink_to(hidden)
    with pytest.raises(Missing, match="cannot be mounted: pods never see"):
        host_path(str(folder / name), type_, hidden=[str(hidden)])
    assert [path.name for path in hidden.iterdir()] == ["file"]


@pytest.mark.parametrize("path", ["relative", "/a/../b"])
def test_a_path_that_could_mean_another_is_refused(path: str) -> None:
    with pytest.raises(Missing, match="invalid HostPath"):
        host_path(path, "", hidden=())


def test_links_lead_within_a_volume_but_not_out_of_it(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    (volume / "real").mkdir(parents=True)
    (volume / "good").symlink_to("real")
    (volume / "bad").symlink_to("/etc")
    (volume / "worse").symlink_to("../..")
    assert inside(volume, "good/new") == volume / "real" / "new"
    for name in ("bad", "bad/passwd", "worse"):
        with pytest.raises(Missing, match="leads out of its volume"):
            inside(volume, name)


def test_a_folder_in_memory_is_nobody_elses() -> None:
    memory = MemoryFolders()
    uid = f"test-{os.getpid()}"
    own = memory.of_pod(uid)
    found = memory.folder(uid, "shm", 0)
    if found is None:
        pytest.skip("/dev/shm is no tmpfs here")
    try:
        assert found == own / "shm"
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        assert memory.folder(uid, "shm", 1 << 60) is None, "there is no room for that"
        own.chmod(0o755)
        assert memory.folder(uid, "shm", 0) is None, "somebody else could look into it"
    finally:
        own.rmdir()


def test_without_a_tmpfs_there_is_no_folder_in_memory(tmp_path: Path) -> None:
    assert MemoryFolders(tmp_path).folder("u", "v", 0) is None
