"""The formats of names and texts that expressions may ask for by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.builtin.names import (
    dns1035_problems,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.cel.formats import is_base64, is_date, is_date_time, is_uuid
from shoal.cluster.apiserver.cel.functions import MATCHERS, Library
from shoal.cluster.apiserver.cel.urls import InvalidUrl, parse_request_uri
from shoal.cluster.apiserver.cel.values import NOTHING, Optional

NAMES = Library()
_F = "kubernetes.NamedFormat"
Problems = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format, and what is wrong with a text that should have it."""

    name: str
    problems: Problems


MATCHERS[_F] = lambda value: type(value) is NamedFormat


def _prefix(problems: Problems) -> Problems:
    """A prefix may end in a dash, since something is to follow it."""
    return lambda text: problems(f"{text[:-1]}a" if text.endswith("-") else text)


def _said(test: Callable[[str], bool], message: str) -> Problems:
    return lambda text: [] if test(text) else [message]


def _uri_problems(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except InvalidUrl as error:
        return [str(error)]
    return []


_KNOWN = {
    name: NamedFormat(name, problems)
    for name, problems in {
        "dns1123Label": label_problems,
        "dns1123Subdomain": subdomain_problems,
        "dns1035Label": dns1035_problems,
        "qualifiedName": qualified_name_problems,
        "dns1123LabelPrefix": _prefix(label_problems),
        "dns1123SubdomainPrefix": _prefix(subdomain_problems),
        "dns1035LabelPrefix": _prefix(dns1035_problems),
        "labelValue": label_value_problems,
        "uri": _uri_problems,
        "uuid": _said(is_uuid, "does not match the UUID format"),
        "byte": _said(is_base64, "invalid base64"),
        "date": _said(is_date, "invalid date"),
        "datetime": _said(is_date_time, "invalid datetime"),
    }.items()
}


def _constant(found: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: found


for _name, _format in _KNOWN.items():
    NAMES.add(_constant(_format), f"format.{_name}(): {_F}")


@NAMES.function(f"format.named(string): optional<{_F}>")
def _named(name: str) -> Any:
    return Optional(_KNOWN[name]) if name in _KNOWN else NOTHING


@NAMES.function(f"{_F}::validate(string): optional<list<string>>")
def _validate(wanted: NamedFormat, text: str) -> Any:
    problems = wanted.problems(text)
    return Optional(problems) if problems else NOTHING
