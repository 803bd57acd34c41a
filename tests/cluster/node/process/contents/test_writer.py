"""Volumes of configuration on disk: real folders, and real readers beside the writer."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cluster.node.process.contents.files import File, Files, checked
from shoal.cluster.node.process.contents.problems import Missing
from shoal.cluster.node.process.contents.writer import write_files
from tests.support.programs.ordinary_user import USER, is_root


def some(**contents: str) -> Files:
    return {path.replace("__", "/"): File(text.encode()) for path, text in contents.items()}


def seen(folder: Path) -> dict[str, bytes]:
    """What somebody finds in a volume who does not look at names that begin with two dots."""
    found = {}
    for top in sorted(folder.iterdir()):
        if top.name.startswith(".."):
            continue
        files = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
        found.update({str(path.relative_to(folder)): path.read_bytes() for path in files})
    return found


def test_files_are_seen_through_one_link(tmp_path: Path) -> None:
    volume = tmp_path / "v"
    assert write_files(volume, some(a="1", deep__b="2"))
    assert seen(volume) == {"a": b"1", "deep/b": b"2"}
    assert (volume / "a").readlink() == Path("..data/a")
    assert (volume / "deep").readlink() == Path("..data/deep")
    assert str((volume / "..data").readlink()).startswith("..2")


def test_modes_are_exact_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_files(tmp_path / "v", {"a": File(b"", 0o666), "d/x": File(b"", 0o400)})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "v").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "v" / "a").stat().st_mode) == 0o666
    assert stat.S_IMODE((tmp_path / "v" / "d").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "v" / "d" / "x").stat().st_mode) == 0o400


def test_the_same_files_again_write_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, some(a="1"))
    before = {path: path.lstat().st_mtime_ns for path in (tmp_path, *tmp_path.rglob("*"))}
    assert not write_files(tmp_path, some(a="1"))
    assert {path: path.lstat().st_mtime_ns for path in (tmp_path, *tmp_path.rglob("*"))} == before


def test_what_a_crash_left_is_cleared_away(tmp_path: Path) -> None:
    write_files(tmp_path, some(a="1"))
    (tmp_path / "..data_tmp").symlink_to("..nowhere")
    (tmp_path / "..2000_01_01_00_00_00.abandoned").mkdir()
    write_files(tmp_path, some(a="2"))
    write_files(tmp_path, some(a="3"))
    generations = [path.name for path in tmp_path.iterdir() if path.name.startswith("..2")]
    assert len(generations) == 2, "the one in use, and the one before it"
    assert not (tmp_path / "..data_tmp").is_symlink()


PATHS = st.sampled_from(["a", "b", "c", "d/a", "d/b", "e/f/g", "h"])
VOLUMES = st.dictionaries(PATHS, st.builds(File, st.binary(max_size=8), st.sampled_from([0o644, 0o600, 0o755])))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(VOLUMES, min_size=1, max_size=5))
def test_a_volume_holds_what_was_written_last_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, versions: list[Files]
) -> None:
    volume = tmp_path_factory.mktemp("volume")
    for files in versions:
        write_files(volume, files)
        assert seen(volume) == {path: file.content for path, file in files.items()}


def test_a_file_where_a_folder_was_takes_its_place(tmp_path: Path) -> None:
    write_files(tmp_path, some(x__y="1"))
    write_files(tmp_path, some(x="2"))
    assert seen(tmp_path) == {"x": b"2"}


def test_a_reader_never_sees_half_of_an_update(tmp_path: Path) -> None:
    names = [f"part-{index}" for index in range(6)]
    write_files(tmp_path, {name: File(b"0") for name in names})
    is_over = threading.Event()
    torn: list[set[bytes]] = []
    looks = 0

    def look() -> None:
        nonlocal looks
        while not is_over.is_set():
            # Whoever wants all files as they belong together opens the folder once, as ..data is made for.
            try:
                folder = os.open(tmp_path / "..data", os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # two updates went by between the link and what it led to
            try:
                found = set()
                for name in names:
                    file = os.open(name, os.O_RDONLY, dir_fd=folder)
                    found.add(os.read(file, 16))
                    os.close(file)
            except FileNotFoundError:
                continue  # two updates went by meanwhile
            finally:
                os.close(folder)
            looks += 1
            if len(found) > 1:
                torn.append(found)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    version = 0
    while version < 150 or looks < 50:
        version += 1
        write_files(tmp_path, {name: File(str(version).encode()) for name in names})
    is_over.set()
    for reader in readers:
        reader.join()
    assert not torn


def test_a_writer_that_is_killed_leaves_the_old_files_or_the_new_ones(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from shoal.cluster.node.process.contents.files import File
from shoal.cluster.node.process.contents.writer import write_files
for version in range(100000):
    write_files(Path(sys.argv[1]), {f"part-{index}": File(str(version).encode()) for index in range(4)})
    print(version, flush=True)
"""
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _line in range(20):
            writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert len({path.read_bytes() for path in (tmp_path / "..data").iterdir()}) == 1
    write_files(tmp_path, some(a="1"))
    assert seen(tmp_path) == {"a": b"1"}


def test_two_files_in_each_others_way_are_refused() -> None:
    with pytest.raises(Missing, match="d/a/b is in d/a, which is a file"):
        checked({"d/a": File(b""), "d/a/b": File(b"")})


@pytest.mark.skipif(not is_root(), reason="only root can give files away")
def test_files_are_given_to_the_pods_group_and_tokens_to_its_user(tmp_path: Path) -> None:
    write_files(tmp_path, {"token": File(b"t", 0o600, owner=USER), "d/a": File(b"", 0o644)}, group=4321)
    token, folder = (tmp_path / "token").stat(), (tmp_path / "d").stat()
    assert (token.st_uid, token.st_gid, stat.S_IMODE(token.st_mode)) == (USER, 4321, 0o640)
    assert (folder.st_gid, stat.S_IMODE(folder.st_mode)) == (4321, 0o2755)
