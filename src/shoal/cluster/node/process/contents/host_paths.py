"""Files and folders of the machine as volumes: what kind of thing one must be, and the making of one that may be made.

Whoever runs Shoal is whose permissions count, here as inside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from shoal.cluster.node.process.contents.problems import Missing

_KINDS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def host_path(path: str, type_: str, *, mode: int = 0o755) -> Path:
    """The file or folder of a volume, there and of the right kind; Missing where it is not. ``mode`` is a new one's."""
    if not path.startswith("/"):
        raise Missing(f"invalid HostPath `{path}`: must be an absolute path")
    if ".." in path.split("/"):
        raise Missing(f"invalid HostPath `{path}`: must not contain '..'")
    if type_ and type_ not in _KINDS:
        raise Missing(f"{type_} is an invalid volume type")
    place = Path(path)
    try:
        found = _mode_of(place)
        if found is None:
            if type_ == "FileOrCreate":
                os.close(os.open(place, os.O_CREAT | os.O_RDWR, 0o644))
                return place
            # A folder of no special kind is made as well, as container runtimes do.
            if type_ in ("", "DirectoryOrCreate"):
                place.mkdir(parents=True, exist_ok=True)
                place.chmod(mode)
                return place
    except OSError as error:
        raise Missing(f"{path}: {(error.strerror or str(error)).lower()}") from error
    if type_:
        is_right, title = _KINDS[type_]
        if found is None or not is_right(found):
            raise Missing(f"hostPath type check failed: {path} is not {title}")
    return place


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
