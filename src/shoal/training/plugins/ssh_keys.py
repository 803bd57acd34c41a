"""The pair of keys by which MPI's nodes trust each other."""

from __future__ import annotations

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


class KeyPair(NamedTuple):
    """A private key as ssh reads it (PEM), and the line of ``authorized_keys`` that lets its holder in."""

    private: bytes
    public: bytes


def new_key_pair() -> KeyPair:
    """A pair that nobody has seen."""
    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private, public + b"\n")
