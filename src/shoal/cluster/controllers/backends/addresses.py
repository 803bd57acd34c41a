"""IP addresses in the one form that endpoints carry, whichever way a pod or a person wrote them."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple

_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


class IpAddress(NamedTuple):
    """An address in its usual spelling, and its family."""

    text: str
    is_v6: bool


@lru_cache(maxsize=1 << 16)
def parse_ip(text: str) -> IpAddress | None:
    """The address that a text means; None where it is none.

    Leading zeros are taken as decimal digits, and an IPv4 address inside an IPv6 one as IPv4.
    """
    if _DOTTED.fullmatch(text):
        numbers = [int(part) for part in text.split(".")]
        if max(numbers) > 255:
            return None
        return IpAddress(".".join(map(str, numbers)), is_v6=False)
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    if address.scope_id is not None:
        return None
    if address.ipv4_mapped is not None:
        return IpAddress(str(address.ipv4_mapped), is_v6=False)
    return IpAddress(str(address), is_v6=True)
