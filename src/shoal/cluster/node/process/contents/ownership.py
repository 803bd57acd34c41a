"""Gives the files of a volume to a group, as ``fsGroup`` asks for; only root can."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_READ, _READ_AND_WRITE, _ENTER = 0o440, 0o660, 0o110


def give_to_group(path: Path, group: int, *, is_read_only: bool) -> None:
    """Lets a group read all that is there, and write it where that is allowed; new files will be the group's too."""
    for place, folders, names in os.walk(path, topdown=False):
        for name in (*names, *folders):
            _give(os.path.join(place, name), group, is_read_only)  # noqa: PTH118 - walked by the thousand
    _give(str(path), group, is_read_only)


def _give(path: str, group: int, is_read_only: bool) -> None:
    found = os.lstat(path)
    os.lchown(path, -1, group)
    if stat.S_ISLNK(found.st_mode):
        return
    mode = stat.S_IMODE(found.st_mode) | (_READ if is_read_only else _READ_AND_WRITE)
    if stat.S_ISDIR(found.st_mode):
        mode |= stat.S_ISGID | _ENTER
    os.chmod(path, mode)  # noqa: PTH101
