"""The gRPC health check, spoken by hand: one call on one HTTP/2 connection needs no library.

We send what is fixed (the preface, our settings, one request) with header fields that are never compressed, and ask
the server to keep no table of fields, so that what it sends can be read without one: fields by number from the
protocol's own list, or spelled out, perhaps in its Huffman code. Which fields came by number does not matter here.
"""

from __future__ import annotations

import asyncio
import enum
import struct
from dataclasses import dataclass, field
from urllib.parse import unquote

from shoal.cluster.node.process.pods.hpack import decoded, literal, varint
from shoal.cluster.node.process.pods.reach import Dial, Unreachable, words_of

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PATH = "/grpc.health.v1.Health/Check"
_HEADER_TABLE_SIZE = 1
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_STREAM = 1
_MOST = 16 * 1024 * 1024
_STATUSES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_CODES = {
    1: "Canceled", 2: "Unknown", 3: "InvalidArgument", 4: "DeadlineExceeded", 5: "NotFound", 6: "AlreadyExists",
    7: "PermissionDenied", 8: "ResourceExhausted", 9: "FailedPrecondition", 10: "Aborted", 11: "OutOfRange",
    12: "Unimplemented", 13: "Internal", 14: "Unavailable", 15: "DataLoss", 16: "Unauthenticated",
}  # fmt: skip
_UNIMPLEMENTED = 12


class _Kind(enum.IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    CONTINUATION = 9


class Unhealthy(Exception):
    """Why the service is not taken for well."""


async def check_health(dial: Dial, host: str, port: int, service: str, *, agent: str, within: float) -> None:
    """Asks for a service's health (empty: the server's); returns where it is served, and raises Unhealthy otherwise."""
    where = f"{host}:{port}"
    is_connected = False
    try:
        async with asyncio.timeout(within):
            connection = await dial(host, port)
            try:
                reader, writer = await asyncio.open_connection(sock=connection)
            except BaseException:
                connection.close()
                raise
            try:
                is_connected = await _greeted(reader, writer)
                await _check(reader, writer, where, service, agent)
            finally:
                writer.transport.abort()
    except TimeoutError:
        if is_connected:
            raise Unhealthy(f"timeout: health rpc did not complete within {within:g}s") from None
        refused = f'timeout: failed to connect service "{where}" within {within:g}s: context deadline exceeded'
        raise Unhealthy(refused) from None
    except Unreachable as error:
        raise Unhealthy(f'error: failed to connect service at "{where}": {error}') from None
    except (asyncio.IncompleteReadError, OSError, ValueError) as error:
        words = words_of(error) if isinstance(error, OSError) else "error reading server preface: EOF"
        raise Unhealthy(f'error: failed to connect service at "{where}": {words}') from None


@dataclass
class _Reply:
    message: bytes = b""
    fields: dict[str, str] = field(default_factory=dict)
    is_over: bool = False


async def _greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Sends our settings and waits for the server's."""
    writer.write(_PREFACE + _frame(_Kind.SETTINGS, 0, 0, struct.pack(">HI", _HEADER_TABLE_SIZE, 0)))
    kind, _, _, _ = await _received(reader)
    if kind != _Kind.SETTINGS:
        raise ValueError("no HTTP/2")
    writer.write(_frame(_Kind.SETTINGS, _ACK, 0))
    return True


async def _check(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str, service: str, agent: str
) -> None:
    asked = service.encode()
    message = b"\x0a" + varint(len(asked)) + asked if asked else b""
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", _PATH), (":authority", where),
        ("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", agent),
    ]  # fmt: skip
    head = b"".join(literal(name, value) for name, value in fields)
    writer.write(_frame(_Kind.HEADERS, _END_HEADERS, _STREAM, head))
    writer.write(_frame(_Kind.DATA, _END_STREAM, _STREAM, b"\0" + struct.pack(">I", len(message)) + message))
    reply = _Reply()
    while not reply.is_over:
        await _follow(reader, writer, reply)
    _judge(reply)


async def _follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reply: _Reply) -> None:
    kind, flags, stream, payload = await _received(reader)
    match kind:
        case _Kind.SETTINGS if not flags & _ACK:
            writer.write(_frame(_Kind.SETTINGS, _ACK, 0))
        case _Kind.PING if not flags & _ACK:
            writer.write(_frame(_Kind.PING, _ACK, 0, payload))
        case _Kind.GOAWAY:
            raise Unhealthy("error: health rpc probe failed: rpc error: code = Unavailable desc = closing transport")
        case _Kind.RST_STREAM if stream == _STREAM:
            raise Unhealthy("error: health rpc probe failed: rpc error: code = Internal desc = stream terminated")
        case _Kind.DATA if stream == _STREAM:
            reply.message += _content(flags, payload)
            reply.is_over = bool(flags & _END_STREAM)
        case _Kind.HEADERS if stream == _STREAM:
            block = _content(flags, payload, has_priority=bool(flags & _PRIORITY))
            is_last = bool(flags & _END_STREAM)
            while not flags & _END_HEADERS:
                kind, flags, _, payload = await _received(reader)
                if kind != _Kind.CONTINUATION:
                    raise ValueError("headers are cut off")
                block += payload
            reply.fields.update(decoded(block))
            reply.is_over = is_last
        case _:
            pass  # windows, priorities, what the server may say and we need not know


def _judge(reply: _Reply) -> None:
    code = int(reply.fields.get("grpc-status") or "0")
    if code:
        words = unquote(reply.fields.get("grpc-message", ""))
        if code == _UNIMPLEMENTED:
            missing = "this server does not implement the grpc health protocol (grpc.health.v1.Health)"
            raise Unhealthy(f"error: {missing}: {words}")
        problem = f"rpc error: code = {_CODES.get(code, f'Code({code})')} desc = {words}"
        raise Unhealthy(f"error: health rpc probe failed: {problem}")
    # Five bytes of gRPC's own, then protobuf: field 1 is the status, and nothing is UNKNOWN.
    body = reply.message[5:]
    status = body[1] if len(body) >= 2 and body[0] == 0x08 else 0
    if status != 1:
        raise Unhealthy(f'service unhealthy (responded with "{_STATUSES.get(status, str(status))}")')


def _content(flags: int, payload: bytes, *, has_priority: bool = False) -> bytes:
    if flags & _PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if has_priority else payload


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


async def _received(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    if length > _MOST:
        raise ValueError("no HTTP/2")
    kind, flags, stream = struct.unpack(">BBI", head[3:])
    return kind, flags, stream & 0x7FFFFFFF, await reader.readexactly(length)
