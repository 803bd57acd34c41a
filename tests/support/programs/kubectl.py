"""The real kubectl, as a function."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl with one kubeconfig: ``kubectl("get", "pods", namespace="a")`` gives what it printed."""

    binary: Path
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str, namespace: str = "", stdin: str | None = None) -> str:
        done = self.run(*arguments, namespace=namespace, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)} exited {done.returncode}: {done.stderr.strip()}"
        return done.stdout

    def json(self, *arguments: str, namespace: str = "") -> Any:
        """What kubectl prints with ``-o json``, parsed."""
        return json.loads(self(*arguments, "-o", "json", namespace=namespace))

    def apply(self, *objects: dict[str, Any], namespace: str = "") -> str:
        """Applies objects given as plain JSON values."""
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self("apply", "-f", "-", namespace=namespace, stdin=json.dumps(manifest))

    def run(
        self, *arguments: str, namespace: str = "", stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """The finished process, whatever its exit status."""
        options = [f"--kubeconfig={self.kubeconfig}", *([f"--namespace={namespace}"] if namespace else [])]
        return subprocess.run(
            [str(self.binary), *options, *arguments],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, "KUBECACHEDIR": str(self.cache)},
        )
