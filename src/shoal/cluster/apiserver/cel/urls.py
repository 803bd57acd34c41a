"""URLs as Go's net/url reads those of requests: absolute, or a path from the root."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_plus


class InvalidUrl(ValueError):
    """A text that is no such URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL that expressions ask for."""

    scheme: str
    host: str
    """With the port."""
    path: str
    """As written, with its escapes."""
    query: str
    text: str

    @property
    def hostname(self) -> str:
        """Without the port and the brackets of IPv6."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """Digits, or nothing."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def escaped_path(self) -> str:
        """The path as it may stand in a URL: as written, if it may."""
        return self.path if _ESCAPED_PATH.fullmatch(self.path) else quote(unquote(self.path), safe="/$&+,:;=@~")

    @property
    def values(self) -> dict[str, list[str]]:
        """The query by its names; pairs that cannot be read are left out."""
        pairs = [pair for pair in self.query.split("&") if ";" not in pair and not _BAD_ESCAPE.search(pair)]
        del pairs[1000:]
        found: dict[str, list[str]] = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            if pair:
                found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return found


_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_PATH = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")


def parse_request_uri(text: str) -> Url:
    """Reads a URL as it stands in a request: absolute or a path from the root; a fragment is part of its path."""
    return _parsed(text, text)


def parse_url(text: str) -> Url:
    """The same, with the fragment set aside; the text must be a URL of a request as it stands."""
    parse_request_uri(text)
    return _parsed(text.partition("#")[0], text)


def _parsed(text: str, whole: str) -> Url:
    def fault(why: str) -> InvalidUrl:
        return InvalidUrl(f'parse "{whole}": {why}')

    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in text):
        raise fault("net/url: invalid control character in URL")
    if not text:
        raise fault("empty url")
    if text == "*":
        return Url("", "", "*", "", whole)
    scheme, rest = "", text
    found = _SCHEME.match(text)
    if found:
        scheme, rest = found[1].lower(), text[found.end() :]
    elif text.startswith(":"):
        raise fault("missing protocol scheme")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", query, whole)
        raise fault("invalid URI for request")
    host = ""
    if scheme and rest.startswith("//") and not rest.startswith("///"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(host, fault)
    elif scheme and rest.startswith("///"):
        rest = rest[2:]
    bad = _BAD_ESCAPE.search(rest)
    if bad:
        raise fault(f'invalid URL escape "{rest[bad.start() : bad.start() + 3]}"')
    return Url(scheme, host, rest, query, whole)


def _host(authority: str, fault: Callable[[str], InvalidUrl]) -> str:
    user, _, host = authority.rpartition("@")
    if not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        raise fault("net/url: invalid userinfo")
    if host.startswith("["):
        close = host.rfind("]")
        if close < 0:
            raise fault("missing ']' in host")
        port = host[close + 1 :]
    else:
        name, colon, rest = host.partition(":")
        port = colon + rest
        if ":" in rest:
            port = ":" + rest.rpartition(":")[2]
        bad = re.search(r"[^A-Za-z0-9\-._~!$&'()*+,;=%:\[\]<>\"\u0080-\U0010ffff]", name)
        if bad:
            raise fault(f'invalid character "{bad[0]}" in host name')
    if not re.fullmatch(r"(?::[0-9]*)?", port):
        raise fault(f'invalid port "{port}" after host')
    return host
