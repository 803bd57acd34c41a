"""Asks the published Go types: builds the small program beside this file and reads what it prints."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.programs import kube_binaries

SOURCE = Path(__file__).parent / "go"


def program() -> Path:
    """The built program; built anew where its source or its pins have changed."""
    digest = hashlib.sha256()
    for part in sorted(SOURCE.iterdir()):
        digest.update(part.read_bytes())
    built = kube_binaries.cache_root() / "kind-tables" / digest.hexdigest()[:12]
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_name(f"{built.name}.{os.getpid()}")
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
        command = [kube_binaries.go_command(), "build", "-trimpath", "-buildvcs=false", "-o", str(unfinished), "."]
        subprocess.run(command, cwd=SOURCE, env=environment, check=True)
        unfinished.rename(built)
    return built


def describe() -> dict[str, Any]:
    """Every type that the registered kinds reach, field by field."""
    return dict(json.loads(_run("describe")))


def examples(seed: int, count: int) -> list[dict[str, Any]]:
    """Random objects of all kinds: as protobuf (base64), as JSON, and as JSON after a round trip through protobuf."""
    return [json.loads(line) for line in _run("examples", str(seed), str(count)).splitlines()]


def _run(*arguments: str) -> bytes:
    return subprocess.run([str(program()), *arguments], check=True, capture_output=True).stdout
