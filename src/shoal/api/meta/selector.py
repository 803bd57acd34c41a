"""Label selectors: which objects are meant, said by what their labels are.

There are two ways to write one: the object form of manifests (``LabelSelector``) and the text of ``kubectl -l`` and of
list queries (``a=b,c in (d,e),!f``). Both become a ``Selector``, a conjunction of requirements compiled into functions,
since one selector meets a hundred thousand objects.

Two edges matter. A selector that is absent selects nothing, one that is present and empty selects everything. And the
negative requirements, ``NotIn`` and ``!=``, are met by an object that has no such label.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from shoal.api.meta.names import label_value_problems, qualified_name_problems
from shoal.api.meta.objects import Wire


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One requirement of the object form."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Wire, frozen=True, kw_only=True):
    """A selector as manifests write it; all of its requirements must hold."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class LabelOperator(enum.Enum):
    """What a requirement asks of a label; each value is how the text form says it."""

    EQUALS = "="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


_OBJECT_FORM = {
    "In": LabelOperator.IN,
    "NotIn": LabelOperator.NOT_IN,
    "Exists": LabelOperator.EXISTS,
    "DoesNotExist": LabelOperator.DOES_NOT_EXIST,
}
_COMPARISONS = (LabelOperator.GREATER_THAN, LabelOperator.LESS_THAN)


class InvalidSelector(ValueError):
    """A selector that breaks the rules; ``problems`` has one sentence for each."""

    def __init__(self, what: str, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(f"{what} is not valid: {'; '.join(problems)}")


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """What one label must be; ``values`` are sorted and without repetition."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def problems(self) -> list[str]:
        """What is wrong with the requirement itself, in words."""
        problems = [f"label key {self.key!r} {problem}" for problem in qualified_name_problems(self.key)]
        for value in self.values:
            problems += [f"value {value!r} of {self.key!r} {problem}" for problem in label_value_problems(value)]
        match self.operator:
            case LabelOperator.IN | LabelOperator.NOT_IN:
                if not self.values:
                    problems.append(f"{self.key!r} needs at least one value with In and NotIn")
            case LabelOperator.EXISTS | LabelOperator.DOES_NOT_EXIST:
                if self.values:
                    problems.append(f"{self.key!r} takes no values with Exists and DoesNotExist")
            case _:
                if len(self.values) != 1:
                    problems.append(f"{self.key!r} needs exactly one value with {self.operator.value}")
                elif self.operator in _COMPARISONS and _integer(self.values[0]) is None:
                    problems.append(f"{self.key!r} needs a whole number with {self.operator.value}")
        return problems

    def __str__(self) -> str:
        match self.operator:
            case LabelOperator.EXISTS:
                return self.key
            case LabelOperator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case LabelOperator.IN | LabelOperator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator.value}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold, ready to be put to many objects."""

    requirements: tuple[LabelRequirement, ...] | None
    """Sorted by key; an empty tuple selects everything, None selects nothing."""

    _tests: tuple[Callable[[Mapping[str, str]], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tests", tuple(_test(requirement) for requirement in self.requirements or ()))

    @staticmethod
    def of(selector: LabelSelector | None) -> Selector:
        """The selector that a manifest means; raises InvalidSelector."""
        if selector is None:
            return SELECT_NOTHING
        if problems := selector_problems(selector):
            raise InvalidSelector("label selector", problems)
        return _selector(_requirements(selector))

    @staticmethod
    def of_labels(labels: Mapping[str, str]) -> Selector:
        """Selects the objects that have all of these labels."""
        return Selector.of(LabelSelector(match_labels=dict(labels)))

    @staticmethod
    def parse(text: str) -> Selector:
        """Reads the text form; raises InvalidSelector."""
        requirements = _Parser(text).requirements()
        if problems := [problem for requirement in requirements for problem in requirement.problems()]:
            raise InvalidSelector(f"label selector {text!r}", problems)
        return _selector(requirements)

    @property
    def is_everything(self) -> bool:
        """Whether nothing is required, so that every object is selected."""
        return self.requirements == ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return self.requirements is not None and all(test(labels) for test in self._tests)

    def __str__(self) -> str:
        # The empty text would select everything, so nothing has a text that no server accepts.
        return "<nothing>" if self.requirements is None else ",".join(map(str, self.requirements))


SELECT_EVERYTHING = Selector(())
SELECT_NOTHING = Selector(None)


def selector_problems(selector: LabelSelector) -> list[str]:
    """What is wrong with a selector of a manifest, each problem after the field that has it."""
    problems = []
    for key, value in selector.match_labels.items():
        found = LabelRequirement(key, LabelOperator.EQUALS, (value,)).problems()
        problems += [f"matchLabels: {problem}" for problem in found]
    for index, expression in enumerate(selector.match_expressions):
        where = f"matchExpressions[{index}]"
        operator = _OBJECT_FORM.get(expression.operator)
        if operator is None:
            known = ", ".join(_OBJECT_FORM)
            problems.append(f"{where}: operator {expression.operator!r} is unknown: use one of {known}")
        else:
            found = LabelRequirement(expression.key, operator, tuple(expression.values)).problems()
            problems += [f"{where}: {problem}" for problem in found]
    return problems


def _requirements(selector: LabelSelector) -> list[LabelRequirement]:
    return [LabelRequirement(key, LabelOperator.EQUALS, (value,)) for key, value in selector.match_labels.items()] + [
        LabelRequirement(expression.key, _OBJECT_FORM[expression.operator], tuple(sorted(set(expression.values))))
        for expression in selector.match_expressions
    ]


def _selector(requirements: Iterable[LabelRequirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _test(requirement: LabelRequirement) -> Callable[[Mapping[str, str]], bool]:
    key, values = requirement.key, frozenset(requirement.values)
    match requirement.operator:
        case LabelOperator.IN | LabelOperator.EQUALS:
            return lambda labels: labels.get(key) in values
        case LabelOperator.NOT_IN | LabelOperator.NOT_EQUALS:
            return lambda labels: labels.get(key) not in values
        case LabelOperator.EXISTS:
            return lambda labels: key in labels
        case LabelOperator.DOES_NOT_EXIST:
            return lambda labels: key not in labels
        case LabelOperator.GREATER_THAN | LabelOperator.LESS_THAN:
            bound = _integer(requirement.values[0]) or 0
            sign = 1 if requirement.operator is LabelOperator.GREATER_THAN else -1

            def beyond(labels: Mapping[str, str]) -> bool:
                number = _integer(labels.get(key, ""))
                return number is not None and sign * number > sign * bound

            return beyond


def _integer(text: str) -> int | None:
    """A whole number of 64 bits, as labels are compared."""
    if not re.fullmatch(r"[+-]?[0-9]{1,200}", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class _Parser:
    """Reads the text form, token by token."""

    _TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)")
    _SYMBOLS = frozenset(["", "==", "!=", "=", "!", "(", ")", ",", "<", ">"])
    _OPERATORS = {"=": LabelOperator.EQUALS, "==": LabelOperator.EQUALS} | {
        operator.value: operator
        for operator in (LabelOperator.NOT_EQUALS, LabelOperator.IN, LabelOperator.NOT_IN, *_COMPARISONS)
    }

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = [*self._TOKEN.findall(text), ""]
        self._position = 0

    def requirements(self) -> list[LabelRequirement]:
        """All requirements; the empty text has none."""
        requirements: list[LabelRequirement] = []
        if self._next == "":
            return requirements
        while True:
            requirements.append(self._requirement())
            if self._next == "":
                return requirements
            self._expect(",")

    @property
    def _next(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._next
        self._position += 1
        return token

    def _requirement(self) -> LabelRequirement:
        if self._next == "!":
            self._take()
            return LabelRequirement(self._word("a label key"), LabelOperator.DOES_NOT_EXIST)
        key = self._word("a label key")
        if self._next in ("", ","):
            return LabelRequirement(key, LabelOperator.EXISTS)
        operator = self._OPERATORS.get(self._next)
        if operator is None:
            raise self._unexpected("one of = == != in notin > <, ',' or the end")
        self._take()
        if operator in (LabelOperator.IN, LabelOperator.NOT_IN):
            return LabelRequirement(key, operator, self._set())
        return LabelRequirement(key, operator, ("" if self._next in ("", ",") else self._word("a value"),))

    def _set(self) -> tuple[str, ...]:
        self._expect("(")
        values = set()
        while True:
            values.add("" if self._next in (",", ")") else self._word("a value or ')'"))
            if self._next == ")":
                self._take()
                return tuple(sorted(values))
            self._expect(",")

    def _word(self, wanted: str) -> str:
        if self._next in self._SYMBOLS:
            raise self._unexpected(wanted)
        return self._take()

    def _expect(self, symbol: str) -> None:
        if self._next != symbol:
            raise self._unexpected(f"{symbol!r}")
        self._take()

    def _unexpected(self, wanted: str) -> InvalidSelector:
        found = repr(self._next) if self._next else "the end"
        return InvalidSelector(f"label selector {self._text!r}", [f"found {found} where {wanted} belongs"])
