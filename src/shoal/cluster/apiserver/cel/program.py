"""Turns a checked expression into a function.

Each part becomes a closure over the parts below it; values are read where they lie, and nothing of an object is
converted but what an expression touches. What a schema types apart from JSON (moments, spans, bytes, doubles) is read
as such at the very place where it is taken from the object.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from shoal.cluster.apiserver.cel.checker import FIRST_SLOT, Checker
from shoal.cluster.apiserver.cel.costs import COSTS, STEP_LIMIT, ExceedsAllowance, allowance, charged, spend
from shoal.cluster.apiserver.cel.equality import equality
from shoal.cluster.apiserver.cel.functions import Library, Overload
from shoal.cluster.apiserver.cel.library import KUBERNETES
from shoal.cluster.apiserver.cel.loops import run_loop
from shoal.cluster.apiserver.cel.reading import reader, whole_reader
from shoal.cluster.apiserver.cel.syntax import (
    Bind,
    Call,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    Name,
    Node,
    Select,
    parse,
)
from shoal.cluster.apiserver.cel.types import BOOL, Type
from shoal.cluster.apiserver.cel.values import (
    NOTHING,
    CelError,
    Nothing,
    Optional,
    equal,
)

Frame = list[Any]
Run = Callable[[Frame], Any]

_NUMBERS = ("int", "uint", "double", "bool")
_PLAIN = (*_NUMBERS, "null")


class Program:
    """An expression that is ready to run."""

    def __init__(self, run: Run, names: list[str], result: Type, used: frozenset[str], slots: int) -> None:
        self.result_type = result
        self.used = used
        """The variables that the expression reads."""
        self._run = run
        self._names = names
        self._spare = [None] * (slots - FIRST_SLOT - len(names))

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """The value, given those of the variables; raises CelError where there is none."""
        return self.run([bindings.get(name) for name in self._names])

    def run(self, values: list[Any]) -> Any:
        """The same, with the variables in the order in which they were declared."""
        allowed = allowance.get()
        if allowed is None:
            return self._guarded([STEP_LIMIT, *values, *self._spare])
        frame = [min(STEP_LIMIT, allowed.steps), *values, *self._spare]
        before = frame[0]
        try:
            return self._guarded(frame)
        finally:
            allowed.steps -= before - frame[0] + 1
            if frame[0] < 0 or allowed.steps < 0:
                raise ExceedsAllowance

    def _guarded(self, frame: Frame) -> Any:
        try:
            return self._run(frame)
        except RecursionError:
            raise CelError("expression is nested too deeply") from None
        except (TypeError, AttributeError, ValueError, KeyError):
            # The object is not what its schema says: a value of another type has been tolerated there.
            raise CelError("no such overload") from None


@functools.lru_cache(maxsize=8192)
def _compiled(expression: str, variables: tuple[tuple[str, Type], ...], library: Library) -> Program:
    return _compile(expression, dict(variables), library)


def compile_expression(expression: str, variables: Mapping[str, Type], library: Library = KUBERNETES) -> Program:
    """Compiles an expression over variables of the types given; raises CompileError."""
    if any(_has_fields(each) for each in variables.values()):
        # Objects of two schemas may share a name, so that types with fields do not make a key.
        return _compile(expression, variables, library)
    return _compiled(expression, tuple(variables.items()), library)


def _has_fields(given: Type) -> bool:
    return given.fields is not None or any(map(_has_fields, given.parameters))


def _compile(expression: str, variables: Mapping[str, Type], library: Library) -> Program:
    root, source = parse(expression)
    checker = Checker(source, variables, library)
    root = checker.check(root)
    return Program(_part(root), list(variables), root.type, frozenset(checker.used), checker.slots)


def _part(node: Node) -> Run:
    match node:
        case Literal(value=value):
            return lambda _frame: value
        case Name(slot=slot):
            # What a loop gives has been read already.
            return (
                _read(operator.itemgetter(slot), node.type)
                if node.name in ("self", "oldSelf")
                else operator.itemgetter(slot)
            )
        case Select():
            return _read(_select(node), node.type)
        case Call():
            return _call(node)
        case ListLiteral():
            return _list(node)
        case MapLiteral():
            return _map(node)
        case Loop():
            return _loop(node)
        case Bind(slot=slot):
            value, body = _part(node.value), _part(node.body)

            def bound(frame: Frame) -> Any:
                frame[slot] = value(frame)
                return body(frame)

            return bound
    raise AssertionError(node)


def _read(run: Run, given: Type) -> Run:
    read = reader(given)
    if read is None:
        return run
    return lambda frame: read(run(frame))


def _select(node: Select) -> Run:
    operand, field = _part(node.operand), node.field
    if node.operand_is_optional:

        def chained(frame: Frame) -> Any:
            held = operand(frame)
            if type(held) is Nothing:
                return False if node.is_test else NOTHING
            value = held.value if type(held) is Optional else held
            if node.is_test:
                return field in value
            return Optional(value[field]) if type(value) is dict and field in value else NOTHING

        return chained
    if node.is_test:

        def test(frame: Frame) -> bool:
            value = operand(frame)
            if type(value) is dict:
                return field in value
            raise CelError("no such overload")

        return test
    if node.is_optional:

        def maybe(frame: Frame) -> Any:
            value = operand(frame)
            if type(value) is Optional:
                value = value.value
            if type(value) is not dict:
                if type(value) is Nothing:
                    return NOTHING
                raise CelError("no such overload")
            return Optional(value[field]) if field in value else NOTHING

        return maybe

    def select(frame: Frame) -> Any:
        try:
            return operand(frame)[field]
        except KeyError:
            raise CelError(f"no such key: {field}") from None
        except TypeError:
            raise CelError("no such overload") from None

    return select


def _call(node: Call) -> Run:
    given = ([node.target] if node.target is not None else []) + node.arguments
    special = _SPECIAL.get(node.function)
    if special is not None:
        return special(node, given)
    parts = [_argument(each) for each in given]
    if node.function == "_+_" and given[0].type.list_type in ("set", "map"):
        return _merge(parts[0], parts[1], given[0].type)
    known = len(node.overloads) == 1 and not any(each.type.is_dyn for each in given)
    call = node.overloads[0].call if known else _dispatcher(node.overloads)
    if (cost := COSTS.get(node.function)) is not None and not _is_cheap(node.function, given):
        return charged(call, cost, parts)
    match parts:
        case []:
            return lambda _frame: call()
        case [one]:
            return lambda frame: call(one(frame))
        case [one, two]:
            return lambda frame: call(one(frame), two(frame))
        case _:
            return lambda frame: call(*[each(frame) for each in parts])


def _is_cheap(function: str, given: list[Node]) -> bool:
    """Whether a function is known to be called with numbers alone, as most additions are."""
    return function in ("_+_", "string") and all(each.type.name in _NUMBERS for each in given)


def _argument(node: Node) -> Run:
    """A part that a function gets whole: the items of a list are read as what they are."""
    run = _part(node)
    read = whole_reader(node.type) if node.type.name in ("list", "map") else None
    if read is None or isinstance(node, ListLiteral | MapLiteral):
        return run
    return lambda frame: read(run(frame))


def _dispatcher(overloads: list[Overload]) -> Callable[..., Any]:
    candidates = [(each.matchers, each.call) for each in overloads]

    def dispatch(*values: Any) -> Any:
        for matchers, call in candidates:
            for matcher, value in zip(matchers, values, strict=True):
                if matcher is not None and not matcher(value):
                    break
            else:
                return call(*values)
        raise CelError("no such overload")

    return dispatch


def _and(_node: Call, given: list[Node]) -> Run:
    left, right = map(_boolean, given)

    def conjunction(frame: Frame) -> bool:
        try:
            if not left(frame):
                return False
        except CelError:
            # A fault on one side does not matter where the other decides.
            if right(frame):
                raise
            return False
        return right(frame)

    return conjunction


def _or(_node: Call, given: list[Node]) -> Run:
    left, right = map(_boolean, given)

    def disjunction(frame: Frame) -> bool:
        try:
            if left(frame):
                return True
        except CelError:
            if not right(frame):
                raise
            return True
        return right(frame)

    return disjunction


def _boolean(node: Node) -> Callable[[Frame], bool]:
    run = _part(node)
    if node.type == BOOL:
        return run

    def checked(frame: Frame) -> bool:
        value = run(frame)
        if type(value) is bool:
            return value
        raise CelError("no such overload")

    return checked


def _choice(_node: Call, given: list[Node]) -> Run:
    condition, one, other = _boolean(given[0]), _part(given[1]), _part(given[2])
    return lambda frame: one(frame) if condition(frame) else other(frame)


def _equals(node: Call, given: list[Node]) -> Run:
    left, right = _part(given[0]), _part(given[1])
    compare = equality(given[0].type if not given[0].type.is_dyn else given[1].type)
    if given[0].type.is_dyn != given[1].type.is_dyn and compare in (operator.eq, None):
        compare = equal
    if given[0].type.name in _PLAIN or given[1].type.name in _PLAIN or _is_short(given[0]) or _is_short(given[1]):
        if node.function == "_==_":
            return lambda frame: compare(left(frame), right(frame))
        return lambda frame: not compare(left(frame), right(frame))
    cost = COSTS["_==_"]

    def equals(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        if steps := cost(one, other):
            spend(frame, steps)
        return compare(one, other)

    return equals if node.function == "_==_" else lambda frame: not equals(frame)


def _is_short(node: Node) -> bool:
    """Whether a value is written in the expression, and so ends every comparison soon."""
    return isinstance(node, Literal)


def _merge(left: Run, right: Run, given: Type) -> Run:
    """Adding to a set or a map of items keeps each once, the later one for the earlier."""
    keys = given.list_keys if given.list_type == "map" else ()

    def merged(frame: Frame) -> list[Any]:
        result = list(left(frame))
        known = {_key(each, keys): at for at, each in enumerate(result)}
        for each in right(frame):
            key = _key(each, keys)
            if key not in known:
                known[key] = len(result)
                result.append(each)
            else:
                result[known[key]] = each
        return result

    return merged


def _key(value: Any, keys: tuple[str, ...]) -> Any:
    return tuple(value.get(key) for key in keys) if keys else value


def _index(node: Call, given: list[Node]) -> Run:
    target, key = _part(given[0]), _part(given[1])
    is_optional = node.function == "_[?_]"

    def index(frame: Frame) -> Any:
        holder, at = target(frame), key(frame)
        wraps = is_optional
        if type(holder) is Optional:
            holder, wraps = holder.value, True
        elif type(holder) is Nothing:
            return NOTHING
        try:
            value = _item(holder, at)
        except KeyError:
            if wraps:
                return NOTHING
            raise CelError(f"no such key: {at}") from None
        except IndexError:
            if wraps:
                return NOTHING
            raise CelError(f"index out of bounds: {at}") from None
        return Optional(value) if wraps else value

    return _read(index, node.type)


def _item(holder: Any, at: Any) -> Any:
    if type(holder) is dict:
        if type(at) in (str, int, bool) or (type(at) is float and at.is_integer()):
            return holder[at]
        raise CelError("no such overload")
    if type(holder) is list:
        if type(at) is float and at.is_integer():
            at = int(at)
        if isinstance(at, int) and type(at) is not bool:
            if at < 0:
                raise IndexError
            return holder[at]
    raise CelError("no such overload")


def _or_value(_node: Call, given: list[Node]) -> Run:
    left, right = _part(given[0]), _part(given[1])

    def value_or(frame: Frame) -> Any:
        held = left(frame)
        return held.value if type(held) is Optional else right(frame)

    return value_or


def _or_optional(_node: Call, given: list[Node]) -> Run:
    left, right = _part(given[0]), _part(given[1])

    def first_of(frame: Frame) -> Any:
        held = left(frame)
        return held if type(held) is Optional else right(frame)

    return first_of


_SPECIAL: dict[str, Callable[[Call, list[Node]], Run]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _choice,
    "_==_": _equals,
    "_!=_": _equals,
    "_[_]": _index,
    "_[?_]": _index,
    "orValue": _or_value,
    "or": _or_optional,
}


def _list(node: ListLiteral) -> Run:
    parts = [_part(each) for each in node.items]
    if not node.optional:
        return lambda frame: [each(frame) for each in parts]
    optional = node.optional

    def built(frame: Frame) -> list[Any]:
        result = []
        for at, each in enumerate(parts):
            value = each(frame)
            if at not in optional:
                result.append(value)
            elif type(value) is Optional:
                result.append(value.value)
        return result

    return built


def _map(node: MapLiteral) -> Run:
    entries = [(_part(key), _part(value), optional) for key, value, optional in node.entries]

    def built(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_of, value_of, is_optional in entries:
            key, value = key_of(frame), value_of(frame)
            if is_optional:
                if type(value) is not Optional:
                    continue
                value = value.value
            if key in result:
                raise CelError(f"Failed with repeated key: {key}")
            result[key] = value
        return result

    return built


def _loop(node: Loop) -> Run:
    over = node.over.type
    item = over.parameters[0] if over.name == "list" else None
    value = over.parameters[1] if over.name == "map" else None
    read = reader(item) if item else reader(value) if value else None
    condition = _boolean(node.condition) if node.condition is not None else None
    result = _part(node.result) if node.result is not None else None
    return run_loop(node.macro, _part(node.over), tuple(node.slots), condition, result, read)
