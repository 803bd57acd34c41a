"""What the system knows of a running server: its process, its memory, its open files."""

from __future__ import annotations

from pathlib import Path


def server_process(data_dir: Path) -> int:
    """The process that holds a data dir."""
    return int((data_dir / "lock").read_text())


def resident_bytes(process: int) -> int:
    """The memory that a process has in use."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {process} has no memory")


def open_descriptors(process: int) -> int:
    """How many files, sockets and pipes a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def threads(process: int) -> int:
    """How many threads a process has."""
    return sum(1 for _ in Path(f"/proc/{process}/task").iterdir())
