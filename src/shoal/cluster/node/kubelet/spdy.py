"""Frames of SPDY/3.1, as far as port forwarding has them.

kubectl opens two streams for each connection and speaks as if to an old kubelet, though its frames now travel in the
messages of a WebSocket, cut anywhere. Of the protocol it uses: streams opened by the client, data, ends of streams,
resets, pings and the farewell. There is no window: neither end has ever kept one here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5

_CONTROL, _VERSION = 0x8000, 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN = 1
_WORD = struct.Struct(">I")
_HEAD = struct.Struct(">II")
_MOST_HEADERS = 64 * 1024

_NAMES = (
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,accept-ranges,age,allow,"
    "authorization,cache-control,connection,content-base,content-encoding,content-language,content-length,"
    "content-location,content-md5,content-range,content-type,date,etag,expect,expires,from,host,if-match,"
    "if-modified-since,if-none-match,if-range,if-unmodified-since,last-modified,location,max-forwards,pragma,"
    "proxy-authenticate,proxy-authorization,range,referer,retry-after,server,te,trailer,transfer-encoding,upgrade,"
    "user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,"
    "keep-alive,origin"
)
_WORDS = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(_WORD.pack(len(name)) + name.encode() for name in _NAMES.split(",")) + _WORDS.encode()
"""What both ends know before the first header is sent."""


class BadFrame(Exception):
    """What came is no SPDY."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The client opens a stream; the names of headers are in small letters."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; with the last of them its sender has said all."""

    stream: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream is given up, both ways."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Wants to be sent back."""

    number: int


class GoAway:
    """The client will open no more streams."""


Frame = Opened | Data | Reset | Ping | GoAway


class FrameReader:
    """Puts frames together from pieces that are cut anywhere."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are whole now; raises BadFrame."""
        self._unread += piece
        while len(self._unread) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._unread)
            size = second & 0xFFFFFF
            if len(self._unread) < _HEAD.size + size:
                return
            body = bytes(self._unread[_HEAD.size : _HEAD.size + size])
            del self._unread[: _HEAD.size + size]
            is_last = bool((second >> 24) & _FIN)
            if not first >> 31:
                yield Data(first, body, is_last)
            elif (frame := self._control(first & 0xFFFF, body, is_last=is_last)) is not None:
                yield frame

    def _control(self, kind: int, body: bytes, *, is_last: bool) -> Frame | None:
        if kind == _GOAWAY:
            return GoAway()
        if kind not in (_SYN_STREAM, _RST_STREAM, _PING):
            return None
        if len(body) < _WORD.size:
            raise BadFrame("a control frame is too short")
        [number] = _WORD.unpack_from(body)
        number &= 0x7FFFFFFF if kind != _PING else 0xFFFFFFFF
        if kind == _RST_STREAM:
            return Reset(number)
        if kind == _PING:
            return Ping(number)
        return Opened(number, self._read_headers(body[10:]), is_last)

    def _read_headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._headers.decompress(block, _MOST_HEADERS)
            if self._headers.unconsumed_tail:
                raise BadFrame("the headers of a stream are too long")
            words = list(_words(plain))
        except (zlib.error, struct.error, UnicodeDecodeError) as error:
            raise BadFrame(f"the headers of a stream cannot be read: {error}") from error
        return dict(zip(words[::2], words[1::2], strict=False))


class FrameWriter:
    """Makes frames."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def accepted(self, stream: int) -> bytes:
        """The reply to a stream that was opened, without any headers."""
        block = self._headers.compress(_WORD.pack(0)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(_SYN_REPLY, _WORD.pack(stream) + block)

    @staticmethod
    def data(stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        """Bytes of a stream, 16 MiB at most."""
        return _HEAD.pack(stream, (_FIN if is_last else 0) << 24 | len(data)) + data

    @staticmethod
    def reset(stream: int, status: int) -> bytes:
        """A stream is given up."""
        return _control_frame(_RST_STREAM, _HEAD.pack(stream, status))

    @staticmethod
    def ping(number: int) -> bytes:
        """The answer to a ping."""
        return _control_frame(_PING, _WORD.pack(number))


def _control_frame(kind: int, body: bytes) -> bytes:
    return _HEAD.pack((_CONTROL | _VERSION) << 16 | kind, len(body)) + body


def _words(block: bytes) -> Iterator[str]:
    """The names and values of a block of headers, by turns."""
    [count] = _WORD.unpack_from(block)
    offset = _WORD.size
    for _ in range(2 * count):
        [length] = _WORD.unpack_from(block, offset)
        offset += _WORD.size
        yield block[offset : offset + length].decode()
        offset += length
