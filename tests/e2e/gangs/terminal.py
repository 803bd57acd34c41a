"""A person's terminal: what is typed is run as it is, by a shell that knows kubectl and the cluster."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.programs.kube_binaries import binary

SHOWN_WITHIN = 30.0


@dataclass(frozen=True)
class Terminal:
    """A shell with a kubeconfig; ``cache`` is where kubectl keeps what it learned of the cluster."""

    kubeconfig: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        kubectl = binary("kubectl")
        assert kubectl is not None
        return {
            **os.environ,
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.cache),
        }

    def run(self, command: str, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The finished command, whatever its exit status."""
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail\n{command}"],
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def type(self, command: str, *, stdin: str = "") -> str:
        """What a command prints that must succeed."""
        done = self.run(command, stdin=stdin)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def writing(self, command: str, file: Path) -> Iterator[Path]:
        """A command that runs for the length of a block, and what it writes."""
        with file.open("wb") as output:
            process = subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=output, env=self.environment)
        try:
            yield file
        finally:
            process.kill()
            process.wait()

    def shows(self, command: str, pattern: str, *, within: float = SHOWN_WITHIN) -> re.Match[str]:
        """Types a command again and again until it succeeds and prints something of this pattern."""
        deadline = time.monotonic() + within
        while True:
            done = self.run(command)
            found = re.search(pattern, done.stdout) if done.returncode == 0 else None
            if found:
                return found
            assert time.monotonic() < deadline, f"$ {command}\nnever showed {pattern}:\n{done.stdout}{done.stderr}"
            time.sleep(0.1)

    def shows_nothing(self, command: str, *, within: float = SHOWN_WITHIN) -> None:
        """Types a command again and again until it prints nothing."""
        deadline = time.monotonic() + within
        while (shown := self.type(command)).strip():
            assert time.monotonic() < deadline, f"$ {command}\nstill shows:\n{shown}"
            time.sleep(0.1)
