"""Which fields an expression reads, told without a value."""

from __future__ import annotations

from shoal.scheduler.grouper.jq.nodes import Node

Path = tuple[str, ...]


def places_read(node: Node, places: frozenset[Path], read: set[Path]) -> frozenset[Path]:
    """The fields that a piece of an expression may give; those whose values it looks into are added to ``read``."""
    match node.does:
        case "." | "value":
            return places if node.does == "." else frozenset()
        case "|":
            return places_read(node.of[1], places_read(node.of[0], places, read), read)
        case "at" | "at?":
            base, key = places_read(node.of[0], places, read), node.of[1]
            if key.does == "value" and isinstance(key.value, str):
                return frozenset((*place, key.value) for place in base)
            read |= places_read(key, places, read) | base
            return base
        case "call" if node.value == "select":
            read |= places_read(node.of[0], places, read)
            return places
        case "()" | "," | "//" | "?":
            return frozenset().union(*(places_read(one, places, read) for one in node.of))
        case "call":
            read |= places if node.value != "empty" else frozenset()
    for one in node.of:
        read |= places_read(one, places, read)
    return frozenset()
