"""Files and folders of the machine as volumes: what kind of thing one must be, and the making of one that may be made.

Whoever runs Shoal is whose permissions count, here as inside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from shoal.cluster.node.process.contents.problems import Missing
from shoal.cluster.node.process.runtime.hiding import is_hidden, machine_mounts

_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def host_path(path: str, type_: str, *, mode: int = 0o755, hidden: Sequence[str]) -> Path:
    """The file or folder of a volume, there and of the right kind; Missing where it is not, or is hidden from pods.

    ``mode`` is that of a new folder.
    """
    if not path.startswith("/"):
        raise Missing(f"invalid HostPath `{path}`: must be an absolute path")
    if ".." in path.split("/"):
        raise Missing(f"invalid HostPath `{path}`: must not contain '..'")
    if type_ and type_ not in _KINDS:
        raise Missing(f"{type_} is an invalid volume type")
    refuse_hidden(path, hidden)
    place = Path(path)
    try:
        found = _mode_of(place)
        if found is None:
            if type_ == "FileOrCreate":
                made = os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
                os.fchmod(made, 0o644)
                os.close(made)
                return place
            # A folder of no special kind is made as well, as container runtimes do.
            if type_ in ("", "DirectoryOrCreate"):
                make_folders(place)
                place.chmod(mode)
                return place
    except OSError as error:
        raise Missing(f"{path}: {(error.strerror or str(error)).lower()}") from error
    if type_:
        is_right, title = _KINDS[type_]
        if found is None or not is_right(found):
            raise Missing(f"hostPath type check failed: {path} is not {title}")
    return place


def refuse_hidden(path: str, hidden: Sequence[str]) -> None:
    """Raises Missing for a path that leads to what no pod may see; the runtime checks again what it mounts."""
    if is_hidden(os.path.realpath(path), hidden, machine_mounts()):
        raise Missing(f"{path} cannot be mounted: pods never see Shoal's data dir nor people's credentials")


def make_folders(place: Path) -> None:
    """Makes a folder and those above it that are missing, of mode 0755: pods of any user pass through them.

    Files of the data dir are made for its owner alone, and these would be too.
    """
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
