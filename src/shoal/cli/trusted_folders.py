"""Whether a folder can be trusted: nobody but its owner and root may put something else in its place.

The rules are OpenSSH's for a user's keys: the folder and every folder above it belong to the user or to root, and
others may not write to them. Two things are allowed that OpenSSH refuses, because they are safe: a folder above with
the sticky bit, such as /tmp, in which nobody can rename what belongs to another; and one that is writable by the user's
private group, which is how many distributions make home folders.

Commands believe what they read in a data dir: a kubeconfig there can name a program to run.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

_MOST_LINKS = 40
"""As the kernel: a chain of links that is longer is taken for a loop."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def problem_with(path: Path, *, user: int, environ: Mapping[str, str]) -> str | None:
    """Why a folder cannot be trusted by a user, and what to do about it; None where it can, or is not there yet.

    Whoever runs a command by sudo can become root in any case: root trusts the folders of that user. In a user
    namespace that does not know the machine's root, root's folders seem to be somebody's, to whom ``/`` belongs.
    """
    trusted = {0, user, Path("/").lstat().st_uid}
    if user == 0 and environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(environ["SUDO_UID"]))
    for step in _steps(path.absolute()):
        try:
            found = step.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_itself = step == Path(os.path.realpath(path))
        what = f"the data dir {step}" if is_itself else f"{step}, on the way to the data dir {path},"
        if found.st_uid not in ({0, user} if is_itself else trusted):
            return f"{what} belongs to {_name_of(found.st_uid)}: choose another --data-dir"
        if stat.S_ISLNK(found.st_mode):
            continue
        writable = found.st_mode & _OTHERS_MAY_WRITE
        if not is_itself and found.st_mode & stat.S_ISVTX:
            writable = 0
        if not is_itself and writable == stat.S_IWGRP and _is_private_group(found.st_gid, found.st_uid):
            writable = 0
        if writable:
            by = "everybody" if writable & stat.S_IWOTH else "its group"
            return f"{what} is writable by {by}: run `chmod go-w {step}`, or choose another --data-dir"
    return None


def _steps(path: Path) -> Iterator[Path]:
    """Every folder and symbolic link that the system passes through to reach an absolute path, and what is there."""
    links = 0
    place = Path("/")
    waiting = list(reversed(path.parts[1:]))
    yield place
    while waiting:
        name = waiting.pop()
        if name == "..":
            place = place.parent
            continue
        step = place / name
        yield step
        if not step.is_symlink():
            place = step
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        target = step.readlink()
        if target.is_absolute():
            place = Path("/")
        waiting += reversed([part for part in target.parts if part != "/"])


def _is_private_group(group: int, owner: int) -> bool:
    """Whether a group has no member but the owner."""
    try:
        user, members = pwd.getpwuid(owner), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and members.gr_name == user.pw_name and set(members.gr_mem) <= {user.pw_name}


def _name_of(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"uid {user}"
