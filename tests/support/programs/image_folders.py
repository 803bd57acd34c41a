"""Folders that images stand for, made by the make-images scripts of the examples, once.

They are kept in the cache outside the tree, each in a folder named by a hash of what it is made from.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.programs.kube_binaries import cache_root

ROOT = Path(__file__).parents[3]
SHARED = ROOT / "examples" / "making-images.sh"
CACHE_OF_ALL = Path("/var/cache/shoal")
LONGEST = 900
"""Seconds for all of it, over a slow line."""


class Unavailable(Exception):
    """They cannot be had on this machine, in one line."""


def made(
    script: Path, *images: str, called: str, pins: Path | None = None, owner: int | None = None, **variables: str
) -> Path:
    """The folder with these images; made where it is not there whole. ``called`` is what people call them.

    Made by root it is given to the owner, since an ordinary user's pods can only change copies of files of that user.
    """
    folder = _cache() / "images" / _digest(script, images, pins, variables)
    finished = folder / "finished"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_suffix(".lock")):
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make([str(script), str(folder), *images], called, variables)
            if owner is not None and os.getuid() == 0:
                subprocess.run(
                    ["chown", "--recursive", "--no-dereference", f"{owner}:{owner}", str(folder)], check=True
                )
            finished.touch()
    return folder


def python_of_all(called: str) -> str:
    """An interpreter that whoever pods run as can get at."""
    for candidate in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
        is_reachable = os.getuid() != 0 or _is_open(Path(candidate).parent)
        check = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
        if is_reachable and Path(candidate).exists():
            done = subprocess.run([candidate, "-c", check], capture_output=True, check=False)
            if done.returncode == 0:
                return candidate
    raise Unavailable(
        f"{called} cannot be installed: no Python 3.11 or later with its venv package can be run by everybody "
        "(apt-get install python3-venv)"
    )


def pinned(pins: Path) -> str:
    """What pip is given, that it installs what a file pins with hashes."""
    return f"--require-hashes --requirement {pins.relative_to(ROOT)}"


def _make(command: list[str], called: str, variables: Mapping[str, str]) -> None:
    try:
        subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"{called} could not be installed: {last}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{called} could not be installed within {LONGEST} s") from error


def _cache() -> Path:
    """A place that whoever pods run as can get at; root's own home is none, as a rule."""
    usual = cache_root()
    return usual if os.getuid() != 0 or _is_open(usual) else CACHE_OF_ALL


def _is_open(folder: Path) -> bool:
    """Whether everybody may enter a folder, or could one that is still to be made."""
    there = (one for one in (folder, *folder.parents) if one.exists())
    return all(one.stat().st_mode & 0o001 for one in there)


def _digest(script: Path, images: tuple[str, ...], pins: Path | None, variables: Mapping[str, str]) -> str:
    files = [script, SHARED, *([pins] if pins is not None else [])]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    machine = (platform.machine(), platform.freedesktop_os_release().get("VERSION_ID", ""))
    for fact in (*images, *variables.values(), *machine):
        digest.update(fact.encode())
    return digest.hexdigest()[:12]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Lets others who want the same wait until it is there."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
