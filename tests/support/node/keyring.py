"""The kernel's keyrings, in which programs keep what others must not have: tickets, passwords, keys of file systems."""

from __future__ import annotations

import ctypes
import os

_NUMBERS = {"x86_64": (248, 250), "aarch64": (217, 219)}
_JOIN, _SEARCH = 1, 10
_SESSION = ctypes.c_long(-3)

_libc = ctypes.CDLL(None, use_errno=True)


def keep_key(name: str, value: bytes) -> bool:
    """Keeps a key in a new keyring of this process, which those that it starts have too; False where there are none."""
    add_key, keyctl = _NUMBERS.get(os.uname().machine, (-1, -1))
    if _libc.syscall(keyctl, _JOIN, None) < 0:
        return False
    return int(_libc.syscall(add_key, b"user", name.encode(), value, ctypes.c_size_t(len(value)), _SESSION)) > 0


def is_key_found(name: str) -> bool:
    """Whether this process has a key."""
    _, keyctl = _NUMBERS.get(os.uname().machine, (-1, -1))
    return int(_libc.syscall(keyctl, _SEARCH, _SESSION, b"user", name.encode(), 0)) > 0
