"""Commands as somebody who is not root.

Where the tests run as root, the interpreter may lie in root's own home, which nobody else may enter: the command then
gets a view of the machine of its own, in which that part of it can be read, as it could on a machine that is shared.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from shoal.cluster.node.process.runtime.syscalls import (
    CLONE_NEWNS,
    MS_BIND,
    MS_MOVE,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    mount,
    prctl,
    unshare,
)

USER = 65534
_SEEN = """
set -e
prefix=$1 home=$2 user=$3
shift 3
if [ -n "$home" ]; then
    mkdir -p /tmp/.shoal-view-$$
    mount --bind "$prefix" /tmp/.shoal-view-$$
    mount -t tmpfs -o mode=0755 home "$home"
    mkdir -p "$prefix"
    mount --bind /tmp/.shoal-view-$$ "$prefix"
    umount /tmp/.shoal-view-$$
    rmdir /tmp/.shoal-view-$$
fi
export HOME=/tmp
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"""


def is_root() -> bool:
    return os.getuid() == 0


def as_ordinary_user(*command: str) -> list[str]:
    """The command line that runs another as an ordinary user: as ourselves, where that is what we are."""
    if not is_root():
        return list(command)
    prefix, home = _interpreter()
    view = ["unshare", "--mount", "--propagation=private", "sh", "-c", _SEEN, "sh", prefix, home, str(USER)]
    return [*view, *command]


def become_ordinary_user() -> None:
    """Makes this process an ordinary user's, which can still read the interpreter; for root."""
    prefix, home = _interpreter()
    if home:
        unshare(CLONE_NEWNS)
        mount("", "/", flags=MS_REC | MS_PRIVATE)
        stage = tempfile.mkdtemp(dir="/tmp")
        mount(prefix, stage, flags=MS_BIND | MS_REC)
        mount("tmpfs", home, "tmpfs", options="mode=0755")
        Path(prefix).mkdir(parents=True)
        mount(stage, prefix, flags=MS_MOVE)
        Path(stage).rmdir()
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    prctl(PR_SET_DUMPABLE, 1)


def _interpreter() -> tuple[str, str]:
    """Where the interpreter is, and the folder above it that only root can enter; empty where there is none."""
    prefix = Path(os.path.realpath(sys.base_prefix))
    home = next((str(one) for one in reversed(prefix.parents) if not one.stat().st_mode & 0o001), "")
    return str(prefix), home
