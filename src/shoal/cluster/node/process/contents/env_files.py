"""Variables that a container leaves in a file for those after it.

The file is a strict part of what a shell reads: ``NAME='value'``, where the value may go over several lines, and
comments. One that a shell would read otherwise than it looks is refused.
"""

from __future__ import annotations


class InvalidEnvFile(Exception):
    """The file is not in the form; says where."""


def variable_in(content: str, key: str) -> str:
    """The value of a variable; empty where the file does not have it."""
    lines = [line.removesuffix("\r") for line in content.split("\n")]
    at = 0
    while at < len(lines):
        line = lines[at].lstrip(" \t")
        at += 1
        if not line or line.startswith("#"):
            continue
        name, has_value, value = line.partition("=")
        if not has_value:
            raise _invalid(at, "missing '='")
        if not name.strip(" \t"):
            raise _invalid(at, "empty variable name")
        if name != name.rstrip(" \t"):
            raise _invalid(at, "whitespace before '=' is not allowed")
        if value.startswith((" ", "\t")):
            if name == key:  # a shell takes that for an empty value, and so do we
                return ""
            continue
        if not value.startswith("'"):
            raise _invalid(at, "value must be enclosed in single quotes")
        begin, pieces, rest = at, [], value[1:]
        while "'" not in rest:
            pieces.append(rest)
            if at == len(lines):
                raise InvalidEnvFile(
                    f"invalid environment variable format starting at line {begin}: unclosed single quote"
                )
            rest = lines[at]
            at += 1
        last, _, after = rest.partition("'")
        if after.strip(" \t") and not after.lstrip(" \t").startswith("#"):
            raise _invalid(at, "unexpected content after closing quote")
        if name == key:
            return "\n".join([*pieces, last])
    return ""


def _invalid(line: int, problem: str) -> InvalidEnvFile:
    return InvalidEnvFile(f"invalid environment variable format at line {line}: {problem}")
