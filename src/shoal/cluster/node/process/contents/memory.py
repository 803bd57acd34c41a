"""Folders in memory, for ``emptyDir`` volumes of the medium ``Memory``.

They lie in the machine's own ``/dev/shm``, where every user may make some: no mount is needed, which only root could
make outside of the containers. Where that is no tmpfs, or has not the room that was asked for, such a volume is a
folder on disk like any other. A pod whose volume grows beyond its size is evicted (see ``storage``).
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - made with a mode that keeps others out


class MemoryFolders:
    """The folders of pods in a tmpfs."""

    def __init__(self, place: Path = SHARED_MEMORY) -> None:
        self._place = place
        self._is_usable = _is_tmpfs(place) and os.access(place, os.W_OK | os.X_OK)

    def folder(self, uid: str, volume: str, size: int) -> Path | None:
        """Where a volume of a pod can be; None where it has to be on disk."""
        if not self._is_usable:
            return None
        own = self.of_pod(uid)
        try:
            if not (own / volume).is_dir():
                found = os.statvfs(self._place)
                if found.f_bavail * found.f_frsize < size:
                    return None
                own.mkdir(mode=0o700, exist_ok=True)
            # Anybody could have made it before us, to look into it.
            seen = own.lstat()
            if seen.st_uid != os.geteuid() or seen.st_mode & 0o077 or own.is_symlink():
                return None
        except OSError:
            return None
        return own / volume

    def of_pod(self, uid: str) -> Path:
        """All that a pod has in memory."""
        return self._place / f"shoal-{uid}"


def _is_tmpfs(place: Path) -> bool:
    try:
        mounts = Path("/proc/self/mounts").read_text()
    except OSError:
        return False
    kinds = [parts[2] for line in mounts.splitlines() if (parts := line.split())[1] == str(place)]
    return kinds[-1:] == ["tmpfs"]
