"""What a container finds whose root is the machine's own: programs, a home, and what it must not find.

The interpreter that Shoal runs on is what ``python`` means inside: where it lies in an environment of its own, that
environment's programs come first, so that what was installed beside Shoal is there. ``python``, ``python3``, ``pip``
and ``pip3`` lead to it in any case, from a folder at the end of ``PATH``, and so do ``grove-initc``, the program of
Shoal's that keeps pods waiting for those that start first, and ``resource-reservation``, which says which GPU it got.

The rest of the machine is not there: a container sees what programs need (see ``machine_files``), the interpreter with
its packages, and what the image's entry in ``images.yaml`` names. Its home is an empty folder of its own, where its
commands start as well.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import shoal
from shoal.cluster.node.process.contents.images import Image
from shoal.cluster.node.process.contents.machine_files import usual_files, with_links, without_parts
from shoal.cluster.node.process.contents.writer import make_folder
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import Bind

INSIDE = "/run/shoal"
"""What is ours in a container; ``/run`` is its own and empty."""
HOME = f"{INSIDE}/home"
PROGRAMS = f"{INSIDE}/bin"

STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_SOURCE = os.path.realpath(Path(shoal.__file__).parents[1])
"""The folder that Shoal is imported from, which need not be one of the interpreter's."""
_ETC = Path("/etc")
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
    files: Sequence[str]
    """The folders that it needs, and the links that lead to them."""
    user_base: str = ""
    """Where packages are that its user installed for all interpreters; empty where it does not look there."""

    @classmethod
    def ours(cls) -> Interpreter:
        """The one that runs this."""
        base = site.getuserbase() if site.ENABLE_USER_SITE else ""
        has_base = bool(base) and Path(base).is_dir()
        own = [site.getusersitepackages(), f"{base}/bin"] if has_base else []
        prefixes = [sys.prefix, sys.base_prefix, sys.base_exec_prefix, _SOURCE, *own]
        links = [one for one in with_links(sys.executable) if Path(one).is_symlink()]
        files = [*links, *(file for prefix in prefixes for file in with_links(prefix))]
        return cls(executable=sys.executable, files=list(dict.fromkeys(files)), user_base=base if has_base else "")


class MachineRoot:
    """The machine's files as the root of containers."""

    def __init__(
        self, layout: Layout, interpreter: Interpreter, homes: Sequence[Path] | None = None, *, has_namespaces: bool
    ) -> None:
        self._layout = layout
        self._interpreter = interpreter
        self._homes = homes
        self._has_namespaces = has_namespaces
        self._programs = layout.folder / "bin"
        self._is_prepared = False

    def prepare(self) -> None:
        """Makes the folder of programs."""
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

    def shown(self, image: Image) -> list[str]:
        """The files and folders of the machine that a container of an image sees."""
        own = [*([image.directory] if image.directory else []), *image.paths]
        named = [file for path in own for file in with_links(path)]
        usual = usual_files(entry.name for entry in _ETC.iterdir())
        return without_parts([*usual, *self._interpreter.files, *named])

    def binds(self, home: Path) -> list[Bind]:
        """What of Shoal's own has a place inside."""
        return [
            Bind(source=str(self._programs), target=PROGRAMS, is_read_only=True),
            Bind(source=str(home), target=HOME),
        ]

    def hidden(self) -> list[str]:
        """The files and folders that must not be seen inside, neither where they are nor through a volume."""
        homes = homes_of_people() if self._homes is None else self._homes
        secrets = [home / name for home in homes for name in (*_SECRET_FOLDERS, *_SECRET_FILES)]
        secrets += [Path(name) for name in _MACHINE_SECRETS]
        return [str(self._layout.data_dir), *(str(path) for path in secrets if os.path.lexists(path))]


def homes_of_people() -> list[Path]:
    """The homes whose credentials are kept from volumes: for root those of everybody, else the user's own."""
    own = Path.home()
    if os.geteuid() != 0:
        return [own]
    others = sorted(Path("/home").iterdir()) if Path("/home").is_dir() else []
    return list(dict.fromkeys([own, Path("/root"), *(home for home in others if home.is_dir())]))


def _write(path: Path, text: str, mode: int) -> None:
    """Writes a file that containers may be reading: at once, or not at all where it is so already."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(mode)
    fresh.replace(path)
