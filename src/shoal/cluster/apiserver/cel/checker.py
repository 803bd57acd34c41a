"""Infers the type of every part of an expression, and finds what does not fit before it ever runs.

Names, fields and overloads are resolved here once, so that running an expression looks nothing up. Messages are those
of CEL's own checker, as the API server shows them to the author of a rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.apiserver.cel.escapes import unescaped
from shoal.cluster.apiserver.cel.functions import Library, Overload
from shoal.cluster.apiserver.cel.matching import matcher
from shoal.cluster.apiserver.cel.patterns import InvalidPattern
from shoal.cluster.apiserver.cel.syntax import (
    Bind,
    Call,
    CompileError,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    Name,
    Node,
    Select,
    Source,
)
from shoal.cluster.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NAMED,
    NULL,
    STRING,
    UINT,
    Bindings,
    Type,
    joined,
    list_of,
    map_of,
    optional_of,
    substituted,
    type_of,
    unify,
)
from shoal.cluster.apiserver.cel.values import (
    SECOND,
    CelError,
    TypeValue,
    UInt,
    parse_duration,
    parse_timestamp,
    timestamp_of,
)

FIRST_SLOT = 1
"""Slot 0 of a running expression counts its steps."""

_LITERALS: dict[type, Type] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
}


class Checker:
    """Checks one expression; afterwards ``used`` names its variables and ``slots`` says how many it needs."""

    def __init__(self, source: Source, variables: Mapping[str, Type], library: Library) -> None:
        self.errors: list[tuple[int, str]] = []
        self.used: set[str] = set()
        self._source = source
        self._functions = library.functions
        self._mixes = False
        """Whether a list may hold values of several types: those that ``format`` takes may."""
        self._scope: dict[str, tuple[Type, int]] = {
            name: (given, FIRST_SLOT + at) for at, (name, given) in enumerate(variables.items())
        }
        self._variables = set(variables)
        self.slots = FIRST_SLOT + len(variables)

    def check(self, root: Node) -> Node:
        """The same tree, with types; raises CompileError with all that is wrong."""
        root = self._visit(root)
        if self.errors:
            raise CompileError("\n".join(message for _, message in sorted(self.errors)))
        return root

    def _visit(self, node: Node) -> Node:
        match node:
            case Literal():
                node.type = _LITERALS[type(node.value)]
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                self._list(node)
            case MapLiteral():
                self._map(node)
            case Loop():
                self._loop(node)
            case Bind():
                node.value = self._visit(node.value)
                outer = dict(self._scope)
                node.slot = self._declare(node.name, node.value.type)
                node.body = self._visit(node.body)
                self._scope = outer
                node.type = node.body.type
        return node

    def _fail(self, node: Node, message: str) -> None:
        self.errors.append((self._source.offsets.get(node.id, 0), self._source.error(node.id, message)))
        node.type = DYN

    def _declare(self, name: str, given: Type) -> int:
        slot, self.slots = self.slots, self.slots + 1
        self._scope[name] = (given, slot)
        self._variables.discard(name)
        return slot

    def _name(self, node: Name) -> Node:
        name = node.name.removeprefix(".")
        if name in self._scope:
            node.type, node.slot = self._scope[name]
            if name in self._variables:
                self.used.add(name)
            return node
        known = NAMED.get(name) or _PLAIN_TYPES.get(name)
        if known is not None:
            return Literal(TypeValue(known), id=node.id, type=type_of(known))
        self._fail(node, f"undeclared reference to '{name}' (in container '')")
        return node

    def _qualified(self, node: Node) -> str | None:
        """The dotted name that a chain of fields spells, where it does not begin with a variable."""
        if isinstance(node, Name):
            return None if node.name in self._scope else node.name
        if isinstance(node, Select) and not node.is_test:
            start = self._qualified(node.operand)
            return f"{start}.{node.field}" if start else None
        return None

    def _select(self, node: Select) -> Node:
        dotted = self._qualified(node)
        if dotted in NAMED:
            return Literal(TypeValue(NAMED[dotted]), id=node.id, type=type_of(NAMED[dotted]))
        node.operand = self._visit(node.operand)
        operand = node.operand.type
        if operand.name == "optional_type":
            operand = operand.parameters[0]
            node.operand_is_optional = True
        found = self._field(node, operand)
        if node.is_test:
            node.type = BOOL
        else:
            wraps = node.is_optional or node.operand_is_optional
            node.type = optional_of(found) if wraps and found.name != "optional_type" else found
        return node

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.is_dyn:
            return DYN
        if operand.name == "map":
            return operand.parameters[1]
        if operand.fields is not None:
            # A word of the language may be written as it is where only a field can stand.
            found = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
            if found is None:
                self._fail(node, f"undefined field '{node.field}'")
                return DYN
            node.field = unescaped(node.field)
            return found
        self._fail(node, f"type '{operand}' does not support field selection")
        return DYN

    def _call(self, node: Call) -> Node:
        name = node.function
        if node.target is not None:
            start = self._qualified(node.target)
            if start is not None and f"{start}.{name}" in self._functions:
                node.function, node.target = f"{start}.{name}", None
            else:
                node.target = self._visit(node.target)
        outer, self._mixes = self._mixes, self._mixes or node.function == "format"
        node.arguments = [self._visit(each) for each in node.arguments]
        self._mixes = outer
        given = ([node.target] if node.target is not None else []) + node.arguments
        known = self._functions.get(node.function)
        if known is None:
            self._fail(node, f"undeclared reference to '{name}' (in container '')")
            return node
        self._resolve(node, known, [each.type for each in given])
        self._check_literal(node)
        return node

    def _resolve(self, node: Call, known: list[Overload], given: list[Type]) -> None:
        result: Type | None = None
        for overload in known:
            if overload.is_member != (node.target is not None) or len(overload.parameters) != len(given):
                continue
            bound: Bindings = {}
            if all(unify(one, other, bound) for one, other in zip(overload.parameters, given, strict=True)):
                found = substituted(overload.result, bound)
                node.overloads.append(overload)
                result = found if result is None or result == found else DYN
                if not any(each.is_dyn for each in given):
                    break
        if result is None:
            target = f"{given[0]}." if node.target is not None else ""
            arguments = ", ".join(str(each) for each in given[bool(target) :])
            message = f"found no matching overload for '{node.function}' applied to '{target}({arguments})'"
            self._fail(node, message)
            return
        if node.function == "_+_" and given[0].list_type:
            result = given[0]
        node.type = result

    def _check_literal(self, node: Call) -> None:
        """Patterns, durations and moments that are written out are looked at now, not when the rule first runs."""
        written = node.arguments[-1] if node.arguments else None
        if not isinstance(written, Literal):
            return
        try:
            if node.function == "timestamp" and type(written.value) is int:
                timestamp_of(written.value * SECOND)
            if not isinstance(written.value, str):
                return
            if node.function == "matches":
                matcher(written.value)
            elif node.function == "duration":
                parse_duration(written.value)
            elif node.function == "timestamp":
                parse_timestamp(written.value)
        except (InvalidPattern, CelError):
            self._fail(written, f"invalid {node.function} argument")

    def _list(self, node: ListLiteral) -> None:
        node.items = [self._visit(each) for each in node.items]
        item: Type | None = None
        for at, each in enumerate(node.items):
            found = each.type.parameters[0] if at in node.optional and each.type.parameters else each.type
            item = self._aggregated(each, item, found)
        node.type = list_of(item or DYN)

    def _map(self, node: MapLiteral) -> None:
        if node.message:
            self._fail(node, f"undeclared reference to '{node.message}' (in container '')")
            return
        node.entries = [(self._visit(key), self._visit(value), optional) for key, value, optional in node.entries]
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._aggregated(key, keys, key.type)
            found = value.type.parameters[0] if optional and value.type.parameters else value.type
            values = self._aggregated(value, values, found)
        node.type = map_of(keys or DYN, values or DYN)

    def _aggregated(self, node: Node, known: Type | None, found: Type) -> Type:
        together = found if known is None else joined(known, found)
        if together is None and self._mixes:
            return DYN
        if together is None:
            self._fail(node, f"expected type '{known}' but found '{found}'")
            return DYN
        return together

    def _loop(self, node: Loop) -> None:
        node.over = self._visit(node.over)
        over = node.over.type
        if over.name == "list":
            first, second = (INT, over.parameters[0]) if len(node.variables) == 2 else (over.parameters[0], DYN)
        elif over.name == "map":
            first, second = over.parameters
        elif over.is_dyn:
            first = second = DYN
        else:
            message = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._fail(node.over, message)
            first = second = DYN
        outer, own = dict(self._scope), set(self._variables)
        node.slots = [self._declare(name, given) for name, given in zip(node.variables, (first, second), strict=False)]
        if node.condition is not None:
            node.condition = self._visit(node.condition)
            self._expect_bool(node, node.condition, first)
        if node.result is not None:
            node.result = self._visit(node.result)
        self._scope, self._variables = outer, own
        node.type = self._loop_type(node, first)

    def _expect_bool(self, node: Loop, condition: Node, item: Type) -> None:
        if condition.type in (BOOL, DYN):
            return
        if node.macro in ("all", "exists"):
            self._fail(condition, f"expected type 'bool' but found '{condition.type}'")
            return
        given = (
            f"({condition.type}, int, int)"
            if node.macro == "existsOne"
            else f"({condition.type}, list({item}), list({item}))"
        )
        self._fail(node, f"found no matching overload for '_?_:_' applied to '{given}'")

    def _loop_type(self, node: Loop, first: Type) -> Type:
        if node.macro in ("all", "exists", "existsOne"):
            return BOOL
        assert node.result is not None
        if node.macro == "sortBy":
            return list_of(first)
        if node.macro == "transformList":
            return list_of(node.result.type)
        if node.macro == "transformMap":
            return map_of(first, node.result.type)
        if node.result.type.name == "map":
            return node.result.type
        return map_of(DYN, DYN)


_PLAIN_TYPES = {"list": list_of(DYN), "map": map_of(DYN, DYN), "type": type_of(DYN), "optional_type": optional_of(DYN)}
