"""What an expression gives for a value, one result after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from shoal.scheduler.grouper.jq.nodes import Node, QueryFailed
from shoal.scheduler.grouper.jq.values import MOST_STEPS, PLAIN, WITH_ARGUMENTS, at, combined, each, is_true


def run(node: Node, found: Any, steps: Iterator[int]) -> Iterator[Any]:
    """What a piece of an expression gives for a value, one after the other."""
    _step(steps)
    match node.does:
        case ".":
            yield found
        case "value":
            yield node.value
        case "|":
            for one in run(node.of[0], found, steps):
                yield from run(node.of[1], one, steps)
        case ",":
            yield from run(node.of[0], found, steps)
            yield from run(node.of[1], found, steps)
        case "()":
            yield from run(node.of[0], found, steps)
        case "//":
            yield from _alternatives(node, found, steps)
        case "?":
            try:
                yield from run(node.of[0], found, steps)
            except QueryFailed:
                return
        case "at" | "each" | "at?" | "each?":
            for one in run(node.of[0], found, steps):
                try:
                    items = each(one) if node.does.startswith("each") else _values_at(node.of[1], one, found, steps)
                except QueryFailed:
                    if not node.does.endswith("?"):
                        raise
                    continue
                for item in items:
                    _step(steps)
                    yield item
        case "[]":
            yield [one for inner in node.of for one in run(inner, found, steps)]
        case "if":
            for condition in run(node.of[0], found, steps):
                yield from run(node.of[1 if is_true(condition) else 2], found, steps)
        case "and" | "or":
            for left in run(node.of[0], found, steps):
                if is_true(left) is (node.does == "or"):
                    yield node.does == "or"
                else:
                    yield from (is_true(right) for right in run(node.of[1], found, steps))
        case "call":
            yield from _called(node, found, steps)
        case _:
            for right in run(node.of[1], found, steps):
                for left in run(node.of[0], found, steps):
                    _step(steps)
                    yield combined(node.does, left, right)


def _values_at(keys: Node, one: Any, found: Any, steps: Iterator[int]) -> list[Any]:
    return [at(one, key) for key in run(keys, found, steps)]


def _step(steps: Iterator[int]) -> None:
    if next(steps, None) is None:
        raise QueryFailed(f"the expression takes more than {MOST_STEPS} steps")


def _alternatives(node: Node, found: Any, steps: Iterator[int]) -> Iterator[Any]:
    """What is there and not false on the left; where nothing is, the right."""
    is_empty = True
    try:
        for one in run(node.of[0], found, steps):
            if is_true(one):
                is_empty = False
                yield one
    except QueryFailed:
        pass
    if is_empty:
        yield from run(node.of[1], found, steps)


def _called(node: Node, found: Any, steps: Iterator[int]) -> Iterator[Any]:
    name = node.value
    if not node.of:
        if name != "empty":
            yield PLAIN[name](found)
        return
    (argument,) = node.of
    match name:
        case "select":
            yield from (found for one in run(argument, found, steps) if is_true(one))
        case "map":
            yield [one for item in each(found) for one in run(argument, item, steps)]
        case "first":
            yield from islice(run(argument, found, steps), 1)
        case "any" | "all":
            holds = (is_true(one) for item in each(found) for one in run(argument, item, steps))
            yield any(holds) if name == "any" else all(holds)
        case _:
            for one in run(argument, found, steps):
                yield WITH_ARGUMENTS[name](found, one)
