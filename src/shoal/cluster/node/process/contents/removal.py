"""Removes what a pod leaves behind, whatever its containers made of it.

They may have made folders that nobody may enter, and folders within folders beyond every limit on paths. So no path
is followed far: each folder that is found is moved up to the top before it is looked into.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import deque
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Removes a folder and all that is in it; links are removed, not followed. One that is not there is fine."""
    try:
        waiting = deque(_emptied(folder))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        folder.unlink()
        return
    mark, numbers = f".removed-{os.getpid()}-{time.monotonic_ns()}", itertools.count()
    while waiting:
        current = waiting.popleft()
        for inner in _emptied(current):
            top = folder / f"{mark}-{next(numbers)}"
            inner.chmod(0o700)  # moving a folder changes it
            inner.rename(top)
            waiting.append(top)
        current.rmdir()
    folder.rmdir()


def _emptied(folder: Path) -> list[Path]:
    """Removes all of a folder that is no folder itself, and gives the rest."""
    if folder.is_symlink():
        raise NotADirectoryError(folder)
    with contextlib.suppress(PermissionError):
        folder.chmod(0o700)
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                os.unlink(entry.path)  # noqa: PTH108
    return folders
