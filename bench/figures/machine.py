"""What was measured on, and with which versions: a figure without these says nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def facts(packages: Sequence[str]) -> list[str]:
    """The machine and the versions, one line each."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    machine = f"{os.cpu_count()} cores ({_processor()}), {platform.system()} {platform.machine()}"
    return [
        f"{machine}; load before: {load}",
        f"Python {platform.python_version()}; " + ", ".join(f"{name} {installed(name)}" for name in packages),
    ]


def installed(package: str) -> str:
    """A package's version, or that it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
