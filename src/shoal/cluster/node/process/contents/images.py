"""What an image's name stands for on this node, where no image is ever pulled: ``images.yaml`` in the data dir.

    default: host                   # or forbidden: what no entry matches
    images:
      - match: "pytorch/*"          # a glob, or several; the first entry that matches counts
        root: host                  # the machine's own programs, which is the default; forbidden; or an unpacked rootfs
        directory: /opt/envs/torch  # with root host: its bin/ comes first in PATH, and it is where commands start
        paths: [/data/models]       # with root host: further files and folders of the machine that containers see
        entrypoint: [python3]       # like an image's own: what runs where a pod says nothing else
        command: [-m, http.server]
        env: {NCCL_DEBUG: INFO}
        workingDir: /opt/work
        user: 1000                  # or "1000:100"

``docker.io/library/python:3.12`` is also matched as ``python:3.12`` and as ``python``, and the other way about. Paths
may be relative to the file. The file may be missing, and is read again once it has changed.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.cluster.node.process.contents.problems import ConfigProblem

HOST, FORBIDDEN = "host", "forbidden"
_PULL_ERROR = "ErrImagePull"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_REFERENCE = re.compile(
    r"(?:(?P<domain>(?:[a-zA-Z0-9][a-zA-Z0-9-]*)(?:\.[a-zA-Z0-9][a-zA-Z0-9-]*)*(?::[0-9]+)?|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?"
    r"(?P<path>[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_USER = re.compile(r"([0-9]+)(?::([0-9]+))?")

PAUSE = ["sh", "-c", "trap 'exit 0' INT TERM; sleep infinity & wait"]
_WELL_KNOWN: dict[str, tuple[list[str], list[str]]] = {
    "busybox": ([], ["sh"]),
    "alpine": ([], ["sh"]),
    "debian": ([], ["sh"]),
    "ubuntu": ([], ["sh"]),
    "bash": ([], ["bash"]),
    "python": ([], ["python3"]),
    "pause": (PAUSE, []),
    "grove-initc": (["grove-initc"], []),  # which is there in the machine's own root: see machine_root
    "resource-reservation": (["resource-reservation"], []),  # and so is this
}
"""What images of these names run where nothing else is said: entry point and command, by the last part of the name."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """What a container gets for the name of its image."""

    name: str
    root: str = ""
    """A folder; empty for the machine's own files."""
    directory: str = ""
    paths: Sequence[str] = ()
    """Further files and folders of the machine that are seen."""
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)
    working_dir: str = ""
    user: int | None = None
    group: int | None = None


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    match: str | list[str]
    root: str = HOST
    directory: str = ""
    paths: list[str] = []
    entrypoint: list[str] = []
    command: list[str] = []
    env: dict[str, str] = {}
    working_dir: str = ""
    user: int | str | None = None

    @property
    def globs(self) -> list[str]:
        return [self.match] if isinstance(self.match, str) else self.match


class _Mapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default: str = HOST
    images: list[Any] | None = None


class _Invalid(Exception):
    """The file is not as it must be, in one sentence."""


class Images:
    """The mapping in a file, as it is now."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._default = HOST
        self._entries: list[_Entry] = []
        self._problem = ""

    def image(self, name: str, *, pull_policy: str = "") -> Image:
        """What a name stands for; ConfigProblem where that is nothing."""
        names = names_of(name)
        self._read()
        if self._problem:
            raise ConfigProblem(_PULL_ERROR, self._problem)
        entry = next((entry for entry in self._entries if _matches(entry, names)), None)
        root = entry.root if entry is not None else self._default
        if root == FORBIDDEN:
            if pull_policy == "Never":
                message = f'Container image "{name}" is not present with pull policy of Never'
                raise ConfigProblem("ErrImageNeverPull", message)
            advice = f"add an entry with match: {names[0]!r} and a root to {self._file}"
            raise ConfigProblem(_PULL_ERROR, f'image "{name}" is forbidden on this node: {advice}')
        image = _image(name, names, entry)
        if root != HOST:
            return replace(image, root=self._folder(name, "root", root))
        return replace(
            image,
            directory=self._folder(name, "directory", image.directory) if image.directory else "",
            paths=[self._path(name, path) for path in image.paths],
        )

    def _folder(self, name: str, field_name: str, path: str) -> str:
        folder = (self._file.parent / path).resolve()
        if folder.is_dir():
            return str(folder)
        message = f'the {field_name} of image "{name}" in {self._file} is not a folder: {folder}'
        raise ConfigProblem(_PULL_ERROR, message)

    def _path(self, name: str, path: str) -> str:
        place = self._file.parent / path
        if place.exists():
            return os.path.abspath(place)  # noqa: PTH100 - links are shown as such
        raise ConfigProblem(_PULL_ERROR, f'paths of image "{name}" in {self._file} names what is not there: {place}')

    def _read(self) -> None:
        try:
            found = self._file.stat()
        except OSError:
            seen = None
        else:
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen is None:
            self._seen, self._default, self._entries, self._problem = None, HOST, [], ""
        elif seen != self._seen:
            self._seen = seen
            try:
                self._default, self._entries = _parsed(self._file)
                self._problem = ""
            except _Invalid as invalid:
                self._problem = str(invalid)


def names_of(image: str) -> list[str]:
    """All names that an image goes by, the most usual first; ConfigProblem where it is no name of one."""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        raise _no_name(image)
    domain, path = found["domain"], found["path"]
    if domain is not None and not ("." in domain or ":" in domain or domain == "localhost"):
        domain, path = None, f"{domain}/{path}"
        if path != path.lower():
            raise _no_name(image)
    repositories = [f"{domain}/{path}" if domain else path]
    if domain in (None, "docker.io", "index.docker.io"):
        short = path.removeprefix("library/")
        full = short if "/" in short else f"library/{short}"
        repositories = list(dict.fromkeys([short, full, f"docker.io/{short}", f"docker.io/{full}"]))
    tag = f":{found['tag']}" if found["tag"] else ""
    digest = f"@{found['digest']}" if found["digest"] else ""
    endings = list(dict.fromkeys([tag + digest, tag, digest, ""]))
    return [repository + ending for ending in endings for repository in repositories]


def _no_name(image: str) -> ConfigProblem:
    is_upper = _REFERENCE.fullmatch(image.lower()) is not None
    why = "invalid reference format" + (": repository name must be lowercase" if is_upper else "")
    message = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {why}'
    return ConfigProblem("InvalidImageName", message)


def _matches(entry: _Entry, names: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in entry.globs for name in names)


def _image(name: str, names: list[str], entry: _Entry | None) -> Image:
    entrypoint, command = _WELL_KNOWN.get(os.path.basename(names[-1]), ([], []))  # noqa: PTH119 - no path
    if entry is None:
        return Image(name=name, entrypoint=entrypoint, command=command)
    if entry.entrypoint or entry.command:
        entrypoint, command = entry.entrypoint, entry.command
    user, group = _user(entry)
    return Image(
        name=name,
        directory=entry.directory,
        paths=entry.paths,
        entrypoint=entrypoint,
        command=command,
        env=entry.env,
        working_dir=entry.working_dir,
        user=user,
        group=group,
    )


def _user(entry: _Entry) -> tuple[int | None, int | None]:
    if entry.user is None or isinstance(entry.user, int):
        return entry.user, None
    found = _USER.fullmatch(entry.user)
    assert found is not None  # as it was checked when the file was read
    return int(found[1]), int(found[2]) if found[2] else None


def _parsed(file: Path) -> tuple[str, list[_Entry]]:
    """The default and the entries of a file; _Invalid names the entry and the field."""
    try:
        document = yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise _Invalid(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _Invalid(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    try:
        mapping = msgspec.convert({} if document is None else document, _Mapping)
    except msgspec.ValidationError as error:
        raise _Invalid(f"{file}: {error}") from error
    if mapping.default not in (HOST, FORBIDDEN):
        raise _Invalid(f"{file}: default is {mapping.default!r}: write {HOST} or {FORBIDDEN}")
    entries = []
    for index, written in enumerate(mapping.images or []):
        where = f"{file}: images[{index}]"
        try:
            entry = msgspec.convert(written, _Entry)
        except msgspec.ValidationError as error:
            raise _Invalid(f"{where}: {error}") from error
        problem = _entry_problem(entry)
        if problem:
            raise _Invalid(f"{where}: {problem}")
        entries.append(entry)
    return mapping.default, entries


def _entry_problem(entry: _Entry) -> str:
    if not entry.globs or not all(entry.globs):
        return "match is empty: write a name, or a glob such as pytorch/*"
    if not entry.root:
        return f"root is empty: write {HOST}, {FORBIDDEN} or the path of an unpacked rootfs"
    if entry.directory and entry.root != HOST:
        return f"directory is set, but root is {entry.root!r}: it goes with root {HOST} alone"
    if entry.paths and entry.root != HOST:
        return f"paths are set, but root is {entry.root!r}: they go with root {HOST} alone"
    if entry.working_dir and not entry.working_dir.startswith("/"):
        return f"workingDir is {entry.working_dir!r}: write the whole path, as it is inside"
    is_bad_user = isinstance(entry.user, str) and not _USER.fullmatch(entry.user)
    if is_bad_user or (isinstance(entry.user, int) and entry.user < 0):
        return f'user is {entry.user!r}: write a number such as 1000, or two such as "1000:100"'
    bad = next((name for name in entry.env if not name or "=" in name), None)
    if bad is not None:
        return f"env has the name {bad!r}, which no variable can have"
    return ""
