"""What has passed on this machine: for each suite and test file, the fingerprint of its inputs at that time.

It is kept in the cache outside the tree, so that clones of a machine share it. What cannot be read is as if nothing had
passed, and everything runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.programs.kube_binaries import cache_root


class Passes:
    """The record of one suite."""

    def __init__(self, suite: str, folder: Path | None = None) -> None:
        self._file = (folder or cache_root() / "passed") / f"{suite}.json"

    def read(self) -> dict[str, str]:
        """Fingerprints by test file."""
        try:
            found = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def add(self, fingerprints: Mapping[str, str]) -> None:
        """Remembers these besides the others."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(self.read() | dict(fingerprints), indent=0, sort_keys=True))
        unfinished.replace(self._file)
