"""What a list or a watch is asked for, read from the query and checked as Kubernetes checks it."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.kinds.json_scan import json_problem
from shoal.cluster.apiserver.refusals import Refused, bad_request, expired, invalid
from shoal.kube.admission.fields import FieldProblem, forbidden, not_supported
from shoal.kube.admission.fields import invalid as invalid_field

EXACT = "Exact"
NOT_OLDER = "NotOlderThan"

_UNREADABLE = "invalid continue token: continue key is not valid"
_NO_CONTINUE = forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")

_INTEGER = re.compile("[+-]?[0-9]+")
_MOST_DIGITS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ListOptions:
    """The options of a list or a watch."""

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continues: str = ""
    watch: bool = False
    bookmarks: bool = False
    send_initial: bool | None = None
    timeout: int | None = None

    @property
    def revision(self) -> int | None:
        """The version asked for; None where it is not said."""
        if not self.resource_version:
            return None
        if not self.resource_version.isascii() or not self.resource_version.isdigit():
            problem = f'strconv.ParseUint: parsing "{self.resource_version}": invalid syntax'
            raise bad_request(
                f"invalid resource version: {invalid_field('resourceVersion', self.resource_version, problem)}"
            )
        if len(self.resource_version) > _MOST_DIGITS or int(self.resource_version) >= 2**64:
            problem = f'strconv.ParseUint: parsing "{self.resource_version}": value out of range'
            raise bad_request(
                f"invalid resource version: {invalid_field('resourceVersion', self.resource_version, problem)}"
            )
        return int(self.resource_version)


_NO_OPTIONS = ListOptions()


def get_options(call: Call) -> ListOptions:
    """What a read of one object understands: only how old it may be."""
    version = call.value("resourceVersion")
    return ListOptions(resource_version=version) if version else _NO_OPTIONS


def list_options(call: Call) -> ListOptions:
    """The options in a request's query; raises Refused where they are wrong or contradict each other."""
    if not call.query:
        return _NO_OPTIONS
    options = ListOptions(
        labels=call.value("labelSelector"),
        fields=call.value("fieldSelector"),
        resource_version=call.value("resourceVersion"),
        match=call.value("resourceVersionMatch"),
        limit=_integer(call, "limit") or 0,
        continues=call.value("continue"),
        watch=_flag(call.value("watch")) or False,
        bookmarks=_flag(call.value("allowWatchBookmarks")) or False,
        send_initial=_flag(call.value("sendInitialEvents")),
        timeout=_integer(call, "timeoutSeconds"),
    )
    problems = _watch_problems(options) if options.watch else _list_problems(options)
    if problems:
        raise invalid("ListOptions", "meta.k8s.io", "", problems)
    return options


@dataclass(frozen=True, slots=True)
class Position:
    """Where a list goes on: after a key, at one version of everything (-1: at whatever is there)."""

    revision: int
    after: tuple[str, str]


def continue_token(position: Position) -> str:
    """A position as the client carries it back."""
    start = f"{position.after[0]}/{position.after[1]}\0"
    value = {"v": "meta.k8s.io/v1", "rv": position.revision, "start": start}
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).rstrip(b"=").decode()


def read_token(token: str) -> Position:
    """The position that a token holds."""
    padded = token + "=" * (-len(token) % 4)
    try:
        raw = base64.urlsafe_b64decode(padded)
        if problem := json_problem(raw):
            raise bad_request(f"{_UNREADABLE}: {problem}")
        value: Any = msgspec.json.decode(raw)
        if value["v"] != "meta.k8s.io/v1":
            raise bad_request(f"{_UNREADABLE}: server does not recognize this encoded version {value['v']}")
        if not isinstance(value["start"], str) or not isinstance(value["rv"], int):
            raise TypeError
        namespace, _, name = value["start"].removesuffix("\0").partition("/")
        return Position(int(value["rv"]), (namespace, name))
    except (ValueError, KeyError, TypeError, binascii.Error, msgspec.DecodeError):
        raise bad_request(_UNREADABLE) from None


def expired_token(position: Position) -> Refused:
    """410: the version of a list is gone; the token in the answer goes on at whatever is there now."""
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        continues=continue_token(Position(-1, position.after)),
    )


def _list_problems(options: ListOptions) -> list[FieldProblem]:
    problems = []
    if options.match:
        if not options.resource_version:
            problems.append(
                forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if options.continues:
            problems.append(_NO_CONTINUE)
        if options.match not in (EXACT, NOT_OLDER):
            problems.append(not_supported("resourceVersionMatch", options.match, [EXACT, NOT_OLDER, ""]))
        elif options.match == EXACT and options.resource_version == "0":
            problems.append(
                forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if options.send_initial is not None:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _watch_problems(options: ListOptions) -> list[FieldProblem]:
    problems = []
    match = options.match
    if options.send_initial is not None:
        if match != NOT_OLDER:
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            problems.append(forbidden("resourceVersionMatch", text))
    elif match:
        problems.append(
            forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    if match and match != NOT_OLDER:
        problems.append(not_supported("resourceVersionMatch", match, [NOT_OLDER]))
    if options.continues:
        problems.append(_NO_CONTINUE)
    return problems


def _integer(call: Call, name: str) -> int | None:
    text = call.value(name)
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def _flag(text: str) -> bool | None:
    return None if not text else text.lower() not in ("0", "false", "f")
