"""The shoal command in one data dir, as a person would use it from several terminals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shoal.cli.data_dir import DataDir
from shoal.cluster.kubernetes import AdminApi, admin_of

SHOAL = str(Path(sys.executable).with_name("shoal"))
ANY_PORTS = [f"--{name}-port=0" for name in ("api", "http", "plugin", "metrics", "health")]


class Shoal:
    """The command in one data dir; without a node on this machine, unless that is what the test is about."""

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        has_local_node: bool = False,
        as_owner: Callable[..., list[str]] = lambda *command: list(command),
    ) -> None:
        """``as_owner`` gives the command line that runs another as the owner of the data dir: root trusts none."""
        self.data_dir = data_dir
        self.as_owner = as_owner
        self.options = options if has_local_node else ("--no-local-node", *options)

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "kubeconfig"

    def __call__(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = self.as_owner(SHOAL, command, f"--data-dir={self.data_dir}", *arguments)
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)

    def up(self, *arguments: str) -> list[str]:
        return [SHOAL, "up", f"--data-dir={self.data_dir}", *ANY_PORTS, *self.options, *arguments]

    def starting(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs ``shoal up`` to its end."""
        return subprocess.run(self.up(*arguments), capture_output=True, text=True, check=False, timeout=60)

    @contextmanager
    def foreground(
        self, *arguments: str, before: str = "", environment: Mapping[str, str] | None = None
    ) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """A running ``shoal up`` and its first line; ``before`` is shell that runs in its process first."""
        command = ["/bin/sh", "-c", f'{before}\nexec "$@"', "sh", *self.up(*arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            try:
                yield process, process.stdout.readline()
            finally:
                process.kill()

    def endpoints(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.data_dir / "endpoints.json").read_text())
        return found

    @property
    def admin(self) -> AdminApi:
        """Plain requests as the admin."""
        return admin_of(self.data_dir, self.endpoints()["api"], timeout=30)

    def objects(self, path: str) -> list[dict[str, Any]]:
        """What a collection of the API holds."""
        items: list[dict[str, Any]] = self.admin.request("GET", path)["items"]
        return items

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "-o", "json").stdout)
        return found

    def part(self, name: str) -> dict[str, Any]:
        """A part as the supervisor noted it last; ``shoal status`` says the same, and takes long to ask often."""
        return next(asdict(part) for part in DataDir(self.data_dir).parts() if part.name == name)

    def pids(self) -> list[int]:
        """The processes of all parts but the supervisor."""
        return [part.pid for part in DataDir(self.data_dir).parts()]


def with_binaries(folder: Path, **scripts: str) -> Shoal:
    """A Shoal on shell scripts that stand for the programs of a real Kubernetes."""
    binaries = folder / "bin"
    binaries.mkdir()
    for name, script in scripts.items():
        (binaries / name).write_text(f"#!/bin/sh\n{script}\n")
        (binaries / name).chmod(0o755)
    return Shoal(folder / "data", "--engine=kube", f"--kube-binaries={binaries}")
