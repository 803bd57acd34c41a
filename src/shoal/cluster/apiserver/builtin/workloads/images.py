"""Images: of a reference, the part that decides how often it is pulled."""

from __future__ import annotations

import re
from functools import lru_cache

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_ONLY_DIGITS = re.compile(r"[a-f0-9]{64}").fullmatch


@lru_cache(maxsize=4096)
def default_pull_policy(image: str) -> str:
    """``Always`` where the image is, or means, the latest one; what cannot be read is somebody else's problem."""
    reference = None if _ONLY_DIGITS(image) else _REFERENCE.fullmatch(_completed(image))
    if reference is None:
        return "IfNotPresent"
    tag, digest = reference["tag"], reference["digest"]
    if digest and not _is_digest(digest):
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _completed(image: str) -> str:
    """The reference with its registry, where it names none."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def _is_digest(digest: str) -> bool:
    algorithm, _, digits = digest.partition(":")
    return _DIGEST_LENGTHS.get(algorithm) == len(digits) and digits == digits.lower()
