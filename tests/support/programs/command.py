"""Runs the real shoal command in a process of its own, in an environment that is the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

SHOAL = (sys.executable, "-m", "shoal")
_DEPENDS_ON_THE_MACHINE = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "NO_COLOR", "TERMINAL_WIDTH", "SHOAL_DEBUG")


def environment(**more: str) -> dict[str, str]:
    """The environment of this process, less what changes how the command prints; the terminal has 80 columns."""
    kept = {key: value for key, value in os.environ.items() if key not in _DEPENDS_ON_THE_MACHINE}
    return {**kept, "COLUMNS": "80", "TERM": "dumb", "PYTHONWARNINGS": "error", **more}


def shoal(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs ``shoal`` to its end."""
    return run_to_end([*SHOAL, *arguments], env=env)


def run_to_end(command: list[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whatever its exit code."""
    return subprocess.run(command, env=env or environment(), capture_output=True, text=True, timeout=60, check=False)
