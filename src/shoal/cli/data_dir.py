"""The folder that a running Shoal keeps its state in: who holds it, where its servers answer, how its parts are.

A lock on a file in the folder says whether Shoal runs there. The system drops it when the holder ends, however it
ends, so it is never stale; the files beside it are only believed while it is held.

The folder belongs to one user. It is refused where others could have written to it, and whatever is made while it is
held is for its owner alone, whatever the umask was.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from shoal.cli.components import Engine
from shoal.cli.exits import CommandError
from shoal.cli.trusted_folders import problem_with

_LONGEST_LOOK = 1.0
_LONGEST_SOCKET = 107
"""What the system takes as the path of a Unix socket, in bytes."""
_LONGEST_NAME = "agents/simulated.sock"
_WRITTEN_BEFORE = frozenset({"images.yaml"})
"""What its owner may have put into the folder before anything is started there."""


@dataclass(frozen=True, kw_only=True)
class PartState:
    """One process of a running Shoal."""

    name: str
    state: str
    pid: int
    restarts: int


class DataDir:
    """The files in one data dir."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def log(self) -> Path:
        """Where a detached Shoal writes what it would have printed."""
        return self.path / "logs" / "shoal.log"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.path / "kubeconfig"

    def check(self) -> None:
        """Refuses a folder in which others could have put what we would believe; one that is missing is fine."""
        problem = problem_with(self.path, user=os.geteuid(), environ=os.environ)
        if problem is not None:
            raise CommandError(problem)

    def make(self) -> None:
        """Makes the folder, for its owner alone; one that holds something else is not touched."""
        self.check()
        if self.path.exists() and not self.path.is_dir():
            raise CommandError(f"the data dir {self.path} is a file: choose another --data-dir")
        if self.path.exists() and not self._lock.exists() and self._holds_other_things():
            raise CommandError(f"{self.path} holds other things: choose a new or empty folder as --data-dir")
        longest = _LONGEST_SOCKET - len(f"/{_LONGEST_NAME}")
        if len(bytes(self.path)) > longest:
            raise CommandError(
                f"the path {self.path} is too long for sockets in it ({len(bytes(self.path))} bytes, at most {longest} "
                "are possible): choose a shorter --data-dir"
            )
        with _for_owner_alone():
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "The data dir cannot be written", str(self.path))
            for folder in (self.path, self.log.parent):
                folder.mkdir(exist_ok=True, mode=0o700)
                _take_from_others(folder)
            self._lock.touch(mode=0o600)

    @contextmanager
    def held(self, pid: int) -> Iterator[None]:
        """Holds the folder for the length of a block; fails if another process does."""
        self.make()
        with _for_owner_alone(), self._lock.open("a+") as lock:
            deadline = time.monotonic() + _LONGEST_LOOK
            while not _taken(lock, fcntl.LOCK_EX):
                # One who looks whether it is held holds it for that moment.
                if time.monotonic() > deadline:
                    raise CommandError(
                        f"{self.path} is in use by process {self.holder()}: "
                        f"stop it with `shoal down --data-dir {self.path}`, or choose another --data-dir"
                    )
                time.sleep(0.02)
            self._forget()
            with _naming(self._lock):
                lock.truncate(0)
                os.write(lock.fileno(), str(pid).encode())
            try:
                yield
            finally:
                self._forget()

    def holder(self) -> int | None:
        """The process that holds the folder, if any."""
        self.check()
        try:
            with self._lock.open("r") as lock:
                if _taken(lock, fcntl.LOCK_SH):
                    return None
                return int(lock.read() or 0)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_endpoints(self, endpoints: Mapping[str, str]) -> None:
        """Says where the servers answer; its presence says that all of them do."""
        _write_json(self._endpoints, dict(endpoints))

    def endpoints(self) -> dict[str, str]:
        """Where the servers answer; nothing before all of them do."""
        self.check()
        found: dict[str, str] = _read_json(self._endpoints) or {}
        return found

    def admin_token(self) -> str:
        """The admin's bearer token; nothing before the first start."""
        self.check()
        try:
            return (self.path / "pki" / "admin.token").read_text()
        except FileNotFoundError:
            return ""

    def write_parts(self, parts: list[PartState]) -> None:
        """Says how the processes are."""
        _write_json(self._parts, [asdict(part) for part in parts])

    def parts(self) -> list[PartState]:
        """How the processes are, as the supervisor saw them last."""
        return [PartState(**part) for part in _read_json(self._parts) or []]

    def engine(self, wanted: Engine | None) -> Engine:
        """What serves the API on these data: what they were made with, or else what is wanted now."""
        made_with = self._engine.read_text().strip() if self._engine.exists() else None
        if made_with is None:
            return wanted or Engine.EMBEDDED
        if made_with not in list(Engine):
            raise CommandError(
                f"{self.path} was made with an engine {made_with!r} that this version of Shoal does not know: "
                "use the version that made it, or choose another --data-dir"
            )
        if wanted not in (None, made_with):
            raise CommandError(
                f"{self.path} was made with --engine {made_with}: start it with that, or choose another --data-dir"
            )
        return Engine(made_with)

    def claim(self, engine: Engine) -> None:
        """Notes what makes these data: to be called once nothing keeps it from being started."""
        if not self._engine.exists():
            _write(self._engine, f"{engine}\n")

    @property
    def _engine(self) -> Path:
        return self.path / "engine"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def _endpoints(self) -> Path:
        return self.path / "endpoints.json"

    @property
    def _parts(self) -> Path:
        return self.path / "parts.json"

    def _holds_other_things(self) -> bool:
        return any(entry.name not in _WRITTEN_BEFORE for entry in self.path.iterdir())

    def _forget(self) -> None:
        for path in (self._endpoints, self._parts):
            path.unlink(missing_ok=True)


@contextmanager
def _for_owner_alone() -> Iterator[None]:
    """Files and folders that are made in a block have no rights for others, from their first moment."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _take_from_others(folder: Path) -> None:
    """Takes the rights of others on a folder, which its owner may have made with the usual umask."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        folder.chmod(mode & 0o700)


def _taken(lock: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    """Writes a file in one step: it is there whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with _naming(path):
            unfinished.write_text(text)
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Names the file where it cannot be written: the system's own error says only that something could not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
