"""One GET request, as kubelets send it to containers: nothing is verified, and a redirect may not leave the host."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit, urlunsplit

from shoal.cluster.node.process.pods.reach import Dial, Unreachable, words_of

MOST_REDIRECTS = 10
MOST_OF_BODY = 10 * 1024
_MOST_OF_HEAD = 64 * 1024


class Unanswered(Exception):
    """No answer came, or none that is HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a container answered, with the beginning of what it said."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_redirect(self) -> bool:
        """Whether it points elsewhere."""
        return self.status in (301, 302, 303, 307, 308) and "location" in self.headers


async def http_get(
    dial: Dial,
    *,
    scheme: str,
    host: str,
    port: int,
    path: str,
    headers: Sequence[tuple[str, str]],
    agent: str,
    within: float | None,
) -> Answer:
    """The answer to a request, after redirects on the same host; raises Unanswered."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    asked = urlsplit(path)
    url = urlunsplit((scheme.lower() or "http", place, asked.path or "/", asked.query, ""))
    try:
        async with asyncio.timeout(within):
            for _ in range(MOST_REDIRECTS):
                answer = await _once(dial, url, _headers(headers, agent))
                if not answer.is_redirect:
                    return answer
                target = urljoin(url, answer.headers["location"])
                if urlsplit(target).hostname != host:
                    return answer
                url = target
    except TimeoutError:
        slow = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        raise Unanswered(f'Get "{url}": {slow}') from None
    except (Unreachable, _Broken) as error:
        raise Unanswered(f'Get "{url}": {error}') from None
    except OSError as error:
        raise Unanswered(f'Get "{url}": {words_of(error)}') from None
    raise Unanswered(f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')


class _Broken(Exception):
    """What came is not an answer."""


async def _once(dial: Dial, url: str, headers: Sequence[tuple[str, str]]) -> Answer:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    connection = await dial(host, parts.port or (443 if secure else 80))
    try:
        reader, writer = await asyncio.open_connection(
            sock=connection,
            ssl=_unverified() if secure else None,
            server_hostname=host if secure else None,
            limit=_MOST_OF_HEAD,
        )
    except BaseException:
        connection.close()
        raise
    try:
        names = {name.lower() for name, _ in headers}
        lines = [f"GET {urlunsplit(('', '', parts.path or '/', parts.query, ''))} HTTP/1.1"]
        lines += [] if "host" in names else [f"Host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += ["Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode("latin-1", "replace"))
        await writer.drain()
        return await _answer(reader)
    finally:
        writer.transport.abort()


async def _answer(reader: asyncio.StreamReader) -> Answer:
    status, headers = 100, dict[str, str]()
    while 100 <= status < 200:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:
                raise _Broken("EOF") from None
            raise _malformed(error.partial) from None
        except asyncio.LimitOverrunError:
            raise _Broken("net/http: server response headers exceeded limit") from None
        first, *rest = head.decode("latin-1").split("\r\n")
        version, _, remainder = first.partition(" ")
        code = remainder[:3]
        if not version.startswith("HTTP/1.") or len(code) != 3 or not code.isdigit():
            raise _malformed(head)
        status = int(code)
        fields = (line.partition(":") for line in rest if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    return Answer(status=status, headers=headers, body=await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    length = headers.get("content-length", "")
    most = min(int(length), MOST_OF_BODY) if length.isdigit() else MOST_OF_BODY
    body = b""
    while len(body) < most and (piece := await reader.read(most - len(body))):
        body += piece
    return body


def _malformed(head: bytes) -> _Broken:
    first = head.split(b"\r\n", 1)[0][:100].decode("latin-1")
    return _Broken(f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{first}"')


def _headers(given: Sequence[tuple[str, str]], agent: str) -> list[tuple[str, str]]:
    names = {name.lower() for name, _ in given}
    usual = [(name, value) for name, value in (("User-Agent", agent), ("Accept", "*/*")) if name.lower() not in names]
    return [*usual, *((name, value) for name, value in given if value or name.lower() != "accept")]


def _unverified() -> ssl.SSLContext:
    """A container's certificate is its own business: the probe asks whether it answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
