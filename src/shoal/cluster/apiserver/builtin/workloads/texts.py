"""What texts inside a pod may say, beyond names and labels, in the exact words of Kubernetes."""

from __future__ import annotations

import ipaddress
import re

from shoal.cluster.apiserver.builtin.names import (
    MAX_SUBDOMAIN,
    longer_than,
    pattern_problem,
    subdomain_problems,
)
from shoal.kube.admission.fields import FieldProblem, invalid, required

NEGATIVE = "must be greater than or equal to 0"

_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED = rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*"
_underscored = re.compile(_UNDERSCORED, re.ASCII).fullmatch
_NOT_UNDERSCORED = pattern_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character",
    _UNDERSCORED,
    "example.com",
)

_HEADER = "[-A-Za-z0-9]+"
_header = re.compile(_HEADER, re.ASCII).fullmatch
_NOT_HEADER = pattern_problem(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)

_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_http_path = re.compile(_HTTP_PATH, re.ASCII).fullmatch

_environment_name = re.compile(r"[ -<>-~]+").fullmatch


def environment_name_problems(name: str) -> list[str]:
    """The name of an environment variable: printable, ASCII, and no '='."""
    if _environment_name(name):
        return []
    if not name:
        return ["environment variable name must be non-empty"]
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def header_problems(name: str) -> list[str]:
    """The name of an HTTP header."""
    return [] if _header(name) else [_NOT_HEADER]


def search_domain_problems(domain: str) -> list[str]:
    """A DNS search domain, in which underscores are taken."""
    problems = [longer_than(MAX_SUBDOMAIN)] if len(domain) > MAX_SUBDOMAIN else []
    return problems if _underscored(domain) else [*problems, _NOT_UNDERSCORED]


def domain_path_problems(text: str, path: str) -> list[FieldProblem]:
    """A path after a domain, such as ``acme.io/foo``."""
    if not text:
        return [required(path)]
    host, slash, rest = text.partition("/")
    if not slash or not host or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = [invalid(path, host, each) for each in subdomain_problems(host)]
    if not _http_path(rest):
        problems.append(invalid(path, rest, pattern_problem("Invalid path", _HTTP_PATH)))
    return problems


def ip_problems(value: str, path: str) -> list[FieldProblem]:
    """An IP address as fields of long standing take it."""
    address = parsed_ip(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if not _is_strict(value):
        return [invalid(path, value, "must not have leading 0s")]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return [invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def ip_warnings(value: str, path: str) -> list[str]:
    """What to say of an address that is good but not written as the standard writes it."""
    address = parsed_ip(value)
    if not isinstance(address, ipaddress.IPv6Address) or address.ipv4_mapped is not None or str(address) == value:
        return []
    return [f'{path}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{address}")']


def parsed_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; zeros that lead a part of an IPv4 one are overlooked, a zone is not."""
    if "%" in value:
        return None
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        pass
    parts = value.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    try:
        return ipaddress.IPv4Address(".".join(str(int(part)) if len(part) < 20 else part for part in parts))
    except ValueError:
        return None


def _is_strict(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def has_backstep(path: str) -> bool:
    """Whether a path goes up anywhere."""
    return ".." in path and ".." in path.split("/")


def backstep_problems(target: str, path: str) -> list[FieldProblem]:
    """A path that may not go up."""
    return [invalid(path, target, "must not contain '..'")] if has_backstep(target) else []


def descending_path_problems(target: str, path: str) -> list[FieldProblem]:
    """A path that stays below where it begins."""
    problems = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return problems + backstep_problems(target, path)


def local_path_problems(target: str, path: str) -> list[FieldProblem]:
    """A path inside a volume; names that begin with two dots belong to the kubelet."""
    problems = descending_path_problems(target, path)
    if target.startswith("..") and not target.startswith("../"):
        problems.append(invalid(path, target, "must not start with '..'"))
    return problems


def nonnegative_problems(value: int | None, path: str) -> list[FieldProblem]:
    """A number that may not be below zero; one that is not set has no fault."""
    return [invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []
