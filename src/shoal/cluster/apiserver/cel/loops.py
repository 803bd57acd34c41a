"""The macros that visit every item of a list or every key of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shoal.cluster.apiserver.cel.costs import spend
from shoal.cluster.apiserver.cel.values import CelError

Frame = list[Any]
Run = Callable[[Frame], Any]


def run_loop(
    macro: str,
    over: Run,
    slots: tuple[int, ...],
    condition: Callable[[Frame], bool] | None,
    result: Run | None,
    read: Callable[[Any], Any] | None,
) -> Run:
    """A macro as a function; ``read`` turns an item into what its type says."""
    visit = _visits(over, slots, read)
    if macro in ("all", "exists"):
        assert condition is not None
        return _quantifier(visit, condition, macro == "exists")
    if macro == "existsOne":
        assert condition is not None
        test = condition
        return lambda frame: sum(1 for _ in visit(frame) if test(frame)) == 1
    assert result is not None
    wanted, value = condition, result
    if macro == "transformList":
        if wanted is None:
            return lambda frame: [value(frame) for _ in visit(frame)]
        chosen = wanted
        return lambda frame: [value(frame) for _ in visit(frame) if chosen(frame)]
    if macro == "sortBy":
        return _sorting(over, visit, value)
    return _mapping(macro, visit, slots[0], wanted, value)


def _visits(over: Run, slots: tuple[int, ...], read: Callable[[Any], Any] | None) -> Callable[[Frame], Iterator[None]]:
    """Puts one item after the other into its slots."""
    first = slots[0]
    second = slots[1] if len(slots) == 2 else None

    def visit(frame: Frame) -> Iterator[None]:
        items = over(frame)
        if type(items) is not list and type(items) is not dict:
            raise CelError("no such overload")
        spend(frame, len(items))
        if second is None:
            if read is None or type(items) is dict:
                for item in items:
                    frame[first] = item
                    yield
            else:
                for item in items:
                    frame[first] = read(item)
                    yield
            return
        pairs = items.items() if type(items) is dict else enumerate(items)
        for key, item in pairs:
            frame[first] = key
            frame[second] = item if read is None else read(item)
            yield

    return visit


def _quantifier(
    visit: Callable[[Frame], Iterator[None]], condition: Callable[[Frame], bool], decisive: bool
) -> Callable[[Frame], bool]:
    """``all`` and ``exists``: one item decides, whatever faults others have."""

    def decide(frame: Frame) -> bool:
        fault: CelError | None = None
        for _ in visit(frame):
            try:
                if condition(frame) is decisive:
                    return decisive
            except CelError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return not decisive

    return decide


def _sorting(over: Run, visit: Callable[[Frame], Iterator[None]], value: Run) -> Run:
    def in_order(frame: Frame) -> list[Any]:
        keys = [value(frame) for _ in visit(frame)]
        items = over(frame)
        try:
            return [items[at] for at in sorted(range(len(keys)), key=keys.__getitem__)]
        except TypeError:
            raise CelError("list elements must have the same type") from None

    return in_order


def _mapping(
    macro: str,
    visit: Callable[[Frame], Iterator[None]],
    key_slot: int,
    wanted: Callable[[Frame], bool] | None,
    value: Run,
) -> Run:
    def build(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for _ in visit(frame):
            if wanted is not None and not wanted(frame):
                continue
            made = value(frame)
            entries = made if macro == "transformMapEntry" else {frame[key_slot]: made}
            for key, each in entries.items():
                if key in built:
                    raise CelError(f"insert failed: key {key} already exists")
                built[key] = each
        return built

    return build
