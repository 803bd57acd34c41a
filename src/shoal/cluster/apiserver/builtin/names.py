"""What texts may be names, keys and values, in the exact words of Kubernetes.

``shoal.api.meta`` has the same rules in words of our own, for our own kinds; clients of an API server read these.
Every check gives the list of what is wrong, empty where nothing is. Those that every object passes through remember
their answers, since labels and names repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

NameRule = Callable[[str], list[str]]

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
WILDCARD = rf"\*\.{SUBDOMAIN}"
CONFIG_KEY = "[-._a-zA-Z0-9]+"
C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
PERCENT = "[0-9]+%"

MAX_LABEL = 63
MAX_SUBDOMAIN = 253

_label = re.compile(LABEL, re.ASCII).fullmatch
_subdomain = re.compile(SUBDOMAIN, re.ASCII).fullmatch
_dns1035 = re.compile(DNS1035, re.ASCII).fullmatch
_qualified = re.compile(QUALIFIED, re.ASCII).fullmatch
_wildcard = re.compile(WILDCARD, re.ASCII).fullmatch
_config_key = re.compile(CONFIG_KEY, re.ASCII).fullmatch
_c_identifier = re.compile(C_IDENTIFIER, re.ASCII).fullmatch
_percent = re.compile(PERCENT, re.ASCII).fullmatch
_port_letters = re.compile("[-a-z0-9]+", re.ASCII).fullmatch


def pattern_problem(message: str, pattern: str, *examples: str) -> str:
    """A rule that is a pattern, told with examples as Kubernetes tells it."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def longer_than(limit: int) -> str:
    """The words for a text that is over its limit, which is in bytes whatever they say."""
    return f"must be no more than {limit} characters"


def outside(low: int, high: int) -> str:
    """The words for a number that is out of its range."""
    return f"must be between {low} and {high}, inclusive"


_NOT_LABEL = pattern_problem(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character",
    LABEL,
    "my-name",
    "123-abc",
)
_NOT_SUBDOMAIN = pattern_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character",
    SUBDOMAIN,
    "example.com",
)
_NOT_DNS1035 = pattern_problem(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    DNS1035,
    "my-name",
    "abc-123",
)
_NOT_QUALIFIED = pattern_problem(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_NOT_LABEL_VALUE = pattern_problem(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    f"({QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
)
_NOT_WILDCARD = pattern_problem(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    WILDCARD,
    "*.example.com",
)
_NOT_CONFIG_KEY = pattern_problem(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_NOT_C_IDENTIFIER = pattern_problem(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'",
    C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_NOT_PERCENT = pattern_problem(
    "a valid percent string must be a numeric string followed by an ending '%'", PERCENT, "1%", "93%"
)


def label_problems(name: str) -> list[str]:
    """A DNS label (RFC 1123), as the names of namespaces are."""
    if len(name) <= MAX_LABEL and _label(name):
        return []
    problems = _over(name, MAX_LABEL)
    if not _label(name):
        problems.append("must not contain dots" if _subdomain(name) else _NOT_LABEL)
    return problems


def subdomain_problems(name: str) -> list[str]:
    """A DNS subdomain (RFC 1123), as the names of most objects are."""
    if len(name) <= MAX_SUBDOMAIN and _subdomain(name):
        return []
    return _over(name, MAX_SUBDOMAIN) + ([] if _subdomain(name) else [_NOT_SUBDOMAIN])


def dns1035_problems(name: str) -> list[str]:
    """A DNS label of the older sort (RFC 1035), which begins with a letter."""
    return _over(name, MAX_LABEL) + ([] if _dns1035(name) else [_NOT_DNS1035])


def wildcard_problems(name: str) -> list[str]:
    """A host with a star for its first part."""
    return _over(name, MAX_SUBDOMAIN) + ([] if _wildcard(name) else [_NOT_WILDCARD])


def path_segment_problems(name: str) -> list[str]:
    """Anything that can be one part of a URL's path, as the names of roles are."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in name]


def qualified_name_problems(key: str) -> list[str]:
    """A label key: a name, with or without a prefix that is a DNS subdomain."""
    found = _qualified_name(key)
    return list(found) if found else []


def label_value_problems(value: str) -> list[str]:
    """The value of a label."""
    found = _label_value(value)
    return list(found) if found else []


def config_key_problems(key: str) -> list[str]:
    """A key of a ConfigMap or Secret."""
    problems = _over(key, MAX_SUBDOMAIN)
    if not _config_key(key):
        problems.append(_NOT_CONFIG_KEY)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def c_identifier_problems(name: str) -> list[str]:
    """An identifier of the language C."""
    return [] if _c_identifier(name) else [_NOT_C_IDENTIFIER]


def percent_problems(text: str) -> list[str]:
    """A whole percentage, such as ``25%``."""
    return [] if _percent(text) else [_NOT_PERCENT]


def port_number_problems(port: int) -> list[str]:
    """A port number."""
    return [] if 1 <= port <= 65535 else [outside(1, 65535)]


def port_name_problems(name: str) -> list[str]:
    """A port's name, as IANA has them."""
    problems = _over(name, 15)
    if not _port_letters(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def prefix_problems(rule: NameRule, prefix: str) -> list[str]:
    """What keeps a ``generateName`` from beginning good names: a dash at its end is none."""
    if rule is path_segment_problems:
        return [] if prefix in (".", "..") else rule(prefix)
    return rule(prefix[:-2] + "a") if len(prefix) > 1 and prefix.endswith("-") else rule(prefix)


def text_bytes(text: str) -> int:
    """The size of a text on the wire, which is what limits count."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _over(text: str, limit: int) -> list[str]:
    return [longer_than(limit)] if text_bytes(text) > limit else []


@lru_cache(maxsize=16384)
def _qualified_name(key: str) -> tuple[str, ...]:
    parts = key.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_NOT_QUALIFIED} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    name = parts[-1]
    problems = []
    if len(parts) == 2:
        found = subdomain_problems(parts[0]) if parts[0] else ["must be non-empty"]
        problems = [f"prefix part {_in_bytes(each)}" for each in found]
    if not name:
        problems.append("name part must be non-empty")
    elif text_bytes(name) > MAX_LABEL:
        problems.append(f"name part {_in_bytes(longer_than(MAX_LABEL))}")
    if not _qualified(name):
        problems.append(f"name part {_NOT_QUALIFIED}")
    return tuple(problems)


@lru_cache(maxsize=16384)
def _label_value(value: str) -> tuple[str, ...]:
    if not value:
        return ()
    over = tuple(map(_in_bytes, _over(value, MAX_LABEL)))
    return over if _qualified(value) else (*over, _NOT_LABEL_VALUE)


def _in_bytes(problem: str) -> str:
    """Labels are told of the same limits in truer words."""
    return problem.removesuffix("characters") + "bytes" if problem.endswith(" characters") else problem
