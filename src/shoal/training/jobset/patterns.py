"""Whether a pattern of a failure policy matches a message, by the engine that such patterns are written for (RE2).

It takes a time that grows with the message and not beyond it, whatever somebody wrote into a policy: Python's own
engine could be kept busy for hours. It is had from the library that evaluates CEL, which has it behind ``matches``.
"""

from __future__ import annotations

from functools import cache

from cel_expr_python import cel  # type: ignore[import-untyped]


def matches(pattern: str, message: str) -> bool:
    """Whether the pattern is found somewhere in the message; one that is no pattern is found nowhere."""
    return _answer(pattern, message) is True


def is_pattern(pattern: str) -> bool:
    """Whether this is a pattern at all."""
    return isinstance(_answer(pattern, ""), bool)


def _answer(pattern: str, message: str) -> object:
    sent = {"pattern": _encodable(pattern), "message": _encodable(message)}
    answer: object = _program().eval(data=sent).value()
    return answer


@cache
def _program() -> cel.Expression:
    text = cel.Type.STRING
    return cel.NewEnv(variables={"message": text, "pattern": text}).compile("message.matches(pattern)")


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
