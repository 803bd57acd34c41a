"""What a listener hears, as server-sent events.

Any number of messages with what is new, changed and gone of each kind, and one ``cycle`` behind them, which alone has
an id: what came since the last ``cycle`` belongs together, and whoever was cut off in between hears it again. A
``reset`` comes first where it is everything and not a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from shoal.visualizer.pages import LARGE, Page
from shoal.visualizer.publisher import Published

HEARTBEAT = b": heartbeat\n\n"
RECONNECT = b"retry: 3000\n\n"
RESET = b"event: reset\ndata: {}\n\n"
_AT_ONCE = 1_000
_encode = msgspec.json.Encoder().encode


class _Cycle(msgspec.Struct, frozen=True):
    cycle: int
    at: object


def version_id(epoch: str, version: int) -> str:
    """The id by which a listener says what it has heard."""
    return f"{epoch}-{version}"


def version_of(given: str, epoch: str) -> int | None:
    """The version that an id stands for; None where it is not one of this publisher."""
    whose, _, number = given.strip().rpartition("-")
    return int(number) if whose == epoch and number.isascii() and number.isdecimal() and len(number) < 16 else None


def of_cycle(published: Published, epoch: str) -> bytes:
    """The end of what belongs together."""
    said = _encode(_Cycle(published.view.cycle, published.view.at))
    return b"event: cycle\nid: %b\ndata: %b\n\n" % (version_id(epoch, published.version).encode(), said)


def of_summary(summary: bytes) -> bytes:
    """The numbers, which are told whole."""
    return b"event: summary\ndata: %b\n\n" % summary


def of_page(kind: str, page: Page) -> bytes:
    """A page of objects that are all new to the listener."""
    return _message(kind, page.body, b"[]")


def of_changes(kind: str, upserted: Sequence[bytes], deleted: Sequence[str]) -> Iterator[bytes]:
    """Objects as they are now, and the ids of those that are gone; in messages that are not too long."""
    held: list[bytes] = []
    size = 0
    for encoded in upserted:
        held.append(encoded)
        size += len(encoded)
        if size >= LARGE:
            yield _message(kind, b",".join(held), b"[]")
            held, size = [], 0
    if held:
        yield _message(kind, b",".join(held), b"[]")
    for start in range(0, len(deleted), _AT_ONCE):
        yield _message(kind, b"", _encode(deleted[start : start + _AT_ONCE]))


def _message(kind: str, upserted: bytes, deleted: bytes) -> bytes:
    return b'event: %b\ndata: {"upserted":[%b],"deleted":%b}\n\n' % (kind.encode(), upserted, deleted)
