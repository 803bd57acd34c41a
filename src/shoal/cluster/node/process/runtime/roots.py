"""The files that a container sees: building its root, and making it a process' own.

Everything that comes from the machine is taken hold of while the machine's files are in sight. Then the new root, with
nothing on it yet but its own files, becomes the root of this process, the machine's files are let go of, and all else
is put in place from there: a link inside, whoever made it and whenever, leads nowhere but inside.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from shoal.cluster.node.process.runtime.devices import copies, make_devices
from shoal.cluster.node.process.runtime.hiding import Mount, is_hidden, machine_mounts, places_to_cover
from shoal.cluster.node.process.runtime.links import followed
from shoal.cluster.node.process.runtime.program import CannotStart, said
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec
from shoal.cluster.node.process.runtime.syscalls import (
    AT_RECURSIVE,
    MNT_DETACH,
    MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOEXEC,
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_MOVE,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    OPEN_TREE_CLOEXEC,
    OPEN_TREE_CLONE,
    make_mount,
    mount,
    move_mount,
    open_tree,
    open_without_links,
    pivot_root,
    set_mount_attributes,
    unmount,
)

_OWN_FOLDERS = {
    **{"/etc": 0o755, "/home": 0o755, "/media": 0o755, "/mnt": 0o755, "/opt": 0o755, "/root": 0o755, "/srv": 0o755},
    **{"/tmp": 0o1777, "/run": 0o755, "/run/lock": 0o1777, "/var": 0o755, "/var/tmp": 0o1777},  # noqa: S108
    **{"/var/cache": 0o755, "/var/lib": 0o755, "/var/log": 0o755, "/var/spool": 0o755},
}
"""The folders that a container on the machine's files has of its own, with their modes."""
_OWN_LINKS = {"/var/run": "/run", "/var/lock": "/run/lock"}
_LARGEST_COPY = 1 << 20
"""Files that are shown by themselves are copied up to this size, so that the container can change its copy."""
READ_ONLY_IN_PROC = ("bus", "fs", "irq", "sys", "sysrq-trigger")
MASKED = (
    *("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi"),
    *("/proc/timer_list", "/sys/firmware"),
)
MOST_NEIGHBOURS = 2000
"""How many entries a folder may have that is copied, as mounts, for the sake of one that it lacks."""
_ONLY_THE_PLACE = os.O_PATH | os.O_CLOEXEC
_WHOLE = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
_PLAIN = MS_NOSUID | MS_NODEV | MS_NOEXEC
_STAGE = "/.stage"
_OF_DEVICES = ("/dev", "/dev/pts", "/dev/ptmx", "/dev/console", "/dev/null")
"""Where the init itself looks for devices, and so must not find what a pod put there."""


def enter_root(spec: ContainerSpec, *, has_overlays: bool, has_all_ids: bool, has_cgroup: bool) -> None:
    """Builds the root that a container asks for and makes it this process' own; raises ``CannotStart``.

    The process must be root in a mount namespace that nobody else is in.
    """
    try:
        mount("", "/", flags=MS_REC | MS_PRIVATE)
        mounts = machine_mounts()
        binds = [(bind, _taken(bind, spec.hidden, mounts)) for bind in spec.binds]
        devices = copies(spec.devices)
        parts = [(spec.root, "/")] if spec.root else [(path, path) for path in spec.shown]
        hidden = [place for source, target in parts for place in places_to_cover(source, target, spec.hidden, mounts)]
        system = _system()
        root = Root(Path(spec.scratch), has_overlays=has_overlays, mount_points=[one.point for one in mounts])
        if spec.root:
            root.take_image(spec.root, home=_home(spec.env))
        else:
            root.take_machine(spec.shown)
        covered = [places_to_cover(bind.source, bind.target, spec.hidden, mounts) for bind in spec.binds]
        root.enter()
        root.mount_system(system, has_cgroup=has_cgroup)
        make_devices(root.place("/dev"), devices, shm_bytes=spec.shm_bytes, has_all_ids=has_all_ids)
        for path in (*MASKED, *hidden):
            root.hide(path)
        for (bind, tree), places in zip(binds, covered, strict=True):
            root.attach(tree, bind.target, is_read_only=bind.is_read_only, has_devices=bind.has_devices)
            for path in places:
                root.hide(path)
        root.place(spec.directory or "/")
        root.finish(is_read_only=spec.is_root_read_only)
    except OSError as error:
        where = f' "{error.filename}"' if error.filename else ""
        raise CannotStart(f"cannot build the root of the container:{where} {said(error)}") from error


def resolved(path: str, root: str = "") -> str:
    """Where a path leads if ``root`` is the root: links lead nowhere else, and what is missing stays as it is."""
    return followed(path, root)[0]


class Root:
    """A root while it is built: first from outside, and after ``enter`` from inside."""

    def __init__(self, scratch: Path, *, has_overlays: bool, mount_points: Sequence[str]) -> None:
        self._scratch = scratch.resolve()
        self._folder = self._scratch / "root"
        self._has_overlays = has_overlays
        self._mount_points = mount_points
        self._layers: list[str] = []
        """The mounts that hold the root's own files, by their paths inside."""
        self._copied: list[str] = []
        """Folders that stand in for others, which cannot be written."""
        self._folder.mkdir()

    def take_image(self, image: str, *, home: str) -> None:
        """Makes a folder the root; what is written goes to the scratch folder."""
        if self._has_overlays and self._overlay(image, self._folder):
            self._layers.append("/")
            return
        os.close(_taken(Bind(source=image, target="/"), (), ()))  # or says why it cannot be had
        self._take_entries(image)
        for path in ("/tmp", "/run", "/var/tmp", home):  # noqa: S108
            place = resolved(path, str(self._folder))
            if place != "/" and Path(f"{self._folder}{place}").is_dir():
                self._own_folder(place)
        mount(str(self._folder), str(self._folder), flags=MS_BIND | MS_REC)

    def take_machine(self, shown: Iterable[str]) -> None:
        """Makes a root of some of the machine's files and folders; what is written goes to the scratch folder."""
        self._layers.append("/")
        for path, mode in _OWN_FOLDERS.items():
            (self._folder / path[1:]).mkdir()
            (self._folder / path[1:]).chmod(mode)
        for path, target in _OWN_LINKS.items():
            (self._folder / path[1:]).symlink_to(target)
        for path in shown:
            self._show(path)
        # Only now, since what is written must be in one mount with what the kernel keeps about it.
        mount(str(self._folder), str(self._folder), flags=MS_BIND | MS_REC)

    def enter(self) -> None:
        """Makes it the root of this process, and lets go of the machine's files."""
        outside = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        os.chdir(self._folder)
        pivot_root(".", ".")
        os.fchdir(outside)
        unmount(".", MNT_DETACH)
        os.chdir("/")
        os.close(outside)

    def mount_system(self, trees: tuple[int, int], *, has_cgroup: bool) -> None:
        """Puts /proc and /sys in place, which show no more and let change no more than a container may."""
        system = self.place("/sys")
        for tree, place in zip(trees, (self.place("/proc"), system), strict=True):
            move_mount(tree, place)
            os.close(tree)
        for name in READ_ONLY_IN_PROC:
            self._freeze_part(f"/proc/{name}")
        set_mount_attributes(system, added=MOUNT_ATTR_RDONLY, is_recursive=True)
        groups = f"{system}/fs/cgroup"
        if not Path(groups).is_dir():
            return
        if has_cgroup:
            mount("cgroup2", groups, "cgroup2", _PLAIN | MS_RDONLY)
        else:
            self.hide(groups)

    def hide(self, path: str) -> None:
        """Covers what is at a path, where something is."""
        path = resolved(path)
        if not os.path.lexists(path):
            return
        if Path(path).is_dir():
            mount("tmpfs", path, "tmpfs", _PLAIN | MS_RDONLY, "mode=0555,size=4k")
        else:
            mount("/dev/null", path, flags=MS_BIND)

    def attach(self, tree: int, target: str, *, is_read_only: bool, has_devices: bool) -> None:
        """Puts a mount at a path, which is made where it is missing."""
        is_folder = stat.S_ISDIR(os.fstat(tree).st_mode)
        place = self.place(target, is_folder=is_folder)
        if Path(place).is_dir() != is_folder:
            raise CannotStart(f'cannot mount at "{target}": {"not a" if is_folder else "is a"} directory')
        if place == "/proc" or place.startswith("/proc/"):
            raise CannotStart(f'cannot mount at "{target}": it is in /proc')
        if place in _OF_DEVICES:
            raise CannotStart(f'cannot mount at "{target}": it holds the devices of the container')
        denied = (MOUNT_ATTR_RDONLY if is_read_only else 0) | (0 if has_devices else MOUNT_ATTR_NODEV)
        try:
            move_mount(tree, place)
            set_mount_attributes(place, added=denied, is_recursive=True)
        except OSError as error:
            raise CannotStart(f'cannot mount at "{target}": {said(error)}') from error
        finally:
            os.close(tree)

    def place(self, target: str, *, is_folder: bool = True) -> str:
        """Where a path inside leads, after what is missing there was made."""
        path = Path(resolved(target))
        if os.path.lexists(path):
            return str(path)
        there = next(parent for parent in path.parents if os.path.lexists(parent))
        try:
            try:
                _make(path, is_folder=is_folder)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                self._copy_folder(there)
                _make(path, is_folder=is_folder)
        except OSError as error:
            raise CannotStart(f'cannot make "{target}": {said(error)}') from error
        return str(path)

    def finish(self, *, is_read_only: bool) -> None:
        """Closes the root's own files to writing, where that was asked for."""
        for path in [*self._copied, *(self._layers if is_read_only else ())]:
            set_mount_attributes(path, added=MOUNT_ATTR_RDONLY)

    def _take_entries(self, source: str) -> None:
        """Shows what is in a folder, in a root that can be written itself."""
        self._layers.append("/")
        with os.scandir(source) as entries:
            for entry in entries:
                place = self._folder / entry.name
                if entry.is_symlink():
                    place.symlink_to(os.readlink(entry.path))  # noqa: PTH115
                elif entry.is_dir():
                    self._take_folder(entry.path, place)

    def _show(self, path: str) -> None:
        """Shows a file or folder of the machine at its own path; one that is not there, or not for us, is left out."""
        place = self._folder / path[1:]
        try:
            found = Path(path).lstat()
            place.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISLNK(found.st_mode):
                place.symlink_to(os.readlink(path))  # noqa: PTH115
            elif stat.S_ISDIR(found.st_mode):
                self._take_folder(path, place)
            elif stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_COPY:
                shutil.copyfile(path, place)
                _copy_mode(path, place)
            else:
                place.touch()
                self._bind_read_only(path, place)
        except (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError):
            return

    def _take_folder(self, path: str, place: Path) -> None:
        place.mkdir(exist_ok=True)
        _copy_mode(path, place)
        try:
            is_empty = not any(Path(path).iterdir())
        except PermissionError:
            is_empty = True  # whoever may not look into it has an empty one
        if is_empty:
            return
        # An overlay shows no mounts below its folder, and cannot be of a folder that holds its own files.
        has_mounts = any(point.startswith(f"{path}/") for point in self._mount_points)
        holds_scratch = str(self._scratch).startswith(f"{path}/")
        if self._has_overlays and not has_mounts and not holds_scratch and self._overlay(path, place):
            self._layers.append(f"/{place.relative_to(self._folder)}")
            return
        self._bind_read_only(path, place)

    def _bind_read_only(self, path: str, place: Path) -> None:
        move_mount(open_tree(path, _WHOLE), str(place))
        set_mount_attributes(str(place), added=MOUNT_ATTR_RDONLY, is_recursive=True)

    def _overlay(self, lower: str, place: Path) -> bool:
        """Shows a folder below what a place itself holds, which stays empty but for what is written there later.

        Returns False where the kernel refuses.
        """
        work = self._scratch / "work" / str(len(self._layers))
        work.mkdir(parents=True)
        folders = f"lowerdir={_escaped(lower)},upperdir={_escaped(place)},workdir={_escaped(work)}"
        # Volatile: what is written is gone with the container, and need not reach the disk before that.
        for options in (f"{folders},userxattr,volatile", f"{folders},userxattr"):
            try:
                mount("overlay", str(place), "overlay", options=options)
            except OSError:
                continue
            return True
        return False

    def _own_folder(self, path: str) -> None:
        """Puts an empty folder, that everybody may write to, above one of the root; from outside."""
        own = self._scratch / f"own{path.replace('/', '-')}"
        own.mkdir()
        own.chmod(0o1777)
        mount(str(own), f"{self._folder}{path}", flags=MS_BIND)
        self._layers.append(path)

    def _freeze_part(self, path: str) -> None:
        if not os.path.lexists(path):
            return
        mount(path, path, flags=MS_BIND | MS_REC)
        set_mount_attributes(path, added=MOUNT_ATTR_RDONLY, is_recursive=True)

    def _copy_folder(self, folder: Path) -> None:
        """Puts a copy above a folder that cannot be written, which has the same entries, as mounts, and can."""
        entries = list(os.scandir(folder))
        if len(entries) > MOST_NEIGHBOURS:
            raise OSError(errno.EROFS, "read-only, and has too many entries to be copied", str(folder))
        os.mkdir(_STAGE)  # noqa: PTH102
        mount("tmpfs", _STAGE, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={stat.S_IMODE(folder.stat().st_mode):o}")
        for entry in entries:
            copy = Path(_STAGE, entry.name)
            if entry.is_symlink():
                copy.symlink_to(os.readlink(entry.path))  # noqa: PTH115
                continue
            _make(copy, is_folder=entry.is_dir())
            mount(entry.path, str(copy), flags=MS_BIND | MS_REC)
        mount(_STAGE, str(folder), flags=MS_MOVE)
        os.rmdir(_STAGE)  # noqa: PTH106
        self._copied.append(str(folder))


def _system() -> tuple[int, int]:
    """A /proc of the container's own processes and a /sys of its own network, as mounts that are nowhere yet.

    The kernel makes them only for those who can see all of the machine's already.
    """
    attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
    try:
        system = make_mount("sysfs", attributes)
    except OSError:  # the network is not the node's own: what the machine sees is seen
        system = open_tree("/sys", _WHOLE)
    return make_mount("proc", attributes), system


def _taken(bind: Bind, hidden: Iterable[str], mounts: Sequence[Mount]) -> int:
    """Takes hold of a file or folder of the machine, with all that is mounted below it."""
    try:
        place = open_without_links(bind.source) if not bind.follows_links else os.open(bind.source, _ONLY_THE_PLACE)
        try:
            # Looked at by what was opened: whatever a path leads to next, this is what is mounted.
            real = os.readlink(f"/proc/self/fd/{place}")  # noqa: PTH115
            if bind.is_of_machine and is_hidden(real, hidden, mounts):
                raise CannotStart(f'cannot mount "{bind.source}" at "{bind.target}": no pod may see it')
            return open_tree(place, _WHOLE)
        finally:
            os.close(place)
    except OSError as error:
        raise CannotStart(f'cannot mount "{bind.source}" at "{bind.target}": {said(error)}') from error


def _make(path: Path, *, is_folder: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path.mkdir(exist_ok=True)
    else:
        path.touch()


def _copy_mode(source: str, copy: Path) -> None:
    """Gives a file or folder the owner and the mode of another; its owner can always change it."""
    wanted, found = Path(source).stat(), copy.stat()
    if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid):
        with suppress(OSError):  # whoever has but one id owns all of a container's own files
            os.chown(copy, wanted.st_uid, wanted.st_gid)
    if wanted.st_mode != found.st_mode:
        copy.chmod(stat.S_IMODE(wanted.st_mode) | (0o700 if stat.S_ISDIR(wanted.st_mode) else 0o600))


def _escaped(path: str | Path) -> str:
    """A path as part of a mount's options."""
    return str(path).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _home(env: Iterable[str]) -> str:
    return next((entry[5:] for entry in env if entry.startswith("HOME=")), "/root")
