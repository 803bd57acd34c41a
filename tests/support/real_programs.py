"""Real programs that tests run in pods: a JupyterLab, and Debian's PostgreSQL.

Made by the script of the example that shows them (examples/local-node/make-images), JupyterLab from what
requirements/jupyter.txt pins with hashes. They are kept in the cache outside the tree, in a folder named by a hash of
what they are made from.

    python tests/support/real_programs.py    make what is missing, print the folder
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.kube_binaries import cache_root

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "local-node" / "make-images"
PINS = ROOT / "requirements" / "jupyter.txt"
CACHE_OF_ALL = Path("/var/cache/shoal")
LONGEST = 900
"""Seconds for all of it, over a slow line."""


class Unavailable(Exception):
    """They cannot be had on this machine, in one line."""


def install() -> Path:
    """The folder with ``jupyter`` and ``postgresql``; made where it is not there whole."""
    python = _python_of_all()
    folder = _cache() / "images" / _digest(python)
    finished = folder / "finished"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_suffix(".lock")):
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, python)
            finished.touch()
    return folder


def _make(folder: Path, python: str) -> None:
    wanted = {"PYTHON": python, "JUPYTER": f"--require-hashes --requirement {PINS.relative_to(ROOT)}"}
    try:
        subprocess.run(
            [str(SCRIPT), str(folder)],
            cwd=ROOT,
            env={**os.environ, **wanted},
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"Jupyter and PostgreSQL could not be installed: {last}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Jupyter and PostgreSQL were not installed within {LONGEST} s") from error


def _cache() -> Path:
    """A place that whoever pods run as can get at; root's own home is none, as a rule."""
    usual = cache_root()
    return usual if os.getuid() != 0 or _is_open(usual) else CACHE_OF_ALL


def _python_of_all() -> str:
    """An interpreter that whoever pods run as can get at."""
    for candidate in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
        is_reachable = os.getuid() != 0 or _is_open(Path(candidate).parent)
        check = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
        if is_reachable and Path(candidate).exists():
            done = subprocess.run([candidate, "-c", check], capture_output=True, check=False)
            if done.returncode == 0:
                return candidate
    raise Unavailable(
        "Jupyter cannot be installed: no Python 3.11 or later with its venv package can be run by everybody "
        "(apt-get install python3-venv)"
    )


def _is_open(folder: Path) -> bool:
    """Whether everybody may enter a folder, or could one that is still to be made."""
    there = (one for one in (folder, *folder.parents) if one.exists())
    return all(one.stat().st_mode & 0o001 for one in there)


def _digest(python: str) -> str:
    digest = hashlib.sha256(SCRIPT.read_bytes() + PINS.read_bytes())
    for fact in (python, platform.machine(), platform.freedesktop_os_release().get("VERSION_ID", "")):
        digest.update(fact.encode())
    return digest.hexdigest()[:12]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Lets others who want the same wait until it is there."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        print(f"real-programs: {install()}")
    except Unavailable as unavailable:
        sys.exit(f"real-programs: {unavailable}")
