"""Kubernetes' own examples of pods that pass and fail the Pod Security Standards, by level and version.

They are test data of the Go module k8s.io/pod-security-admission, in the version that the pinned Kubernetes requires
(go/kubernetes/go.mod), verified by its checksum and kept in the cache beside what kube_binaries builds. Uses the
standard library alone: it runs before anything is installed.

    python tests/support/programs/pod_security_fixtures.py    fetch them where they are missing, print their folder
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.programs.kube_binaries import MODULES, cache_root, go_command

MODULE = "k8s.io/pod-security-admission"
NOT_FETCHED = "the fixtures of PodSecurity are not fetched: run make kube-binaries"


def fixtures() -> Path | None:
    """The folder with ``baseline/v1.0/pass/*.yaml`` and so on, or None while it is missing."""
    path = _folder()
    return path if path.exists() else None


def install() -> Path:
    """Fetches the module and copies its examples beside their place, which they take in one step."""
    if (there := fixtures()) is not None:
        return there
    target = _folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    settings = {**os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    command = [go_command(), "mod", "download", "-json", MODULE]
    found = subprocess.run(command, cwd=MODULES / "kubernetes", env=settings, check=True, stdout=subprocess.PIPE)
    source = Path(json.loads(found.stdout)["Dir"]) / "test" / "testdata"
    try:
        # Go keeps modules read-only, which a folder to be moved and removed must not be.
        shutil.copytree(source, unfinished, copy_function=shutil.copyfile)
        for folder in [unfinished, *(path for path in unfinished.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _folder() -> Path:
    """Named by the module's checksum, so that another pin has another folder."""
    sums = (MODULES / "kubernetes" / "go.sum").read_text()
    pinned = re.search(rf"^{re.escape(MODULE)} (\S+) h1:(\S+)$", sums, re.MULTILINE)
    if pinned is None:
        raise SystemExit(f"{MODULES / 'kubernetes' / 'go.sum'} does not pin {MODULE}")
    digest = re.sub(r"[^A-Za-z0-9]", "", pinned[2])[:12]
    return cache_root() / "kube" / f"pod-security-{pinned[1]}-{digest}"


if __name__ == "__main__":
    print(f"pod-security-fixtures: {install()}")
