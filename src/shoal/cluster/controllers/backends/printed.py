"""The order that Kubernetes gives to ports and subsets: by the hash of how a value is printed.

It has no meaning, but it shows on the wire, and endpoints of other writers compare equal only in the same order.
"""

from __future__ import annotations

from functools import lru_cache

_OFFSET_BASIS = 0x6C62272E07BB014262B821756295C58D
_PRIME = 0x0000000001000000000000000000013B
_MASK = (1 << 128) - 1


@lru_cache(maxsize=1024)
def printed_hash(text: str) -> int:
    """FNV-1a of 128 bits."""
    result = _OFFSET_BASIS
    for byte in text.encode():
        result = ((result ^ byte) * _PRIME) & _MASK
    return result


def printed_pointer(type_name: str, value: object) -> str:
    """A field that may be absent, with its type, as it is printed."""
    return f"(*{type_name}){'<nil>' if value is None else value}"
