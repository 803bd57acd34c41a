"""What a request asks for beyond its path; what makes no sense is refused in a sentence that names the parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from multidict import MultiMapping

from shoal.api.crd import DNS_LABEL_PATTERN
from shoal.visualizer.refusals import Refusal

KINDS = ("summary", "queues", "jobs", "nodes")
_LABEL = re.compile(DNS_LABEL_PATTERN)
_SHOWN = 80
"""So much of what somebody sent is repeated to them."""


def check_parameters(query: MultiMapping[str], known: Sequence[str]) -> None:
    """Refuses parameters that a route does not have: whoever misspells one must not get everything."""
    for name in query:
        if name not in known:
            instead = f"it takes {' and '.join(known)}" if known else "it takes none"
            raise Refusal(400, f"unknown parameter {_quoted(name)}: {instead}")


def namespaces(query: MultiMapping[str]) -> frozenset[str] | None:
    """The namespaces that are asked for, each in a ``namespace`` of its own; None is all: no name, or an empty one."""
    given = [name for name in query.getall("namespace", []) if name]
    for name in given:
        if len(name) > 63 or not _LABEL.fullmatch(name):
            what = "lower-case letters, digits and '-', beginning and ending with a letter or digit, 63 at most"
            raise Refusal(400, f"parameter namespace: {_quoted(name)} is no name of a namespace, which has {what}")
    return frozenset(given) or None


def kinds(query: MultiMapping[str]) -> frozenset[str]:
    """The kinds that a listener wants to hear of, each in a ``kind`` of its own; all unless said otherwise."""
    given = query.getall("kind", [])
    for kind in given:
        if kind not in KINDS:
            raise Refusal(400, f"parameter kind: {_quoted(kind)} is none of {', '.join(KINDS)}")
    return frozenset(given or KINDS)


def _quoted(text: str) -> str:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return '"' + "".join(character if character.isprintable() else "?" for character in shown) + '"'
