"""Where hidden files and folders of the machine would be seen, once a part of the machine is mounted in a container.

A path alone does not tell: the same folder can be reached by links, and by mounts of the machine that show it at
another place. So what counts is where something lies in its file system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """A mount: a file system, the folder of it that is shown, and where."""

    device: str
    root: str
    point: str


def machine_mounts() -> list[Mount]:
    """The mounts that this process sees, in the order in which they were made."""
    return parsed_mounts(Path("/proc/self/mountinfo").read_text())


def parsed_mounts(text: str) -> list[Mount]:
    """The mounts in a text of the form of /proc/self/mountinfo."""
    fields = (line.split(" ", 5) for line in text.splitlines())
    return [Mount(device=one[2], root=_plain(one[3]), point=_plain(one[4])) for one in fields]


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return folder in ("/", path) or path.startswith(f"{folder}/")


def is_hidden(path: str, hidden: Iterable[str], mounts: Sequence[Mount]) -> bool:
    """Whether a path without links is or lies in something that is hidden."""
    device, place = _location(path, mounts)
    locations = (_location(os.path.realpath(one), mounts) for one in hidden)
    return any(device == other and is_within(place, inner) for other, inner in locations)


def places_to_cover(source: str, target: str, hidden: Iterable[str], mounts: Sequence[Mount]) -> list[str]:
    """Where hidden things are seen once ``source``, with all that is mounted below it, is seen at ``target``.

    A source that is itself in a hidden folder has nothing to cover: whether it may be mounted at all is decided before.
    """
    source = os.path.realpath(source)
    device, inner = _location(source, mounts)
    below = (one for one in _visible(mounts) if one.point != source and is_within(one.point, source))
    shown = [Mount(device, inner, target), *(_moved(one, source, target) for one in below)]
    covered: dict[str, None] = {}
    for one in hidden:
        device, inner = _location(os.path.realpath(one), mounts)
        for mount in shown:
            if mount.device != device:
                continue
            if is_within(inner, mount.root):
                covered[_joined(mount.point, os.path.relpath(inner, mount.root))] = None
            elif mount.point != target and is_within(mount.root, inner):
                covered[mount.point] = None
    return list(covered)


def _visible(mounts: Sequence[Mount]) -> Iterable[Mount]:
    """Of several mounts at one point the last, which covers the others."""
    return {one.point: one for one in mounts}.values()


def _location(path: str, mounts: Sequence[Mount]) -> tuple[str, str]:
    """The file system that a real path lies in, and its path there."""
    candidates = [one for one in _visible(mounts) if is_within(path, one.point)]
    if not candidates:
        return "", path
    mount = max(candidates, key=lambda one: len(one.point))
    return mount.device, _joined(mount.root, os.path.relpath(path, mount.point))


def _moved(mount: Mount, source: str, target: str) -> Mount:
    return Mount(mount.device, mount.root, _joined(target, os.path.relpath(mount.point, source)))


def _joined(folder: str, relative: str) -> str:
    return os.path.normpath(f"{folder.rstrip('/')}/{relative}")


def _plain(field: str) -> str:
    """A field without the escapes that stand for blanks and the like."""
    if "\\" not in field:
        return field
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)
