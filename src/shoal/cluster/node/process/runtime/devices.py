"""What a container finds in /dev: the few devices that every program may count on, and those it was given."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterable
from pathlib import Path

from shoal.cluster.node.process.runtime.program import CannotStart
from shoal.cluster.node.process.runtime.syscalls import (
    AT_RECURSIVE,
    MOUNT_ATTR_RDONLY,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    OPEN_TREE_CLOEXEC,
    OPEN_TREE_CLONE,
    RESOLVE_NO_MAGICLINKS,
    mount,
    move_mount,
    open_resolved,
    open_tree,
    set_mount_attributes,
)

USUAL = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_TERMINALS_GROUP = 5
_UNLOCK_SLAVE = getattr(termios, "TIOCSPTLCK", 0x40045431)
_OPEN_SLAVE = getattr(termios, "TIOCGPTPEER", 0x5441)


def copies(devices: Iterable[str]) -> dict[str, int]:
    """The usual devices and the given ones, as mounts that are nowhere yet, by their paths; while /dev is in sight."""
    devices = [os.path.normpath(path) for path in devices]
    for path in devices:
        if not path.startswith("/dev/"):
            raise CannotStart(f'"{path}" is not a device in /dev')
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return {path: open_tree(path, flags) for path in [*(f"/dev/{name}" for name in USUAL), *devices]}


def make_devices(folder: str, found: dict[str, int], *, shm_bytes: int, has_all_ids: bool) -> None:
    """Fills a container's /dev."""
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64m")
    for path, tree in found.items():
        place = Path(folder) / Path(path).relative_to("/dev")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        move_mount(tree, str(place))
        os.close(tree)
        # The files are the machine's own: root inside must not change their modes. They are written all the same.
        set_mount_attributes(str(place), added=MOUNT_ATTR_RDONLY)
    for name, target in _LINKS.items():
        os.symlink(target, f"{folder}/{name}")  # noqa: PTH211
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"{folder}/{name}")  # noqa: PTH102
    group = f",gid={_TERMINALS_GROUP}" if has_all_ids else ""
    terminals = f"newinstance,ptmxmode=0666,mode=0620{group}"
    mount("devpts", f"{folder}/pts", "devpts", MS_NOSUID | MS_NOEXEC, terminals)
    usual = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("shm", f"{folder}/shm", "tmpfs", usual, f"mode=1777,size={shm_bytes}")
    try:
        mount("mqueue", f"{folder}/mqueue", "mqueue", usual)
    except OSError:
        return  # the container uses the machine's, which is not ours to show


def open_device(path: str, flags: int) -> int:
    """Opens a file of the container's /dev.

    What is there may be a pod's own, while this process still has descriptors of the machine: a link to one of them
    (/proc/self/fd/…) is refused.
    """
    return open_resolved(path, flags | os.O_CLOEXEC, RESOLVE_NO_MAGICLINKS)


def open_terminal(rows: int = 0, columns: int = 0) -> tuple[int, int]:
    """The master and the slave of a new terminal, in the /dev that this process sees."""
    master = open_device("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(master, _UNLOCK_SLAVE, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _OPEN_SLAVE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    if rows and columns:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return master, slave
