"""The accounts that a root's own ``/etc/passwd`` knows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Account(NamedTuple):
    """A user, as far as a container needs to know."""

    group: int
    home: str


def account_in(root: str, user: int) -> Account | None:
    """The account of a user in a root (empty: the machine's own); None where it has none."""
    try:
        text = Path(root or "/", "etc/passwd").read_text(errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        parts = line.split(":")
        if len(parts) >= 6 and parts[2] == str(user) and parts[3].isdigit():
            return Account(int(parts[3]), parts[5])
    return None
