"""Commands as somebody who is not root.

Where the tests run as root, the interpreter may lie in root's own home, which nobody else may enter: the command then
gets a view of the machine of its own, in which that part of it can be read, as it could on a machine that is shared.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
    prefix = Path(os.path.realpath(sys.base_prefix))
    home = next((str(one) for one in reversed(prefix.parents) if not one.stat().st_mode & 0o001), "")
    view = ["unshare", "--mount", "--propagation=private", "sh", "-c", _SEEN, "sh", str(prefix), home, str(USER)]
    return [*view, *command]
