"""The table of pods: what a row says, and how it is played.

A row is a claim, a pod (or what makes some), and what a person at a shell then sees. Every line runs in ``bash`` with
nothing but ``kubectl`` to reach the cluster, signed in with the row's own namespace chosen, and is tried again until
what it gives is as it should be; one that does something is marked ``once``. In ``table/*.yaml``:

    - claim: what is true
      root_only: why an ordinary user does not get this   # where that is so
      objects: [...]      # what has to be there before the pod, as manifests
      metadata: {...}     # of the pod, beside its name, which is always "it"
      pod: {...}          # its spec
      then:
      - run: kubectl logs it
        prints: exactly this, but for blanks at the ends
      - run: kubectl get pod it --no-headers
        matches: a regular expression that is found in it
      - run: kubectl exec it -- false
        exits: 1
        complains: the same, for what is said on stderr
      - {once: kubectl delete pod it}
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import yaml

TABLE = Path(__file__).parent / "table"
WITHIN = 90.0
"""Seconds for a line to come true, on a machine that has much else to do."""
MOST_SHOWN = 4000
"""Characters of output that a failure shows."""
ONE_LINE = 60.0
"""Seconds for a line to end."""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is typed, and what is to be seen."""

    run: str = ""
    once: str = ""
    prints: str | None = None
    matches: str = ""
    complains: str = ""
    exits: int = 0

    @property
    def script(self) -> str:
        return self.run or self.once

    def difference(self, done: subprocess.CompletedProcess[str]) -> str:
        """What is not as it should be; empty where all is."""
        if done.returncode != self.exits:
            return f"exits {done.returncode}, not {self.exits}"
        if self.prints is not None and done.stdout.strip() != self.prints.strip():
            return f"does not print {self.prints.strip()!r}"
        if not re.search(self.matches, done.stdout, re.MULTILINE):
            return f"prints nothing that matches {self.matches!r}"
        if not re.search(self.complains, done.stderr, re.MULTILINE):
            return f"complains of nothing that matches {self.complains!r}"
        return ""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A claim about pods, and its proof."""

    claim: str
    then: list[Line]
    pod: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}
    objects: list[dict[str, Any]] = []
    root_only: str = ""

    @cached_property
    def namespace(self) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", self.claim.lower()).strip("-")
        return words[:63].strip("-")

    def manifests(self) -> list[dict[str, Any]]:
        """What has to be there before the pod is made, the namespace first."""
        own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        return [own, *(self._placed(one) for one in self.objects)]

    def pods(self) -> list[dict[str, Any]]:
        """The pod, where the row has one from the start."""
        if self.pod is None:
            return []
        metadata = {"name": "it", **self.metadata}
        return [self._placed({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.pod})]

    def _placed(self, one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "metadata": {**one["metadata"], "namespace": self.namespace}}


def all_rows() -> list[Row]:
    """The whole table, file by file."""
    rows = [row for file in sorted(TABLE.glob("*.yaml")) for row in _read(file)]
    assert len({row.namespace for row in rows}) == len(rows), "two claims are the same in their first words"
    return rows


def rows_of(*files: str) -> list[Row]:
    """Some parts of the table."""
    return [row for file in files for row in _read(TABLE / f"{file}.yaml")]


def play(row: Row, kubeconfig: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Types the lines of a row in a folder of its own, and fails with the story of the one that does not come true."""
    folder.mkdir(parents=True)
    signed_in = yaml.safe_load(kubeconfig.read_text())
    for context in signed_in["contexts"]:
        context["context"]["namespace"] = row.namespace
    own = folder / ".kubeconfig"
    own.write_text(yaml.safe_dump(signed_in))
    for line in row.then:
        _type(line, folder, {**environment, "KUBECONFIG": str(own)})


def _read(file: Path) -> list[Row]:
    return msgspec.convert(yaml.safe_load(file.read_text()), list[Row])


def _type(line: Line, folder: Path, environment: Mapping[str, str]) -> None:
    deadline = time.monotonic() + WITHIN
    rest = 0.1
    while True:
        done = _typed(line.script, folder, environment)
        difference = line.difference(done)
        if not difference:
            return
        if line.once or time.monotonic() > deadline:
            shown = _typed("kubectl get pods -o wide; kubectl get events", folder, environment).stdout
            raise AssertionError(
                f"{line.script.strip()}\n... {difference}. It printed:\n{done.stdout[-MOST_SHOWN:]}"
                f"... and complained:\n{done.stderr[-MOST_SHOWN:]}... while there was:\n{shown}"
            )
        time.sleep(rest)
        rest = min(1.0, rest * 1.5)


def _typed(script: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What became of a line; one that takes too long is ended with all that it started, and counts as 124."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as typed:
        try:
            out, err = typed.communicate(timeout=ONE_LINE)
        except subprocess.TimeoutExpired:
            os.killpg(typed.pid, signal.SIGKILL)
            out, err = typed.communicate()
            return subprocess.CompletedProcess(command, 124, out, err)
        return subprocess.CompletedProcess(command, typed.returncode, out, err)
