"""The Pod Security policy of a namespace: a level and a version for each mode, read from the namespace's labels."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from shoal.kube.admission.fields import FieldProblem, invalid

PREFIX = "pod-security.kubernetes.io/"

_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LARGEST_MINOR = 2**63 - 1


class Level(enum.Enum):
    """How much a policy forbids, from the most permissive level to the strictest."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"

    def is_stricter_than(self, other: Level) -> bool:
        """Whether this level forbids more than another."""
        return _STRICTNESS[self] > _STRICTNESS[other]


_STRICTNESS = {level: strictness for strictness, level in enumerate(Level)}


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the policy: that of Kubernetes 1.x, or the latest (``minor`` is None)."""

    minor: int | None = None

    def __str__(self) -> str:
        return "latest" if self.minor is None else f"v1.{self.minor}"


@dataclass(frozen=True, slots=True)
class LevelVersion:
    """A level in one version, written ``restricted:v1.30``."""

    level: Level = Level.PRIVILEGED
    version: Version = Version()

    def __str__(self) -> str:
        return f"{self.level.value}:{self.version}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The level and version of each mode; nothing is checked by default."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def is_privileged(self) -> bool:
        """Whether every mode allows everything."""
        return self is UNRESTRICTED or {self.enforce.level, self.audit.level, self.warn.level} == {Level.PRIVILEGED}


UNRESTRICTED = Policy()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldProblem]]:
    """The policy that labels ask for, and what is wrong with them.

    There is always a policy: an invalid level enforces ``restricted`` and neither audits nor warns, an invalid version
    is the latest. A namespace that enforces a level and names none to warn of warns of what it enforces, so that
    workloads whose pods will be refused are reported when they are created.
    """
    if not any(label.startswith(PREFIX) for label in labels):
        return UNRESTRICTED, []
    problems: list[FieldProblem] = []

    def read(label: str, parse: Callable[[str], T], *, unset: T, wrong: T) -> T:
        value = labels.get(PREFIX + label)
        if value is None:
            return unset
        try:
            return parse(value)
        except ValueError as error:
            problems.append(invalid(f"metadata.labels[{PREFIX}{label}]", value, str(error)))
            return wrong

    def level(mode: str, wrong: Level) -> Level:
        return read(mode, _parse_level, unset=Level.PRIVILEGED, wrong=wrong)

    def version(mode: str) -> Version:
        return read(f"{mode}-version", _parse_version, unset=Version(), wrong=Version())

    # Read in this order, which is that of the problems in a refusal.
    enforce = LevelVersion(level("enforce", Level.RESTRICTED), version("enforce"))
    audit = LevelVersion(level("audit", Level.PRIVILEGED), version("audit"))
    warn = LevelVersion(level("warn", Level.PRIVILEGED), version("warn"))
    is_stated = labels.get(PREFIX + "enforce") == enforce.level.value
    if PREFIX + "warn" not in labels and is_stated and enforce.level is not Level.PRIVILEGED:
        has_version = PREFIX + "warn-version" in labels
        warn = LevelVersion(enforce.level, warn.version if has_version else enforce.version)
    return Policy(enforce, audit, warn), problems


T = TypeVar("T")


def _parse_level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError:
        known = ", ".join(level.value for level in Level)
        raise ValueError(f"must be one of {known}") from None


def _parse_version(text: str) -> Version:
    if text == "latest":
        return Version()
    found = _VERSION.fullmatch(text)
    if found is None or int(found[1]) > _LARGEST_MINOR:
        raise ValueError('must be "latest" or "v1.x"')
    return Version(int(found[1]))
