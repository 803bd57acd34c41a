"""Writes the files of a volume so that a reader sees all of the old ones or all of the new ones.

The files lie in a folder with a name of its own, to which the link ``..data`` leads; what is seen in the volume are
links through ``..data``. An update makes another folder and turns that one link, which happens at once. The folder
before it stays until the next update, for those who were on their way through it.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from shoal.cluster.node.process.contents.files import Files
from shoal.cluster.node.process.contents.ownership import give_to_group
from shoal.cluster.node.process.contents.removal import remove_tree

DATA = "..data"
_NEXT = "..data_tmp"


def write_files(folder: Path, files: Files, *, group: int | None = None) -> bool:
    """Makes a volume hold these files and no others; False where it held them already, and nothing was written."""
    make_folder(folder, 0o755)
    held = _generation(folder)
    if held is not None and _holds(folder / held, files):
        _link(folder, files)
        return False
    fresh = _new_generation(folder, files)
    if group is not None:
        give_to_group(folder / fresh, group, is_read_only=True)
    _turn(folder, fresh)
    _link(folder, files)
    for entry in os.scandir(folder):
        if entry.name.startswith("..") and entry.name not in (DATA, fresh, held):
            remove_tree(Path(entry.path))
    return True


def make_folder(folder: Path, mode: int) -> None:
    """Makes a folder of exactly this mode, where there is none."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(mode)


def _generation(folder: Path) -> str | None:
    """The name of the folder that is in use."""
    try:
        return os.readlink(folder / DATA)  # noqa: PTH115 - a name, not a path
    except FileNotFoundError:
        return None


def _holds(generation: Path, files: Files) -> bool:
    found: set[str] = set()
    for place, _, names in os.walk(generation):
        found.update(os.path.relpath(os.path.join(place, name), generation) for name in names)  # noqa: PTH118
    if found != set(files):
        return False
    try:
        return _are_equal(generation, files)
    except PermissionError:  # a mode that forbids even its owner to read
        return False


def _are_equal(generation: Path, files: Files) -> bool:
    return all((generation / path).read_bytes() == file.content for path, file in files.items())


def _new_generation(folder: Path, files: Files) -> str:
    fresh = Path(tempfile.mkdtemp(prefix=datetime.now(UTC).strftime("..%Y_%m_%d_%H_%M_%S."), dir=folder))
    fresh.chmod(0o755)
    for path, file in files.items():
        place = fresh / path
        for parent in reversed(place.relative_to(fresh).parents[:-1]):
            if not (fresh / parent).is_dir():
                (fresh / parent).mkdir()
                (fresh / parent).chmod(0o755)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(file.content)
            if file.owner is not None:
                os.fchown(descriptor, file.owner, -1)
            os.fchmod(descriptor, file.mode & 0o777)
    return fresh.name


def _turn(folder: Path, generation: str) -> None:
    link = folder / _NEXT
    link.unlink(missing_ok=True)
    link.symlink_to(generation)
    link.replace(folder / DATA)


def _link(folder: Path, files: Files) -> None:
    """Makes the links that are seen, and removes those of files that are no more."""
    wanted = {path.partition("/")[0] for path in files}
    seen = {
        entry.name
        for entry in os.scandir(folder)
        if entry.is_symlink() and os.readlink(entry.path) == f"{DATA}/{entry.name}"  # noqa: PTH115
    }
    for name in wanted - seen:
        (folder / name).symlink_to(f"{DATA}/{name}")
    for name in seen - wanted:
        (folder / name).unlink()
