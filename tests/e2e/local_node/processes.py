"""The processes of this machine, as one sees them who looks from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def running(words: str) -> set[int]:
    """The processes with these words in their command lines."""
    return {pid for pid in all_processes() if words in command_line(pid)}


def descendants(ancestor: int) -> set[int]:
    """A process' children, theirs, and so on."""
    parents = {pid: parent(pid) for pid in all_processes()}
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


def all_processes() -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            yield int(folder.name)


def command_line(pid: int) -> str:
    """What was typed to start it; nothing of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def parent(pid: int) -> int:
    with suppress(OSError):
        # The name of the program comes first, in parentheses, and may hold anything.
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0


def memory(pid: int) -> int:
    """Bytes that a process has: its own, and its part of what it shares; 0 for one that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
