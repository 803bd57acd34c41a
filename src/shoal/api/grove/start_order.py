"""How pods wait for those that start first: what the init container ``grove-initc`` is told, and when it is satisfied.

The operator writes the container into pods, the program of that name and the simulated nodes do what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

CONTAINER: Final = "grove-initc"
"""The init container's name, and its image's where nobody chose another one."""
FLAG: Final = "--podcliques"
POD_INFO_FOLDER: Final = "/var/grove/pod-info"
NAMESPACE_FILE: Final = "namespace"
GANG_FILE: Final = "podgangname"


class InvalidArguments(ValueError):
    """Arguments that name no cliques to wait for."""


class Missing(NamedTuple):
    """A clique that is waited for, how many of its pods are ready, and how many must be."""

    clique: str
    ready: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.clique}: {self.ready} of {self.wanted} ready"


def argument(clique: str, min_available: int) -> str:
    """The argument that makes a pod wait for so many pods of a clique."""
    return f"{FLAG}={clique}:{min_available}"


def awaited(arguments: Iterable[str]) -> dict[str, int]:
    """The cliques that arguments name, each with the number of its pods that must be ready; raises InvalidArguments.

    One argument may name several cliques, separated by commas; a clique that is named twice counts as named last.
    """
    cliques: dict[str, int] = {}
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in (FLAG, FLAG.removeprefix("-")):
            raise InvalidArguments(f"{word!r} is not understood: write {FLAG}=CLIQUE:NUMBER")
        if not equals:
            value = next(words, "")
        for one in value.split(","):
            clique, number = _clique(one)
            cliques[clique] = number
    if not cliques:
        raise InvalidArguments(f"there is nothing to wait for: write {FLAG}=CLIQUE:NUMBER")
    return cliques


def missing(cliques: Mapping[str, int], ready: Mapping[str, int]) -> Sequence[Missing]:
    """The cliques that are still waited for, in the order in which they were named."""
    return [
        Missing(clique, ready.get(clique, 0), wanted)
        for clique, wanted in cliques.items()
        if ready.get(clique, 0) < wanted
    ]


def _clique(text: str) -> tuple[str, int]:
    clique, _, number = text.strip().rpartition(":")
    if not clique or not (number.isascii() and number.isdecimal()) or len(number) > 9 or int(number) < 1:
        raise InvalidArguments(f"{text!r} is not valid: write CLIQUE:NUMBER with a number from 1, such as web-0-db:2")
    return clique, int(number)
