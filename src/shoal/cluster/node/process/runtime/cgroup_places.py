"""Where a process may make control groups: below the group that it is in, or near it.

In v2, a group that hands controllers on to its children may hold no processes itself (the root of the tree may). So
those of Shoal move to a leaf of their group, if they are alone in it. If they are not, as in a terminal of a desktop,
a group above will do, unless that would evade a limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shoal.cluster.node.process.runtime.cgroup_files import PATIENCE, hold, is_removed, members, text, words, write

WANTED = ("memory", "cpu", "pids")
ACCOUNT = "cpuacct"
"""In v1, the controller that counts cpu time; in v2 every group does."""
LEAF = "shoal-self"
"""The group that Shoal's own processes move to where theirs is to have children."""


class Place(NamedTuple):
    """The group that a process is in, in one tree."""

    kind: str
    controllers: frozenset[str]
    """Of v1; in v2 the group's own files tell."""
    top: Path
    folder: Path


def own_places(mountinfo: str, membership: str) -> list[Place]:
    """The groups that a process is in, from ``mountinfo`` and ``cgroup`` in its folder of /proc."""
    paths = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))  # v2 has the empty name
    found = []
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        root, top = mount.split(" ")[3:5]
        filesystem, _, options = source.split(" ", 2)
        if filesystem == "cgroup2" and "" in paths:
            folder = _seen(Path(_plain(top)), root, paths[""])
            found.append(Place("v2", frozenset(), Path(_plain(top)), folder))
        elif filesystem == "cgroup":
            names = frozenset(options.split(",")) & {*WANTED, ACCOUNT} & paths.keys()
            for path in {paths[name] for name in names}:
                found.append(Place("v1", names, Path(_plain(top)), _seen(Path(_plain(top)), root, path)))
    return found


def _plain(path: str) -> str:
    """A path of mountinfo without its escapes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\134", "\\")):
        path = path.replace(escape, character)
    return path


def _seen(top: Path, root: str, path: str) -> Path:
    """Where a group is seen in a mount that shows what is below ``root``; the mount itself for one outside of it."""
    inside = root.rstrip("/")
    if path != inside and not path.startswith(f"{inside}/"):
        return top
    rest = path[len(inside) :].strip("/")
    return top if ".." in rest.split("/") else top / rest


def candidates(places: Sequence[Place]) -> Iterator[tuple[str, dict[str, Path]]]:
    """The kind of groups, and the folder in which each controller's could be made; what is best comes first."""
    for place in places:
        if place.kind == "v2":
            own = place.folder.parent if place.folder.name == LEAF else place.folder
            for folder, names in homes(place.top, own, WANTED):
                yield "v2", dict.fromkeys(names, folder)
    yield "v1", {name: place.folder for place in places if place.kind == "v1" for name in sorted(place.controllers)}


def homes(top: Path, own: Path, wanted: Sequence[str]) -> Iterator[tuple[Path, list[str]]]:
    """Groups of v2 that hand on some of these controllers, and which; the processes in our own may be moved."""
    if own == top or _are_ours(members(own)):
        # Who is in the root as a container sees it is in that container, as we are.
        _move_to_leaf(own, wanted)
    for folder in (own, *own.parents):
        if names := hand_on(folder, wanted) if _may_have_children(folder) else []:
            yield folder, names
        if folder == top or not _is_unlimited(folder):
            return


def hand_on(folder: Path, wanted: Iterable[str]) -> list[str]:
    """Hands controllers on to the children of a group; gives those that now are."""
    for name in wanted:
        if name in words(folder / "cgroup.controllers") - words(folder / "cgroup.subtree_control"):
            with suppress(OSError):
                write(folder / "cgroup.subtree_control", f"+{name}")
    handed_on = words(folder / "cgroup.subtree_control")
    return [name for name in wanted if name in handed_on]


def _move_to_leaf(folder: Path, wanted: Sequence[str]) -> None:
    """Moves the processes of a group to a leaf of it, if there is something to hand on and they are in the way."""
    if _may_have_children(folder) or not words(folder / "cgroup.controllers") & set(wanted):
        return
    with suppress(OSError):
        (folder / LEAF).mkdir(exist_ok=True)
        for _ in range(10):
            found = members(folder)
            for pid in found:
                with suppress(ProcessLookupError):
                    write(folder / LEAF / "cgroup.procs", str(pid))
            if not found:
                return


def _may_have_children(folder: Path) -> bool:
    """Whether a group can hand controllers on: it is empty, or the root of the tree, which alone has no type.

    The kernel does not refuse all of them to one that is not, but no process may then enter its children.
    """
    return not text(folder / "cgroup.procs").strip() or not (folder / "cgroup.type").exists()


def _are_ours(pids: Iterable[int]) -> bool:
    """Whether these are processes of Shoal: ourselves, who started us, and what those started."""
    ours = {os.getpid(), os.getppid()} - {0, 1}
    return all(any(ancestor in ours for ancestor in _ancestry(pid)) for pid in pids)


def _ancestry(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        fields = text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0


def _is_unlimited(folder: Path) -> bool:
    limits = [text(folder / name).split() for name in ("memory.max", "cpu.max")]
    return all(not limit or limit[0] == "max" for limit in limits)


def held(group: Path) -> int | None:
    """Makes a group and holds it, if processes can enter it; None where it cannot be had."""
    try:
        descriptor = hold(group)
    except OSError:
        return None
    if _can_be_entered(group / "trial"):
        return descriptor
    is_removed(group)
    os.close(descriptor)
    return None


def _can_be_entered(group: Path) -> bool:
    try:
        group.mkdir(exist_ok=True)
    except OSError:
        return False
    child = os.fork()
    if child == 0:
        try:
            write(group / "cgroup.procs", "0")
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    is_removed(group, patience=PATIENCE)
    return status == 0
