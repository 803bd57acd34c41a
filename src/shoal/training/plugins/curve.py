"""The certificate by which Flux's brokers trust each other: a pair of CURVE keys of ZeroMQ, the same at every call."""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def certificate(name: str, uid: str) -> str:
    """The certificate of a TrainJob. Its secret key is made of the TrainJob's uid, so that it never changes."""
    secret = hashlib.sha256(uid.encode()).digest()
    public = X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    return (
        "#   ZeroMQ CURVE **Secret** Certificate\n"
        "#   Keep it from everyone but the brokers of this TrainJob.\n\n"
        f'metadata\n    name = "{name}"\n'
        f'curve\n    public-key = "{z85(public)}"\n    secret-key = "{z85(secret)}"\n'
    )


def z85(octets: bytes) -> str:
    """Bytes, in fours, as ZeroMQ writes keys: five digits of base 85 for each four bytes."""
    if len(octets) % 4:
        raise ValueError(f"Z85 takes bytes in fours, not {len(octets)}")
    text = []
    for begin in range(0, len(octets), 4):
        number = int.from_bytes(octets[begin : begin + 4], "big")
        text += [_DIGITS[number // 85**place % 85] for place in (4, 3, 2, 1, 0)]
    return "".join(text)
