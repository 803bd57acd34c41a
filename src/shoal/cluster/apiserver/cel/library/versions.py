"""Semantic versions."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from shoal.cluster.apiserver.cel.functions import MATCHERS, Library
from shoal.cluster.apiserver.cel.values import CelError

VERSIONS = Library()
_add = VERSIONS.add
_V = "kubernetes.Semver"
_NUMBER = r"0|[1-9][0-9]*"
_PATTERN = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


@functools.total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Version:
    """A version; what comes after the plus does not count."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._rank == other._rank

    def __lt__(self, other: Version) -> bool:
        return self._rank < other._rank

    def __hash__(self) -> int:
        return hash(self._rank)

    @property
    def _rank(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts


MATCHERS[_V] = lambda value: type(value) is Version


def _parsed(text: str, *, is_normalized: bool = False) -> Version | None:
    text = _normal(text) if is_normalized else text
    found = _PATTERN.fullmatch(text)
    if found is None:
        return None
    pre = tuple(found[4].split(".")) if found[4] else ()
    return Version(int(found[1]), int(found[2]), int(found[3]), pre)


def _normal(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[at] = rest if rest[:1].isdigit() else f"0{rest}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            return ""
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _version(text: str, normalize: bool = False) -> Version:
    found = _parsed(text, is_normalized=normalize)
    if found is None:
        raise CelError("No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid version {text}")
    return found


def _is_version(text: str, normalize: bool = False) -> bool:
    return _parsed(text, is_normalized=normalize) is not None


_add(_version, f"semver(string): {_V}", f"semver(string, bool): {_V}")
_add(_is_version, "isSemver(string): bool", "isSemver(string, bool): bool")
_add(lambda one, other: one > other, f"{_V}::isGreaterThan({_V}): bool")
_add(lambda one, other: one < other, f"{_V}::isLessThan({_V}): bool")
_add(lambda one, other: (one > other) - (one < other), f"{_V}::compareTo({_V}): int")
_add(lambda version: version.major, f"{_V}::major(): int")
_add(lambda version: version.minor, f"{_V}::minor(): int")
_add(lambda version: version.patch, f"{_V}::patch(): int")
