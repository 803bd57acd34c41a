"""What a container finds whose root is the machine's own: programs, a home, and what it must not find.

The interpreter that Shoal runs on is what ``python`` means inside: where it lies in an environment of its own, that
environment's programs come first, so that what was installed beside Shoal is there. ``python``, ``python3``, ``pip``
and ``pip3`` lead to it in any case, from a folder at the end of ``PATH``, and so do ``grove-initc``, the program of
Shoal's that keeps pods waiting for those that start first, and ``resource-reservation``, which says which GPU it got.

The home of a container is an empty folder of its own, where its commands start as well. The homes of people are seen
as they are, since interpreters and models lie in them, but not the places where credentials are kept. Where somebody
may not enter the home that the interpreter lies in, nothing else of it is seen.
"""

from __future__ import annotations

import os
import shlex
import site
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import shoal
from shoal.cluster.node.process.contents.writer import make_folder
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import Bind, Ids

INSIDE = "/run/shoal"
"""What is ours in a container; ``/run`` is its own and empty."""
HOME = f"{INSIDE}/home"
PROGRAMS = f"{INSIDE}/bin"

STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - where the machine's own is not seen
_SOURCE = os.path.realpath(Path(shoal.__file__).parents[1])
"""The folder that Shoal is imported from, which need not be one of the interpreter's."""
_MOST_LINKS = 40
"""What the system follows."""
_SECRET_FOLDERS = (
    ".ssh", ".kube", ".aws", ".azure", ".docker", ".gnupg", ".password-store", ".config/gcloud", ".config/gh",
    ".config/containers", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium",
)  # fmt: skip
_SECRET_FILES = (".netrc", ".pgpass", ".pypirc", ".git-credentials", ".npmrc")
_MACHINE_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-")


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """The Python that Shoal runs on."""

    executable: str
    prefixes: Sequence[str]
    """The folders that it needs."""
    user_base: str = ""
    """Where packages are that its user installed for all interpreters; empty where it does not look there."""

    @classmethod
    def ours(cls) -> Interpreter:
        """The one that runs this."""
        base = site.getuserbase() if site.ENABLE_USER_SITE else ""
        prefixes = [os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)]
        others = [*folders_of_links(Path(sys.executable)), _SOURCE]
        return cls(
            executable=sys.executable,
            prefixes=list(dict.fromkeys([*prefixes, *(one for one in others if not _is_below(one, prefixes))])),
            user_base=base if base and Path(base).is_dir() else "",
        )


class MachineRoot:
    """The machine's files as the root of containers."""

    def __init__(
        self, layout: Layout, interpreter: Interpreter, homes: Iterable[Path], *, has_namespaces: bool
    ) -> None:
        self._layout = layout
        self._interpreter = interpreter
        self._homes = list(homes)
        self._has_namespaces = has_namespaces
        self._programs = layout.folder / "bin"
        self._nothing = layout.folder / "nothing"
        self._is_prepared = False

    def prepare(self) -> None:
        """Makes the folder of programs, and the empty file that covers others."""
        if self._is_prepared:
            return
        python = shlex.quote(self._interpreter.executable)
        scripts = {
            "python": f'exec {python} "$@"',
            "python3": f'exec {python} "$@"',
            "pip": f'exec {python} -m pip "$@"',
            "pip3": f'exec {python} -m pip "$@"',
            "grove-initc": f'PYTHONPATH={shlex.quote(_SOURCE)} exec {python} -m shoal.gangs.startup "$@"',
            "resource-reservation": (
                f'PYTHONPATH={shlex.quote(_SOURCE)} exec {python} -m shoal.scheduler.binding.reserve "$@"'
            ),
        }
        self._layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_folder(self._programs, 0o755)
        for name, command in scripts.items():
            _write(self._programs / name, f"#!/bin/sh\n{command}\n", 0o755)
        _write(self._nothing, "", 0o444)
        self._is_prepared = True

    def path(self, directory: str = "") -> str:
        """The value of PATH, with the programs of an image's own directory first."""
        interpreter = str(Path(self._interpreter.executable).parent)
        base = self._interpreter.user_base
        folders = [
            f"{directory}/bin" if directory else "",
            interpreter if interpreter not in STANDARD_PATH else "",
            *STANDARD_PATH,
            f"{base}/bin" if base else "",
            PROGRAMS if self._has_namespaces else str(self._programs),
        ]
        return ":".join(dict.fromkeys(folder for folder in folders if folder))

    def variables(self) -> dict[str, str]:
        """Variables without which the interpreter does not find its packages, since HOME is another one."""
        base = self._interpreter.user_base
        return {"PYTHONUSERBASE": base} if base else {}

    def home(self, folder: Path) -> str:
        """Where a container's own folder is, as it sees it."""
        return HOME if self._has_namespaces else str(folder)

    def closed_to(self, ids: Ids, *, directory: str = "") -> list[str]:
        """The folders, such as the homes of others, that a user may not enter on the way to what programs need."""
        folders = [_closed_folder(folder, ids) for folder in self._needed(directory) if not _is_unseen(folder)]
        return list(dict.fromkeys(folder for folder in folders if folder))

    def binds(self, home: Path, *, directory: str = "", closed: Sequence[str] = ()) -> list[Bind]:
        """What of the machine has another place inside, or would not be seen there."""
        binds = [
            Bind(source=str(self._programs), target=PROGRAMS, is_read_only=True),
            Bind(source=str(home), target=HOME),
        ]
        for folder in self._needed(directory):
            if _is_unseen(folder) or _is_below(folder, closed):
                binds.append(Bind(source=folder, target=folder, is_read_only=True))
        for file in self._secret_files():
            if not _is_below(file, closed):
                binds.append(Bind(source=str(self._nothing), target=file, is_read_only=True))
        return binds

    def hidden(self, closed: Sequence[str] = ()) -> list[str]:
        """The folders that must not be seen inside, neither where they are nor through a volume."""
        folders = [str(home / name) for home in self._homes for name in _SECRET_FOLDERS if (home / name).is_dir()]
        hidden = [str(self._layout.data_dir), *folders]
        return [*closed, *(folder for folder in hidden if not _is_below(folder, closed))]

    def _needed(self, directory: str) -> list[str]:
        return list(dict.fromkeys([*self._interpreter.prefixes, *([directory] if directory else [])]))

    def _secret_files(self) -> list[str]:
        candidates = [home / name for home in self._homes for name in _SECRET_FILES]
        candidates += [Path(name) for name in _MACHINE_SECRETS]
        return [str(path) for path in candidates if os.access(path, os.R_OK) and path.is_file()]


def homes_of_people() -> list[Path]:
    """The homes whose credentials could be read: for root those of everybody, else the user's own."""
    own = Path.home()
    if os.geteuid() != 0:
        return [own]
    others = sorted(Path("/home").iterdir()) if Path("/home").is_dir() else []
    return list(dict.fromkeys([own, Path("/root"), *(home for home in others if home.is_dir())]))


def folders_of_links(path: Path) -> list[str]:
    """The folders that one comes through who follows a link, which may lead to others, to what it stands for.

    Not those that are open to everybody: nobody is shown all that lies there for one link.
    """
    found: list[str] = []
    while path.is_symlink() and len(found) < _MOST_LINKS:
        path = Path(os.path.normpath(path.parent / path.readlink()))
        found.append(str(path.parent))
    return [folder for folder in dict.fromkeys(found) if folder not in _PRIVATE]


def _is_unseen(folder: str) -> bool:
    """Whether a folder of the machine lies where a container has an empty one of its own."""
    return _is_below(folder, _PRIVATE)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _closed_folder(path: str, ids: Ids) -> str:
    """The first folder on the way to a path that somebody may not enter; empty where there is none."""
    return next((str(folder) for folder in reversed(Path(path).parents) if not _may_enter(folder, ids)), "")


def _may_enter(folder: Path, ids: Ids) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return True  # there is nothing to enter
    if found.st_uid == ids.user:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid in (ids.group, *ids.groups):
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _write(path: Path, text: str, mode: int) -> None:
    """Writes a file that containers may be reading: at once, or not at all where it is so already."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(mode)
    fresh.replace(path)
