"""How Kubernetes lists what violates a policy, in words that clients and people compare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def counted(noun: str, count: int) -> str:
    """A noun in the number that fits: ``container``, ``containers``."""
    return noun if count == 1 else noun + "s"


def listed(values: Iterable[str]) -> str:
    """Values in quotes, as they stand: ``"a", "b"``."""
    return ", ".join(f'"{value}"' for value in values)


def named(noun: str, names: Sequence[str]) -> str:
    """Things by their names: ``containers "a", "b"``."""
    return f"{counted(noun, len(names))} {listed(names)}"


def used(noun: str, names: Sequence[str], what: str, values: Collection[str], shown: str) -> str:
    """Who uses what: ``container "a" uses hostPorts 80, 81``."""
    verb = "uses" if len(names) == 1 else "use"
    return f"{named(noun, names)} {verb} {counted(what, len(values))} {shown}"


def setters(containers: Sequence[str], *, pod: bool) -> str:
    """Who sets a value that is forbidden: the pod, its containers, or both; nothing where nobody does."""
    return " and ".join((["pod"] if pod else []) + ([named("container", containers)] if containers else []))
