"""Following symbolic links by hand: where a path leads, and which links it leads through."""

from __future__ import annotations

import errno
import os

MOST_LINKS = 40
"""What the system follows."""


def followed(path: str, root: str = "") -> tuple[str, list[str]]:
    """Where a path leads if ``root`` is the root, and the links on the way, each by its own path without links.

    Links lead nowhere but inside the root, and what is missing stays as it is. OSError where there are too many links.
    """
    done: list[str] = []
    left = path.split("/")[::-1]
    links: list[str] = []
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            del done[-1:]
            continue
        here = "/".join([root, *done, name])
        try:
            target = os.readlink(here)  # noqa: PTH115
        except OSError:
            done.append(name)
            continue
        links.append(here)
        if len(links) > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done = []
        left += target.split("/")[::-1]
    return "/" + "/".join(done), links
